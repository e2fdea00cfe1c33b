"""The whole line on a day: what the store costs the book, under stalls and beside a reader too.

Every run reads the same file through feed, parser and book; all but the first have a store behind the ring
and end when the last event is durable. A lap is what one batch takes in book and ring, as the feed sees it.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.benchmarks.setting import BATCH, Setting
from trident_core.contracts import Kind
from trident_core.filesystem import OsFileSystem
from trident_core.inputs import open_input
from trident_core.line.faults import Faults, faulty
from trident_core.line.process import ProcessWriter, StoreOrders
from trident_core.line.stores import open_writing
from trident_core.measure import CLOCK, Percentiles
from trident_core.pipeline import LIVE_RING_CAPACITY, Line, LineOptions
from trident_core.stats import RunStats

STALL: Final = "fsync-stall=77ms@1+"


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to run the line. `reader`: beside another process that scans the store, over and over."""

    name: str
    store: bool = True
    live: bool = True
    inject: str = ""
    reader: bool = False
    processes: bool = False


CONTENDERS: Final = (
    Contender("book alone", store=False),
    Contender("store, book waits", live=False),
    Contender("live"),
    Contender("live, fsync +77 ms", inject=STALL),
    Contender("live, full scans", reader=True),
    Contender("live, own process", processes=True),
)


@dataclass(slots=True)
class Measured:
    """The rounds of one contender. `fed_s`: until the book had the last event, `wall_s`: until it was
    durable."""

    wall_s: list[float] = field(default_factory=list)
    fed_s: list[float] = field(default_factory=list)
    laps_ns: list[NDArray[np.int64]] = field(default_factory=list)
    stats: RunStats = field(default_factory=RunStats)  # of the last round
    waits: int = 0
    wait_s: float = 0.0
    dropped: int = 0
    scans: int = 0


@dataclass
class LineResult:
    """What `bench line` found, by contender; the first is the book alone."""

    input: str
    engines: str
    events: int
    runs: dict[str, Measured]
    load_average: tuple[float, float]

    def ratio(self, name: str, of: str = "wall_s") -> float:
        """Events a second beside the book alone: the median over the rounds."""
        first = next(iter(self.runs.values()))
        pairs = zip(first.wall_s, getattr(self.runs[name], of), strict=True)
        return float(statistics.median(alone / mine for alone, mine in pairs))

    def laps_us(self, name: str) -> Percentiles:
        """Microseconds that a batch takes in book and ring."""
        return Percentiles.of(np.concatenate(self.runs[name].laps_ns), 1e-3)

    def to_json(self) -> dict[str, Any]:
        runs = {}
        for name, run in self.runs.items():
            laps, wall = self.laps_us(name), statistics.median(run.wall_s)
            runs[name] = {
                "wall_s": run.wall_s, "fed_s": run.fed_s, "events_per_s": self.events / wall,
                "ratio_to_book": self.ratio(name), "ratio_to_book_fed": self.ratio(name, "fed_s"),
                "batch_us": {
                    "count": laps.count, "p50": laps.p50, "p99": laps.p99, "p99_9": laps.p99_9,
                    "max": laps.max,
                },
                "ring_full_waits": run.waits, "ring_full_wait_s": run.wait_s, "dropped": run.dropped,
                "durable_seq": run.stats.durable_seq, "scans": run.scans, "line": run.stats.line,
            }  # fmt: skip
        return {
            "title": "line", "input": self.input, "engines": self.engines, "events": self.events,
            "batch": BATCH, "rounds": len(next(iter(self.runs.values())).wall_s), "runs": runs,
            "load_average_1m": list(self.load_average), "clock": CLOCK,
        }  # fmt: skip


def bench_line(setting: Setting) -> list[LineResult]:
    """Each contender once in each round, in turn, every one into a new store. Kernels are compiled before."""
    load = os.getloadavg()[0]
    kinds = (Kind.PARSER, Kind.BOOK, Kind.STORE)
    engines = ", ".join(setting.engine(kind)[0].removeprefix("trident ") for kind in kinds)
    _warm(setting)
    runs = {each.name: Measured() for each in CONTENDERS}
    for _ in range(setting.rounds):
        for each in CONTENDERS:
            _run(setting, each, runs[each.name])
    events = runs[CONTENDERS[0].name].stats.events
    loads = round(load, 2), round(os.getloadavg()[0], 2)
    return [LineResult(setting.day.describe(), engines, events, runs, loads)]


def _warm(setting: Setting) -> None:
    """Kernels compiled, and the file in memory."""
    factory = setting.engine(Kind.STORE)[1]
    with suppress(AttributeError, TypeError):  # an engine that compiles nothing, or only once it is open
        factory.warm_up()
    with open(setting.day.path, "rb") as file:
        while file.read(1 << 24):
            pass


def _run(setting: Setting, contender: Contender, into: Measured) -> None:
    folder = setting.folder / "line-store"
    opened = open_input(
        str(setting.day.path), parser=setting.engines.get(Kind.PARSER), book=setting.engines.get(Kind.BOOK)
    )
    options = LineOptions(
        batch=BATCH, laps=True, live=contender.live and contender.store, linger_s=math.inf
    )  # full batches, so that laps are alike
    if options.live:
        options.ring_capacity, options.spill_folder = LIVE_RING_CAPACITY, folder
    faults = Faults.parse((contender.inject,) if contender.inject else ())
    options.faults, options.filesystem = faults, faulty(faults) if faults else OsFileSystem()
    spec = setting.engine(Kind.STORE)
    store: Any = None
    writer: ProcessWriter | None = None
    try:
        if contender.processes:
            name = spec[0].rpartition(" ")[2]
            orders = StoreOrders(folder, "create", name, live=True, batch=BATCH)
            writer = ProcessWriter(orders, opened.session, ring_capacity=LIVE_RING_CAPACITY)
        elif contender.store:
            store = open_writing(spec[1], folder, "create", opened.session, faults)
        with _scanning(folder, spec[0].rpartition(" ")[2] if contender.reader else "") as scans:
            line = Line(
                opened.feed, opened.source, opened.parser, opened.book, store, writer=writer, options=options
            )
            stats = line.run()
        into.scans += scans[0]
    finally:
        opened.close()
        if writer is not None:
            writer.finish()
        if store is not None:
            store.close()
        shutil.rmtree(folder, ignore_errors=True)
    _note(into, stats, line)


def _note(into: Measured, stats: RunStats, line: Line) -> None:
    into.wall_s.append(stats.wall_s)
    into.fed_s.append(sum(stats.stage_s[stage] for stage in ("parse", "book", "ring")))
    into.laps_ns.append(np.array([ns for _, ns in line.laps], np.int64))
    into.stats = stats
    into.waits += stats.ring_full_waits
    into.wait_s += stats.ring_full_wait_s
    into.dropped += stats.line.get("dropped", 0)


@contextmanager
def _scanning(folder: Path, engine: str) -> Iterator[list[int]]:
    """A process that reads the whole store again and again; how often it came through, afterwards."""
    scans = [0]
    if not engine:
        yield scans
        return
    command = [sys.executable, "-m", "trident_core.benchmarks.line_reader", str(folder), engine]
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert reader.stdout is not None
        reader.stdout.readline()  # it is there
        yield scans
    finally:
        out, _ = reader.communicate()
        scans[0] = int(out or 0)
