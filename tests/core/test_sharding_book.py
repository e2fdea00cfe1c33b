"""Sharded books are one book: whatever the events, batches and threads, everything is as by the reference."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_book.numba_book import NumbaBook
from trident_book.reference import ReferenceBook
from trident_conformance import drive, streams
from trident_core.dtypes import EFFECT, EVENT, TOP, Events
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.sharding import ShardedBook, Work, applied, sharded
from trident_core.sharding.kernel import home
from trident_core.sharding.merge import merge_rows
from trident_core.sharding.owners import BYTES_MAX
from trident_core.tables.prints import TRADE
from trident_core.tables.quotes import BBO, bbo

#: Two locates of different shards, for two threads, and one more of the first's.
ONE, OTHER = next((a, b) for a in range(1, 9) for b in range(1, 9) if home(a, 2) < home(b, 2))
SAME = next(n for n in range(10, 99) if home(n, 2) == home(ONE, 2))


def law(events: Events) -> drive.Applied:
    return drive.apply(ReferenceBook(Session()), [events])


def check(
    events: Events, sizes: list[int], threads: int, book: Callable[..., Any] = ReferenceBook, **options: Any
) -> str:
    """Assert equality with the reference; the book's notice."""
    made = ShardedBook(book, Session(), threads, **options)
    try:
        drive.alike(drive.apply(made, drive.batches(events, sizes)), law(events))
        assert made.validate() == []
    finally:
        made.close()
    return made.notice


def rows(*events: tuple[Any, ...]) -> Events:
    """(type, locate, ref, ref2, side, price, qty), numbered from 1."""
    made = np.zeros(len(events), EVENT)
    for i, (letter, locate, ref, ref2, side, price, qty) in enumerate(events):
        made[i] = (
            i + 1,
            10 * i,
            ref,
            ref2,
            price,
            qty,
            locate,
            ord(letter),
            ord(side),
            0,
            (ord("T"), *[0] * 7),
        )
    return made


CLEAN = (
    ("H", ONE, 0, 0, " ", 0, 0), ("H", OTHER, 0, 0, " ", 0, 0), ("Y", 77, 0, 0, " ", 0, 0),
    ("S", 0, 0, 0, " ", 0, 0), ("A", ONE, 1, 0, "B", 100, 5), ("A", OTHER, 2, 0, "S", 100, 7),
    ("F", ONE, 3, 0, "B", 100, 9), ("A", SAME, 4, 0, "S", 90, 1), ("U", ONE, 3, 5, "B", 101, 9),
    ("E", OTHER, 2, 1, " ", 0, 3), ("A", ONE, 6, 0, "B", 101, 2), ("E", ONE, 6, 2, " ", 0, 1),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(streams.book_events(), streams.wild_events()),
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.integers(2, 5),
)
def test_any_stream_is_as_by_the_reference(events: Events, sizes: list[int], threads: int) -> None:
    check(events, sizes, threads)


@pytest.mark.parametrize("threads", [2, 3, 8, 64])
def test_a_sound_day_stays_sharded(threads: int) -> None:
    assert check(streams.day(5, 4_000, faults=False), [1, 7, 64, 1000], threads, NumbaBook) == ""


@pytest.mark.parametrize("threads", [2, 3])
def test_a_day_with_all_anomalies(threads: int) -> None:
    assert "order reference of another shard" in check(streams.day(2, 3_000), [700], threads, NumbaBook)


@pytest.mark.parametrize(
    "last",
    [
        ("D", OTHER, 1, 0, " ", 0, 0),
        ("E", ONE, 2, 9, " ", 0, 1),
        ("A", OTHER, 1, 0, "B", 99, 1),
        ("F", ONE, 2, 0, "S", 99, 1),
        ("U", OTHER, 2, 1, " ", 98, 1),
        ("U", ONE, 2, 8, " ", 98, 1),
        ("A", OTHER, 3, 0, "B", 99, 1),  # replaced long ago: not proven, and right all the same
    ],
    ids=["delete", "execute", "duplicate", "duplicate-F", "replace-to", "replace-of", "dead"],
)
@pytest.mark.parametrize("size", [1, 5, 100])
def test_a_reference_of_another_shard_makes_the_books_one(last: tuple[Any, ...], size: int) -> None:
    events = rows(
        *CLEAN, last, ("X", ONE, 5, 0, " ", 0, 1), ("E", ONE, 1, 3, " ", 0, 1), ("H", 77, 0, 0, " ", 0, 0)
    )
    notice = check(events, [size], 2, NumbaBook)
    assert notice.startswith(f"message {len(CLEAN) + 1} ({last[0]}) ")
    assert check(events[: len(CLEAN)], [size], 2, NumbaBook) == ""


def test_a_wrong_locate_inside_a_shard_is_the_shards_own_matter() -> None:
    assert check(rows(*CLEAN, ("D", SAME, 1, 0, " ", 0, 0), ("A", ONE, 4, 0, "B", 90, 1)), [3], 2) == ""


def test_unknown_references_are_of_no_shard() -> None:
    assert (
        check(
            rows(("D", ONE, 9, 0, " ", 0, 0), ("E", OTHER, 9, 0, " ", 0, 1), ("U", ONE, 9, 8, " ", 1, 1)),
            [1],
            2,
        )
        == ""
    )


@pytest.mark.parametrize("threads", [2, 4, 17])
def test_references_of_64_bits_and_far_apart(threads: int) -> None:
    refs = [
        0,
        1,
        (1 << 64) - 1,
        (1 << 64) - 2,
        1 << 63,
        1 << 30,
        (1 << 30) - 1,
        *(n << 20 for n in range(5, 40)),
    ]
    adds = [("A", 1 + n % 9, ref, 0, "BS"[n % 2], 100 - n % 2, 5) for n, ref in enumerate(refs)]
    events = rows(
        *adds,
        *(("E", a[1], a[2], 0, " ", 0, 2) for a in adds),
        *(("D", a[1], a[2], 0, " ", 0, 0) for a in adds),
    )
    assert check(events, [10], threads) == ""
    assert "too far apart" in check(events, [10], threads, owner_bytes=300_000)


def test_numbers_that_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anomalies of a batch are put in order by number: a batch is cut where it does not grow."""
    events = streams.day(4, 600, faults=False)
    events["qty"][::7] = 0  # rejected adds in all symbols
    events["seq"] = np.arange(len(events)) % 50
    assert check(events, [200], 3) == ""
    monkeypatch.setattr(sharded, "_BACKS_MAX", 3)
    assert "go back" in check(events, [200], 3)


def test_work_is_done_by_the_shards_and_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    events, session = streams.day(6, 5_000), Session()
    tops = law(events).tops
    names: set[str] = set()

    def do(events: Events, tops: Any, effects: Any) -> Any:
        names.add(threading.current_thread().name)
        assert effects is None
        assert len(events) == len(tops)
        return bbo(events, tops, session)

    book = ShardedBook(NumbaBook, session, 3)
    batches = ((batch, None) for batch in drive.batches(events, [311]))
    found = [
        merge_rows(part, "seq")
        for done in applied(batches, book, work=lambda tag: Work(do, effects=False))
        for part in done.results
    ]
    book.close()
    assert np.concatenate(found).tobytes() == bbo(events, tops, session).tobytes()
    assert any(name.startswith("trident-shard-") for name in names)


class Failing(ReferenceBook):
    """Raises at an event of one symbol."""

    def apply(self, events: Events, tops: Any = None, effects: Any = None) -> int:
        if (events["locate"] == OTHER).any():
            raise ZeroDivisionError("in one shard")
        return super().apply(events, tops, effects)


def shard_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("trident-shard")]


def test_an_engine_that_raises_in_one_shard() -> None:
    book = ShardedBook(Failing, Session(), 2)
    with pytest.raises(ZeroDivisionError, match="in one shard"):
        for _ in applied(((batch, None) for batch in drive.batches(rows(*CLEAN), [2])), book, tops=True):
            pass
    book.close()
    assert shard_threads() == []


def test_threads_end_with_the_book() -> None:
    book = ShardedBook(ReferenceBook, Session(), 3)
    book.apply(rows(*CLEAN))
    assert shard_threads()
    book.close()
    assert shard_threads() == []
    assert book.live_orders() == 5  # reading goes on
    with pytest.raises(UsageError, match="ended"):
        book.apply(rows(*CLEAN))
    book = ShardedBook(ReferenceBook, Session(), 2)
    book.apply(rows(*CLEAN))
    del book  # without close
    until = time.monotonic() + 10
    while shard_threads() and time.monotonic() < until:
        time.sleep(0.01)
    assert shard_threads() == []


@pytest.mark.parametrize("threads", [0, 1, -2, 65, True, 2.0])
def test_wrong_numbers_of_threads(threads: Any) -> None:
    with pytest.raises(UsageError, match="threads"):
        ShardedBook(ReferenceBook, Session(), threads)


@pytest.mark.parametrize(
    ("events", "tops", "effects"),
    [
        (np.zeros(3, TOP), None, None), ([], None, None), (np.zeros((2, 2), EVENT), None, None),
        (np.zeros(3, EVENT), np.zeros(2, TOP), None), (np.zeros(3, EVENT), None, np.zeros(3, TOP)),
    ],
)  # fmt: skip
def test_wrong_arrays(events: Any, tops: Any, effects: Any) -> None:
    book = ShardedBook(ReferenceBook, Session(), 2)
    with pytest.raises(UsageError):
        book.apply(events, tops, effects)
    with pytest.raises(UsageError):
        book.levels(-1, "B")
    with pytest.raises(UsageError):
        book.orders(1 << 32)
    book.close()


def test_arrays_of_any_layout() -> None:
    """Strided, read-only and unaligned arrays give what plain ones do, and rows beyond the batch stay."""
    events = streams.day(7, 300)
    expected = law(events)
    wide, outs = np.zeros((300, 2), EVENT), (np.zeros((300, 2), TOP), np.zeros((300, 2), EFFECT))
    wide[:, 0] = events
    book = ShardedBook(NumbaBook, Session(), 2)
    book.apply(wide[:, 0], outs[0][:, 0], outs[1][:, 0])
    book.close()
    drive.same(outs[0][:, 0].copy(), expected.tops, "tops")
    drive.same(outs[1][:, 0].copy(), expected.effects, "effects")
    shifted = np.zeros(300 * 64 + 1, np.uint8)[1:].view(EVENT)
    shifted[:] = events
    shifted.flags.writeable = False
    book = ShardedBook(NumbaBook, Session(), 2)
    drive.alike(drive.apply(book, [shifted]), expected)
    book.close()


@pytest.mark.parametrize("dtype", [BBO, TRADE], ids=["whole-words", "bytes"])
@pytest.mark.parametrize("parts", [1, 2, 3, 8])
def test_merging_rows(dtype: np.dtype[Any], parts: int) -> None:
    pick = np.random.default_rng(parts)
    made = pick.integers(0, 256, 500 * dtype.itemsize, np.uint8).view(dtype)
    made["seq"] = np.sort(pick.integers(0, 1 << 64, 500, np.uint64))
    of = pick.integers(0, parts, 500)
    split = [made[of == part] for part in range(parts)]
    assert merge_rows([*split, made[:0]], "seq").tobytes() == made.tobytes()
    assert merge_rows([made[:0], made[:0]], "seq").tobytes() == b""


def test_merging_rows_of_one_number_keeps_their_order() -> None:
    first, second = np.zeros(3, BBO), np.zeros(2, BBO)
    first["seq"], first["bid_px"] = (1, 5, 5), (1, 2, 3)
    second["seq"], second["bid_px"] = (5, 7), (4, 5)
    assert merge_rows([first, second], "seq")["bid_px"].tolist() == [1, 2, 3, 4, 5]


def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "threads.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(example, {})
    assert f"at most {BYTES_MAX >> 20} MiB" in page
    assert f"{EVENT.itemsize + TOP.itemsize + EFFECT.itemsize + 4} dealt" in page
