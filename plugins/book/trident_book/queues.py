"""Kernels of orders: joining and leaving the queue of a level, its side and the index."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.compiled import njit_inlined, njit_kernel
from trident_book.index import bits_of, find, put, remove
from trident_book.records import DUPLICATE_REF, LIVE, ORDER_END, ORDER_FREE
from trident_book.sides import erase, free_level, insert, key_of, level_at, new_level, place
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
def room_for(st: Any, side: Any, side_number: Any, price: Any, qty: Any) -> Any:
    """(Would the level's total still fit 64 bits?, how many keys are at most the price's, its level or 0)."""
    key = key_of(price, side_number)
    n = place(st, side, key)
    slot = level_at(st, side, n, key)
    return qty != np.uint64(0) and qty <= _QTY_MAX - st.levels[slot].qty, n, slot


@njit_inlined
def join(
    st: Any, symbol: Any, side_number: Any, n: Any, level_slot: Any, position: Any,
    ref: Any, price: Any, qty: Any, ts: Any, mpid: Any,
) -> None:  # fmt: skip
    """A new order at the tail of its queue. `n`, `level_slot` are `room_for`'s, `position` is `find`'s."""
    side = st.sides[2 * np.int64(symbol) + np.int64(side_number)]
    if level_slot == 0:
        level_slot = new_level(st, symbol, side_number, price)
        insert(st, side, n, key_of(price, side_number), level_slot)
    slot = st.g[ORDER_FREE]
    if slot > 0:
        st.g[ORDER_FREE] = np.int64(st.orders[slot].next)
    else:
        slot = st.g[ORDER_END]
        st.g[ORDER_END] = slot + 1
    st.g[LIVE] += 1
    level = st.levels[level_slot]
    tail = level.tail
    order = st.orders[slot]
    order.ref, order.qty, order.ts, order.price = ref, qty, ts, price
    order.level, order.symbol, order.side, order.mpid = level_slot, symbol, side_number, mpid
    order.prev, order.next = tail, 0
    if tail > 0:
        st.orders[tail].next = slot
    else:
        level.head = slot
    level.tail = slot
    level.count += 1
    level.qty += qty
    put(st, position, ref, slot)
    if side.best == level_slot:
        side.stale = 1


@njit_inlined
def leave(st: Any, slot: Any, position: Any) -> None:
    """Take an order out of everything. Its record stays readable, but for `qty` and `next`, until it is used
    again."""
    order = st.orders[slot]
    level = st.levels[order.level]
    side = st.sides[2 * np.int64(order.symbol) + np.int64(order.side)]
    if side.best == order.level:
        side.stale = 1
    if order.prev > 0:
        st.orders[order.prev].next = order.next
    else:
        level.head = order.next
    if order.next > 0:
        st.orders[order.next].prev = order.prev
    else:
        level.tail = order.prev
    level.qty -= order.qty
    level.count -= 1
    if level.count == 0:
        erase(st, side, key_of(order.price, order.side))
        free_level(st, order.level)
    remove(st.refs, bits_of(st), position)
    order.qty = np.uint64(0)
    order.next = st.g[ORDER_FREE]
    st.g[ORDER_FREE] = np.int64(slot)
    st.g[LIVE] -= 1


@njit_kernel
def evict(st: Any, ref: Any, position: Any, slot: Any, seq: Any) -> Any:
    """The order that still holds a newcomer's reference goes. Where the newcomer's entry goes now."""
    note(st, DUPLICATE_REF, seq)
    leave(st, slot, position)
    position, _ = find(st, ref)
    return position
