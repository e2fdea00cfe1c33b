"""The project's benchmarks: each compares the selected engine with a named peer on the same input, in turn.

Input is a simulated day, so that anyone can repeat them. A peer that is not installed is left out and noted.
"""

from __future__ import annotations

import re
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Kind, Status
from trident_core.decode import events_of
from trident_core.dtypes import EVENT, TOP, Events, Frames
from trident_core.measure import Comparison, compare
from trident_core.plugins import registry
from trident_core.session import Session

BATCH: Final = 4_096


@dataclass(slots=True)
class Setting:
    """What a benchmark runs on: a day in memory and on disk, engines by kind (None: selected), rounds."""

    day: Path
    engines: Mapping[Kind, str | None]
    rounds: int = 5
    folder: Path = Path()
    _frames: Frames | None = field(default=None, repr=False)
    _events: Events | None = field(default=None, repr=False)
    session: Session = field(default_factory=Session)

    def engine(self, kind: Kind) -> tuple[str, Any]:
        selection = registry().select(kind, self.engines.get(kind))
        return f"trident {kind} {selection.spec.name}", selection.load()

    @property
    def frames(self) -> Frames:
        if self._frames is None:
            self._frames = np.fromfile(self.day, np.uint8)
        return self._frames

    @property
    def events(self) -> Events:
        """All events of the day, with the session's directory filled."""
        if self._events is None:
            _, factory = self.engine(Kind.PARSER)
            self._events = events_of(self.frames, factory(self.session))
        return self._events


def bench_parse(setting: Setting) -> list[Comparison]:
    """Framed bytes -> EVENTs, against a plain copy of the same bytes."""
    frames, out = setting.frames, np.zeros(BATCH, EVENT)
    target = np.empty_like(frames)
    name, factory = setting.engine(Kind.PARSER)

    def parse() -> None:
        parser, start = factory(Session()), 0
        while True:
            result = parser.parse_into(frames[start:], out)
            start += result.consumed
            if result.status is not Status.OUT_FULL:
                return

    runs: dict[str, Callable[[], object]] = {
        name: parse,
        "copy of the bytes": lambda: np.copyto(target, frames),
    }
    return [
        compare("parse", runs, unit="messages", units=len(setting.events), rounds=setting.rounds)
    ]  # fmt: skip


def bench_book(setting: Setting) -> list[Comparison]:
    """A day file -> best bid and offer after every message, against itch-book (its C++ core)."""
    parser_name, parser_factory = setting.engine(Kind.PARSER)
    book_name, book_factory = setting.engine(Kind.BOOK)
    frames, out, tops = setting.frames, np.zeros(BATCH, EVENT), np.zeros(BATCH, TOP)

    def build() -> None:
        session = Session()
        parser, book, start = parser_factory(session), book_factory(session), 0
        while True:
            result = parser.parse_into(frames[start:], out)
            book.apply(out[: result.count], tops)
            start += result.consumed
            if result.status is not Status.OUT_FULL:
                return

    runs: dict[str, Callable[[], object]] = {f"{parser_name} + {book_name.removeprefix('trident ')}": build}
    notes = []
    if find_spec("itch_book"):
        import datetime as dt

        import itch_book

        def peer() -> None:
            feed = itch_book.open(str(setting.day), date=dt.date(2019, 12, 30), price_type="fixed")
            for _ in feed.batches(tables=("bbo",), rows=1_000_000):
                pass

        runs["itch-book bbo"] = peer
    else:
        notes.append("itch-book is not installed: pip install itch-book")
    return [
        compare(
            "book (parse, apply, touch)", runs, unit="messages", units=len(setting.events),
            rounds=setting.rounds, notes=notes,
        )
    ]  # fmt: skip


def bench_convert(setting: Setting) -> list[Comparison]:
    """A gzipped day -> bbo and trades as Parquet, against itch2parquet, itch-book's own converter."""
    import contextlib
    import gzip
    import io
    import shutil

    from trident_core.convert import ConvertOptions, run_convert
    from trident_core.inputs import open_input

    names = [setting.engines.get(kind) for kind in (Kind.PARSER, Kind.BOOK)]
    day = setting.folder / "bench-2019-12-30.itch50.gz"
    with open(setting.day, "rb") as raw, gzip.open(day, "wb", compresslevel=6) as packed:
        shutil.copyfileobj(raw, packed)

    def ours() -> None:
        opened = open_input(str(day), parser=names[0], book=names[1])
        try:
            run_convert(opened, setting.folder / "ours", ConvertOptions())
        finally:
            opened.close()

    runs: dict[str, Callable[[], object]] = {"trident convert": ours}
    notes = []
    if find_spec("itch_book"):
        import itch_book.cli

        words = ["convert", str(day), str(setting.folder / "peer"), "--price-type", "fixed"]

        def peer() -> None:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                if itch_book.cli.main([*words, "--date", "2019-12-30"]):
                    raise RuntimeError("itch2parquet failed")

        runs["itch2parquet"] = peer
    else:
        notes.append("itch-book is not installed: pip install 'itch-book[cli]'")
    title = "convert (gzip to bbo and trades, Parquet)"
    units = len(setting.events)
    return [compare(title, runs, unit="messages", units=units, rounds=setting.rounds, notes=notes)]


def bench_store(setting: Setting) -> list[Comparison]:
    """Durable appends in groups of 4,096 events, against a raw file and SQLite, each synced per group."""
    events = setting.events[: 100 * BATCH]
    groups = [events[start : start + BATCH] for start in range(0, len(events), BATCH)]
    name, factory = setting.engine(Kind.STORE)
    numbers = iter(range(1_000_000))

    def fresh(suffix: str) -> Path:
        return setting.folder / f"{suffix}-{next(numbers)}"

    def ours() -> None:
        store = factory(fresh("store"), "create", setting.session)
        for group in groups:
            store.append(group)
            store.sync()
        store.close()

    def raw() -> None:
        import os

        with open(fresh("raw"), "wb", buffering=0) as file:
            for group in groups:
                file.write(group.data)
                os.fdatasync(file.fileno())

    def sqlite() -> None:
        connection = sqlite3.connect(fresh("sqlite"))
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, data BLOB)")
        for group in groups:
            rows = [(int(event["seq"]), event.tobytes()) for event in group]
            with connection:
                connection.executemany("INSERT INTO event VALUES (?, ?)", rows)
        connection.close()

    runs: dict[str, Callable[[], object]] = {name: ours, "raw append": raw, "sqlite, a row per event": sqlite}
    return [compare("store (append and sync)", runs, unit="events", units=len(events), rounds=setting.rounds)]


def bench_query(setting: Setting) -> list[Comparison]:
    """A pattern over a column of symbols, against Python's re on the same values."""
    events = setting.events
    symbols = {instrument.locate: instrument.symbol for instrument in setting.session.directory}
    longest = max(map(len, symbols.values()))
    by_locate = np.zeros(max(symbols) + 1, f"S{longest}")
    for locate, symbol in symbols.items():
        by_locate[locate] = symbol.encode()
    column: NDArray[Any] = by_locate[events["locate"]]
    pattern = "^[A-C].*[XYZ]$"
    name, factory = setting.engine(Kind.QUERY)
    program = factory().compile(pattern)
    compiled = re.compile(pattern.encode())
    runs: dict[str, Callable[[], object]] = {
        name: lambda: program.match(column),
        "python re": lambda: [compiled.search(value) is not None for value in column.tolist()],
    }
    return [compare("query (symbol pattern)", runs, unit="values", units=len(column), rounds=setting.rounds)]


def bench_ring(setting: Setting) -> list[Comparison]:
    """Events from one thread to another, against queue.SimpleQueue handing over copies."""
    from queue import SimpleQueue

    from trident_core.ring import Ring

    events = setting.events
    batches = [events[start : start + 256] for start in range(0, len(events), 256)]

    def ring() -> None:
        made, out = Ring(1 << 14), np.zeros(BATCH, EVENT)

        def produce() -> None:
            for batch in batches:
                made.push(batch)
            made.close()

        with _thread(produce):
            while made.pop(out):
                pass

    def queue() -> None:
        made: SimpleQueue[Events | None] = SimpleQueue()

        def produce() -> None:
            for batch in batches:
                made.put(batch.copy())
            made.put(None)

        with _thread(produce):
            while made.get() is not None:
                pass

    runs: dict[str, Callable[[], object]] = {"trident ring": ring, "queue.SimpleQueue": queue}
    title = "ring (batches of 256 between threads)"
    return [compare(title, runs, unit="events", units=len(events), rounds=setting.rounds)]


@contextmanager
def _thread(target: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=target)
    thread.start()
    yield
    thread.join()


#: name -> benchmark. `trident bench all` runs them in this order.
BENCHMARKS: Final[Mapping[str, Callable[[Setting], list[Comparison]]]] = {
    "parse": bench_parse,
    "book": bench_book,
    "convert": bench_convert,
    "store": bench_store,
    "query": bench_query,
    "ring": bench_ring,
}


def run_benchmark(name: str, day: Path, engines: Mapping[Kind, str | None], rounds: int) -> list[Comparison]:
    """Run one benchmark on the raw (uncompressed) day file `day`, with a scratch folder of its own."""
    with tempfile.TemporaryDirectory(prefix="trident-bench-", dir=".") as folder:
        return BENCHMARKS[name](Setting(day, engines, rounds, Path(folder)))
