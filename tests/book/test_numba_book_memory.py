"""The numba book's pools and index: growth, reuse, bounds, and references that collide."""

from __future__ import annotations

import numpy as np
import pytest

from trident_book import index, pools, records
from trident_book.numba_audit import hashes, tags_of
from trident_book.numba_book import NumbaBook
from trident_book.reference import ReferenceBook
from trident_conformance import drive
from trident_core.dtypes import EVENT
from trident_core.errors import InputError
from trident_core.session import Session

U64 = np.uint64((1 << 64) - 1)


def adds(refs: np.ndarray, *, prices: np.ndarray | int = 5000, locates: np.ndarray | int = 1) -> np.ndarray:
    events = np.zeros(len(refs), EVENT)
    events["seq"] = np.arange(1, len(refs) + 1)
    events["type"], events["side"], events["qty"] = ord("A"), ord("B"), 10
    events["ref"], events["price"], events["locate"] = refs, prices, locates
    return events


def deletes(refs: np.ndarray) -> np.ndarray:
    events = np.zeros(len(refs), EVENT)
    events["type"], events["ref"], events["locate"] = ord("D"), refs, 1
    return events


def sizes(book: NumbaBook) -> dict[str, int]:
    return {name: len(getattr(book._state, name)) for name in records.State._fields}


def bytes_of(book: NumbaBook) -> int:
    return sum(getattr(book._state, name).nbytes for name in records.State._fields)


@pytest.mark.parametrize(
    "refs",
    [
        np.arange(1, 50_001, dtype=np.uint64),
        np.arange(50_000, dtype=np.uint64) * np.uint64(1 << 44),
        U64 - np.arange(50_000, dtype=np.uint64) * np.uint64(7),
        np.random.default_rng(1).integers(0, U64, 50_000, np.uint64, endpoint=True),
    ],
    ids=["dense", "far-apart", "from-the-end", "random"],
)
def test_memory_is_bounded_by_live_orders_whatever_the_references(refs):
    book = NumbaBook(Session())
    rng = np.random.default_rng(2)
    prices = rng.integers(1, 300, len(refs))
    book.apply(adds(refs, prices=prices))
    assert book.live_orders() == len(refs)
    assert book.validate() == []
    assert bytes_of(book) < 200 * len(refs) + (1 << 20)
    book.apply(deletes(rng.permutation(refs)))
    assert book.live_orders() == 0
    assert dict(book.anomalies) == {}
    assert book.validate() == []


def test_memory_does_not_grow_with_the_number_of_events():
    """A million and a half references and prices pass, five thousand at a time."""
    book = NumbaBook(Session())
    after = []
    for k in range(300):
        refs = np.arange(k * 5_000, k * 5_000 + 5_000, dtype=np.uint64) * np.uint64(97)
        book.apply(adds(refs, prices=refs.astype(np.int64)))
        book.apply(deletes(refs))
        after.append(bytes_of(book))
    assert after[-1] == after[0]
    assert book.validate() == []


def test_a_side_that_was_deep_gives_its_chunk_back():
    book = NumbaBook(Session())
    refs = np.arange(2_000, dtype=np.uint64)
    chunks = []
    for locate in range(1, 101):
        book.apply(adds(refs, prices=np.arange(2_000), locates=locate))
        book.apply(deletes(refs))
        chunks.append(int(book._state.g[records.CHUNK_END]))
    assert book.validate() == []
    assert chunks[-1] <= chunks[1] + 100 * 4 * records.CHUNK_MIN


def test_every_pool_grows_and_nothing_is_lost():
    rng = np.random.default_rng(3)
    n = 20_000
    locates = np.where(rng.random(n) < 0.1, rng.integers(65_536, 1 << 32, n), rng.integers(0, 3_000, n))
    events = adds(
        rng.permutation(n).astype(np.uint64), prices=rng.integers(-9, 9, n) * 10**9, locates=locates
    )
    events["side"][::3] = ord("S")
    book, law = NumbaBook(Session()), ReferenceBook(Session())
    before = sizes(book)
    drive.alike(drive.apply(book, [events[:100], events[100:]]), drive.apply(law, [events]))
    assert book.validate() == []
    grown = {name for name, size in sizes(book).items() if size > before[name]}
    assert grown == {"refs", "passed", "orders", "levels", "tops", "sides", "window", "keys", "slots", "far"}


def colliding(seed: int, count: int) -> np.ndarray:
    """References whose search begins in the same bucket of an index of up to 2**12 buckets."""
    candidates = np.arange(8_000_000, dtype=np.uint64)
    return candidates[hashes(candidates, seed) >> np.uint64(64 - 12) == 0][:count]


def test_references_that_collide():
    book, law = NumbaBook(Session()), ReferenceBook(Session())
    refs = colliding(int(book._state.g[records.SEED]), 300)
    assert len(refs) == 300
    rng = np.random.default_rng(4)
    events = [adds(refs)]
    for _ in range(5):
        gone = rng.permutation(refs)[:150]
        events += [deletes(gone), adds(rng.permutation(gone))]
    drive.alike(drive.apply(book, events), drive.apply(law, events))
    assert book.validate() == []


def test_references_that_share_a_tag():
    book = NumbaBook(Session())
    candidates = np.arange(0, 1 << 24, 4, dtype=np.uint64)  # another hash each, the same last 2 bits
    tags = tags_of(hashes(candidates, int(book._state.g[records.SEED])), candidates)
    order = np.argsort(tags, kind="stable")
    twins = np.flatnonzero(tags[order][1:] == tags[order][:-1])[:50]
    pairs = np.concatenate([candidates[order][twins], candidates[order][twins + 1]])
    assert len(pairs) > 2
    events = [adds(pairs), deletes(pairs[: len(twins)]), adds(pairs[::-1]), deletes(pairs)]
    law = ReferenceBook(Session())
    drive.alike(drive.apply(book, events), drive.apply(law, events))
    assert book.validate() == []


@pytest.mark.parametrize("step", [1, 3, 4, 64, 1 << 20, 12_345_678_901])
def test_references_in_a_row_spread_over_the_index_whatever_the_seed(step):
    """Most entries stand in their own bucket, in each of many books."""
    refs = np.arange(1, 4_001, dtype=np.uint64) * np.uint64(step)
    for _ in range(40):
        book = NumbaBook(Session())
        book.apply(adds(refs))
        assert book._state.passed.sum() < 0.3 * len(refs)


def test_more_orders_than_the_index_can_hold_are_refused(monkeypatch):
    monkeypatch.setattr(index, "BITS_MAX", index.BITS_MIN)
    book = NumbaBook(Session())
    with pytest.raises(InputError, match="orders rest at once"):
        book.apply(adds(np.arange(1_000, dtype=np.uint64)))
    assert book.live_orders() == 4 << index.BITS_MIN


def test_a_reference_cannot_be_chosen_to_collide():
    """Each book hashes with a seed of its own."""
    assert len({int(NumbaBook(Session())._state.g[records.SEED]) for _ in range(4)}) == 4


def test_buckets_count_what_went_past_them():
    """Sixty references of one bucket of eight stand in eight buckets; when all are gone, nothing is left."""
    book = NumbaBook(Session())
    refs = colliding(int(book._state.g[records.SEED]), 60)
    book.apply(adds(refs))
    assert book._state.passed.tolist()[:8] == [52, 44, 36, 28, 20, 12, 4, 0]
    assert book.validate() == []
    book.apply(deletes(np.random.default_rng(5).permutation(refs)))
    assert not book._state.passed.any()


@pytest.mark.parametrize("n", [1, 100, 1 << 16])
def test_pools_begin_on_a_cache_line_and_empty(n):
    pool = pools.zeros(n, records.ORDER_SLOT)
    assert pool.ctypes.data % 64 == 0
    assert len(pool) == n
    assert not pool.view(np.uint8).any()


def test_records_are_cache_lines():
    assert records.ORDER_SLOT.itemsize == records.LEVEL_SLOT.itemsize == records.SIDE.itemsize == 64
