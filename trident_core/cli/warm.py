"""`trident warm`: compile all kernels now, so that no later run waits for them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trident_core.cli import common, waiting
from trident_core.cli.output import console, emit, table
from trident_core.cli.simulated import simulate_day
from trident_core.compiling import compiled
from trident_core.contracts import Capability, EngineSpec, Kind, MarketRules, TimedBook, Warmable
from trident_core.contracts.matching import REPORTS_MIN
from trident_core.dtypes import EFFECT, EVENT, TOP
from trident_core.engines import make_matcher
from trident_core.errors import PluginError
from trident_core.orders import COMMAND, REPORT
from trident_core.plugins import registry
from trident_core.session import Session

if TYPE_CHECKING:
    from rich.console import Console


def warm(json: common.Json = False) -> None:
    """Compile the kernels of every installed engine into the cache (`trident doctor` says where it is)."""
    waiting.expected()
    steps, rows = list(_steps()), []
    for at, (name, run) in enumerate(steps, start=1):
        if not json:
            console(stderr=True).print(f"{at} of {len(steps)}: {name} …")
        began, before = time.perf_counter(), compiled()
        run()
        seconds = round(time.perf_counter() - began, 2)
        rows.append({"what": name, "seconds": seconds, "compiled": compiled() - before})

    def render(out: Console) -> None:
        shown = table("", "kernels of", ">compiled", ">seconds")
        for row in rows:
            shown.add_row(str(row["what"]), str(row["compiled"]), f"{row['seconds']:.2f}")
        out.print(shown)
        if not any(row["compiled"] for row in rows):
            out.print("all were in the cache")

    emit(rows, as_json=json, render=render)


def _steps() -> Iterator[tuple[str, Callable[[], object]]]:
    """What there is to compile, each with a function that does it."""
    from trident_core.convert_lobster import warm_up as warm_lobster
    from trident_core.ledger import Ledger
    from trident_core.ring import Ring

    yield "ring", Ring(2).warm_up
    yield "account of shares", Ledger().warm_up
    for spec in registry().engines(Kind.STORE):  # a store needs a folder: its class compiles without one
        try:
            factory = spec.load()
        except PluginError:
            continue
        if isinstance(factory, Warmable):
            yield f"store {spec.name}", factory.warm_up
    for kind in (Kind.PARSER, Kind.BOOK, Kind.QUERY, Kind.SEQUENCE):  # feeds compile nothing
        for spec in registry().engines(kind):
            try:
                engine = spec.load()(*(() if kind in (Kind.QUERY, Kind.SEQUENCE) else (Session(),)))
            except PluginError:
                continue  # `trident plugins` and `trident doctor` report it
            if isinstance(engine, Warmable):
                yield f"{kind} {spec.name}", engine.warm_up
            if isinstance(engine, TimedBook):
                yield f"{kind} {spec.name}, timing itself", partial(_time, engine)
            if Capability.SHARDED in spec.capabilities:
                yield f"{kind} {spec.name}, in threads", partial(_shard, spec)
            if Capability.MATCH in spec.capabilities:
                yield f"{kind} {spec.name}, matching", partial(_match, spec)
    yield "tables", _make_tables
    yield "LOBSTER's files", warm_lobster
    yield "simulator", _simulate
    yield "agents", partial(_simulate, agents=True, minutes=1)


def _make_tables() -> None:
    from trident_core.tables.catalog import TABLES
    from trident_core.tables.collect import Collector

    Collector(Session(), dict(TABLES), lambda name, rows: None).warm_up()


def _shard(spec: EngineSpec) -> None:
    from trident_core.sharding import ShardedBook

    books = ShardedBook(spec.load(), Session(), 2)
    books.warm_up()
    books.close()


def _match(spec: EngineSpec) -> None:
    from trident_core import ticks

    matcher = make_matcher(spec, Session(), MarketRules())
    if isinstance(matcher, Warmable):
        matcher.warm_up()
    time_commands = getattr(matcher, "time_commands", None)
    if time_commands is not None and ticks.available():
        time_commands(np.zeros(0, COMMAND), np.zeros(REPORTS_MIN, REPORT), np.zeros(0, np.int64))


def _time(book: TimedBook) -> None:
    from trident_core import ticks

    if ticks.available():
        ticks.Rate().ticks_per_ns(0)
        ticks.floor_ticks(1)
        nothing = np.zeros(1, np.int64)
        book.time_events(np.zeros(1, EVENT), np.zeros(1, TOP), np.zeros(1, EFFECT), nothing)


def _simulate(**options: Any) -> None:
    with tempfile.TemporaryDirectory(prefix="trident-warm-") as folder:
        simulate_day(Path(folder) / "day", messages=6_000, symbols=6, **options)
