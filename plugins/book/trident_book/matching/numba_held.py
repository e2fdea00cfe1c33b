"""The kernel of all-or-none orders: both queues against each other (MATCH-60, MATCH-61)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.matching import numba_state as s
from trident_book.matching.numba_entering import SELF_TRADE, cancel_order, owned, policy
from trident_book.matching.numba_orders import (
    free_order,
    leave_queue,
    refresh,
    traded,
)
from trident_book.matching.numba_rows import (
    DISPLAYED,
    LEFT,
    next_match,
    rows_full,
    say_fill,
)
from trident_book.matching.numba_walk import comes_before, first_level, next_order, quantity_of
from trident_book.sides import key_of
from trident_book.unsigned import u
from trident_core.contracts.matching import Reason, ReportFlag
from trident_core.jit import njit_entry, njit_inlined, njit_kernel

_0: Final = np.uint64(0)
_1: Final = np.uint32(1)
_SECOND: Final = np.int64(ReportFlag.SECOND)
_FOK: Final = np.int64(Reason.FOK)
_MIN_QTY: Final = np.int64(Reason.MIN_QTY)


# --- how much -----------------------------------------------------------------------------------------------


@njit_inlined
def least_of(st: Any, slot: Any, own: Any) -> Any:
    """Of less than that the queue cannot take from an order."""
    order = st.orders[slot]
    if order.flags & s.AON:
        return order.leaves
    if own and order.flags & s.FOK:
        return order.leaves
    if own and order.flags & s.MIN_QTY and order.filled == _0:
        return st.more[slot].min_qty
    return np.uint64(1)


@njit_inlined
def price_of(st: Any, slot: Any, own: Any, limit: Any) -> Any:
    return limit if own else st.orders[slot].price


@njit_kernel
def find_volume(st: Any, symbol: Any, own: Any, limit: Any) -> Any:
    """The largest volume that both sides can give, such that the two orders in which it ends cross; 0: none.

    Pairs that touch are visited from the best on: `own` is the incoming order, 0 for none. The walk of each
    side stands at a part: the order `at`, or what an iceberg has behind its peak (part 1), or the incoming
    (`mine`).
    """
    bids, asks = np.uint32(2) * symbol, np.uint32(2) * symbol + _1
    own_buys = own if own > 0 and st.orders[own].side == bids else np.uint32(0)
    own_sells = own if own > 0 and st.orders[own].side == asks else np.uint32(0)
    level_b, bits_b, n_b = first_level(st, bids)
    level_s, bits_s, n_s = first_level(st, asks)
    buy, level_b, bits_b, n_b = next_order(st, bids, np.uint32(0), level_b, bits_b, n_b)
    sell, level_s, bits_s, n_s = next_order(st, asks, np.uint32(0), level_s, bits_s, n_s)
    part_b, part_s = 0, 0
    end_b = end_s = start_b = start_s = best = _0
    fresh_b, fresh_s = True, True
    mine_b, mine_s = False, False
    while True:
        if fresh_b:
            mine_b = part_b == 0 and comes_before(st, bids, own_buys, limit, buy)
        if fresh_s:
            mine_s = part_s == 0 and comes_before(st, asks, own_sells, limit, sell)
        b = own_buys if mine_b else buy
        a = own_sells if mine_s else sell
        if b == 0 or a == 0 or price_of(st, b, mine_b, limit) < price_of(st, a, mine_s, limit):
            return best
        if fresh_b:
            start_b, end_b = end_b, end_b + quantity_of(st, b, part_b)
        if fresh_s:
            start_s, end_s = end_s, end_s + quantity_of(st, a, part_s)
        volume = min(end_b, end_s)
        least_b, least_s = least_of(st, b, mine_b), least_of(st, a, mine_s)
        if volume >= start_b + least_b and volume >= start_s + least_s:
            best = volume
        fresh_b, fresh_s = end_b == volume, end_s == volume
        if fresh_b:
            if mine_b:
                own_buys = np.uint32(0)
            elif part_b == 0 and st.orders[b].flags & s.ICEBERG and st.orders[b].leaves > st.orders[b].shown:
                part_b = 1
            else:
                part_b = 0
                buy, level_b, bits_b, n_b = next_order(st, bids, buy, level_b, bits_b, n_b)
        if fresh_s:
            if mine_s:
                own_sells = np.uint32(0)
            elif part_s == 0 and st.orders[a].flags & s.ICEBERG and st.orders[a].leaves > st.orders[a].shown:
                part_s = 1
            else:
                part_s = 0
                sell, level_s, bits_s, n_s = next_order(st, asks, sell, level_s, bits_s, n_s)


# --- pairs --------------------------------------------------------------------------------------------------


@njit_inlined
def part_at(st: Any, slot: Any) -> Any:
    """What an order gives before the next pair begins: what an iceberg shows, then its rest."""
    order = st.orders[slot]
    return order.shown if order.flags & s.BOOKED and order.shown > _0 else order.leaves


@njit_inlined
def spend(st: Any, slot: Any, qty: Any) -> Any:
    """One side of a trade: the flags that its row has for it."""
    order = st.orders[slot]
    order.leaves -= qty
    order.filled += qty
    if order.flags & s.BOOKED == 0 or order.shown == _0:
        return np.int64(0)
    order.shown -= qty
    st.book.levels[order.level].qty -= qty
    return DISPLAYED if order.shown > _0 else DISPLAYED | LEFT


@njit_inlined
def bury(st: Any, slot: Any) -> None:
    if st.orders[slot].leaves == _0 and st.orders[slot].flags & s.BOOKED:
        leave_queue(st, slot)
        free_order(st, slot)


@njit_kernel
def pair(st: Any, rows: Any, buy: Any, sell: Any, own: Any, most: Any) -> Any:
    """One pair trades, at most `most`: how much."""
    qty = min(min(part_at(st, buy), part_at(st, sell)), most)
    flags_b, flags_s = spend(st, buy, qty), spend(st, sell, qty)
    match_no = next_match(st)
    buy_first = own == sell or (own != buy and st.orders[buy].ref < st.orders[sell].ref)
    first, second = (buy, sell) if buy_first else (sell, buy)
    flags_1, flags_2 = (flags_b, flags_s) if buy_first else (flags_s, flags_b)
    price = st.orders[first].price
    traded(st, st.orders[first].side >> _1, price)
    say_fill(st, rows, first, second, price, qty, match_no, flags_1)
    if second != own:
        say_fill(st, rows, second, first, price, qty, match_no, flags_2 | _SECOND)
    bury(st, first)
    bury(st, second)
    return qty


@njit_inlined
def head_of(st: Any, side_at: Any, own: Any, limit: Any) -> Any:
    """The first of a side's queue."""
    level = st.book.levels[st.book.sides[side_at].best]
    at = level.head if level.head > 0 else level.back_head
    mine = own if own > 0 and st.orders[own].side == side_at and st.orders[own].leaves > _0 else np.uint32(0)
    return own if comes_before(st, side_at, mine, limit, at) else at


@njit_inlined
def refresh_head(st: Any, rows: Any, side_at: Any) -> None:
    """An iceberg in which the volume has ended; all before it are gone."""
    slot = st.book.levels[st.book.sides[side_at].best].head
    if st.orders[slot].flags & s.ICEBERG and st.orders[slot].shown == _0:
        refresh(st, rows, slot)


@njit_kernel
def own_ahead(st: Any, own: Any, limit: Any) -> Any:
    """The first of the other side's orders that crosses the incoming one and is of its owner; 0: none."""
    side_at = st.orders[own].side ^ _1
    limit_key = key_of(limit, side_at)
    level, bits, n = first_level(st, side_at)
    at, level, bits, n = next_order(st, side_at, np.uint32(0), level, bits, n)
    while at > 0 and key_of(st.orders[at].price, side_at) >= limit_key:
        if owned(st.orders[own], st.orders[at]):
            return at
        at, level, bits, n = next_order(st, side_at, at, level, bits, n)
    return np.uint32(0)


@njit_inlined
def prevented(st: Any, rows: Any, own: Any, limit: Any) -> Any:
    """MATCH-61: 0 if there is nothing to prevent, 1 after a step of it, 2 when the incoming order is gone."""
    rule = policy(st.orders[own])
    if rule == s.STP_NONE:
        return 0
    at = own_ahead(st, own, limit)
    if at == 0:
        return 0
    if rule != s.STP_INCOMING:
        cancel_order(st, rows, at, SELF_TRADE)
    if rule == s.STP_RESTING:
        return 1
    cancel_order(st, rows, own, SELF_TRADE)
    return 2


@njit_kernel
def end_of_own(st: Any, rows: Any, own: Any) -> Any:
    """An incoming order that can trade no more: the phase in which it goes on."""
    order = st.orders[own]
    if order.leaves > _0:
        if order.flags & s.FOK:
            cancel_order(st, rows, own, _FOK)
            return s.SETTLE
        if order.flags & s.MIN_QTY and order.filled == _0:
            cancel_order(st, rows, own, _MIN_QTY)
            return s.SETTLE
    return s.FINISH


@njit_entry
def run_held(memory: Any, rows: Any) -> None:
    """From phase OWN_HELD (an incoming order) or HELD (those that rest) on."""
    st = s.state_at(memory)
    work = st.work[u(0)]
    own = work.cur if work.phase == s.OWN_HELD else np.uint32(0)
    symbol, limit = work.symbol, work.limit
    bids, asks = np.uint32(2) * symbol, np.uint32(2) * symbol + _1
    st.g[s.STATUS] = s.ALL_DONE
    while True:
        if work.volume == _0:
            if own > 0:
                if rows_full(st, rows):
                    break
                step = prevented(st, rows, own, limit)
                if step == 1:
                    continue
                if step == 2:
                    work.phase = s.SETTLE
                    return
            alive = own > 0 and st.orders[own].leaves > _0
            work.volume = find_volume(st, symbol, own if alive else np.uint32(0), limit)
            if work.volume == _0:
                work.phase = end_of_own(st, rows, own) if own > 0 else s.SETTLED
                return
        if rows_full(st, rows):
            break
        buy, sell = head_of(st, bids, own, limit), head_of(st, asks, own, limit)
        work.volume -= pair(st, rows, buy, sell, own, work.volume)
        if work.volume == _0:
            refresh_head(st, rows, bids)
            refresh_head(st, rows, asks)
    st.g[s.STATUS] = s.ROWS_FULL
