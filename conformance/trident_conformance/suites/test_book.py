"""Books against docs/contracts/book.md. The ids of the rules (BOOK-n) stand with the tests that hold them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from trident_conformance import drive, expect, streams, vectors
from trident_conformance.engines import Engine, reference
from trident_core.contracts import Capability, Kind
from trident_core.dtypes import EFFECT, EVENT, LEVEL, ORDER, TOP, Events
from trident_core.errors import UsageError
from trident_core.session import Instrument, Session

VECTORS = vectors.load("book")


def by_reference(batches: list[Events]) -> drive.Applied:
    return drive.apply(reference(Kind.BOOK).make(Session()), batches)


@pytest.mark.parametrize("vector", VECTORS, ids=[v.label for v in VECTORS])
class TestVectors:
    """BOOK-5 to BOOK-30, one vector for each trap and rule; its reason is in its file."""

    def test_in_one_batch(self, book_engine: Engine, vector: vectors.Vector) -> None:
        events, tops, effects = vectors.book_arrays(vector.data)
        book = book_engine.make(Session())
        applied = drive.apply(book, [events])
        drive.same(applied.effects, effects, "effects")
        drive.same(applied.tops, tops, "tops")
        expect.books(book, vector.data)

    def test_one_by_one(self, book_engine: Engine, vector: vectors.Vector) -> None:
        """BOOK-3; and top(locate) says after each event what its TOP said, but for CHANGED (BOOK-18)."""
        events, tops, effects = vectors.book_arrays(vector.data)
        book = book_engine.make(Session())
        for i in range(len(events)):
            applied = drive.apply(book, [events[i : i + 1]])
            drive.same(applied.effects, effects[i : i + 1], f"effect {i}")
            drive.same(applied.tops, tops[i : i + 1], f"top {i}")
            now, expected = book.top(int(tops["locate"][i])), tops[i : i + 1].copy()
            expected["flags"] &= 0xFE
            drive.same(now, expected, f"top() after event {i}")
        expect.books(book, vector.data)

    def test_without_outputs(self, book_engine: Engine, vector: vectors.Vector) -> None:
        """BOOK-3: not asking for tops and effects changes nothing, nor what a later call says."""
        events, tops, effects = vectors.book_arrays(vector.data)
        half = len(events) // 2
        book = book_engine.make(Session())
        assert book.apply(events[:half]) == half
        applied = drive.apply(book, [events[half:]])
        drive.same(applied.tops, tops[half:], "tops of the second half")
        drive.same(applied.effects, effects[half:], "effects of the second half")
        expect.books(book, vector.data)


class TestAnyStream:
    def test_as_the_reference(self, book_engine: Engine, prove: Any) -> None:
        """BOOK-2, 3, 31: any events, in any batches, give what the reference gives for them one batch."""

        def check(events: Events, sizes: list[int]) -> None:
            book = book_engine.make(Session())
            expected = by_reference([events])
            drive.alike(drive.apply(book, drive.batches(events, sizes)), expected)
            assert book.validate() == []

        sizes = st.lists(st.integers(1, 9), min_size=1, max_size=6)
        prove(check, events=streams.book_events(), sizes=sizes)

    def test_any_bytes(self, book_engine: Engine, prove: Any) -> None:
        """BOOK-2, 12: no event raises anything, whatever is in its columns."""

        def check(events: Events) -> None:
            drive.alike(drive.apply(book_engine.make(Session()), [events]), by_reference([events]))

        prove(check, events=streams.wild_events())

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_a_busy_day(self, book_engine: Engine, seed: int, quick: bool) -> None:
        """A longer stream with all anomalies: several thousand live orders, deep queues, many levels."""

        def check(events: Events) -> None:
            expected = by_reference([events])
            book = book_engine.make(Session())
            drive.alike(drive.apply(book, drive.batches(events, [1, 7, 64, 1000])), expected)
            assert book.validate() == []

        streams.shrunk(check, streams.day(seed, 2_000 if quick else 12_000))


class TestArrays:
    EVENTS = streams.day(7, 300)

    def test_events_may_be_read_only_and_strided(self, book_engine: Engine) -> None:
        """BOOK-1."""
        expected = by_reference([self.EVENTS])
        locked = self.EVENTS.copy()
        locked.flags.writeable = False
        drive.alike(drive.apply(book_engine.make(Session()), [locked]), expected)
        wide = np.zeros(2 * len(locked), EVENT)
        wide[::2] = locked
        drive.alike(drive.apply(book_engine.make(Session()), [wide[::2]]), expected)

    def test_no_view_is_kept(self, book_engine: Engine) -> None:
        """BOOK-4: the caller uses its arrays again; the book must not look at them any more."""
        book = book_engine.make(Session())
        events = self.EVENTS.copy()
        tops, effects = np.zeros(len(events), TOP), np.zeros(len(events), EFFECT)
        book.apply(events, tops, effects)
        first = drive.read(book, tops[:0], effects[:0])
        for array in (events, tops, effects):
            array.view(np.uint8)[:] = 0xFF
        drive.alike(drive.read(book, tops[:0], effects[:0]), first)

    def test_what_is_read_is_the_callers(self, book_engine: Engine) -> None:
        """BOOK-4: writing to what a book gave changes no book; dtypes are those of the records."""
        book = book_engine.make(Session())
        book.apply(self.EVENTS)
        first = drive.read(book, np.zeros(0, TOP), np.zeros(0, EFFECT))
        for locate in first.locates:
            for given, dtype in (
                (book.levels(locate, "B"), LEVEL), (book.orders(locate), ORDER), (book.top(locate), TOP),
            ):  # fmt: skip
                assert given.dtype == dtype
                given.view(np.uint8)[:] = 0xFF
        drive.alike(drive.read(book, np.zeros(0, TOP), np.zeros(0, EFFECT)), first)

    @pytest.mark.parametrize(
        ("events", "tops", "effects"),
        [
            (np.zeros(3, TOP), None, None),
            (np.zeros((2, 2), EVENT), None, None),
            (np.zeros(3, EVENT), np.zeros(2, TOP), None),
            (np.zeros(3, EVENT), None, np.zeros(2, EFFECT)),
            (np.zeros(3, EVENT), np.zeros(3, EFFECT), None),
            (np.zeros(3, EVENT), None, np.zeros(3, TOP)),
        ],
        ids=[
            "not-events",
            "two-dimensions",
            "tops-short",
            "effects-short",
            "tops-of-effect",
            "effects-of-top",
        ],
    )
    def test_wrong_arrays(self, book_engine: Engine, events: Any, tops: Any, effects: Any) -> None:
        """BOOK-1: UsageError, before the first event is applied."""
        book = book_engine.make(Session())
        with pytest.raises(UsageError):
            book.apply(events, tops, effects)
        assert book.locates().tolist() == []


class TestThreads:
    @pytest.mark.needs_capability(Capability.SHARDED)
    @pytest.mark.parametrize("threads", [2, 3])
    def test_books_of_some_symbols_at_the_same_time(self, book_engine: Engine, threads: int) -> None:
        """BOOK-32: each in a thread of its own, while the session they share learns symbols."""
        events, session = streams.day(11, 3_000, faults=False), Session()
        events["qty"][events["type"] == ord("X")] += 90_000  # clamped: anomalies without a shared reference
        expected = by_reference([events])
        mine = [events[events["locate"] % threads == n] for n in range(threads)]
        books = [book_engine.make(session) for _ in mine]
        with ThreadPoolExecutor(threads) as pool:
            running = [
                pool.submit(drive.apply, book, drive.batches(part, [1, 50]))
                for book, part in zip(books, mine, strict=True)
            ]
            for locate in range(1, 2_000):
                session.directory.put(Instrument(locate, f"S{locate}"))
            found = [each.result() for each in running]
        for n, applied in enumerate(found):
            of_shard = np.flatnonzero(events["locate"] % threads == n)
            drive.same(applied.tops, expected.tops[of_shard], f"tops of shard {n}")
            drive.same(applied.effects, expected.effects[of_shard], f"effects of shard {n}")
            for locate in applied.locates:
                assert applied.readings[locate] == expected.readings[locate], f"locate {locate}"
            assert books[n].validate() == []
        assert sorted(n for applied in found for n in applied.locates) == expected.locates
        assert sum(applied.live_orders for applied in found) == expected.live_orders
        for name, (count, positions) in expected.anomalies.items():
            of_all = [applied.anomalies[name] for applied in found if name in applied.anomalies]
            assert sum(each[0] for each in of_all) == count, name
            assert sorted(at for each in of_all for at in each[1])[: len(positions)] == positions, name


class TestReadings:
    def test_levels_to_any_depth(self, book_engine: Engine) -> None:
        """BOOK-28."""
        book = book_engine.make(Session())
        book.apply(TestArrays.EVENTS)
        for locate in book.locates():
            for side in "BS":
                full = book.levels(int(locate), side)
                for n in (1, 2, 5, 10_000):
                    drive.same(book.levels(int(locate), side, n), full[:n], f"{n} levels of {locate} {side}")

    def test_wrong_questions(self, book_engine: Engine) -> None:
        """BOOK-28: another side, a negative depth."""
        book = book_engine.make(Session())
        with pytest.raises(UsageError):
            book.levels(1, "X")
        with pytest.raises(UsageError):
            book.levels(1, "B", -1)

    def test_a_symbol_that_never_was(self, book_engine: Engine) -> None:
        """BOOK-18, 28, 30."""
        book = book_engine.make(Session())
        expected = np.zeros(1, TOP)
        expected["locate"] = 9
        drive.same(book.top(9), expected, "top")
        assert len(book.levels(9, "B")) == len(book.levels(9, "S")) == len(book.orders(9)) == 0
        assert book.state(9) == 0
        assert book.locates().tolist() == []
        assert book.digest().hex().startswith("e3b0c442")
