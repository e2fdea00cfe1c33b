"""Kernels of orders: queues of the book, owners' lists, the pool, a trade of two."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book import records
from trident_book.index import MIX_1, put, remove
from trident_book.matching.numba_rows import DISPLAYED, LEFT, next_match, next_ref, say, say_fill
from trident_book.matching.numba_state import (
    AON,
    BOOKED,
    HIDDEN,
    ICEBERG,
    LISTED,
    MORE_END,
    ORDER_END,
    ORDER_FREE,
    OWNER_SEED,
    OWNERS_USED,
    SPECIAL_AON,
    SPECIAL_STATE,
    SYMBOL_END,
)
from trident_book.sides import erase, free_level, insert, key_of, level_of, new_level
from trident_book.unsigned import u
from trident_core.contracts.matching import ReportKind
from trident_core.jit import njit_inlined, njit_kernel

_0: Final = np.uint64(0)
_1: Final = np.uint32(1)
_BOOKED: Final = np.int64(ReportKind.BOOKED)
_REFRESHED: Final = np.int64(ReportKind.REFRESHED)


# --- owners -------------------------------------------------------------------------------------------------


@njit_inlined
def owner_of(st: Any, owner: Any) -> Any:
    """The place of an owner in the table, or where it would go."""
    mask = np.uint64(len(st.owners) - 1)
    at = ((np.uint64(owner) ^ np.uint64(st.g[OWNER_SEED])) * MIX_1) >> np.uint64(32) & mask
    while st.owners[at].used != 0 and st.owners[at].owner != owner:
        at = (at + np.uint64(1)) & mask
    return at


@njit_kernel
def join_owner(st: Any, slot: Any) -> None:
    """Among its owner's orders, by reference: last, but for those that were refreshed meanwhile."""
    order = st.orders[slot]
    at = owner_of(st, order.owner)
    owner = st.owners[at]
    if owner.used == 0:
        owner.used, owner.owner = 1, order.owner
        st.g[OWNERS_USED] += 1
    before = owner.tail
    while before > 0 and st.orders[before].ref > order.ref:
        before = st.orders[before].prev_own
    behind = st.orders[before].next_own if before > 0 else owner.head
    order.prev_own, order.next_own = before, behind
    st.orders[before].next_own = slot
    st.orders[behind].prev_own = slot
    owner.head = owner.head if before > 0 else slot
    owner.tail = owner.tail if behind > 0 else slot
    owner.count += 1


@njit_kernel
def leave_owner(st: Any, slot: Any) -> None:
    order = st.orders[slot]
    before, behind = order.prev_own, order.next_own
    st.orders[before].next_own = behind
    st.orders[behind].prev_own = before
    if before == 0 or behind == 0:
        owner = st.owners[owner_of(st, order.owner)]
        owner.head = owner.head if before > 0 else behind
        owner.tail = owner.tail if behind > 0 else before


# --- the pool -----------------------------------------------------------------------------------------------


@njit_inlined
def new_order(st: Any) -> Any:
    slot = st.g[ORDER_FREE]
    if slot > 0:
        st.g[ORDER_FREE] = np.int64(st.orders[u(slot)].next)
    else:
        slot = st.g[ORDER_END]
        st.g[ORDER_END] = slot + 1
    return np.uint32(slot)


@njit_kernel
def free_order(st: Any, slot: Any) -> None:
    """Of one that is in no queue any more."""
    order = st.orders[slot]
    if order.flags & LISTED:
        remove(st.ids, order.id, order.position)
        leave_owner(st, slot)
        st.ids.g[records.LIVE] -= 1
    order.flags = 0
    order.next = st.g[ORDER_FREE]
    st.g[ORDER_FREE] = np.int64(slot)


@njit_kernel
def list_order(st: Any, slot: Any) -> None:
    """From now on it can be found by its identifier and its owner."""
    order = st.orders[slot]
    order.flags |= LISTED
    put(st.ids, order.id, slot)
    join_owner(st, slot)
    st.ids.g[records.LIVE] += 1


@njit_inlined
def more_of(st: Any, slot: Any) -> Any:
    """The order's second record will be written."""
    st.g[MORE_END] = max(st.g[MORE_END], np.int64(slot) + 1)
    return slot


@njit_kernel
def new_symbol(st: Any, locate: Any) -> Any:
    """A symbol of a locate that has none: like symbol 0."""
    symbol = np.uint32(st.g[SYMBOL_END])
    st.g[SYMBOL_END] += 1
    st.near[locate] = symbol
    made = st.symbols[symbol]
    made.locate, made.state = locate, st.symbols[u(0)].state
    made.special = st.symbols[u(0)].special
    return symbol


# --- queues of the book -------------------------------------------------------------------------------------


@njit_kernel
def join_queue(st: Any, slot: Any) -> None:
    """Last in its queue, with its first peak shown."""
    order = st.orders[slot]
    side_at = order.side
    key = key_of(order.price, side_at)
    level_slot = level_of(st.book, side_at, key)
    if level_slot == 0:
        level_slot = new_level(st.book, side_at, order.price)
        made = st.book.levels[level_slot]
        made.back_head = made.back_tail = made.displayed = made.aons = 0
        insert(st.book, side_at, key, level_slot)
    level = st.book.levels[level_slot]
    level.count += 1
    order.level, order.next, order.ts = level_slot, 0, st.work[u(0)].ts
    order.flags |= BOOKED
    if order.flags & (HIDDEN | AON):
        order.shown = _0
        if order.flags & AON:
            level.aons += 1
            symbol = st.symbols[side_at >> _1]
            symbol.aons += 1
            symbol.special |= SPECIAL_AON
    else:
        order.shown = order.leaves
        if order.flags & ICEBERG:
            order.shown = min(order.leaves, st.more[slot].peak)
        level.qty += order.shown
        level.displayed += 1
    if order.flags & HIDDEN:
        before = level.back_tail
        level.back_head = level.back_head if before > 0 else slot
        level.back_tail = slot
    else:
        before = level.tail
        level.head = level.head if before > 0 else slot
        level.tail = slot
    order.prev = before
    st.orders[before].next = slot


@njit_inlined
def unlink(st: Any, slot: Any) -> None:
    """Out of the queue of its level. Slot 0 takes what no neighbour does, and means nothing."""
    order = st.orders[slot]
    level = st.book.levels[order.level]
    before, behind = order.prev, order.next
    st.orders[before].next = behind
    st.orders[behind].prev = before
    if order.flags & HIDDEN:
        level.back_head = level.back_head if before > 0 else behind
        level.back_tail = level.back_tail if behind > 0 else before
    else:
        level.head = level.head if before > 0 else behind
        level.tail = level.tail if behind > 0 else before


@njit_kernel
def leave_queue(st: Any, slot: Any) -> None:
    """Out of the book. It keeps what it has left, but shows nothing any more."""
    order = st.orders[slot]
    level = st.book.levels[order.level]
    unlink(st, slot)
    level.count -= 1
    if order.flags & (HIDDEN | AON) == 0:
        level.qty -= order.shown
        level.displayed -= 1
        order.shown = _0
    elif order.flags & AON:
        level.aons -= 1
        st.symbols[order.side >> _1].aons -= 1
    order.flags &= ~np.uint32(BOOKED)
    if level.count == 0:
        erase(st.book, order.side, key_of(order.price, order.side), order.level)
        free_level(st.book, order.level)


@njit_inlined
def fall(st: Any, slot: Any, leaves: Any) -> Any:
    """Its open quantity falls to `leaves`, above 0, at its place: by how much what it displays falls."""
    order = st.orders[slot]
    order.leaves = leaves
    fell = order.shown - min(order.shown, leaves)
    order.shown -= fell
    if fell > _0:
        st.book.levels[order.level].qty -= fell
    return fell


@njit_kernel
def take(st: Any, slot: Any, qty: Any) -> Any:
    """A resting order gives `qty` of what it has at its place: the flags of the row that says so."""
    order = st.orders[slot]
    order.leaves -= qty
    if order.flags & (HIDDEN | AON):
        return np.int64(0)
    order.shown -= qty
    st.book.levels[order.level].qty -= qty
    return DISPLAYED | LEFT if order.shown == _0 else DISPLAYED


@njit_inlined
def at_place(st: Any, slot: Any) -> Any:
    """How much a resting order has at its place: what it shows, or, hidden, all."""
    order = st.orders[slot]
    return order.leaves if order.flags & (HIDDEN | AON) else order.shown


@njit_kernel
def refresh(st: Any, rows: Any, slot: Any) -> None:
    """An iceberg whose peak is used up shows the next one, last in the front."""
    order = st.orders[slot]
    level = st.book.levels[order.level]
    old = order.ref
    unlink(st, slot)
    before = level.tail
    order.prev, order.next = before, 0
    st.orders[before].next = slot
    level.head = level.head if before > 0 else slot
    level.tail = slot
    leave_owner(st, slot)
    order.ref = next_ref(st)
    join_owner(st, slot)
    order.ts = st.work[u(0)].ts
    order.shown = min(order.leaves, st.more[slot].peak)
    level.qty += order.shown
    at = say(st, rows, slot, _REFRESHED, order.price, order.shown)
    rows[at].ref2, rows[at].flags = old, DISPLAYED


@njit_kernel
def taken(st: Any, rows: Any, slot: Any) -> None:
    """What becomes of a resting order after its row: gone, or refreshed, or as it is."""
    order = st.orders[slot]
    if order.leaves == _0:
        leave_queue(st, slot)
        free_order(st, slot)
    elif order.flags & ICEBERG and order.shown == _0:
        refresh(st, rows, slot)


@njit_inlined
def crosses(st: Any, side_at: Any, price: Any) -> Any:
    """Does an order of the other side stand at a price that one of `side_at` at `price` would trade at?"""
    other = side_at ^ _1
    best = st.book.sides[other].best
    return best > 0 and key_of(st.book.levels[best].price, other) >= key_of(price, other)


@njit_kernel
def match_resting(st: Any, rows: Any, slot: Any, resting: Any, qty: Any) -> None:
    """An incoming order and a resting one trade."""
    order, other = st.orders[slot], st.orders[resting]
    price = other.price
    order.leaves -= qty
    order.filled += qty
    other.filled += qty
    flags = take(st, resting, qty)
    say_fill(st, rows, resting, slot, price, qty, next_match(st), flags)
    traded(st, other.side >> _1, price)
    taken(st, rows, resting)


@njit_inlined
def traded(st: Any, symbol: Any, price: Any) -> None:
    work = st.work[u(0)]
    work.low = price if work.low == 0 else min(work.low, price)
    work.high = max(work.high, price)
    st.symbols[symbol].last = price


@njit_kernel
def rests(st: Any, rows: Any, slot: Any) -> None:
    """Into the book, and say so."""
    join_queue(st, slot)
    order = st.orders[slot]
    if order.flags & LISTED == 0:
        list_order(st, slot)
    at = say(st, rows, slot, _BOOKED, order.price, order.shown)
    rows[at].flags = 0 if order.flags & (HIDDEN | AON) else DISPLAYED


@njit_inlined
def trading(st: Any, symbol: Any) -> Any:
    return st.symbols[symbol].special & SPECIAL_STATE == 0
