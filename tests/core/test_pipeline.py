"""The line: what arrives in the store, what the statistics say, and what happens when a stage fails."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core.contracts import Chunk
from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError
from trident_core.interrupts import Interrupts
from trident_core.pipeline import Line, LineOptions
from trident_core.session import Session
from trident_core.stats import Anomalies
from trident_parser.reference import ReferenceParser
from trident_sim.spec import SimSpec
from trident_sim.stream import Day


class Source:
    """A source of nothing: the feed has the bytes."""

    name, path = "memory", None

    def __init__(self) -> None:
        self.anomalies = Anomalies()
        self.closed = False

    def peek(self, n: int) -> bytes:
        return b""

    def read(self, n: int) -> bytes:
        return b""

    def progress(self) -> tuple[int, int | None]:
        return 0, None

    def close(self) -> None:
        self.closed = True


class Feed:
    """Chunks of a simulated day; raises `error` after them."""

    protocol = "itch50"

    def __init__(self, data: np.ndarray, size: int, error: BaseException | None = None) -> None:
        self.anomalies = Anomalies()
        self._data, self._size, self._error = data, size, error

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        return 0

    def __iter__(self) -> Iterator[Chunk]:
        for start in range(0, len(self._data), self._size):
            yield Chunk(self._data[start : start + self._size], None, start)
        if self._error:
            raise self._error


class Store:
    """Keeps what it is given in memory; fails at the `failing`-th append."""

    def __init__(self, failing: int = 0) -> None:
        self.batches: list[Events] = []
        self.syncs, self._failing = 0, failing

    def append(self, events: Events) -> int:
        if self._failing and len(self.batches) + 1 == self._failing:
            raise StoreError("the disk is full", hint="make room")
        self.batches.append(events.copy())
        return int(events["seq"][-1])

    def sync(self) -> int:
        self.syncs += 1
        return int(self.batches[-1]["seq"][-1]) if self.batches else 0

    def events(self) -> Events:
        return np.concatenate(self.batches) if self.batches else np.zeros(0, EVENT)


@pytest.fixture(scope="module")
def day() -> np.ndarray:
    return np.concatenate([frames.copy() for frames in Day(SimSpec(messages=3_000, symbols=8)).frames()])


def line(
    day: np.ndarray, *, chunk: int = 4_096, error: Any = None, store: Any = None, **options: Any
) -> Line:
    session = Session()
    observer = options.pop("observer", None)
    return Line(
        Feed(day, chunk, error), Source(), ReferenceParser(session), ReferenceBook(session), store,
        options=LineOptions(**options), observer=observer,
    )  # fmt: skip


@pytest.mark.parametrize(("chunk", "batch", "ring"), [(1 << 20, 1 << 14, 1 << 16), (7, 1, 2), (333, 100, 64)])
def test_sizes_change_nothing(day: np.ndarray, chunk: int, batch: int, ring: int) -> None:
    law = line(day, chunk=1 << 20, store=(whole := Store())).run()
    stats = line(day, chunk=chunk, store=(store := Store()), batch=batch, ring_capacity=ring).run()
    assert np.array_equal(store.events(), whole.events())
    assert (stats.digest, stats.counts, stats.live_orders) == (law.digest, law.counts, law.live_orders)
    assert stats.stored == stats.applied == stats.events == stats.durable_seq == 3_000
    assert stats.anomalies.to_json() == {}
    assert set(stats.stage_s) == {"parse", "book", "ring", "store"}


def test_until_stops_before_the_first_later_event(day: np.ndarray) -> None:
    until = 10 * 3_600 * 10**9
    stats = line(day, store=(store := Store()), until=until, batch=64).run()
    events = store.events()
    assert 0 < len(events) < 3_000
    assert events["ts"].max() <= until
    assert stats.cut
    assert sum(stats.counts.values()) == len(events) == stats.events


def test_symbols_keep_the_named_ones_and_what_has_no_symbol(day: np.ndarray) -> None:
    made = line(day, store=(store := Store()), symbols=("ZXZZT",))
    stats = made.run()
    locate = made.parser.session.directory.locate("ZXZZT")
    assert set(np.unique(store.events()["locate"]).tolist()) == {0, locate}
    assert stats.applied == stats.stored < stats.events == 3_000


def test_resuming_stores_only_what_is_new_but_applies_all(day: np.ndarray) -> None:
    stats = line(day, store=(store := Store()), resume_after=1_234).run()
    assert store.events()["seq"].tolist() == list(range(1_235, 3_001))
    assert stats.applied == 3_000


def test_the_observer_sees_every_batch_with_its_records(day: np.ndarray) -> None:
    seen: list[tuple[int, int]] = []

    def observe(events: Events, tops: np.ndarray, effects: np.ndarray) -> None:
        assert len(events) == len(tops) == len(effects)
        assert np.array_equal(events["seq"], tops["seq"])
        seen.append((int(events["seq"][0]), len(events)))

    line(day, batch=500, observer=observe).run()
    assert sum(count for _, count in seen) == 3_000


def test_a_failing_store_stops_the_line_with_its_own_error(day: np.ndarray) -> None:
    with pytest.raises(StoreError, match="the disk is full"):
        line(day, store=Store(failing=3), batch=50, ring_capacity=64).run()


def test_a_failing_feed_leaves_what_came_before_in_the_store(day: np.ndarray) -> None:
    store = Store()
    with pytest.raises(OSError, match="cable"):
        line(day, store=store, error=OSError("cable")).run()
    assert len(store.events()) == 3_000
    assert store.syncs >= 1


def test_an_interrupt_ends_early_with_everything_read_stored(day: np.ndarray) -> None:
    stats = line(day, store=(store := Store()), error=KeyboardInterrupt()).run()
    assert stats.interrupted
    assert len(store.events()) == stats.stored == stats.durable_seq == 3_000


class Interrupted(ReferenceBook):
    """Ctrl-C strikes in the middle of its third batch."""

    batches = 0

    def apply(self, events: Events, tops: Any = None, effects: Any = None) -> int:
        self.batches += 1
        half = len(events) // 2
        done = super().apply(events[:half])
        if self.batches == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)  # the handler has run by now
        return done + super().apply(events[half:])


def test_an_interrupt_inside_a_book_waits_for_the_end_of_the_batch(day: np.ndarray) -> None:
    made = line(day, store=(store := Store()), batch=200)
    made.book = Interrupted(made.parser.session)
    before = signal.getsignal(signal.SIGINT)
    stats = made.run()
    assert signal.getsignal(signal.SIGINT) is before
    assert stats.interrupted
    assert made.book.batches == 3
    assert len(store.events()) == stats.events == stats.applied == stats.stored == 600
    assert sum(stats.counts.values()) == 600
    assert made.book.validate() == []
    again = ReferenceBook(Session())
    again.apply(store.events())
    assert again.digest().hex() == stats.digest


def test_a_signal_that_was_swallowed_ends_the_run_at_the_next_batch(day: np.ndarray) -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):  # raised, and lost in somebody's code
            signal.raise_signal(signal.SIGINT)
        interrupts.hold()
        with pytest.raises(KeyboardInterrupt):
            interrupts.release()
