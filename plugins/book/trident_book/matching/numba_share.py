"""The kernel of allocations other than FIFO (MATCH-14, MATCH-15, MATCH-52)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.matching import numba_state as s
from trident_book.matching.numba_entering import SELF_TRADE, cancel_order, owned, policy, self_trade
from trident_book.matching.numba_memory import njit_spliced
from trident_book.matching.numba_orders import match_resting
from trident_book.matching.numba_rows import (
    rows_full,
)
from trident_book.sides import key_of
from trident_book.unsigned import u
from trident_core.jit import njit_entry, njit_kernel

_0: Final = np.uint64(0)
_1: Final = np.uint32(1)
_32: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFF_FFFF)


@njit_kernel
def portion(wanted: Any, size: Any, total: Any) -> Any:
    """floor(wanted * size / total), exact; wanted and size at most total, which is below 2^63."""
    if (wanted | size) >> _32 == _0:
        return wanted * size // total
    # 128 bits: the high and the low word of the product, then long division bit by bit.
    a, b, c, d = wanted >> _32, wanted & _LOW, size >> _32, size & _LOW
    middle = a * d + (b * d >> _32)
    other = b * c + (middle & _LOW)
    rest = a * c + (middle >> _32) + (other >> _32)
    low = other << _32 | (b * d & _LOW)
    result = _0
    for k in range(64):
        rest = rest << np.uint64(1) | low >> np.uint64(63 - k) & np.uint64(1)
        result <<= np.uint64(1)
        if rest >= total:
            rest -= total
            result |= np.uint64(1)
    return result


@njit_spliced
def first_own(st: Any, slot: Any, level: Any) -> Any:
    """(the first own order of a front, how many there are, how many others)"""
    order = st.orders[slot]
    found, own, others = np.uint32(0), 0, 0
    at = level.head
    while at > 0:
        if owned(order, st.orders[at]):
            found = found if found > 0 else at
            own += 1
        else:
            others += 1
        at = st.orders[at].next
    return found, own, others


@njit_spliced
def begin_round(st: Any, slot: Any, level: Any) -> None:
    """MATCH-14: what is wanted, of how much, and what rounding leaves over. `cursor`: the first of the
    round."""
    order, work = st.orders[slot], st.work[u(0)]
    total, count = _0, 0
    at = level.head
    while at > 0:
        if not owned(order, st.orders[at]):
            total += st.orders[at].shown
            count += 1
        at = st.orders[at].next
    wanted = min(order.leaves, total)
    given = _0
    at = level.head
    while at > 0:
        if not owned(order, st.orders[at]):
            given += portion(wanted, st.orders[at].shown, total)
        at = st.orders[at].next
    work.share, work.total, work.extra = wanted, total, wanted - given
    work.n, work.cursor = count, level.head


@njit_spliced
def go_round(st: Any, rows: Any, slot: Any) -> Any:
    """One FILL for each order that gets anything; False if the rows are used up."""
    order, work = st.orders[slot], st.work[u(0)]
    while work.n > 0:
        if rows_full(st, rows):
            return False
        at = work.cursor
        resting = st.orders[at]
        work.cursor = resting.next
        if owned(order, resting):
            continue
        work.n -= 1
        size = resting.shown
        qty = portion(work.share, size, work.total)
        more = min(work.extra, size - qty)
        work.extra -= more
        if qty + more > _0:
            match_resting(st, rows, slot, at, qty + more)
    return True


@njit_spliced
def largest(st: Any, slot: Any, level: Any) -> Any:
    """MATCH-15: of the others of a front, the first of those that show most."""
    order = st.orders[slot]
    found = np.uint32(0)
    at = level.head
    while at > 0:
        other = st.orders[at]
        if not owned(order, other) and (found == 0 or other.shown > st.orders[found].shown):
            found = at
        at = other.next
    return found


@njit_kernel
def meet_own(st: Any, rows: Any, slot: Any, first: Any, own: Any) -> Any:
    """MATCH-52, one step: is the incoming order gone?"""
    rule = policy(st.orders[slot])
    if rule == s.STP_DECREMENT or rule == s.STP_INCOMING:
        return self_trade(st, rows, slot, first)
    cancel_order(st, rows, first, SELF_TRADE)
    if rule == s.STP_BOTH and own == 1:
        cancel_order(st, rows, slot, SELF_TRADE)
        return True
    return False


@njit_spliced
def meet_front(st: Any, rows: Any, slot: Any, level: Any) -> Any:
    """One step with the front of a price: is the incoming order gone?"""
    work = st.work[u(0)]
    first, own, others = first_own(st, slot, level)
    rule = policy(st.orders[slot])
    begun = work.extra == np.uint64(0xFFFF_FFFF_FFFF_FFFF)
    if own > 0 and (begun or others == 0 or rule == s.STP_RESTING or rule == s.STP_DECREMENT):
        # BOTH cancels all of them, also when the rows are used up between two.
        work.extra = np.uint64(0xFFFF_FFFF_FFFF_FFFF) if rule == s.STP_BOTH else _0
        gone = meet_own(st, rows, slot, first, own)
        if gone:
            work.extra = _0
        return gone
    if st.g[s.ALLOCATION] == s.PRO_RATA:
        begin_round(st, slot, level)
        return False
    at = largest(st, slot, level)
    match_resting(st, rows, slot, at, min(st.orders[slot].leaves, st.orders[at].shown))
    return False


@njit_entry
def run_share(memory: Any, rows: Any) -> None:
    """From phase SHARE on."""
    st = s.state_at(memory)
    work = st.work[u(0)]
    slot = work.cur
    order = st.orders[slot]
    other = order.side ^ _1
    limit_key = key_of(work.limit, other)
    st.g[s.STATUS] = s.ALL_DONE
    while True:
        if rows_full(st, rows) or not go_round(st, rows, slot):
            st.g[s.STATUS] = s.ROWS_FULL
            return
        best = st.book.sides[other].best
        level = st.book.levels[best]
        if order.leaves == _0 or best == 0 or key_of(level.price, other) < limit_key:
            work.phase = s.FINISH
            return
        if level.head > 0:
            gone = meet_front(st, rows, slot, level)
        elif owned(order, st.orders[level.back_head]):
            gone = self_trade(st, rows, slot, level.back_head)
        else:
            resting = level.back_head
            match_resting(st, rows, slot, resting, min(order.leaves, st.orders[resting].leaves))
            gone = False
        if gone:
            work.phase = s.SETTLE
            return
