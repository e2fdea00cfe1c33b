"""`trident warm`: compile all kernels now, so that no later run waits for them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from trident_core.cli import common
from trident_core.cli.output import console, emit, table
from trident_core.cli.simulated import simulate_day
from trident_core.contracts import Kind, Warmable
from trident_core.errors import PluginError
from trident_core.plugins import registry
from trident_core.session import Session

if TYPE_CHECKING:
    from rich.console import Console


def warm(json: common.Json = False) -> None:
    """Compile the kernels of every installed engine into the cache (`trident doctor` says where it is)."""
    rows = []
    for name, run in _steps():
        if not json:
            console(stderr=True).print(f"{name} …")
        began = time.perf_counter()
        run()
        rows.append({"what": name, "seconds": round(time.perf_counter() - began, 2)})

    def render(out: Console) -> None:
        shown = table("", "compiled, or found in the cache", ">seconds")
        for row in rows:
            shown.add_row(str(row["what"]), f"{row['seconds']:.2f}")
        out.print(shown)

    emit(rows, as_json=json, render=render)


def _steps() -> Iterator[tuple[str, Callable[[], object]]]:
    """What there is to compile, each with a function that does it."""
    from trident_core.ring import Ring

    yield "ring", Ring(2).warm_up
    for kind in (Kind.PARSER, Kind.BOOK):
        for spec in registry().engines(kind):
            try:
                engine = spec.load()(Session())
            except PluginError:
                continue  # `trident plugins` and `trident doctor` report it
            if isinstance(engine, Warmable):
                yield f"{kind} {spec.name}", engine.warm_up
    yield "tables", _make_tables
    yield "simulator", _simulate


def _make_tables() -> None:
    from trident_core.tables.catalog import TABLES
    from trident_core.tables.collect import Collector

    Collector(Session(), dict(TABLES), lambda name, rows: None).warm_up()


def _simulate() -> None:
    with tempfile.TemporaryDirectory(prefix="trident-warm-") as folder:
        simulate_day(Path(folder) / "day", messages=1_000, symbols=6)
