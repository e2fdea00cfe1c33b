"""What is looked at before anything is done; the first thing that fails is the reason (MATCH-4 to 8)."""

from __future__ import annotations

from typing import Final

from trident_book.matching.records import (
    AON,
    BUY,
    CANCEL_ON_DISCONNECT,
    DAY,
    FOK,
    GTC,
    HIDDEN,
    IOC,
    LIMIT,
    MARKET,
    ON_CLOSE,
    ON_OPEN,
    POST_ONLY,
    QUOTATION,
    SELL,
    SLIPPAGE,
    STOP,
    STOP_LIMIT,
    TRADING,
    Command,
)
from trident_book.matching.reference_book import Symbol, crosses, stands_against
from trident_book.matching.reference_market import Market
from trident_core.contracts import Allocation, CrossType, Op, Reason, SelfTrade, TradingState
from trident_core.contracts.matching import LOCATE_MAX, PRICE_MAX

_KINDS: Final = (LIMIT, MARKET, STOP, STOP_LIMIT)
_TIFS: Final = (DAY, GTC, IOC, FOK, ON_OPEN, ON_CLOSE)
_FLAGS: Final = POST_ONLY | HIDDEN | AON | CANCEL_ON_DISCONNECT | SLIPPAGE  # of a NEW
_SELF_TRADE: Final = frozenset(map(int, SelfTrade))
_CROSSES: Final = frozenset(map(int, CrossType))
_STATES: Final = frozenset(map(int, TradingState)) - {int(TradingState.UNKNOWN)}


def wrong_with_new(market: Market, c: Command) -> Reason:
    """NONE if the order is to be accepted."""
    if not 1 <= c.locate <= LOCATE_MAX:
        return Reason.BAD_LOCATE
    if c.kind not in _KINDS:
        return Reason.BAD_KIND
    if c.side not in (BUY, SELL):
        return Reason.BAD_SIDE
    if c.tif not in _TIFS:
        return Reason.BAD_TIF
    if _bad_combination(market, c):
        return Reason.BAD_COMBINATION
    if not 1 <= c.qty <= market.rules.qty_max or c.peak > c.qty or c.min_qty > c.qty:
        return Reason.BAD_QTY
    symbol = market.look(c.locate)
    reason = _wrong_prices(market, symbol, c)
    if reason:
        return reason
    if c.kind == LIMIT and not symbol.in_band(c.side, c.price):
        return Reason.BAND
    if not _state_allows(symbol, c):
        return Reason.STATE
    if c.id in market.orders:
        return Reason.DUPLICATE_ID
    if len(market.orders) >= market.rules.max_orders:
        return Reason.FULL
    if c.kind == LIMIT and c.flags & POST_ONLY and would_trade(symbol, c.side, c.price):
        return Reason.POST_ONLY
    return Reason.NONE


def _bad_combination(market: Market, c: Command) -> bool:
    """MATCH-8."""
    post_only, hidden, aon = c.flags & POST_ONLY, c.flags & HIDDEN, c.flags & AON
    is_stop, at_once = c.kind in (STOP, STOP_LIMIT), c.tif in (IOC, FOK)
    for_cross = c.tif in (ON_OPEN, ON_CLOSE)
    return bool(
        c.flags & ~_FLAGS
        or c.stp not in _SELF_TRADE
        or ((post_only or c.peak or hidden) and (c.kind in (MARKET, STOP) or at_once))
        or (for_cross and (post_only or aon or c.min_qty or is_stop or c.peak or hidden))
        or (hidden and (c.peak or post_only))
        or (aon and (c.peak or hidden or post_only or c.min_qty or c.kind != LIMIT or at_once))
        or (aon and market.rules.allocation is not Allocation.FIFO)
        or (c.min_qty and (is_stop or c.tif != IOC))
        or ((c.trail or c.step) and not is_stop)
        or (c.step and not c.trail)
        or (c.flags & SLIPPAGE and c.kind not in (MARKET, STOP))
    )


def _wrong_prices(market: Market, symbol: Symbol, c: Command) -> Reason:
    """MATCH-7: ranges, then ticks."""
    is_stop, limited = c.kind in (STOP, STOP_LIMIT), c.kind in (LIMIT, STOP_LIMIT)
    if limited and not 1 <= c.price <= PRICE_MAX:
        return Reason.BAD_PRICE
    if not 0 <= c.trail <= PRICE_MAX or not 0 <= c.step <= PRICE_MAX:
        return Reason.BAD_PRICE
    if c.flags & SLIPPAGE and not 0 <= c.slip <= PRICE_MAX:
        return Reason.BAD_PRICE
    if is_stop and not 1 <= first_stop(symbol, c) <= PRICE_MAX:
        return Reason.BAD_PRICE
    if limited and c.price % market.tick(c.price):
        return Reason.TICK
    if is_stop and c.stop and c.stop % market.tick(c.stop):
        return Reason.TICK
    return Reason.NONE


def first_stop(symbol: Symbol, c: Command) -> int:
    """MATCH-42: of a trailing stop that names none; 0 where there is none."""
    if c.stop or not c.trail or not symbol.last:
        return c.stop
    return symbol.last + c.trail if c.side == BUY else symbol.last - c.trail


def _state_allows(symbol: Symbol, c: Command) -> bool:
    """MATCH-70, MATCH-62."""
    if symbol.state == QUOTATION:
        return c.kind in (STOP, STOP_LIMIT) or not (c.tif in (IOC, FOK) or c.flags & AON)
    return symbol.state == TRADING


def would_trade(symbol: Symbol, side: int, price: int) -> bool:
    """MATCH-19."""
    return symbol.state == TRADING and stands_against(symbol, side, price)


def wrong_with_prices(market: Market, prices: tuple[int, ...], trail: int) -> Reason:
    """Of a REPLACE: what is given, which is what is not 0."""
    given = [price for price in prices if price]
    if any(not 0 < price <= PRICE_MAX for price in given) or not 0 <= trail <= PRICE_MAX:
        return Reason.BAD_PRICE
    return Reason.TICK if any(price % market.tick(price) for price in given) else Reason.NONE


def wrong_with_mass(c: Command) -> Reason:
    """MASS_CANCEL, DISCONNECT, END_OF_DAY."""
    if c.op == Op.DISCONNECT:
        return Reason.NONE
    if c.locate > LOCATE_MAX:
        return Reason.BAD_LOCATE
    if c.op == Op.MASS_CANCEL and c.side not in (0, BUY, SELL):
        return Reason.BAD_SIDE
    return Reason.NONE


def wrong_with_symbol_command(market: Market, c: Command) -> Reason:
    """STATE, BAND, REFERENCE, INDICATE, UNCROSS."""
    if not 1 <= c.locate <= LOCATE_MAX:
        return Reason.BAD_LOCATE
    symbol = market.look(c.locate)
    if c.op == Op.STATE:
        if c.code not in _STATES:
            return Reason.BAD_CODE
        return Reason.CROSSED if c.code == TRADING and not _may_begin(symbol) else Reason.NONE
    if c.op == Op.BAND:
        lifted = c.price == c.stop == 0
        return Reason.NONE if lifted or 1 <= c.price <= c.stop <= PRICE_MAX else Reason.BAD_PRICE
    if c.op == Op.REFERENCE:
        return Reason.NONE if 0 <= c.price <= PRICE_MAX else Reason.BAD_PRICE
    if c.code not in _CROSSES:
        return Reason.BAD_CODE
    return Reason.NONE if symbol.state in (TRADING, QUOTATION) else Reason.STATE


def _may_begin(symbol: Symbol) -> bool:
    """Trading: unless orders of the book cross, or market orders wait for a price."""
    if symbol.state == TRADING:
        return True
    if any(order.kind == MARKET and order.tif in (DAY, GTC) for order in symbol.waiting.values()):
        return False
    bid, ask = symbol.bids.best(), symbol.asks.best()
    return not (bid and ask and crosses(BUY, bid.price, ask.price))
