"""The memory of a numba book: pools that double when they are full, in huge pages where there are any."""

from __future__ import annotations

import contextlib
import mmap
import secrets
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_book import index, records
from trident_book.kernel import rehash_far
from trident_book.records import LEVEL_SLOT, ORDER_SLOT, SIDE, WINDOW, State
from trident_core.dtypes import TOP
from trident_core.errors import InputError
from trident_core.stats import POSITIONS_KEPT

#: Arrays of this size and more are mapped by themselves, and the system is asked for huge pages.
_MAP_BYTES: Final = 1 << 21
_HUGE: Final[int | None] = getattr(mmap, "MADV_HUGEPAGE", None)

# First sizes, of which memory takes only what is used (a page at a time).
_ORDERS: Final = 1 << 12
_LEVELS: Final = 1 << 10
_SYMBOLS: Final = 1 << 8
_KEYS: Final = 2 * records.CHUNK_SPARE * records.CHUNK_ROOM
_FAR: Final = 1 << 6

#: Orders and levels (64 bytes each) from which on the kernel looks ahead. Fewer stay in the caches: to look
#: would cost more than it saves.
_AHEAD_FROM: Final = 1 << 13


def zeros(n: int, dtype: Any) -> NDArray[Any]:
    """Zeros, cache line aligned, in huge pages if they are many and the system offers them."""
    kind = np.dtype(dtype)
    size = n * kind.itemsize
    if size < _MAP_BYTES:
        raw = np.zeros(size + 64, np.uint8)
        start = -raw.ctypes.data % 64
        return raw[start : start + size].view(kind)
    # Private: for shared memory (the default) most systems have no huge pages.
    memory = mmap.mmap(-1, size + _MAP_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if _HUGE is not None:
        with contextlib.suppress(OSError):  # an operating system built without them
            memory.madvise(_HUGE)
    whole = np.frombuffer(memory, np.uint8)
    start = -whole.ctypes.data % _MAP_BYTES  # huge pages begin at multiples of their size
    return whole[start : start + size].view(kind)


def make_state() -> State:
    """The state of a book without symbols. Slot 0 of every pool is null."""
    g = zeros(64, np.int64)
    g[records.ORDER_END] = g[records.LEVEL_END] = g[records.SYMBOL_END] = 1
    g[records.CHUNK_END] = records.CHUNK_MIN
    g[records.INDEX_BITS] = index.BITS_MIN
    g[records.AHEAD_FROM] = _AHEAD_FROM
    g[records.SEED] = secrets.randbits(63)
    kinds = len(records.ANOMALIES)
    return State(
        g=g,
        refs=zeros(index.WORDS << index.BITS_MIN, np.uint32),
        passed=zeros(1 << index.BITS_MIN, np.uint32),
        orders=zeros(_ORDERS, ORDER_SLOT),
        levels=zeros(_LEVELS, LEVEL_SLOT),
        tops=zeros(_SYMBOLS, TOP),
        sides=zeros(2 * _SYMBOLS, SIDE),
        window=zeros(2 * _SYMBOLS * WINDOW, np.uint32),
        keys=zeros(_KEYS, np.int64),
        slots=zeros(_KEYS, np.uint32),
        near=zeros(records.NEAR, np.uint32),
        far=zeros(_FAR, np.uint64),
        counts=zeros(kinds, np.int64),
        firsts=zeros(kinds * POSITIONS_KEPT, np.uint64),
        order_hints=zeros(records.HINTS, np.uint32),
        level_hints=zeros(records.HINTS, np.uint32),
    )


def with_more_room(st: State) -> State:
    """The same state with every pool doubled that is full; what `kernel.room` asks for is there then.

    Raises InputError for more than index.ORDERS_MAX orders.
    """
    g = st.g
    changed: dict[str, NDArray[Any]] = {}
    if g[records.ORDER_END] == len(st.orders) and not g[records.ORDER_FREE]:
        changed["orders"] = _doubled(st.orders)
    if g[records.LEVEL_END] == len(st.levels) and not g[records.LEVEL_FREE]:
        changed["levels"] = _doubled(st.levels)
    if g[records.SYMBOL_END] == len(st.tops):
        for name in ("tops", "sides", "window"):
            changed[name] = _doubled(getattr(st, name))
    largest = max(records.CHUNK_ROOM, int(g[records.CHUNK_MAX]))
    spare = records.CHUNK_SPARE * largest
    if len(st.keys) - g[records.CHUNK_END] < spare:
        more = max(len(st.keys), 2 * spare)
        changed["keys"], changed["slots"] = _longer(st.keys, more), _longer(st.slots, more)
    if 2 * g[records.FAR_LOCATES] >= len(st.far):
        changed["far"] = zeros(2 * len(st.far), np.uint64)
        rehash_far(st.far, changed["far"])
    st = st._replace(**changed)
    if 2 * g[records.LIVE] >= index.BUCKET * len(st.passed):
        if g[records.INDEX_BITS] == index.BITS_MAX:
            raise InputError(
                f"more than {index.ORDERS_MAX:,} orders rest at once", hint="give the book fewer symbols"
            )
        g[records.INDEX_BITS] += 1
        old = st.refs
        st = st._replace(refs=zeros(2 * len(old), np.uint32), passed=zeros(2 * len(st.passed), np.uint32))
        index.rehash(old, st)
    return st


def _doubled(pool: NDArray[Any]) -> NDArray[Any]:
    return _longer(pool, len(pool))


def _longer(pool: NDArray[Any], more: int) -> NDArray[Any]:
    longer = zeros(len(pool) + more, pool.dtype)
    longer.view(np.uint8)[: pool.nbytes] = pool.view(np.uint8)  # numpy copies padded records field by field
    return longer
