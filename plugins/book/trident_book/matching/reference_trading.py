"""An incoming order meets the book: continuous matching in state T (MATCH-12 to MATCH-20, MATCH-50 to 52)."""

from __future__ import annotations

from collections.abc import Iterator

from trident_book.matching.records import (
    BUY,
    FOK,
    MARKET,
    NO_STP,
    SLIPPAGE,
    STP_BOTH,
    STP_DECREMENT,
    STP_INCOMING,
    STP_RESTING,
    Row,
)
from trident_book.matching.reference_book import Level, Order, crosses
from trident_book.matching.reference_market import Market
from trident_core.contracts import Allocation, Reason
from trident_core.contracts.matching import PRICE_MAX

_NO_LIMIT = 2 * PRICE_MAX  # of a market order to buy: beyond every price


def limit_of(market: Market, order: Order) -> int:
    """How far an order goes: its limit; of a market order MATCH-20."""
    if order.kind != MARKET:
        return order.price
    symbol = market.of(order)
    best = symbol.other(order.side).best()
    reach = order.slip if order.flags & SLIPPAGE else market.rules.protection or _NO_LIMIT
    touch = best.price if best else 0
    if order.side == BUY:
        return min(touch + reach, symbol.high or _NO_LIMIT)
    return max(touch - reach, symbol.low)


def owned(market: Market, incoming: Order, resting: Order) -> bool:
    """MATCH-50: is a trade of these two to be prevented?"""
    return market.policy(incoming) != NO_STP and incoming.owner == resting.owner


def trade(market: Market, order: Order, limit: int) -> Iterator[Row]:
    """Price by price, while they cross and the order has a rest. It may be cancelled on the way."""
    other = market.of(order).other(order.side)
    while order.leaves and (level := other.best()) and crosses(order.side, limit, level.price):
        if market.rules.allocation is Allocation.FIFO or not level.front:
            yield from _meet(market, order, level.first())
        else:
            yield from _meet_front(market, order, level)


def _meet(market: Market, order: Order, resting: Order) -> list[Row]:
    """The first in the queue (MATCH-13)."""
    if owned(market, order, resting):
        return _prevent(market, order, [resting])
    return market.execute(order, resting, min(order.leaves, resting.at_place()))


def _prevent(market: Market, order: Order, own: list[Order]) -> list[Row]:
    """MATCH-51, of one resting order, or with MATCH-52 of several."""
    policy = market.policy(order)
    if policy == STP_DECREMENT:
        resting = own[0]
        qty = min(order.leaves, resting.at_place())
        rows = [market.decrement(resting, qty), market.decrement(order, qty)]
        return rows + market.refresh(resting)
    rows = []
    if policy in (STP_RESTING, STP_BOTH):
        rows = [market.cancel(resting, Reason.SELF_TRADE) for resting in own]
    if policy in (STP_INCOMING, STP_BOTH):
        rows.append(market.cancel(order, Reason.SELF_TRADE))
    return rows


def _meet_front(market: Market, order: Order, level: Level) -> Iterator[Row]:
    """One round with the front of a price, for allocations other than FIFO."""
    own = [resting for resting in level.front.values() if owned(market, order, resting)]
    others = [resting for resting in level.front.values() if not owned(market, order, resting)]
    if own and (not others or market.policy(order) in (STP_RESTING, STP_DECREMENT)):
        yield from _prevent(market, order, own)
    elif market.rules.allocation is Allocation.PRO_RATA:
        yield from _pro_rata(market, order, others)
    else:
        largest = max(others, key=Order.at_place)  # the first of equals
        yield from market.execute(order, largest, min(order.leaves, largest.at_place()))


def _pro_rata(market: Market, order: Order, others: list[Order]) -> Iterator[Row]:
    """MATCH-14: shares in proportion, rounded down; what is left over in queue order."""
    sizes = [resting.at_place() for resting in others]
    wanted, total = min(order.leaves, sum(sizes)), sum(sizes)
    shares = [wanted * size // total for size in sizes]
    over = wanted - sum(shares)
    for i, size in enumerate(sizes):
        more = min(over, size - shares[i])
        shares[i] += more
        over -= more
    for resting, share in zip(others, shares, strict=True):
        if share:
            yield from market.execute(order, resting, share)


# --- all at once, or at least -------------------------------------------------------------------------------


def falls_short(market: Market, order: Order, limit: int) -> Reason | None:
    """MATCH-18: why an order that must trade at once, all of it or a minimum, cannot."""
    if order.tif == FOK:
        return Reason.FOK if _executable(market, order, limit, order.leaves) < order.leaves else None
    if order.min_qty:
        return Reason.MIN_QTY if _executable(market, order, limit, order.min_qty) < order.min_qty else None
    return None


def _executable(market: Market, order: Order, limit: int, enough: int) -> int:
    """What the order could execute, counted no further than `enough`."""
    symbol, count = market.of(order), 0
    for level in symbol.other(order.side).from_best():
        if count >= enough or not crosses(order.side, limit, level.price):
            break
        more, ends = _executable_at(market, order, level)
        count += more
        if ends:
            break
    return count


def _executable_at(market: Market, order: Order, level: Level) -> tuple[int, bool]:
    """What can be had at one price, and whether an own order ends it there."""
    front, back = list(level.front.values()), list(level.back.values())
    mine = [owned(market, order, resting) for resting in (*front, *back)]
    if market.policy(order) == STP_RESTING or not any(mine):
        return sum(o.leaves for o, is_mine in zip((*front, *back), mine, strict=True) if not is_mine), False
    first = mine.index(True)
    if first >= len(front):
        return sum(resting.leaves for resting in (*front, *back)[:first]), True
    if market.rules.allocation is Allocation.FIFO:
        return sum(resting.at_place() for resting in front[:first]), True
    if market.policy(order) == STP_DECREMENT:
        return 0, True
    return sum(o.leaves for o, is_mine in zip(front, mine, strict=False) if not is_mine), True
