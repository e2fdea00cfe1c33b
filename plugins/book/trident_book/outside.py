"""Kernels of the levels outside a side's window: a sorted array of keys beside the slots of their levels.

Most of what comes and goes here is near its end, so a search starts there, and few entries move. The array of
a side is a chunk of the arena (trident_book.records); a full chunk moves to one twice as large, one that is
three quarters empty to one half as large, and what it leaves is used again.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.records import CHUNK_END, CHUNK_FREE, CHUNK_MAX, CHUNK_MIN
from trident_book.unsigned import u
from trident_core.jit import njit_inlined, njit_kernel

#: Keys compared one by one from the last before the rest is searched by halves.
_NEAR_END: Final = 8


@njit_inlined
def place(st: Any, side: Any, key: Any) -> Any:
    """How many of the side's keys out here are at most `key`: its level, if any, is the last of these."""
    start = np.int64(side.start)
    at = start + np.int64(side.n)
    stop = max(start, at - _NEAR_END)
    while at > stop and st.keys[u(at - 1)] > key:
        at -= 1
    if at == stop:
        low = start
        while low < at:
            middle = (low + at) >> 1
            if st.keys[u(middle)] <= key:
                low = middle + 1
            else:
                at = middle
    return at - start


@njit_inlined
def level_at(st: Any, side: Any, n: Any, key: Any) -> Any:
    """The slot of the level that `place` found, 0 if the key has none."""
    at = np.int64(side.start) + n - 1
    if n > 0 and st.keys[u(at)] == key:
        return st.slots[u(at)]
    return np.uint32(0)


@njit_kernel
def move(st: Any, side: Any, cap: Any) -> None:
    """Move a side to a chunk of `cap` entries, and free the one it had."""
    size_class = CHUNK_FREE
    size = CHUNK_MIN
    while size < cap:
        size *= 2
        size_class += 1
    start = st.g[size_class]
    if start > 0:
        st.g[size_class] = st.keys[u(start)]
    else:
        start = st.g[CHUNK_END]
        st.g[CHUNK_END] = start + cap
        st.g[CHUNK_MAX] = max(st.g[CHUNK_MAX], cap)
    old, old_cap = np.int64(side.start), np.int64(side.cap)
    for k in range(np.int64(side.n)):
        st.keys[u(start + k)] = st.keys[u(old + k)]
        st.slots[u(start + k)] = st.slots[u(old + k)]
    side.start, side.cap = start, cap
    if old_cap > 0:
        size_class = CHUNK_FREE
        while (CHUNK_MIN << (size_class - CHUNK_FREE)) < old_cap:
            size_class += 1
        st.keys[u(old)] = st.g[size_class]
        st.g[size_class] = old


@njit_inlined
def chunk_for(n: Any) -> Any:
    """The smallest chunk for `n` levels."""
    cap = CHUNK_MIN
    while cap < n:
        cap *= 2
    return cap


@njit_kernel
def insert(st: Any, side: Any, key: Any, slot: Any) -> None:
    """Make `slot` the level of a key that is not there."""
    n = place(st, side, key)
    if side.n == side.cap:
        move(st, side, max(CHUNK_MIN, 2 * np.int64(side.cap)))
    at = np.int64(side.start) + n
    k = np.int64(side.start) + np.int64(side.n)
    while k > at:
        st.keys[u(k)] = st.keys[u(k - 1)]
        st.slots[u(k)] = st.slots[u(k - 1)]
        k -= 1
    st.keys[u(at)] = key
    st.slots[u(at)] = slot
    side.n += 1


@njit_kernel
def erase(st: Any, side: Any, key: Any) -> None:
    """Take the level of a key that is there out of the array."""
    at = np.int64(side.start) + place(st, side, key) - 1
    end = np.int64(side.start) + np.int64(side.n) - 1
    while at < end:
        st.keys[u(at)] = st.keys[u(at + 1)]
        st.slots[u(at)] = st.slots[u(at + 1)]
        at += 1
    side.n -= 1
    if side.cap > CHUNK_MIN and side.n * 4 <= side.cap:
        move(st, side, np.int64(side.cap) >> 1)
