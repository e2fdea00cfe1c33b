"""All-or-none orders: the queues of both sides against each other (MATCH-60, MATCH-61)."""

from __future__ import annotations

from collections.abc import Iterator

from trident_book.matching.records import (
    AON,
    BUY,
    FOK,
    NO_STP,
    SELL,
    STP_INCOMING,
    STP_RESTING,
    TRADING,
    Row,
)
from trident_book.matching.reference_book import Order, Symbol, crosses, stands_against
from trident_book.matching.reference_market import Market
from trident_book.matching.reference_pairs import Part, pair_off, parts_of
from trident_book.matching.reference_trading import owned
from trident_core.contracts import Reason


def decides(market: Market, order: Order, limit: int) -> bool:
    """Is an all-or-none order incoming, or does one take part?"""
    symbol = market.of(order)
    if order.flags & AON:
        return True
    return any(
        stands_against(symbol, block.side, block.price)
        if block.side == order.side
        else crosses(order.side, limit, block.price)
        for block in symbol.all_or_none.values()
    )


def trade_in_blocks(market: Market, order: Order, limit: int) -> Iterator[Row]:
    """An incoming order, first its owner's others (MATCH-61), then the queues."""
    yield from _prevent(market, order, limit)
    if order.leaves:
        yield from _uncross(market, market.of(order), order, limit)


def try_blocks(market: Market, symbol: Symbol) -> Iterator[Row]:
    """MATCH-61: those that rest, after whatever happened; also when the last block between them left."""
    bid = symbol.bids.best()
    if symbol.state == TRADING and bid and stands_against(symbol, BUY, bid.price):
        yield from _uncross(market, symbol)


def _prevent(market: Market, order: Order, limit: int) -> Iterator[Row]:
    policy = market.policy(order)
    if policy == NO_STP:
        return
    others = market.of(order).other(order.side).orders()
    own = [o for o in others if owned(market, order, o) and crosses(order.side, limit, o.price)]
    if not own:
        return
    if policy != STP_INCOMING:
        for resting in own if policy == STP_RESTING else own[:1]:
            yield market.cancel(resting, Reason.SELF_TRADE)
    if policy != STP_RESTING:
        yield market.cancel(order, Reason.SELF_TRADE)


def _uncross(market: Market, symbol: Symbol, incoming: Order | None = None, limit: int = 0) -> Iterator[Row]:
    """MATCH-60, again while it finds something."""

    def terms(buy: Order, sell: Order) -> tuple[int, list[Order], int]:
        if incoming in (buy, sell):
            resting = sell if buy is incoming else buy
            return resting.price, [resting], 0
        elder, younger = sorted((buy, sell), key=lambda order: order.ref)
        return elder.price, [elder, younger], 0

    while True:
        buys = _queue(symbol, BUY, incoming, limit)
        sells = _queue(symbol, SELL, incoming, limit)
        volume = _volume(buys, sells)
        if not volume:
            return
        yield from pair_off(market, buys, sells, volume, terms)


def _queue(symbol: Symbol, side: int, incoming: Order | None, limit: int) -> list[Part]:
    """One side's orders in priority, as far as they cross the best of the other side."""
    best = symbol.other(side).best()
    against = [best.price] if best else []
    if incoming is not None and incoming.leaves and incoming.side != side:
        against.append(limit)
    if not against:
        return []
    reach = min(against) if side == BUY else max(against)
    parts = []
    for order in symbol.side(side).orders():
        if not crosses(side, order.price, reach):
            break
        for part in parts_of(order):
            part.least = part.qty if order.flags & AON else 1
            parts.append(part)
    if incoming is not None and incoming.leaves and incoming.side == side and crosses(side, limit, reach):
        parts.append(Part(incoming, limit, incoming.leaves, _least(incoming)))
        parts.sort(key=lambda part: -part.limit if side == BUY else part.limit)  # stable: last at its price
    return parts


def _least(incoming: Order) -> int:
    if incoming.flags & AON or incoming.tif == FOK:
        return incoming.leaves
    return incoming.min_qty if incoming.min_qty and not incoming.filled else 1


def _volume(buys: list[Part], sells: list[Part]) -> int:
    """The largest volume that both can give, such that the two parts in which it ends cross; 0 if none."""
    i, j = len(buys) - 1, len(sells) - 1
    before_buy, before_sell = sum(p.qty for p in buys), sum(p.qty for p in sells)
    if buys and sells:
        before_buy, before_sell = before_buy - buys[i].qty, before_sell - sells[j].qty
    while i >= 0 and j >= 0:
        buy, sell = buys[i], sells[j]
        volume = min(before_buy + buy.qty, before_sell + sell.qty)
        inside = volume >= before_buy + buy.least and volume >= before_sell + sell.least
        if inside and buy.limit >= sell.limit:
            return volume
        step_buy, step_sell = before_buy >= before_sell, before_sell >= before_buy
        if step_buy:
            i -= 1
            before_buy -= buys[i].qty if i >= 0 else 0
        if step_sell:
            j -= 1
            before_sell -= sells[j].qty if j >= 0 else 0
    return 0
