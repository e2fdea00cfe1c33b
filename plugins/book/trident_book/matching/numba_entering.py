"""Kernels of orders that come in and are not of the plain kind: how far they go, what they could execute,
which rules decide, and self-trade prevention (MATCH-18, MATCH-20, MATCH-50, MATCH-51, MATCH-60)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.matching import numba_state as s
from trident_book.matching.numba_orders import (
    at_place,
    free_order,
    leave_queue,
    take,
    taken,
    trading,
)
from trident_book.matching.numba_rows import (
    DISPLAYED,
    LEFT,
    say_cancelled,
)
from trident_book.sides import key_of, next_level
from trident_book.unsigned import u
from trident_core.contracts.matching import Reason
from trident_core.jit import njit_inlined, njit_kernel

_0: Final = np.uint64(0)
_1: Final = np.uint32(1)
NO_LIMIT: Final = 1 << 40  # of a market order: beyond every price
SELF_TRADE: Final = np.int64(Reason.SELF_TRADE)
_FOK: Final = np.int64(Reason.FOK)
_MIN_QTY: Final = np.int64(Reason.MIN_QTY)
_BAND: Final = np.int64(Reason.BAND)
_POST_ONLY: Final = np.int64(Reason.POST_ONLY)


@njit_inlined
def policy(order: Any) -> Any:
    """MATCH-50: STP_… of an incoming order; STP_NONE of one of nobody."""
    if order.owner == 0:
        return np.uint32(s.STP_NONE)
    return order.flags >> np.uint32(s.STP_AT) & np.uint32(7)


@njit_inlined
def owned(order: Any, resting: Any) -> Any:
    """Must a trade of the two be prevented?"""
    return order.owner != 0 and order.owner == resting.owner and policy(order) != s.STP_NONE


@njit_kernel
def limit_of(st: Any, slot: Any) -> Any:
    """How far an order goes: MATCH-20."""
    order = st.orders[slot]
    if order.flags & s.MARKET == 0:
        return order.price
    sym = st.symbols[order.side >> _1]
    best = st.book.sides[order.side ^ _1].best
    reach = np.int64(NO_LIMIT)
    if order.flags & s.SLIPPAGE:
        reach = st.more[slot].slip
    elif st.g[s.PROTECTION] > 0:
        reach = st.g[s.PROTECTION]
    touch = st.book.levels[best].price  # 0 of the null level
    banded = sym.special & s.SPECIAL_BAND
    if order.side & _1:
        limit = touch - reach
        return max(limit, sym.low) if banded else limit
    limit = touch + reach
    return min(limit, sym.high) if banded else limit


@njit_kernel
def cancel_order(st: Any, rows: Any, slot: Any, reason: Any) -> None:
    """All that is left of one in the book, or of one that comes in; it is gone then."""
    order = st.orders[slot]
    qty, shown, flags = order.leaves, order.shown, np.int64(0)
    if order.flags & s.BOOKED:
        flags = DISPLAYED | LEFT if shown > _0 else np.int64(0)
        leave_queue(st, slot)
    order.leaves = _0
    say_cancelled(st, rows, slot, order.price, qty, shown, reason, flags)
    free_order(st, slot)


@njit_kernel
def self_trade(st: Any, rows: Any, slot: Any, resting: Any) -> Any:
    """MATCH-51: an incoming order meets one of its owner. Is the incoming one gone?"""
    order, other = st.orders[slot], st.orders[resting]
    rule = policy(order)
    if rule == s.STP_DECREMENT:
        qty = min(order.leaves, at_place(st, resting))
        shown = other.shown
        flags = take(st, resting, qty)
        say_cancelled(st, rows, resting, np.int64(0), qty, shown - other.shown, SELF_TRADE, flags)
        order.leaves -= qty
        say_cancelled(st, rows, slot, np.int64(0), qty, _0, SELF_TRADE, np.int64(0))
        taken(st, rows, resting)
        if order.leaves == _0:
            free_order(st, slot)
            return True
        return False
    if rule == s.STP_RESTING or rule == s.STP_BOTH:
        cancel_order(st, rows, resting, SELF_TRADE)
    if rule == s.STP_INCOMING or rule == s.STP_BOTH:
        cancel_order(st, rows, slot, SELF_TRADE)
        return True
    return False


# --- what an order could execute ----------------------------------------------------------------------------


@njit_inlined
def executable_at(st: Any, slot: Any, level_slot: Any) -> Any:
    """(quantity, whether an own order ends the count) at one price: MATCH-18."""
    order, level = st.orders[slot], st.book.levels[level_slot]
    rule = policy(order)
    guarded = rule != s.STP_NONE and rule != s.STP_RESTING
    fifo = st.g[s.ALLOCATION] == s.FIFO
    whole, at_places = _0, _0
    before = _0  # at their places, of the orders before the first own one
    ends = False
    at = level.head
    while at > 0:
        other = st.orders[at]
        if owned(order, other):
            if guarded and not ends:
                ends, before = True, at_places
        else:
            whole += other.leaves
            at_places += at_place(st, at)
        at = other.next
    if ends:
        if fifo:
            return before, True
        return _0 if rule == s.STP_DECREMENT else whole, True
    at = level.back_head
    while at > 0:
        other = st.orders[at]
        if owned(order, other):
            if guarded:
                return whole, True
        else:
            whole += other.leaves
        at = other.next
    return whole, False


@njit_kernel
def executable(st: Any, slot: Any, limit: Any, enough: Any) -> Any:
    """What the order could execute, counted no further than `enough`."""
    other = st.orders[slot].side ^ _1
    limit_key = key_of(limit, other)
    bits, n = st.book.sides[other].bits, np.int64(st.book.sides[other].n)
    count, ends = _0, False
    while count < enough and not ends:
        level_slot, bits, n = next_level(st.book, other, bits, n)
        if level_slot == 0 or key_of(st.book.levels[level_slot].price, other) < limit_key:
            break
        qty, ends = executable_at(st, slot, level_slot)
        count += qty
    return count


# --- which rules decide -------------------------------------------------------------------------------------


@njit_inlined
def aon_within(st: Any, side_at: Any, price: Any) -> Any:
    """Does an all-or-none order rest on this side at a price that crosses `price` of the other?"""
    limit_key = key_of(price, side_at)
    bits, n = st.book.sides[side_at].bits, np.int64(st.book.sides[side_at].n)
    while True:
        level_slot, bits, n = next_level(st.book, side_at, bits, n)
        level = st.book.levels[level_slot]
        if level_slot == 0 or key_of(level.price, side_at) < limit_key:
            return False
        if level.aons > 0:
            return True


@njit_inlined
def held(st: Any, slot: Any, limit: Any) -> Any:
    """Does MATCH-60 decide about this order?"""
    order = st.orders[slot]
    if order.flags & s.AON:
        return True
    if st.symbols[order.side >> _1].aons == 0:
        return False
    other = order.side ^ _1
    if aon_within(st, other, limit):
        return True
    best = st.book.sides[other].best
    return best > 0 and aon_within(st, order.side, st.book.levels[best].price)


@njit_kernel
def prepare(st: Any, rows: Any, slot: Any) -> Any:
    """An order that is not plain, or in a symbol that is not: the phase in which it goes on."""
    order, work = st.orders[slot], st.work[u(0)]
    symbol = order.side >> _1
    if not trading(st, symbol):
        work.limit = order.price
        return s.FINISH
    work.limit = limit_of(st, slot)
    if held(st, slot, work.limit):
        work.volume = _0
        return s.OWN_HELD
    short, reason = False, _FOK
    if order.flags & s.FOK:
        short = executable(st, slot, work.limit, order.leaves) < order.leaves
    elif order.flags & s.MIN_QTY:
        least = st.more[slot].min_qty
        short, reason = executable(st, slot, work.limit, least) < least, _MIN_QTY
    if short:
        cancel_order(st, rows, slot, np.int64(reason))
        return s.SETTLE
    return s.MATCH
