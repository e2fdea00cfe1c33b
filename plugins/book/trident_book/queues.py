"""Kernels of orders: joining and leaving the queue of a level, its side and the index."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.index import put, remove
from trident_book.records import DUPLICATE_REF, LIVE, ORDER_END, ORDER_FREE
from trident_book.sides import erase, free_level, insert, key_of, new_level
from trident_book.unsigned import u
from trident_core.jit import njit_inlined, njit_kernel
from trident_core.stats import POSITIONS_KEPT

_QTY_MAX: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


@njit_inlined
def note(st: Any, kind: Any, seq: Any) -> None:
    """Count an anomaly; keep where the first ones of the batch happened."""
    count = st.counts[kind]
    if count < POSITIONS_KEPT:
        st.firsts[kind * POSITIONS_KEPT + count] = seq
    st.counts[kind] = count + 1


@njit_inlined
def has_room(st: Any, level_slot: Any, qty: Any) -> Any:
    """Are there shares, and would the level's total still fit 64 bits?"""
    return qty != np.uint64(0) and qty <= _QTY_MAX - st.levels[level_slot].qty


@njit_inlined
def join(st: Any, side_at: Any, level_slot: Any, ref: Any, price: Any, qty: Any, ts: Any, mpid: Any) -> None:
    """A new order, of a new reference, at the tail of its queue. `level_slot` is `sides.level_of`'s."""
    if level_slot == 0:
        level_slot = new_level(st, side_at, price)
        insert(st, side_at, key_of(price, side_at), level_slot)
    slot = st.g[ORDER_FREE]
    if slot > 0:
        st.g[ORDER_FREE] = np.int64(st.orders[u(slot)].next)
    else:
        slot = st.g[ORDER_END]
        st.g[ORDER_END] = slot + 1
    st.g[LIVE] += 1
    level = st.levels[level_slot]
    tail = level.tail
    order = st.orders[u(slot)]
    order.ref, order.qty, order.ts, order.price = ref, qty, ts, price
    order.level, order.side, order.mpid = level_slot, side_at, mpid
    order.prev, order.next = tail, 0
    st.orders[tail].next = slot
    level.head = level.head if tail > 0 else np.uint32(slot)
    level.tail = slot
    level.count += 1
    level.qty += qty
    put(st, ref, np.uint32(slot))
    side = st.sides[side_at]
    side.stale |= np.uint32(side.best == level_slot)


@njit_inlined
def leave(st: Any, slot: Any) -> None:
    """Take an order out of everything. Its record stays readable, but for `qty` and `next`, until it is used
    again."""
    order = st.orders[u(slot)]
    level_slot = order.level
    level = st.levels[level_slot]
    side = st.sides[order.side]
    side.stale |= np.uint32(side.best == level_slot)
    # Without branches, which could not be predicted: slot 0 takes what no neighbour does, and means nothing.
    before, behind = order.prev, order.next
    st.orders[before].next = behind
    st.orders[behind].prev = before
    level.head = level.head if before > 0 else behind
    level.tail = level.tail if behind > 0 else before
    level.qty -= order.qty
    level.count -= 1
    if level.count == 0:
        erase(st, order.side, key_of(order.price, order.side), level_slot)
        free_level(st, level_slot)
    remove(st, order.ref, order.position)
    order.qty = np.uint64(0)
    order.next = st.g[ORDER_FREE]
    st.g[ORDER_FREE] = np.int64(slot)
    st.g[LIVE] -= 1


@njit_kernel
def evict(st: Any, slot: Any, seq: Any) -> None:
    """The order that still holds a newcomer's reference goes."""
    note(st, DUPLICATE_REF, seq)
    leave(st, slot)
