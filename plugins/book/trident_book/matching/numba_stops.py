"""The kernel of stops: those that come in, those that a trade reaches, and those that trail (MATCH-40 to
43)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.matching import numba_state as s
from trident_book.matching.numba_checks import outside_band, tick_at
from trident_book.matching.numba_entering import cancel_order
from trident_book.matching.numba_ladder import (
    BUYS,
    SELLS,
    TRAILING_BUYS,
    TRAILING_SELLS,
    leave_stops,
    place_stop,
    stops_side,
)
from trident_book.matching.numba_memory import njit_spliced
from trident_book.matching.numba_orders import crosses, trading
from trident_book.matching.numba_room import sure
from trident_book.matching.numba_rows import (
    order_row,
    rows_full,
)
from trident_book.sides import key_of
from trident_book.unsigned import u
from trident_core.contracts.matching import PRICE_MAX, Reason, ReportKind
from trident_core.jit import njit_entry, njit_inlined, njit_kernel

_1: Final = np.uint32(1)
_TRIGGERED: Final = np.int64(ReportKind.TRIGGERED)
_BAND: Final = np.int64(Reason.BAND)
_POST_ONLY: Final = np.int64(Reason.POST_ONLY)


@njit_inlined
def append(st: Any, slot: Any) -> None:
    """Last of the stops that have triggered."""
    work = st.work[u(0)]
    st.orders[slot].next = 0
    st.orders[work.todo_tail].next = slot
    work.todo_head = work.todo_head if work.todo_head > 0 else slot
    work.todo_tail = slot


@njit_spliced
def comes_in(st: Any) -> Any:
    """MATCH-41: it triggers at once, or waits."""
    slot = st.work[u(0)].cur
    order = st.orders[slot]
    symbol = order.side >> _1
    last, stop = st.symbols[symbol].last, st.more[slot].stop
    reached = stop >= last if order.side & _1 else stop <= last
    if reached and last > 0 and trading(st, symbol):
        append(st, slot)
        return s.POP
    place_stop(st, slot)
    return s.IDLE


@njit_kernel
def collect(st: Any, symbol: Any, place: Any, price: Any) -> None:
    """Those of one side that `price` reaches, in turn."""
    side_at = stops_side(st, symbol, place)
    limit_key = key_of(price, side_at)
    while True:
        best = st.stops.sides[side_at].best
        level = st.stops.levels[best]
        if best == 0 or key_of(level.price, side_at) < limit_key:
            return
        slot = level.head
        leave_stops(st, slot)
        append(st, slot)


@njit_inlined
def limit_moved(st: Any, price: Any, by: Any, sells: Any) -> Any:
    """MATCH-42: the limit keeps its distance, as far as prices and ticks go."""
    price = min(max(price + by, np.int64(1)), np.int64(PRICE_MAX))
    tick = tick_at(st, price)
    floor = price - price % tick
    if sells and floor < price and floor + tick <= PRICE_MAX:
        return floor + tick
    return floor if floor > 0 else tick


@njit_kernel
def move(st: Any, slot: Any, last: Any) -> None:
    order, more = st.orders[slot], st.more[slot]
    sells = order.side & _1 != 0
    stop = last - more.trail if sells else last + more.trail
    leave_stops(st, slot)
    if order.flags & s.MARKET == 0:
        order.price = limit_moved(st, order.price, stop - more.stop, sells)
    more.stop = stop
    place_stop(st, slot)


@njit_kernel
def trail(st: Any, symbol: Any, place: Any) -> Any:
    """Those of one side follow the last price. False if there may be no room for one more."""
    if st.symbols[symbol].stop_count == 0:
        return True
    side_at = stops_side(st, symbol, place)
    last = st.symbols[symbol].last
    limit_key = key_of(last, side_at)
    while True:
        best = st.stops.sides[side_at].best
        level = st.stops.levels[best]
        if best == 0 or key_of(level.price, side_at) < limit_key:
            return True
        if not sure(st):
            return False
        move(st, level.head, last)


@njit_spliced
def pop(st: Any, rows: Any) -> Any:
    """The next one that has triggered becomes the order it is."""
    work = st.work[u(0)]
    slot = work.todo_head
    order = st.orders[slot]
    work.todo_head = order.next
    if work.todo_head == 0:
        work.todo_tail = 0
    order.flags &= ~np.uint32(s.STOP)
    row = rows[order_row(st, rows, slot, _TRIGGERED)]
    row.price, row.qty = order.price, order.leaves
    work.cur = slot
    symbol = order.side >> _1
    reason: Any = 0
    if order.flags & s.MARKET == 0:
        if outside_band(st, symbol, order.side & _1, order.price):
            reason = _BAND
        elif order.flags & s.POST_ONLY and crosses(st, order.side, order.price):
            reason = _POST_ONLY
    if reason:
        cancel_order(st, rows, slot, np.int64(reason))
        return s.SETTLE
    return s.ENTER


@njit_entry
def run_stops(memory: Any, rows: Any) -> None:
    """From phase STOP_IN, TRIGGER, TRAIL or POP on."""
    st = s.state_at(memory)
    work = st.work[u(0)]
    phase: Any = np.uint32(work.phase)
    st.g[s.STATUS] = s.ALL_DONE
    if phase == s.STOP_IN:
        phase = np.uint32(comes_in(st))
    if phase == s.TRIGGER:
        collect(st, work.symbol, BUYS, work.high)
        collect(st, work.symbol, SELLS, work.low)
        work.low = work.high = 0
        phase = np.uint32(s.TRAIL)
    if phase == s.TRAIL:
        if trail(st, work.symbol, TRAILING_BUYS) and trail(st, work.symbol, TRAILING_SELLS):
            phase = np.uint32(s.SETTLED)
        else:
            st.g[s.STATUS] = s.NEEDS_ROOM
    elif phase == s.POP:
        if rows_full(st, rows):
            st.g[s.STATUS] = s.ROWS_FULL
        elif not sure(st):
            st.g[s.STATUS] = s.NEEDS_ROOM
        else:
            phase = np.uint32(pop(st, rows))
    work.phase = phase
