"""The whole line: bytes -> feed -> parser -> book -> ring -> store -> query, each engine among references.

Law 6 of the design: chunk size, batch size, ring size and resume point never change a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_conformance import damage, drive, streams
from trident_conformance.engines import Engine, reference
from trident_core.contracts import FeedOptions, Kind
from trident_core.dtypes import Effects, Events, Tops
from trident_core.feeds import open_feed
from trident_core.pipeline import Line, LineOptions
from trident_core.search import find
from trident_core.session import Session
from trident_core.stats import RunStats

LineEngines = dict[Kind, Engine]


@dataclass
class Input:
    """A day file, and what the references make of it at once."""

    path: Path
    parsed: drive.Parsed
    applied: drive.Applied


def _input(path: Path, data: bytes) -> Input:
    path.write_bytes(data)
    parsed = drive.parse(reference(Kind.PARSER).make(Session()), [np.frombuffer(data, np.uint8)])
    applied = drive.apply(reference(Kind.BOOK).make(Session()), [parsed.events])
    return Input(path, parsed, applied)


@pytest.fixture(scope="session")
def by_chance(tmp_path_factory: pytest.TempPathFactory, quick: bool) -> Input:
    """A day with faults of every kind."""
    data = streams.day_bytes(21, 1_200 if quick else 3_000)
    return _input(tmp_path_factory.mktemp("day") / "day.itch", data)


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory, quick: bool) -> Input:
    """A day of the simulator: consistent, with auctions, halts and bursts."""
    if quick:
        pytest.skip("the simulator's day is left out with --quick: its first run compiles")
    from trident_sim.stream import simulate_bytes

    data = simulate_bytes(messages=20_000, symbols=12, seed=4)
    return _input(tmp_path_factory.mktemp("day") / "simulated.itch", data)


class _Watch:
    """Collects what the observer is shown."""

    def __init__(self) -> None:
        self.tops: list[Tops] = []
        self.effects: list[Effects] = []

    def __call__(self, events: Events, tops: Tops, effects: Effects) -> None:
        self.tops.append(tops.copy())
        self.effects.append(effects.copy())


def run(
    engines: LineEngines,
    day: Input,
    store: Any,
    options: LineOptions,
    chunk_bytes: int,
    watch: _Watch | None = None,
) -> tuple[RunStats, Any]:
    """One run of the line into an open store; its statistics, and the book."""
    feed, source, session = open_feed(day.path, options=FeedOptions(chunk_bytes=chunk_bytes))
    session.directory = store.session.directory  # the store records what the parser learns
    book = engines[Kind.BOOK].make(session)
    parser = engines[Kind.PARSER].make(session)
    try:
        return Line(feed, source, parser, book, store, options=options, observer=watch).run(), book
    finally:
        source.close()


def create(engines: LineEngines, folder: Path) -> Any:
    return engines[Kind.STORE].make(folder, "create", Session())


def check_run(stats: RunStats, book: Any, day: Input) -> None:
    n = len(day.parsed.events)
    assert (stats.events, stats.applied, stats.stored) == (n, n, n)
    assert stats.last_seq == stats.durable_seq == day.parsed.events["seq"][-1]
    assert stats.digest == day.applied.digest == book.digest().hex()
    assert stats.counts == day.parsed.counts
    assert stats.live_orders == day.applied.live_orders
    assert drive.counted(stats.anomalies) == {**day.parsed.anomalies, **day.applied.anomalies}


#: Places of the line whose engines matter before anything is asked.
RECORDING = pytest.mark.places("parser", "book", "store")

SIZES = [(16_384, 65_536, 1 << 20), (333, 64, 1_000), (64, 2, 37), (1, 16, 4_096)]


@RECORDING
@pytest.mark.parametrize(
    ("batch", "ring", "chunk"), SIZES, ids=[f"batch-{b}-ring-{r}-chunk-{c}" for b, r, c in SIZES]
)
def test_any_sizes(
    line_engines: LineEngines, by_chance: Input, tmp_path: Path, batch: int, ring: int, chunk: int
) -> None:
    """The same digest, anomalies, tops, effects and stored events for any batch, ring and chunk."""
    store, watch = create(line_engines, tmp_path / "s"), _Watch()
    options = LineOptions(batch=batch, ring_capacity=ring)
    stats, book = run(line_engines, by_chance, store, options, chunk, watch)
    check_run(stats, book, by_chance)
    drive.same(np.concatenate(watch.tops), by_chance.applied.tops, "tops shown to the observer")
    drive.same(np.concatenate(watch.effects), by_chance.applied.effects, "effects shown to the observer")
    store.close()
    reader = line_engines[Kind.STORE].make(tmp_path / "s", "read")
    snapshot = reader.snapshot()
    drive.same(damage.scanned(snapshot), by_chance.parsed.events, "stored events")
    directory = {i.locate: (i.symbol, dict(i.details)) for i in snapshot.session.directory}
    assert directory == by_chance.parsed.directory
    assert reader.verify().ok
    reader.close()


@RECORDING
def test_a_simulated_day(line_engines: LineEngines, simulated: Input, tmp_path: Path) -> None:
    store = create(line_engines, tmp_path / "s")
    stats, book = run(line_engines, simulated, store, LineOptions(batch=4_096), 1 << 16)
    check_run(stats, book, simulated)
    assert book.validate() == []
    drive.same(damage.scanned(store.snapshot()), simulated.parsed.events, "stored events")
    store.close()


@RECORDING
def test_any_resume_point(line_engines: LineEngines, by_chance: Input, tmp_path: Path) -> None:
    """A run that ended early is gone on with from what the store has: the same events in the end."""
    store = create(line_engines, tmp_path / "s")
    events = by_chance.parsed.events
    middle = int(events["ts"][len(events) // 2])
    stats, _ = run(line_engines, by_chance, store, LineOptions(until=middle, batch=100), 1_000)
    assert 0 < stats.stored < len(events)
    store.close()
    store = line_engines[Kind.STORE].make(tmp_path / "s", "append")
    done = store.stats()["last_seq"]
    stats, book = run(line_engines, by_chance, store, LineOptions(resume_after=done, batch=77), 500)
    assert book.digest().hex() == by_chance.applied.digest
    drive.same(damage.scanned(store.snapshot()), events, "stored events")
    store.close()


QUESTIONS: list[dict[str, Any]] = [
    {"symbol": "^A"},
    {"symbol": "^(?:MSFT|BRK\\.A)$", "types": "[AF]"},
    {"mpid": "^N"},
    {"mpid": "MMKR", "symbol": "L$", "types": "F"},
    {"types": "[^AFEXDU]"},
    {"symbol": "nobody"},
]


@pytest.mark.places("store", "query")
@pytest.mark.parametrize(
    "question", QUESTIONS, ids=["-".join(q) for q in QUESTIONS[:2]] + [str(i) for i in range(2, 6)]
)
def test_questions(
    line_engines: LineEngines, by_chance: Input, tmp_path: Path, question: dict[str, Any]
) -> None:
    """The same answers as from the reference query engine over the reference's events, for any batch."""
    store = create(line_engines, tmp_path / "s")
    run(line_engines, by_chance, store, LineOptions(), 1 << 20)
    law = create({kind: reference(kind) for kind in Kind if kind in line_engines}, tmp_path / "law")
    law.session.directory = store.session.directory
    law.append(by_chance.parsed.events)
    expected = find(law.snapshot(), reference(Kind.QUERY).make(), **question)
    for batch in (65_536, 100):
        search = find(store.snapshot(), line_engines[Kind.QUERY].make(), batch=batch, **question)
        found = [events.copy() for events in search]
        drive.same(_joined(found), _joined([e.copy() for e in expected]), "answer")
        assert search.count() == expected.count()
        assert search.summary() == expected.summary()
    store.close()
    law.close()


def _joined(batches: list[Events]) -> Events:
    from trident_core.dtypes import EVENT

    return np.concatenate([*batches, np.zeros(0, EVENT)])
