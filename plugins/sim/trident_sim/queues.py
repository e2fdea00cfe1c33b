"""Kernel: price levels and their queues. A level's orders are a doubly linked list, first in first out."""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_core.jit import I64, njit_kernel
from trident_sim.layout import FREE, LEVELS_MAX, LIVE, LIVE_PEAK, SLOTS_USED, STICKY


@njit_kernel
def best(st: Any, key: I64) -> Any:
    """The best price of a side, 0 if it is empty."""
    n = st.depth[key]
    return abs(np.int64(st.levels[key, n - 1, 0])) if n else 0


@njit_kernel
def best_order(st: Any, key: I64) -> Any:
    """The slot of the order that would trade first; the side must not be empty."""
    return np.int64(st.levels[key, st.depth[key] - 1, 1])


@njit_kernel
def _find(st: Any, key: I64, signed: I64) -> Any:
    """The first level whose signed price is at least `signed`."""
    low, high = 0, st.depth[key]
    while low < high:
        middle = (low + high) >> 1
        if st.levels[key, middle, 0] < signed:
            low = middle + 1
        else:
            high = middle
    return low


@njit_kernel
def take_slot(st: Any) -> Any:
    """A free order slot; there must be one (LIVE < len(orders))."""
    g = st.g
    if g[FREE]:
        g[FREE] -= 1
        return np.int64(st.free[g[FREE]])
    g[SLOTS_USED] += 1
    return g[SLOTS_USED] - 1


@njit_kernel
def insert(st: Any, slot: I64, key: I64, price: I64) -> Any:
    """Put an order at the tail of its price's queue; return the price, which is the nearest level's when
    the side already has LEVELS_MAX levels."""
    signed = -price if key & 1 else price
    levels, n = st.levels, st.depth[key]
    at = _find(st, key, signed)
    order = st.orders[slot]
    order.key = key
    order.next = -1
    if n == LEVELS_MAX:
        at = min(at, n - 1)
    if at < n and (levels[key, at, 0] == signed or n == LEVELS_MAX):
        tail = levels[key, at, 2]
        order.prev = tail
        st.orders[tail].next = slot
        levels[key, at, 2] = slot
        signed = np.int64(levels[key, at, 0])
    else:
        for k in range(n, at, -1):
            levels[key, k, 0] = levels[key, k - 1, 0]
            levels[key, k, 1] = levels[key, k - 1, 1]
            levels[key, k, 2] = levels[key, k - 1, 2]
        levels[key, at, 0] = signed
        levels[key, at, 1] = slot
        levels[key, at, 2] = slot
        st.depth[key] = n + 1
        order.prev = -1
    order.price = abs(signed)
    st.g[LIVE] += 1
    st.g[LIVE_PEAK] = max(st.g[LIVE_PEAK], st.g[LIVE])
    return abs(signed)


@njit_kernel
def unlink(st: Any, slot: I64) -> None:
    """Take an order out of its queue; an empty level goes. The slot stays taken."""
    order = st.orders[slot]
    key, ahead, behind = order.key, order.prev, order.next
    if ahead >= 0:
        st.orders[ahead].next = behind
    if behind >= 0:
        st.orders[behind].prev = ahead
    if ahead < 0 or behind < 0:
        at = _find(st, key, -order.price if key & 1 else order.price)
        levels = st.levels
        if ahead < 0 and behind < 0:
            n = st.depth[key] - 1
            for k in range(at, n):
                levels[key, k, 0] = levels[key, k + 1, 0]
                levels[key, k, 1] = levels[key, k + 1, 1]
                levels[key, k, 2] = levels[key, k + 1, 2]
            st.depth[key] = n
        elif ahead < 0:
            levels[key, at, 1] = behind
        else:
            levels[key, at, 2] = ahead
    st.g[LIVE] -= 1


@njit_kernel
def remove(st: Any, slot: I64) -> None:
    """Take an order out and free its slot."""
    unlink(st, slot)
    order = st.orders[slot]
    order.qty = 0
    st.g[STICKY] -= order.sticky
    st.free[st.g[FREE]] = slot
    st.g[FREE] += 1
