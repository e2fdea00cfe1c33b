"""The kernel that takes commands: NEW, REPLACE, REDUCE and CANCEL, and FIFO matching. What is rarer it
leaves to other kernels, which its caller calls by the phase it stands at
(trident_book.matching.numba_matcher).

A symbol in which nothing is special, and an order that is plain, go a short way: one look at a word each.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book import records
from trident_book.index import find
from trident_book.matching import numba_state as s
from trident_book.matching.numba_checks import (
    DUPLICATE_ID,
    FULL,
    LIMIT,
    MARKET,
    STOP,
    STOP_LIMIT,
    STPS,
    TIFS,
    check_new,
    first_stop,
    off_tick,
)
from trident_book.matching.numba_entering import cancel_order, owned, prepare, self_trade
from trident_book.matching.numba_memory import njit_spliced
from trident_book.matching.numba_orders import (
    at_place,
    crosses,
    fall,
    free_order,
    leave_queue,
    list_order,
    match_resting,
    more_of,
    new_order,
    new_symbol,
    rests,
    trading,
)
from trident_book.matching.numba_replace import join_waiting, leave_waiting, rejected, replace
from trident_book.matching.numba_room import sure
from trident_book.matching.numba_rows import (
    DISPLAYED,
    LEFT,
    next_ref,
    rows_full,
    say,
    say_cancelled,
)
from trident_book.sides import key_of
from trident_book.unsigned import u
from trident_core.contracts.matching import LOCATE_MAX, PRICE_MAX, Op, Reason, ReportKind
from trident_core.jit import njit_entry, njit_inlined, njit_kernel

_0: Final = np.uint64(0)
_1: Final = np.uint32(1)
_BUY, _SELL = ord("B"), ord("S")
_NEW, _REPLACE, _REDUCE, _CANCEL = int(Op.NEW), int(Op.REPLACE), int(Op.REDUCE), int(Op.CANCEL)
_ACCEPTED: Final = np.int64(ReportKind.ACCEPTED)
_UNKNOWN_ID: Final = np.int64(Reason.UNKNOWN_ID)
_BAD_QTY: Final = np.int64(Reason.BAD_QTY)
_USER: Final = np.int64(Reason.USER)
_IOC: Final = np.int64(Reason.IOC)
_NO_LIQUIDITY: Final = np.int64(Reason.NO_LIQUIDITY)
_PROTECTION: Final = np.int64(Reason.PROTECTION)
#: What a plain order may have: nothing that needs more than its own columns.
_PLAIN_FLAGS: Final = s.ON_DISCONNECT
_NOT_PLAIN: Final = (
    s.MARKET | s.FOK | s.AON | s.MIN_QTY | s.POST_ONLY | s.HIDDEN | s.STOP | s.ON_OPEN | s.ON_CLOSE
)
_SYMBOL_NOT_PLAIN: Final = s.SPECIAL_STATE | s.SPECIAL_BAND | s.SPECIAL_AON


# --- NEW ----------------------------------------------------------------------------------------------------


@njit_spliced
def is_plain(st: Any, c: Any, symbol: Any) -> Any:
    """A limit order, DAY, GTC or IOC, with all columns right, where nothing else has to be looked at."""
    tif = TIFS[c.tif]
    shape = (
        (c.kind == LIMIT) & ((c.side == _BUY) | (c.side == _SELL)) & (tif & ~np.uint32(s.GTC | s.IOC) == 0)
        & (c.flags & ~np.uint16(_PLAIN_FLAGS) == 0) & ((c.stp == 0) | (STPS[c.stp] > 0))
    )  # fmt: skip
    rare = c.peak | c.min_qty | np.uint64(c.trail) | np.uint64(c.step)
    ranges = (
        (c.qty - np.uint64(1) < np.uint64(st.g[s.QTY_MAX])) & (np.uint64(c.price - 1) < np.uint64(PRICE_MAX))
        & (np.uint32(c.locate - 1) < np.uint32(LOCATE_MAX))
    )  # fmt: skip
    if not (shape & ranges & (rare == _0)) or st.symbols[symbol].special & _SYMBOL_NOT_PLAIN:
        return False
    return not off_tick(st, c.price)


@njit_inlined
def stp_bits(st: Any, stp: Any) -> Any:
    number = np.uint32(STPS[stp] - 1) if stp != 0 else np.uint32(st.g[s.STP])
    return number << np.uint32(s.STP_AT)


@njit_kernel
def fill_rare(st: Any, slot: Any, c: Any, symbol: Any) -> Any:
    """What only some orders have; returns the flags that say so."""
    order, more = st.orders[slot], st.more[more_of(st, slot)]
    flags = np.uint32(0)
    stop = c.kind == STOP or c.kind == STOP_LIMIT
    more.peak, more.slip, more.min_qty = c.peak, c.slip, c.min_qty
    more.stop = more.trail = more.step = 0
    more.level = 0
    if c.kind == MARKET or c.kind == STOP:
        flags |= np.uint32(s.MARKET)
        order.price = 0
    if stop:
        flags |= np.uint32(s.STOP)
        more.stop, more.trail, more.step = first_stop(st, c, symbol), c.trail, c.step
    if c.peak != _0:
        flags |= np.uint32(s.ICEBERG)
    if c.min_qty != _0:
        flags |= np.uint32(s.MIN_QTY)
    return flags


@njit_spliced
def new(st: Any, rows: Any, c: Any) -> Any:
    """The phase in which it goes on."""
    symbol = st.near[c.locate if c.locate <= LOCATE_MAX else 0]
    plain = is_plain(st, c, symbol)
    reason: Any = 0
    if plain:
        if find(st.ids, c.id):
            reason = DUPLICATE_ID
        elif st.ids.g[records.LIVE] >= st.g[s.ORDERS_MAX]:
            reason = FULL
    else:
        reason = check_new(st, c, symbol)
    if reason:
        rejected(st, rows, c, c.locate, np.int64(reason))
        return s.IDLE
    if symbol == 0:
        symbol = new_symbol(st, c.locate)
    slot = new_order(st)
    order = st.orders[slot]
    order.id, order.price, order.leaves, order.owner = c.id, c.price, c.qty, c.owner
    order.ref, order.mpid = next_ref(st), c.mpid
    order.shown = order.filled = _0
    order.level = 0
    order.side = np.uint32(2) * symbol + np.uint32(c.side == _SELL)
    order.flags = np.uint32(c.flags) | TIFS[c.tif] | stp_bits(st, c.stp)
    if not plain:
        order.flags |= fill_rare(st, slot, c, symbol)
    say(st, rows, slot, _ACCEPTED, order.price, order.leaves)
    st.work[u(0)].symbol, st.work[u(0)].cur = symbol, slot
    if plain:
        return s.ENTER
    if order.flags & s.STOP:
        list_order(st, slot)
        return s.STOP_IN
    at_cross = order.flags & (s.ON_OPEN | s.ON_CLOSE) != 0
    if at_cross or (order.flags & s.MARKET and st.symbols[symbol].special & s.SPECIAL_STATE):
        list_order(st, slot)
        join_waiting(st, slot)
        return s.IDLE
    return s.ENTER


# --- CANCEL, REDUCE -----------------------------------------------------------------------------------------


@njit_spliced
def cancel(st: Any, rows: Any, c: Any) -> Any:
    slot = find(st.ids, c.id)
    if slot == 0 or st.orders[slot].owner != c.owner:
        rejected(st, rows, c, c.locate, _UNKNOWN_ID)
        return s.IDLE
    order = st.orders[slot]
    symbol = order.side >> _1
    qty = order.leaves
    if c.op == _REDUCE:
        qty = min(qty, c.qty)
        if qty == _0:
            rejected(st, rows, c, st.symbols[symbol].locate, _BAD_QTY)
            return s.IDLE
    st.work[u(0)].symbol = symbol
    shown = order.shown
    flags = DISPLAYED if shown > _0 else np.int64(0)
    if qty < order.leaves:
        fell = fall(st, slot, order.leaves - qty)
        say_cancelled(st, rows, slot, order.price, qty, fell, _USER, flags)
        return s.SETTLE
    if order.flags & s.BOOKED:
        leave_queue(st, slot)
    else:
        leave_waiting(st, slot)
    order.leaves = _0
    flags |= LEFT if shown > _0 else np.int64(0)
    say_cancelled(st, rows, slot, order.price, qty, shown, _USER, flags)
    free_order(st, slot)
    return s.SETTLE


# --- matching -----------------------------------------------------------------------------------------------


@njit_spliced
def enter(st: Any, rows: Any) -> Any:
    """The incoming order begins."""
    work = st.work[u(0)]
    slot = work.cur
    order = st.orders[slot]
    phase: Any = s.MATCH
    if order.flags & _NOT_PLAIN or st.symbols[order.side >> _1].special & _SYMBOL_NOT_PLAIN:
        phase = prepare(st, rows, slot)
    else:
        work.limit = order.price
    if phase == s.MATCH:
        if not crosses(st, order.side, work.limit):
            return s.FINISH
        if st.g[s.ALLOCATION] != s.FIFO:
            work.n = 0
            return s.SHARE
    return phase


@njit_spliced
def match(st: Any, rows: Any) -> Any:
    """FIFO: one resting order after the other."""
    work = st.work[u(0)]
    slot = work.cur
    order = st.orders[slot]
    other = order.side ^ _1
    limit_key = key_of(work.limit, other)
    while order.leaves > _0:
        best = st.book.sides[other].best
        level = st.book.levels[best]
        if best == 0 or key_of(level.price, other) < limit_key:
            break
        if rows_full(st, rows):
            return s.MATCH
        head = level.head if level.head > 0 else level.back_head
        if owned(order, st.orders[head]):
            if self_trade(st, rows, slot, head):
                return s.SETTLE
        else:
            match_resting(st, rows, slot, head, min(order.leaves, at_place(st, head)))
    return s.FINISH


@njit_spliced
def finish(st: Any, rows: Any) -> Any:
    """MATCH-17: what becomes of what is left, if anything is."""
    slot = st.work[u(0)].cur
    order = st.orders[slot]
    if order.flags & (s.IOC | s.FOK | s.MARKET) == 0:
        rests(st, rows, slot)
    else:
        reason = _IOC
        if order.flags & s.MARKET:
            other = st.book.sides[order.side ^ _1].best
            reason = _PROTECTION if other > 0 else _NO_LIQUIDITY
        cancel_order(st, rows, slot, np.int64(reason))
    return s.SETTLE


@njit_kernel
def settle_held(st: Any) -> Any:
    """MATCH-61: where all-or-none orders rest, or have left, orders may cross that can trade now."""
    work = st.work[u(0)]
    symbol = st.symbols[work.symbol]
    bids = np.uint32(2) * work.symbol
    best = st.book.sides[bids].best
    if trading(st, work.symbol):
        if best > 0 and crosses(st, bids, st.book.levels[best].price):
            work.volume = _0
            return s.HELD
        if symbol.aons == 0:
            symbol.special &= ~np.uint32(s.SPECIAL_AON)
    return s.SETTLED


@njit_spliced
def settle(st: Any) -> Any:
    """The work on a symbol is done: orders that were held apart are tried, then stops are looked at."""
    if st.symbols[st.work[u(0)].symbol].special & s.SPECIAL_AON:
        return settle_held(st)
    return s.SETTLED


@njit_spliced
def settled(st: Any) -> Any:
    work = st.work[u(0)]
    if work.todo_head > 0:
        return s.POP
    if st.symbols[work.symbol].special & s.SPECIAL_STOPS and work.low > 0:
        return s.TRIGGER
    return work.after


# --- the loop -----------------------------------------------------------------------------------------------


@njit_spliced
def begin(st: Any, rows: Any, c: Any) -> Any:
    work = st.work[u(0)]
    work.ts = max(work.ts, c.ts)
    work.low = work.high = 0
    work.after = s.IDLE
    if c.op == _NEW:
        return new(st, rows, c)
    if c.op == _CANCEL or c.op == _REDUCE:
        return cancel(st, rows, c)
    if c.op == _REPLACE:
        return replace(st, rows, c)
    return s.OPERATE


@njit_entry
def submit(memory: Any, commands: Any, rows: Any, start: Any) -> Any:
    """Carry out commands from `start` on until the end, or until something is wanted: State.g[STATUS]. The
    number of the next command."""
    st = s.state_at(memory)
    i, n = start, len(commands)
    phase: Any = np.uint32(st.work[u(0)].phase)
    while True:
        if phase == s.SETTLE:
            phase = np.uint32(settle(st))
        elif phase == s.SETTLED:
            phase = np.uint32(settled(st))
        elif phase > s.OWN_KERNEL:
            status = s.OTHER_KERNEL
            break
        elif phase == s.IDLE and i == n:
            status = s.ALL_DONE
            break
        elif phase == s.FINISH and st.orders[st.work[u(0)].cur].leaves == _0:
            free_order(st, st.work[u(0)].cur)
            phase = np.uint32(s.SETTLE)
        elif rows_full(st, rows):
            status = s.ROWS_FULL
            break
        elif phase == s.IDLE:
            if not sure(st):
                status = s.NEEDS_ROOM
                break
            phase = np.uint32(begin(st, rows, commands[u(i)]))
            i += 1
        elif phase == s.ENTER:
            phase = np.uint32(enter(st, rows))
        elif phase == s.MATCH:
            phase = np.uint32(match(st, rows))
        else:
            phase = np.uint32(finish(st, rows))
    st.work[u(0)].phase = phase
    st.g[s.STATUS] = status
    return i
