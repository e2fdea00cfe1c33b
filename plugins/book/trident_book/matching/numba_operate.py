"""Kernels of what is rare: states, bands, reference prices, and cancels of many (MATCH-35, MATCH-70,
MATCH-71)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.matching import numba_state as s
from trident_book.matching.numba_checks import BAD_LOCATE, BAD_PRICE, BAD_SIDE, QUOTATION, STATE, TRADING
from trident_book.matching.numba_memory import njit_spliced
from trident_book.matching.numba_orders import crosses, new_symbol, owner_of
from trident_book.matching.numba_replace import cancel_any, rejected
from trident_book.matching.numba_rows import (
    next_row,
    rows_full,
)
from trident_book.matching.numba_walk import first_level, next_order
from trident_book.sides import key_of
from trident_book.unsigned import u
from trident_core.contracts import TradingState
from trident_core.contracts.matching import LOCATE_MAX, PRICE_MAX, CrossType, Op, Reason, ReportKind
from trident_core.jit import njit_entry, njit_inlined, njit_kernel

_0: Final = np.uint64(0)
_1: Final = np.uint32(1)
_BUY, _SELL = ord("B"), ord("S")
_STATE, _BAND, _REFERENCE = int(Op.STATE), int(Op.BAND), int(Op.REFERENCE)
_INDICATE, _UNCROSS = int(Op.INDICATE), int(Op.UNCROSS)
_MASS, _DISCONNECT, _END = int(Op.MASS_CANCEL), int(Op.DISCONNECT), int(Op.END_OF_DAY)
_HALTED, _PAUSED = int(TradingState.HALTED), int(TradingState.PAUSED)
_OPENING, _CLOSING, _HALT = int(CrossType.OPENING), int(CrossType.CLOSING), int(CrossType.HALT)
_ROW_STATE, _ROW_DONE = np.int64(ReportKind.STATE), np.int64(ReportKind.DONE)
_BAD_OP, _BAD_CODE, _CROSSED = np.int64(Reason.BAD_OP), np.int64(Reason.BAD_CODE), np.int64(Reason.CROSSED)
_BY_STATE, _BY_BAND, _BY_MASS = np.int64(Reason.STATE), np.int64(Reason.BAND), np.int64(Reason.MASS)
_BY_DISCONNECT, _EXPIRED = np.int64(Reason.DISCONNECT), np.int64(Reason.EXPIRED)


@njit_inlined
def symbol_row(st: Any, rows: Any, symbol: Any, kind: Any, code: Any) -> Any:
    """Where the next row stands, one of a symbol."""
    at = next_row(st, rows, kind)
    sym, row = st.symbols[symbol], rows[at]
    row.locate, row.code = sym.locate, code
    sym.seq, sym.ts = row.seq, row.ts
    return at


@njit_kernel
def say_state(st: Any, rows: Any, symbol: Any, state: Any) -> None:
    """The symbol's state from now on. Stops that were reached while they waited trigger when trading
    begins."""
    sym, work = st.symbols[symbol], st.work[u(0)]
    if state == TRADING and sym.state != TRADING and sym.last > 0 and work.low == 0:
        work.low = work.high = sym.last
    sym.state = state
    if state == TRADING:
        sym.special &= ~np.uint32(s.SPECIAL_STATE)
    else:
        sym.special |= s.SPECIAL_STATE
    symbol_row(st, rows, symbol, _ROW_STATE, state)


# --- checks -------------------------------------------------------------------------------------------------


@njit_kernel
def check_symbol_command(st: Any, c: Any) -> Any:
    """Of STATE, BAND, REFERENCE, INDICATE, UNCROSS: the reason, 0 for none."""
    if c.locate < 1 or c.locate > LOCATE_MAX:
        return BAD_LOCATE
    symbol = st.near[c.locate]
    sym = st.symbols[symbol]
    if c.op == _STATE:
        if c.code != TRADING and c.code != QUOTATION and c.code != _HALTED and c.code != _PAUSED:
            return _BAD_CODE
        if c.code == TRADING and sym.state != TRADING:
            bids = np.uint32(2) * symbol
            bid = st.book.levels[st.book.sides[bids].best].price
            if (bid > 0 and crosses(st, bids, bid)) or sym.wait_markets > 0:
                return _CROSSED
    elif c.op == _BAND:
        lifts = c.price == 0 and c.stop == 0
        if not lifts and (c.price < 1 or c.stop < c.price or c.stop > PRICE_MAX):
            return BAD_PRICE
    elif c.op == _REFERENCE:
        if c.price < 0 or c.price > PRICE_MAX:
            return BAD_PRICE
    else:
        if c.code != _OPENING and c.code != _CLOSING and c.code != _HALT:
            return _BAD_CODE
        if sym.state != TRADING and sym.state != QUOTATION:
            return STATE
    return 0


@njit_spliced
def check_operation(st: Any, c: Any) -> Any:
    op = c.op
    if op == _STATE or op == _BAND or op == _REFERENCE or op == _INDICATE or op == _UNCROSS:
        return check_symbol_command(st, c)
    if op == _MASS or op == _END:
        if c.locate > LOCATE_MAX:
            return BAD_LOCATE
        if op == _MASS and c.side != 0 and c.side != _BUY and c.side != _SELL:
            return BAD_SIDE
        return 0
    return 0 if op == _DISCONNECT else _BAD_OP


# --- which orders -------------------------------------------------------------------------------------------


@njit_kernel
def collect_side(st: Any, side_at: Any, price: Any, aons: Any, n: Any) -> Any:
    """One side's orders in priority, with prices better than `price`; or with `aons` its all-or-none ones.
    How many the agenda has then."""
    level, bits, count = first_level(st, side_at)
    at, level, bits, count = next_order(st, side_at, np.uint32(0), level, bits, count)
    while at > 0:
        order = st.orders[at]
        if aons:
            if order.flags & s.AON:
                st.agenda[n] = at
                n += 1
        elif key_of(order.price, side_at) > key_of(price, side_at):
            st.agenda[n] = at
            n += 1
        else:
            break
        at, level, bits, count = next_order(st, side_at, at, level, bits, count)
    return n


@njit_spliced
def collect_outside(st: Any, symbol: Any) -> Any:
    """MATCH-71: those that the band leaves outside."""
    sym = st.symbols[symbol]
    n: Any = np.int64(0)
    if sym.special & s.SPECIAL_BAND == 0:
        return n
    bids = np.uint32(2) * symbol
    n = collect_side(st, bids, sym.high, False, n)
    n = collect_side(st, bids + _1, sym.low, False, n)
    at = sym.wait_head
    while at > 0:
        order = st.orders[at]
        outside = order.price < sym.low if order.side & _1 else order.price > sym.high
        if outside and order.flags & s.MARKET == 0:
            st.agenda[n] = at
            n += 1
        at = order.next
    return n


@njit_spliced
def collect_owned(st: Any, owner: Any, symbol: Any, any_symbol: Any, side: Any, on_disconnect: Any) -> Any:
    """An owner's orders, by reference."""
    n: Any = np.int64(0)
    entry = st.owners[owner_of(st, owner)]
    at = entry.head if entry.used else np.uint32(0)
    while at > 0:
        order = st.orders[at]
        letter = _SELL if order.side & _1 else _BUY
        wanted = (any_symbol or order.side >> _1 == symbol) and (side == 0 or side == letter)
        if wanted and (not on_disconnect or order.flags & s.ON_DISCONNECT):
            st.agenda[n] = at
            n += 1
        at = order.next_own
    return n


@njit_spliced
def collect_day(st: Any, symbol: Any, any_symbol: Any) -> Any:
    """All that are not GTC, in no order."""
    n: Any = np.int64(0)
    for k in range(1, st.g[s.ORDER_END]):
        order = st.orders[u(k)]
        ends = order.flags & s.LISTED and order.flags & s.GTC == 0
        if ends and (any_symbol or order.side >> _1 == symbol):
            st.agenda[n] = k
            n += 1
    return n


# --- operations ---------------------------------------------------------------------------------------------


@njit_kernel
def operate_symbol(st: Any, rows: Any, c: Any, symbol: Any) -> Any:
    """STATE, BAND, REFERENCE; the phase in which it goes on."""
    sym, work = st.symbols[symbol], st.work[u(0)]
    if c.op == _REFERENCE:
        sym.reference = c.price
        return s.DONE
    if c.op == _BAND:
        sym.low, sym.high = c.price, c.stop
        if c.price > 0:
            sym.special |= s.SPECIAL_BAND
        else:
            sym.special &= ~np.uint32(s.SPECIAL_BAND)
        work.reason = _BY_BAND
        work.n = collect_outside(st, symbol)
        return s.CANCEL_ALL
    bids = np.uint32(2) * symbol
    n: Any = np.int64(0)
    if c.code != TRADING and sym.aons > 0:
        n = collect_side(st, bids, np.int64(0), True, n)
        n = collect_side(st, bids + _1, np.int64(0), True, n)
    say_state(st, rows, symbol, c.code)
    work.n, work.reason = n, _BY_STATE
    return s.CANCEL_ALL if n > 0 else s.SETTLE


@njit_entry
def operate(memory: Any, rows: Any, commands: Any, i: Any) -> None:
    """Command i, of the ops that `numba_submit` does not know: begins it. The agenda is long enough for all
    living orders; END_OF_DAY and STATE leave theirs unsorted."""
    st = s.state_at(memory)
    c, work = commands[u(i)], st.work[u(0)]
    st.g[s.STATUS] = s.ALL_DONE
    work.phase = s.IDLE
    reason = check_operation(st, c)
    if reason:
        rejected(st, rows, c, c.locate, np.int64(reason))
        return
    locate = c.locate if c.op != _DISCONNECT else np.uint32(0)
    symbol = st.near[locate]
    if locate > 0 and symbol == 0:
        symbol = new_symbol(st, locate)
    work.id, work.owner, work.locate, work.op, work.code = c.id, c.owner, locate, c.op, c.code
    work.symbol, work.after = symbol, s.IDLE
    work.at = work.n = work.cursor = 0
    work.cancelled = _0
    if c.op == _INDICATE or c.op == _UNCROSS:
        work.phase = s.CROSS
    elif c.op == _MASS:
        work.n, work.reason = collect_owned(st, c.owner, symbol, locate == 0, c.side, False), _BY_MASS
        work.phase = s.CANCEL_ALL
    elif c.op == _DISCONNECT:
        work.n, work.reason = collect_owned(st, c.owner, symbol, True, 0, True), _BY_DISCONNECT
        work.phase = s.CANCEL_ALL
    elif c.op == _END:
        work.n, work.reason = collect_day(st, symbol, locate == 0), _EXPIRED
        work.phase = s.CANCEL_ALL
    else:
        work.phase = operate_symbol(st, rows, c, symbol)


@njit_spliced
def cancel_all(st: Any, rows: Any) -> Any:
    """Those of the agenda; False if the rows are used up."""
    work = st.work[u(0)]
    while work.at < work.n:
        if rows_full(st, rows):
            return False
        slot = st.agenda[work.at]
        work.at += 1
        work.cancelled += np.uint64(1)
        symbol = st.symbols[st.orders[slot].side >> _1]
        if symbol.special & s.SPECIAL_AON and symbol.special & s.SPECIAL_STATE == 0:
            symbol.dirty = 1
            work.dirty = 1
        cancel_any(st, rows, slot, np.int64(work.reason))
    return True


@njit_spliced
def next_dirty(st: Any) -> Any:
    """The next symbol in which the cancels may set something off."""
    work = st.work[u(0)]
    work.after = s.DIRTY
    work.low = work.high = 0
    while work.dirty > 0 and work.cursor < LOCATE_MAX:
        work.cursor += 1
        symbol = st.near[work.cursor]
        if symbol > 0 and st.symbols[symbol].dirty > 0:
            st.symbols[symbol].dirty = 0
            work.symbol = symbol
            return s.SETTLE
    work.dirty = 0
    work.after = s.IDLE
    return s.DONE


@njit_entry
def run_cancels(memory: Any, rows: Any) -> None:
    """From phase CANCEL_ALL, DIRTY or DONE on."""
    st = s.state_at(memory)
    work = st.work[u(0)]
    st.g[s.STATUS] = s.ROWS_FULL
    phase: Any = np.uint32(work.phase)
    if phase == s.CANCEL_ALL and cancel_all(st, rows):
        phase = np.uint32(s.SETTLE if work.op == _STATE else s.DIRTY)
    if phase == s.DIRTY:
        phase = np.uint32(next_dirty(st))
    work.phase = phase
    if phase == s.DONE and not rows_full(st, rows):
        row = rows[next_row(st, rows, _ROW_DONE)]
        row.locate, row.id, row.owner, row.code = work.locate, work.id, work.owner, work.op
        row.qty = work.cancelled
        symbol = st.near[work.locate]
        if work.locate > 0:
            st.symbols[symbol].seq, st.symbols[symbol].ts = row.seq, row.ts
        work.phase = s.IDLE
    if phase != s.CANCEL_ALL and (phase != s.DONE or work.phase == s.IDLE):
        st.g[s.STATUS] = s.ALL_DONE
