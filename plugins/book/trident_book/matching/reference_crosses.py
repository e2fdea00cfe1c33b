"""What the market's operator does: states, bands, reference prices and crosses (MATCH-70 to MATCH-75)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trident_book.matching.records import (
    AON,
    BUY,
    LIMIT,
    MARKET,
    ON_CLOSE,
    ON_OPEN,
    SELL,
    TRADING,
    Command,
    Row,
)
from trident_book.matching.reference_book import Order, Symbol, waits_for_cross
from trident_book.matching.reference_changes import done, reject
from trident_book.matching.reference_checks import wrong_with_symbol_command
from trident_book.matching.reference_entry import settle
from trident_book.matching.reference_market import Market
from trident_book.matching.reference_pairs import pair_off, parts_of
from trident_core.contracts import CrossType, Op, Reason, ReportFlag, ReportKind

_CROSS = int(ReportFlag.CROSS)


def operate(market: Market, c: Command) -> Iterator[Row]:
    """A command of a symbol."""
    wrong = wrong_with_symbol_command(market, c)
    if wrong:
        yield reject(market, c, wrong)
        return
    symbol = market.symbol(c.locate)
    if c.op == Op.STATE:
        yield from _change_state(market, symbol, c.code)
    elif c.op == Op.BAND:
        yield from _change_band(market, symbol, c)
    elif c.op == Op.REFERENCE:
        symbol.reference = c.price
        yield done(c, c.locate, 0)
    elif c.op == Op.INDICATE:
        yield _indicate(market, symbol, c.code)
    else:
        yield from _uncross(market, symbol, c.code)
    yield from settle(market, symbol)


def _change_state(market: Market, symbol: Symbol, state: int) -> Iterator[Row]:
    """MATCH-70; all-or-none orders are of continuous trading alone (MATCH-62)."""
    yield _set_state(symbol, state)
    if state != TRADING:
        for order in sorted(symbol.all_or_none.values(), key=lambda order: order.ref):
            yield market.cancel(order, Reason.STATE)


def _set_state(symbol: Symbol, state: int) -> Row:
    """Stops that were reached while they waited trigger when trading begins (MATCH-40)."""
    if state == TRADING != symbol.state and symbol.last and symbol.window is None:
        symbol.window = symbol.last, symbol.last
    symbol.state = state
    return Row(ReportKind.STATE, symbol.locate, code=state)


def _change_band(market: Market, symbol: Symbol, c: Command) -> Iterator[Row]:
    """MATCH-71."""
    symbol.low, symbol.high = c.price, c.stop
    waiting = sorted(symbol.waiting.values(), key=lambda order: order.ref)
    outside = [
        order
        for order in (*symbol.orders(), *waiting)
        if order.kind == LIMIT and not symbol.in_band(order.side, order.price)
    ]
    for order in outside:
        yield market.cancel(order, Reason.BAND)
    yield from settle(market, symbol)
    yield done(c, symbol.locate, len(outside))


# --- crosses ------------------------------------------------------------------------------------------------


class _Price(NamedTuple):
    """Where a cross would be: its price (0: none), how much is bought and sold there, and by whom."""

    price: int
    bought: int
    sold: int

    @property
    def volume(self) -> int:
        return min(self.bought, self.sold)


def _taking_part(symbol: Symbol, cross: int) -> tuple[list[Order], list[Order]]:
    """MATCH-72: buys and sales, in the order of MATCH-74."""
    alone = _for_alone(symbol, cross)
    at_market = [o for o in symbol.waiting.values() if o.kind == MARKET and not waits_for_cross(o)]
    both = []
    for side in (BUY, SELL):
        waiting = sorted(
            (order for order in (*alone, *at_market) if order.side == side), key=lambda order: order.ref
        )
        first = [order for order in waiting if order.kind == MARKET]
        book = [order for order in symbol.side(side).orders() if not order.flags & AON]
        limited = book + [order for order in waiting if order.kind == LIMIT]
        limited.sort(key=lambda order: -order.price if order.side == BUY else order.price)  # stable
        both.append(first + limited)
    return both[0], both[1]


def _for_alone(symbol: Symbol, cross: int) -> list[Order]:
    """Orders for this cross alone, by entry."""
    tif = {CrossType.OPENING: ON_OPEN, CrossType.CLOSING: ON_CLOSE}.get(CrossType(cross))
    return sorted((o for o in symbol.waiting.values() if o.tif == tif), key=lambda order: order.ref)


def _reference_price(market: Market, symbol: Symbol) -> int:
    """MATCH-73: where it is no price that an order could have, there is none."""
    price = symbol.reference or symbol.last
    inside = symbol.in_band(BUY, price) and symbol.in_band(SELL, price)
    return price if price and inside and price % market.tick(price) == 0 else 0


def _find_price(market: Market, symbol: Symbol, buys: list[Order], sells: list[Order]) -> _Price:
    """MATCH-73: of all candidates by volume, imbalance, distance from the reference, height."""
    reference = _reference_price(market, symbol)
    candidates = {order.price for order in (*buys, *sells) if order.kind == LIMIT} | {reference}
    best, best_rank = _Price(0, 0, 0), (0, 0, 0, 0)
    for price in candidates - {0}:
        if not (symbol.in_band(BUY, price) and symbol.in_band(SELL, price)):
            continue
        at = _Price(
            price,
            sum(o.leaves for o in buys if o.kind == MARKET or o.price >= price),
            sum(o.leaves for o in sells if o.kind == MARKET or o.price <= price),
        )
        far = abs(price - reference) if reference else 0
        rank = (at.volume, -abs(at.bought - at.sold), -far, price)
        if at.volume and rank > best_rank:
            best, best_rank = at, rank
    return best


def _uncross(market: Market, symbol: Symbol, cross: int) -> Iterator[Row]:
    """MATCH-72 to MATCH-74."""
    buys, sells = _taking_part(symbol, cross)
    at = _find_price(market, symbol, buys, sells)
    if at.volume:
        yield from pair_off(
            market,
            [part for order in buys for part in parts_of(order)],
            [part for order in sells for part in parts_of(order)],
            at.volume,
            lambda buy, sell: (at.price, [buy, sell], _CROSS),
        )
    alone = _for_alone(symbol, cross)
    at_market = [o for o in symbol.waiting.values() if o.kind == MARKET and not waits_for_cross(o)]
    for order in sorted((*alone, *at_market), key=lambda order: order.ref):
        yield market.cancel(order, Reason.EXPIRED)
    yield Row(
        ReportKind.CROSS, symbol.locate, price=at.price, qty=at.volume,
        ref2=market.next_match() if at.volume else 0, code=cross,
    )  # fmt: skip
    if symbol.state != TRADING:
        yield _set_state(symbol, TRADING)


def _indicate(market: Market, symbol: Symbol, cross: int) -> Row:
    """MATCH-75."""
    at = _find_price(market, symbol, *_taking_part(symbol, cross))
    alone = _for_alone(symbol, cross)
    far = _find_price(
        market, symbol, [o for o in alone if o.side == BUY], [o for o in alone if o.side == SELL]
    )
    over = at.bought - at.sold
    side = ord("N") if over == 0 else BUY if over > 0 else SELL
    return Row(
        ReportKind.INDICATIVE, symbol.locate, price=_reference_price(market, symbol), qty=at.volume,
        leaves=abs(over), leaves2=at.price, ref2=far.price, side=side if at.volume else ord("O"), code=cross,
    )  # fmt: skip
