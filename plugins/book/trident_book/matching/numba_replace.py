"""Kernels of orders that wait (for a cross, in a call, or as stops) and of REPLACE (MATCH-30 to MATCH-33)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.index import find, put, remove
from trident_book.matching import numba_state as s
from trident_book.matching.numba_checks import check_replace
from trident_book.matching.numba_entering import cancel_order
from trident_book.matching.numba_ladder import leave_stops
from trident_book.matching.numba_memory import njit_spliced
from trident_book.matching.numba_orders import (
    crosses,
    fall,
    join_owner,
    join_queue,
    leave_owner,
    leave_queue,
)
from trident_book.matching.numba_rows import (
    DISPLAYED,
    LEFT,
    next_ref,
    next_row,
    say,
)
from trident_book.unsigned import u
from trident_core.contracts.matching import OrderFlag, Reason, ReportFlag, ReportKind
from trident_core.jit import njit_inlined, njit_kernel

_0: Final = np.uint64(0)
_1: Final = np.uint32(1)
_REJECTED: Final = np.int64(ReportKind.REJECTED)
_REPLACED: Final = np.int64(ReportKind.REPLACED)
_IN_PLACE: Final = np.int64(ReportFlag.IN_PLACE)
_RESTS: Final = np.int64(ReportFlag.RESTS)
_UNKNOWN_ID: Final = np.int64(Reason.UNKNOWN_ID)
_IN_FLIGHT_GONE: Final = np.int64(Reason.IN_FLIGHT)
_IN_FLIGHT: Final = int(OrderFlag.IN_FLIGHT)


@njit_kernel
def rejected(st: Any, rows: Any, c: Any, locate: Any, reason: Any) -> None:
    row = rows[next_row(st, rows, _REJECTED)]
    row.id, row.id2, row.owner, row.locate = c.id, c.id2, c.owner, np.uint32(locate)
    row.reason, row.code = reason, c.op


# --- waiting ------------------------------------------------------------------------------------------------


@njit_kernel
def join_waiting(st: Any, slot: Any) -> None:
    """Last of those that wait in its symbol: its reference is the newest."""
    order = st.orders[slot]
    symbol = st.symbols[order.side >> _1]
    before = symbol.wait_tail
    order.prev, order.next, order.ts = before, 0, st.work[u(0)].ts
    order.flags |= s.WAITS
    st.orders[before].next = slot
    symbol.wait_head = symbol.wait_head if before > 0 else slot
    symbol.wait_tail = slot
    symbol.wait_count += 1
    symbol.wait_markets += order.flags & (s.ON_OPEN | s.ON_CLOSE) == 0


@njit_kernel
def leave_waiting(st: Any, slot: Any) -> None:
    """Of one that waits for a cross, in a call, or as a stop."""
    order = st.orders[slot]
    if order.flags & s.STOP:
        leave_stops(st, slot)
        return
    symbol = st.symbols[order.side >> _1]
    before, behind = order.prev, order.next
    st.orders[before].next = behind
    st.orders[behind].prev = before
    symbol.wait_head = symbol.wait_head if before > 0 else behind
    symbol.wait_tail = symbol.wait_tail if behind > 0 else before
    symbol.wait_count -= 1
    symbol.wait_markets -= order.flags & (s.ON_OPEN | s.ON_CLOSE) == 0
    order.flags &= ~np.uint32(s.WAITS)


@njit_kernel
def cancel_any(st: Any, rows: Any, slot: Any, reason: Any) -> None:
    """Of any living order."""
    if st.orders[slot].flags & s.BOOKED == 0:
        leave_waiting(st, slot)
    cancel_order(st, rows, slot, reason)


# --- REPLACE ------------------------------------------------------------------------------------------------


@njit_inlined
def rename(st: Any, slot: Any, name: Any) -> None:
    order = st.orders[slot]
    if name != _0 and name != order.id:
        remove(st.ids, order.id, order.position)
        order.id = name
        put(st.ids, name, slot)


@njit_spliced
def say_replaced(st: Any, rows: Any, slot: Any, name: Any, old: Any, fell: Any, flags: Any) -> None:
    order = st.orders[slot]
    at = say(st, rows, slot, _REPLACED, order.price, order.shown)
    row = rows[at]
    row.id2 = name if name != _0 else order.id
    row.ref2, row.leaves2, row.flags = old, fell, flags


@njit_spliced
def moved(st: Any, rows: Any, slot: Any, name: Any) -> Any:
    """MATCH-33: it has left its place, and comes in again: the phase in which it goes on."""
    order = st.orders[slot]
    old, displayed = order.ref, order.shown > _0
    if order.flags & s.BOOKED:
        leave_queue(st, slot)
    else:
        leave_waiting(st, slot)
    return old, displayed


@njit_kernel
def replace(st: Any, rows: Any, c: Any) -> Any:
    """The phase in which it goes on."""
    slot = find(st.ids, c.id)
    if slot == 0 or st.orders[slot].owner != c.owner:
        rejected(st, rows, c, c.locate, _UNKNOWN_ID)
        return s.IDLE
    order, more, work = st.orders[slot], st.more[slot], st.work[u(0)]
    symbol = order.side >> _1
    work.symbol, work.cur = symbol, slot
    leaves = order.leaves
    if c.qty != _0:
        leaves = c.qty
        if c.flags & _IN_FLIGHT:
            if c.qty <= order.filled:
                cancel_any(st, rows, slot, _IN_FLIGHT_GONE)
                return s.SETTLE
            leaves = c.qty - order.filled
    stop = order.flags & s.STOP != 0
    price = order.price
    if c.price != 0 and order.flags & s.MARKET == 0:
        price = c.price
    in_place = price == order.price and leaves <= order.leaves
    if stop:
        in_place &= (c.stop == 0 or c.stop == more.stop) and (c.trail == 0 or c.trail == more.trail)
    reason = check_replace(st, c, slot, in_place)
    if reason:
        rejected(st, rows, c, st.symbols[symbol].locate, np.int64(reason))
        return s.IDLE
    if in_place:
        displayed = order.shown > _0
        fell = fall(st, slot, leaves)
        say_replaced(st, rows, slot, c.id2, order.ref, fell, _IN_PLACE | (DISPLAYED if displayed else 0))
        rename(st, slot, c.id2)
        return s.SETTLE
    waits = order.flags & s.WAITS != 0
    old, displayed = moved(st, rows, slot, c.id2)
    leave_owner(st, slot)
    order.ref = next_ref(st)
    join_owner(st, slot)
    order.price, order.leaves = price, leaves
    if stop:
        more.stop = c.stop if c.stop != 0 else more.stop
        more.trail = c.trail if c.trail != 0 else more.trail
    flags = DISPLAYED | LEFT if displayed else 0
    call = st.symbols[symbol].special & s.SPECIAL_STATE != 0
    free_way = call or (order.flags & s.AON == 0 and not crosses(st, order.side, price))
    phase: Any = s.ENTER
    if stop:
        phase = s.STOP_IN
    elif waits:
        join_waiting(st, slot)
        phase = s.IDLE
    elif free_way:
        join_queue(st, slot)
        flags |= _RESTS
        phase = s.SETTLE
    say_replaced(st, rows, slot, c.id2, old, _0, flags)
    rename(st, slot, c.id2)
    return phase
