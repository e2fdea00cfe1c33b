"""Kernels that check commands in the order of MATCH-4: the reason of the first check that fails, 0 for
none."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book import records
from trident_book.index import find
from trident_book.matching import numba_state as s
from trident_book.matching.numba_memory import njit_spliced
from trident_book.matching.numba_orders import crosses
from trident_book.unsigned import u
from trident_core.contracts import TradingState
from trident_core.contracts.matching import (
    LOCATE_MAX,
    PRICE_MAX,
    OrderFlag,
    OrderKind,
    Reason,
    SelfTrade,
    TimeInForce,
)
from trident_core.jit import njit_inlined, njit_kernel

_BUY, _SELL = ord("B"), ord("S")
LIMIT, MARKET = int(OrderKind.LIMIT), int(OrderKind.MARKET)
STOP, STOP_LIMIT = int(OrderKind.STOP), int(OrderKind.STOP_LIMIT)
_IN_FLIGHT: Final = int(OrderFlag.IN_FLIGHT)
_KNOWN: Final = int(sum(OrderFlag))
TRADING, QUOTATION = int(TradingState.TRADING), int(TradingState.QUOTATION)

BAD_KIND, BAD_SIDE, BAD_TIF = np.int64(Reason.BAD_KIND), np.int64(Reason.BAD_SIDE), np.int64(Reason.BAD_TIF)
BAD_COMBINATION, BAD_QTY = np.int64(Reason.BAD_COMBINATION), np.int64(Reason.BAD_QTY)
BAD_PRICE, TICK, BAND = np.int64(Reason.BAD_PRICE), np.int64(Reason.TICK), np.int64(Reason.BAND)
BAD_LOCATE, STATE = np.int64(Reason.BAD_LOCATE), np.int64(Reason.STATE)
DUPLICATE_ID, FULL, POST_ONLY = (
    np.int64(Reason.DUPLICATE_ID),
    np.int64(Reason.FULL),
    np.int64(Reason.POST_ONLY),
)

#: By letter: the order flags of a time in force, 0 of DAY; NO_SUCH of others.
NO_SUCH: Final = 1 << 31
TIFS: Final = np.full(256, NO_SUCH, np.uint32)
for _tif, _bits in (
    (TimeInForce.DAY, 0), (TimeInForce.GTC, s.GTC), (TimeInForce.IOC, s.IOC), (TimeInForce.FOK, s.FOK),
    (TimeInForce.ON_OPEN, s.ON_OPEN), (TimeInForce.ON_CLOSE, s.ON_CLOSE),
):  # fmt: skip
    TIFS[int(_tif)] = _bits
#: By letter: STP_… plus 1; 0 of what is unknown, and of the default, which is looked at first.
STPS: Final = np.zeros(256, np.uint8)
for _stp, _number in (
    (SelfTrade.NONE, s.STP_NONE), (SelfTrade.INCOMING, s.STP_INCOMING), (SelfTrade.RESTING, s.STP_RESTING),
    (SelfTrade.BOTH, s.STP_BOTH), (SelfTrade.DECREMENT, s.STP_DECREMENT),
):  # fmt: skip
    STPS[int(_stp)] = _number + 1


@njit_inlined
def tick_at(st: Any, price: Any) -> Any:
    """The tick of the band of a price."""
    at = s.TICK_AT + 2 * (st.g[s.TICKS] - 1)
    while st.g[u(at)] > price:
        at -= 2
    return st.g[u(at + 1)]


@njit_inlined
def off_tick(st: Any, price: Any) -> Any:
    tick = np.uint32(tick_at(st, price))
    return tick != 1 and np.uint32(price) % tick != 0


@njit_inlined
def bad_price(price: Any) -> Any:
    return price < 1 or price > PRICE_MAX


@njit_inlined
def outside_band(st: Any, symbol: Any, sells: Any, price: Any) -> Any:
    """MATCH-71: too high to buy at, or too low to sell at."""
    sym = st.symbols[symbol]
    if sym.special & s.SPECIAL_BAND == 0:
        return False
    return price < sym.low if sells else price > sym.high


@njit_spliced
def combination(st: Any, c: Any, tif: Any) -> Any:
    """MATCH-8: may the columns not stand together?"""
    flags = np.int64(c.flags)
    stop = c.kind == STOP or c.kind == STOP_LIMIT
    at_once = tif == s.IOC or tif == s.FOK
    at_cross = tif == s.ON_OPEN or tif == s.ON_CLOSE
    post, hidden, aon = flags & s.POST_ONLY != 0, flags & s.HIDDEN != 0, flags & s.AON != 0
    iceberg, least = c.peak != 0, c.min_qty != 0
    if flags & ~_KNOWN or flags & _IN_FLIGHT or (c.stp != 0 and STPS[c.stp] == 0):
        return True
    if (post or iceberg or hidden) and (c.kind == MARKET or c.kind == STOP or at_once):
        return True
    if at_cross and (post or aon or least or stop or iceberg or hidden):
        return True
    if hidden and (iceberg or post):
        return True
    if aon and (iceberg or hidden or post or least or c.kind != LIMIT or at_once):
        return True
    if aon and st.g[s.ALLOCATION] != s.FIFO:
        return True
    if least and (stop or tif != s.IOC):
        return True
    if (c.trail != 0 or c.step != 0) and not stop:
        return True
    if c.step != 0 and c.trail == 0:
        return True
    return flags & s.SLIPPAGE != 0 and c.kind != MARKET and c.kind != STOP


@njit_inlined
def first_stop(st: Any, c: Any, symbol: Any) -> Any:
    """The stop price of a new stop: its own, or by its trail from the last price; 0 if that cannot be."""
    if c.stop != 0 or c.trail == 0:
        return c.stop
    last = st.symbols[symbol].last
    if last == 0:
        return np.int64(0)
    return last + c.trail if c.side == _BUY else last - c.trail


@njit_spliced
def check_prices(st: Any, c: Any, symbol: Any) -> Any:
    """BAD_PRICE, TICK and BAND of a NEW."""
    stop = c.kind == STOP or c.kind == STOP_LIMIT
    priced = c.kind == LIMIT or c.kind == STOP_LIMIT
    if priced and bad_price(c.price):
        return BAD_PRICE
    if stop:
        if c.trail < 0 or c.trail > PRICE_MAX or c.step < 0 or c.step > PRICE_MAX:
            return BAD_PRICE
        if bad_price(first_stop(st, c, symbol)):
            return BAD_PRICE
    if c.flags & s.SLIPPAGE and (c.slip < 0 or c.slip > PRICE_MAX):
        return BAD_PRICE
    if priced and off_tick(st, c.price):
        return TICK
    if stop and c.stop != 0 and off_tick(st, c.stop):
        return TICK
    if c.kind == LIMIT and outside_band(st, symbol, c.side == _SELL, c.price):
        return BAND
    return 0


@njit_kernel
def check_new(st: Any, c: Any, symbol: Any) -> Any:
    """Of a NEW: all of MATCH-4. `symbol` 0: one without a command yet."""
    if c.locate < 1 or c.locate > LOCATE_MAX:
        return BAD_LOCATE
    if c.kind != LIMIT and c.kind != MARKET and c.kind != STOP and c.kind != STOP_LIMIT:
        return BAD_KIND
    if c.side != _BUY and c.side != _SELL:
        return BAD_SIDE
    tif = TIFS[c.tif]
    if tif == NO_SUCH:
        return BAD_TIF
    if combination(st, c, tif):
        return BAD_COMBINATION
    if c.qty < 1 or c.qty > np.uint64(st.g[s.QTY_MAX]) or c.peak > c.qty or c.min_qty > c.qty:
        return BAD_QTY
    reason = check_prices(st, c, symbol)
    if reason:
        return reason
    state = st.symbols[symbol].state
    at_once = tif == s.IOC or tif == s.FOK
    stop = c.kind == STOP or c.kind == STOP_LIMIT
    if state != TRADING and (state != QUOTATION or (at_once and not stop) or c.flags & s.AON):
        return STATE
    if find(st.ids, c.id):
        return DUPLICATE_ID
    if st.ids.g[records.LIVE] >= st.g[s.ORDERS_MAX]:
        return FULL
    side_at = np.uint32(2) * np.uint32(symbol) + np.uint32(c.side == _SELL)
    if c.flags & s.POST_ONLY and not stop and state == TRADING and crosses(st, side_at, c.price):
        return POST_ONLY
    return 0


@njit_inlined
def check_replace(st: Any, c: Any, slot: Any, in_place: Any) -> Any:
    """Of a REPLACE of the order in `slot`: MATCH-30."""
    order = st.orders[slot]
    symbol, sells = order.side >> np.uint32(1), order.side & np.uint32(1)
    waits = order.flags & s.STOP != 0
    priced = order.flags & s.MARKET == 0
    if c.qty > np.uint64(st.g[s.QTY_MAX]):
        return BAD_QTY
    if priced and c.price != 0 and bad_price(c.price):
        return BAD_PRICE
    if waits and ((c.stop != 0 and bad_price(c.stop)) or c.trail < 0 or c.trail > PRICE_MAX):
        return BAD_PRICE
    if priced and c.price != 0 and off_tick(st, c.price):
        return TICK
    if waits and c.stop != 0 and off_tick(st, c.stop):
        return TICK
    if priced and not waits and c.price != 0 and outside_band(st, symbol, sells, c.price):
        return BAND
    state = st.symbols[symbol].state
    if state != TRADING and state != QUOTATION and not in_place:
        return STATE
    if c.id2 != 0 and c.id2 != c.id and find(st.ids, c.id2):
        return DUPLICATE_ID
    price = c.price if c.price != 0 else order.price
    moves = order.flags & s.POST_ONLY and order.flags & s.BOOKED and not in_place
    if moves and state == TRADING and crosses(st, order.side, price):
        return POST_ONLY
    return 0
