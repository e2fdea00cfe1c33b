"""Where an order goes that comes in, and stops, which come in when they trigger (MATCH-17, 40 to 43)."""

from __future__ import annotations

from collections.abc import Iterator

from trident_book.matching.records import (
    BUY,
    FOK,
    IOC,
    LIMIT,
    MARKET,
    POST_ONLY,
    SELL,
    STOP,
    STOP_LIMIT,
    TRADING,
    Row,
)
from trident_book.matching.reference_blocks import decides, trade_in_blocks, try_blocks
from trident_book.matching.reference_book import Order, Symbol, stands_against, waits_for_cross
from trident_book.matching.reference_market import Market
from trident_book.matching.reference_trading import falls_short, limit_of, trade
from trident_core.contracts import Reason, ReportKind
from trident_core.contracts.matching import PRICE_MAX


def enter(market: Market, order: Order) -> Iterator[Row]:
    """A new order, or one that a replace brings in again."""
    symbol = market.of(order)
    if order.is_stop:
        if symbol.state == TRADING and _reached(order, symbol.last, symbol.last):
            yield from _trigger(market, order)
        else:
            symbol.join(order)
    elif waits_for_cross(order) or (order.kind == MARKET and symbol.state != TRADING):
        symbol.join(order)
    elif symbol.state == TRADING:
        yield from _carry_out(market, order)
    else:
        yield market.rest(order)


def _carry_out(market: Market, order: Order) -> Iterator[Row]:
    """In state T: it trades as far as it can; the rest rests or is cancelled."""
    limit = limit_of(market, order)
    if decides(market, order, limit):
        yield from trade_in_blocks(market, order, limit)
        short = _untouched(order)
    else:
        short = falls_short(market, order, limit)
        if short is None:
            yield from trade(market, order, limit)
    if order.leaves:
        yield _rest_or_cancel(market, order, short)


def _untouched(order: Order) -> Reason | None:
    """What an order is cancelled for that got nothing of what it must have at once."""
    if order.tif == FOK:
        return Reason.FOK
    return Reason.MIN_QTY if order.min_qty and not order.filled else None


def _rest_or_cancel(market: Market, order: Order, short: Reason | None) -> Row:
    """MATCH-17, MATCH-18."""
    if short is not None:
        return market.cancel(order, short)
    if order.kind == MARKET:
        left = market.of(order).other(order.side).best()
        return market.cancel(order, Reason.PROTECTION if left else Reason.NO_LIQUIDITY)
    if order.tif == IOC:
        return market.cancel(order, Reason.IOC)
    return market.rest(order)


# --- stops --------------------------------------------------------------------------------------------------


def settle(market: Market, symbol: Symbol) -> Iterator[Row]:
    """When a command has done its work on a symbol: blocks (MATCH-61), then stops, in rounds."""
    yield from try_blocks(market, symbol)
    while symbol.window is not None:
        low, high = symbol.window
        symbol.window = None
        reached = [stop for stop in _by_price(symbol) if _reached(stop, low, high)]
        for stop in reached:
            symbol.leave(stop)
        for stop in symbol.stops.values():
            _follow(market, stop, symbol.last)
        for stop in reached:
            yield from _trigger(market, stop)
            yield from try_blocks(market, symbol)


def _by_price(symbol: Symbol) -> list[Order]:
    """MATCH-40: buys by ascending, then sells by descending stop price, equal ones by entry."""
    buys = [stop for stop in symbol.stops.values() if stop.side == BUY]
    sells = [stop for stop in symbol.stops.values() if stop.side == SELL]
    return sorted(buys, key=lambda s: (s.stop, s.ref)) + sorted(sells, key=lambda s: (-s.stop, s.ref))


def _reached(stop: Order, low: int, high: int) -> bool:
    """By trades from `low` to `high`; 0, 0: there was none (MATCH-41)."""
    if not high:
        return False
    return stop.stop <= high if stop.side == BUY else stop.stop >= low


def _trigger(market: Market, stop: Order) -> Iterator[Row]:
    """TRIGGERED, and then it is an order like others (MATCH-43)."""
    yield Row(
        ReportKind.TRIGGERED, stop.locate, id=stop.id, ref=stop.ref, price=stop.price, qty=stop.leaves,
        leaves=stop.leaves, owner=stop.owner, side=stop.side,
    )  # fmt: skip
    stop.kind = {STOP: MARKET, STOP_LIMIT: LIMIT}[stop.kind]
    stop.ts = market.clock
    symbol = market.of(stop)
    if stop.kind == LIMIT and not symbol.in_band(stop.side, stop.price):
        yield market.cancel(stop, Reason.BAND)
    elif stop.flags & POST_ONLY and stands_against(symbol, stop.side, stop.price):
        yield market.cancel(stop, Reason.POST_ONLY)
    else:
        yield from _carry_out(market, stop)


def _follow(market: Market, stop: Order, last: int) -> None:
    """MATCH-42: a trailing stop moves with the last price, and its limit with it."""
    if not stop.trail:
        return
    sign = 1 if stop.side == SELL else -1
    target = last - sign * stop.trail
    move = target - stop.stop
    if sign * move >= max(stop.step, 1):
        stop.stop = target
        if stop.kind == STOP_LIMIT:
            stop.price = _to_tick(market, stop.side, stop.price + move)


def _to_tick(market: Market, side: int, price: int) -> int:
    """A limit that moved, where an order may stand: of a buy down, of a sale up to the tick."""
    price = min(max(price, 1), PRICE_MAX)
    tick = market.tick(price)
    down = price // tick * tick
    if side == BUY or down == price:
        return down or tick
    return down + tick if down + tick <= PRICE_MAX else down
