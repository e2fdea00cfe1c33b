"""The window of a side: wherever prices go, whatever divides them, books are the reference's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from trident_book.numba_book import NumbaBook
from trident_book.reference import ReferenceBook
from trident_conformance import drive
from trident_core.dtypes import EVENT
from trident_core.session import Session
from trident_sim.spec import SimSpec
from trident_sim.stream import simulate_events

I64 = np.iinfo(np.int64)


def drift(rng: np.random.Generator) -> Iterator[int]:
    """A touch that walks up and down by many windows."""
    at = 1_000_000
    while True:
        at += int(rng.integers(-600, 601)) // 100 * 100
        yield at - int(rng.exponential(2_000)) // 100 * 100


def sub_dollar(rng: np.random.Generator) -> Iterator[int]:
    """A tick of 1, begun on a multiple of 100."""
    yield 5_000
    while True:
        yield 5_000 + int(rng.normal(0, 40))


def between_ticks(rng: np.random.Generator) -> Iterator[int]:
    """Cents, and now and then a price between them."""
    while True:
        yield (
            500_000 + int(rng.normal(0, 20)) * 100 + (int(rng.integers(1, 100)) if rng.random() < 0.1 else 0)
        )


def stub_quotes(rng: np.random.Generator) -> Iterator[int]:
    """Most near one price, some absurdly far on either side."""
    while True:
        yield (
            int(rng.choice([100, 199_999 * 10_000]))
            if rng.random() < 0.1
            else 300_000 + 100 * int(rng.normal(0, 9))
        )


def ends_of_numbers(rng: np.random.Generator) -> Iterator[int]:
    """The first and the last prices of 64 bits, and of both signs."""
    ends = [I64.min, I64.max, 0, -1, 1 << 31, -(1 << 62), I64.max - 6_300]
    while True:
        step = int(rng.integers(-70, 71)) * int(rng.choice([1, 100, 1 << 33]))
        yield min(max(int(rng.choice(ends)) + step, I64.min), I64.max)


def wide_ticks(rng: np.random.Generator) -> Iterator[int]:
    """Nine decimals, a tick of a cent, later of a dollar."""
    while True:
        yield 12 * 10**9 + int(rng.normal(0, 15)) * int(rng.choice([10**7, 10**9]))


def day(prices: Iterator[int], rng: np.random.Generator, n: int = 3_000) -> np.ndarray:
    """Orders of two symbols and both sides that come and go, some replaced."""
    events = np.zeros(n, EVENT)
    events["seq"] = np.arange(1, n + 1)
    live: list[int] = []
    for at in range(n):
        row = events[at]
        full = len(live) > 150
        if not live or rng.random() < (0.3 if full else 0.55):
            row["type"], row["side"], row["ref"] = ord("A"), rng.choice([66, 83]), at
            row["locate"], row["price"], row["qty"] = 1, next(prices), 5
            live.append(at)
            continue
        ref = live.pop(int(rng.integers(len(live))))
        row["ref"], row["locate"] = ref, 1
        if rng.random() < 0.25:
            row["type"], row["ref2"], row["price"], row["qty"] = ord("U"), at, next(prices), 3
            live.append(at)
        else:
            row["type"] = ord("D")
    return events


@pytest.mark.parametrize(
    "prices",
    [drift, sub_dollar, between_ticks, stub_quotes, ends_of_numbers, wide_ticks],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("seed", range(3))
def test_books_are_the_reference_s_wherever_prices_go(prices, seed):
    rng = np.random.default_rng(seed)
    events = day(prices(rng), rng)
    book, law = NumbaBook(Session()), ReferenceBook(Session())
    parts = np.array_split(events, 12)
    drive.alike(drive.apply(book, parts), drive.apply(law, parts))
    assert book.validate() == []
    for part in parts:  # everything comes back after everything has gone
        book.apply(part)
        assert book.validate() == []


def test_the_window_follows_the_touch():
    events, _ = simulate_events(SimSpec(messages=60_000, symbols=20))
    book = NumbaBook(Session())
    book.apply(events)
    sides = book._state.sides[2 : 2 * len(book.locates()) + 2]
    inside = sum(int(bits).bit_count() for bits in sides["bits"])
    assert inside > 0.3 * (inside + int(sides["n"].sum()))


@pytest.mark.parametrize("deep", [0, 6_000], ids=["shallow", "deep"])
def test_the_arena_has_room_when_every_window_moves_at_once(deep):
    """Full windows of 150 symbols, some above many other levels, all left behind in one batch, twice."""
    rows = []
    for locate in range(1, 151):
        below = range(deep if locate % 50 == 0 else 0)
        ticks = [*(9_000 - 3 * k for k in below), *range(10_000, 10_064), 11_000, 13_000]
        rows += [(tick, locate) for tick in ticks]
    rows.sort(key=lambda row: row[0])  # all symbols take the same step one after the other
    events = np.zeros(len(rows), EVENT)
    events["price"], events["locate"] = [100 * tick for tick, _ in rows], [locate for _, locate in rows]
    events["seq"] = events["ref"] = np.arange(1, len(rows) + 1)
    events["type"], events["side"], events["qty"] = ord("A"), ord("B"), 1
    book, law = NumbaBook(Session()), ReferenceBook(Session())
    drive.alike(drive.apply(book, [events]), drive.apply(law, [events]))
    assert book.validate() == []
