"""What `trident warm` compiles, in parts that share few kernels: processes can take them in any order."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

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

#: What is compiled, and a function that does it.
Step = tuple[str, Callable[[], object]]
#: `what`, `seconds`, `compiled`: of a step.
Row = dict[str, Any]


def compile_part(part: str, begins: Callable[[str], object]) -> list[Row]:
    """Compile what one of PARTS has, or load it from the cache; `begins` is told of each step."""
    rows: list[Row] = []
    for name, run in PARTS[part]():
        begins(name)
        began, before = time.perf_counter(), compiled()
        run()
        seconds = round(time.perf_counter() - began, 2)
        rows.append({"what": name, "seconds": seconds, "compiled": compiled() - before})
    return rows


def _core() -> Iterator[Step]:
    from trident_core.convert_lobster import warm_up as warm_lobster
    from trident_core.ledger import Ledger
    from trident_core.ring import Ring

    yield "ring", Ring(2).warm_up
    yield "account of shares", Ledger().warm_up
    yield "tables", _make_tables
    yield "LOBSTER's files", warm_lobster


def _stores() -> Iterator[Step]:
    for spec in registry().engines(Kind.STORE):  # a store needs a folder: its class compiles without one
        try:
            factory = spec.load()
        except PluginError:
            continue
        if isinstance(factory, Warmable):
            yield f"store {spec.name}", factory.warm_up


def _engines(*kinds: Kind) -> Iterator[Step]:
    for kind in kinds:
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


def _simulators() -> Iterator[Step]:
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


#: The dearest first. Feeds compile nothing.
PARTS: Final[dict[str, Callable[[], Iterator[Step]]]] = {
    "books": partial(_engines, Kind.BOOK),
    "queries": partial(_engines, Kind.QUERY, Kind.SEQUENCE),
    "simulators": _simulators,
    "core": _core,
    "stores": _stores,
    "parsers": partial(_engines, Kind.PARSER),
}
