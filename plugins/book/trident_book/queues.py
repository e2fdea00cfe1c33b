"""Kernels of orders: joining and leaving the queue of a level, its side and the index."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.index import bits_of, find, put, remove
from trident_book.records import DUPLICATE_REF, LIVE, ORDER_END, ORDER_FREE
from trident_book.sides import erase, free_level, insert, key_of, level_at, new_level, place
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
def level_of(st: Any, side: Any, symbol: Any, side_number: Any, price: Any, hint: Any) -> Any:
    """(Slot of the level of a price or 0, how many keys are at most the price's). `hint` may be the slot."""
    level = st.levels[hint]
    if level.count > 0 and level.price == price and level.symbol == symbol and level.side == side_number:
        return hint, np.int64(0)
    key = key_of(price, side_number)
    n = place(st, side, key)
    return level_at(st, side, n, key), n


@njit_inlined
def has_room(st: Any, level_slot: Any, qty: Any) -> Any:
    """Are there shares, and would the level's total still fit 64 bits?"""
    return qty != np.uint64(0) and qty <= _QTY_MAX - st.levels[level_slot].qty


@njit_inlined
def join(
    st: Any, symbol: Any, side_number: Any, n: Any, level_slot: Any, position: Any,
    ref: Any, price: Any, qty: Any, ts: Any, mpid: Any,
) -> None:  # fmt: skip
    """A new order at the tail of its queue. `n`, `level_slot` are `level_of`'s, `position` is `find`'s."""
    side = st.sides[u(2 * np.int64(symbol) + np.int64(side_number))]
    if level_slot == 0:
        level_slot = new_level(st, symbol, side_number, price)
        insert(st, side, n, key_of(price, side_number), level_slot)
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
    order.level, order.symbol, order.side, order.mpid = level_slot, symbol, side_number, mpid
    order.prev, order.next = tail, 0
    st.orders[tail].next = slot
    level.head = level.head if tail > 0 else np.uint32(slot)
    level.tail = slot
    level.count += 1
    level.qty += qty
    put(st, position, ref, slot)
    side.stale |= np.uint32(side.best == level_slot)


@njit_inlined
def leave(st: Any, slot: Any, position: Any) -> None:
    """Take an order out of everything. Its record stays readable, but for `qty` and `next`, until it is used
    again."""
    order = st.orders[u(slot)]
    level = st.levels[order.level]
    side = st.sides[u(2 * np.int64(order.symbol) + np.int64(order.side))]
    side.stale |= np.uint32(side.best == order.level)
    # Without branches, which could not be predicted: slot 0 takes what no neighbour does, and means nothing.
    before, behind = order.prev, order.next
    st.orders[before].next = behind
    st.orders[behind].prev = before
    level.head = level.head if before > 0 else behind
    level.tail = level.tail if behind > 0 else before
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
