"""Kernels of crosses: who takes part, and the pairs (MATCH-72, MATCH-74). The price: `numba_price`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.matching import numba_state as s
from trident_book.matching.numba_checks import TRADING
from trident_book.matching.numba_entering import cancel_order
from trident_book.matching.numba_held import part_at, spend
from trident_book.matching.numba_operate import say_state, symbol_row
from trident_book.matching.numba_orders import (
    free_order,
    leave_queue,
    refresh,
    traded,
)
from trident_book.matching.numba_replace import leave_waiting
from trident_book.matching.numba_rows import (
    next_match,
    rows_full,
    say_fill,
)
from trident_book.matching.numba_walk import first_level, next_order
from trident_book.unsigned import u
from trident_core.contracts.matching import CrossType, Reason, ReportFlag, ReportKind
from trident_core.jit import njit_entry, njit_inlined, njit_kernel

_0: Final = np.uint64(0)
_1: Final = np.uint32(1)
_OPENING, _CLOSING = int(CrossType.OPENING), int(CrossType.CLOSING)
_SECOND, _CROSS = np.int64(ReportFlag.SECOND), np.int64(ReportFlag.CROSS)
_ROW_CROSS, _ROW_INDICATIVE = np.int64(ReportKind.CROSS), np.int64(ReportKind.INDICATIVE)
_EXPIRED: Final = np.int64(Reason.EXPIRED)


@njit_inlined
def of_cross(order: Any, code: Any) -> Any:
    """Does one that waits take part in a cross of this type?"""
    if order.flags & s.ON_OPEN:
        return code == _OPENING
    if order.flags & s.ON_CLOSE:
        return code == _CLOSING
    return True


@njit_entry
def collect_cross(memory: Any, symbol: Any, code: Any, side: Any, out: Any) -> Any:
    """One side's orders that take part: those of the book in priority, then those that wait by entry. (how
    many of the book, how many in all)"""
    st = s.state_at(memory)
    side_at = np.uint32(2) * np.uint32(symbol) + np.uint32(side)
    n: Any = np.int64(0)
    level, bits, count = first_level(st, side_at)
    at, level, bits, count = next_order(st, side_at, np.uint32(0), level, bits, count)
    while at > 0:
        if st.orders[at].flags & s.AON == 0:
            out[n] = at
            n += 1
        at, level, bits, count = next_order(st, side_at, at, level, bits, count)
    booked = n
    at = st.symbols[symbol].wait_head
    while at > 0:
        if st.orders[at].side == side_at and of_cross(st.orders[at], code):
            out[n] = at
            n += 1
        at = st.orders[at].next
    return booked, n


@njit_inlined
def bury(st: Any, slot: Any) -> Any:
    """Gone, if nothing is left of it."""
    order = st.orders[slot]
    if order.leaves > _0:
        return False
    if order.flags & s.BOOKED:
        leave_queue(st, slot)
    else:
        leave_waiting(st, slot)
    free_order(st, slot)
    return True


@njit_kernel
def pair(st: Any, rows: Any) -> None:
    """The next pair."""
    work = st.work[u(0)]
    buy, sell = st.agenda[work.at], st.agenda[work.cursor]
    qty = min(min(part_at(st, buy), part_at(st, sell)), work.volume)
    flags_b, flags_s = spend(st, buy, qty), spend(st, sell, qty)
    match_no = next_match(st)
    traded(st, work.symbol, work.price)
    say_fill(st, rows, buy, sell, work.price, qty, match_no, flags_b | _CROSS)
    say_fill(st, rows, sell, buy, work.price, qty, match_no, flags_s | _CROSS | _SECOND)
    work.volume -= qty
    if bury(st, buy):
        work.at += 1
    if bury(st, sell):
        work.cursor += 1


@njit_inlined
def refresh_last(st: Any, rows: Any, at: Any, end: Any) -> None:
    """An iceberg in which the volume has ended, if it shows nothing any more."""
    if at < end:
        order = st.orders[st.agenda[at]]
        if order.flags & s.ICEBERG and order.flags & s.BOOKED and order.shown == _0:
            refresh(st, rows, st.agenda[at])


@njit_inlined
def next_waiting(st: Any) -> Any:
    """The next of those that wait that was for this cross; 0: none. `cursor`: the first not looked at."""
    work = st.work[u(0)]
    at = work.cursor
    while at > 0 and not of_cross(st.orders[at], work.code):
        at = st.orders[at].next
    work.cursor = st.orders[at].next if at > 0 else np.uint32(0)
    return at


@njit_entry
def run_cross(memory: Any, rows: Any) -> None:
    """From phase CROSS (pairs) or CROSS_END on. The agenda: buys from 0, sales from WORK.sells to WORK.n;
    `volume`: what is still to do, `total`: what there was."""
    st = s.state_at(memory)
    work = st.work[u(0)]
    st.g[s.STATUS] = s.ROWS_FULL
    while work.phase == s.CROSS:
        if rows_full(st, rows):
            return
        if work.volume > _0:
            pair(st, rows)
        if work.volume == _0:
            if work.total > _0:
                refresh_last(st, rows, work.at, work.sells)
                refresh_last(st, rows, work.cursor, work.n)
            work.phase = s.CROSS_END
            work.cursor = st.symbols[work.symbol].wait_head
    while True:
        if rows_full(st, rows):
            return
        slot = next_waiting(st)
        if slot == 0:
            break
        leave_waiting(st, slot)
        cancel_order(st, rows, slot, _EXPIRED)
    row = rows[symbol_row(st, rows, work.symbol, _ROW_CROSS, work.code)]
    row.price, row.qty = work.price, work.total
    row.ref2 = next_match(st) if work.total > _0 else _0
    if st.symbols[work.symbol].state != TRADING:
        say_state(st, rows, work.symbol, TRADING)
    work.phase = s.SETTLE
    st.g[s.STATUS] = s.ALL_DONE


@njit_entry
def say_indicative(
    memory: Any, rows: Any, price: Any, qty: Any, leaves: Any, near: Any, far: Any, side: Any
) -> None:
    st = s.state_at(memory)
    work = st.work[u(0)]
    row = rows[symbol_row(st, rows, work.symbol, _ROW_INDICATIVE, work.code)]
    row.price, row.qty, row.leaves, row.leaves2, row.ref2 = price, qty, leaves, near, far
    row.side = side
    work.phase = s.SETTLE
