"""What can be read of a market, and what must be true of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice

import numpy as np

from trident_book.arrays import ORDER_WORDS
from trident_book.matching.records import AON, BUY, HIDDEN, MARKET, TRADING
from trident_book.matching.reference_book import Level, Order, Side, Symbol, crosses
from trident_book.matching.reference_market import Market
from trident_core.dtypes import DIGEST_ROW, LEVEL, ORDER, TOP, Levels, Orders, TopFlag, Tops
from trident_core.orders import MATCH_ROW, MATCH_SYMBOL


def _displayed(level: Level) -> list[Order]:
    return [order for order in level.front.values() if order.displayed()]


def _public_levels(side: Side) -> Iterator[tuple[int, int, int]]:
    """Price, quantity and number of orders, of levels where something is displayed."""
    for level in side.from_best():
        orders = _displayed(level)
        if orders:
            yield level.price, sum(order.displayed() for order in orders), len(orders)


def top_of(symbol: Symbol) -> Tops:
    """TOP[1]."""
    bid = next(_public_levels(symbol.bids), (0, 0, 0))
    ask = next(_public_levels(symbol.asks), (0, 0, 0))
    flags = 0
    if bid[2] and ask[2] and bid[0] >= ask[0]:
        flags = int(TopFlag.CROSSED if bid[0] > ask[0] else TopFlag.LOCKED)
    row = (symbol.seq, symbol.ts, *bid[:2], *ask[:2], bid[2], ask[2], symbol.locate, symbol.state, flags)
    return np.array([row], TOP)


def levels_of(side: Side, n: int) -> Levels:
    """LEVEL[k]."""
    return np.array(list(islice(_public_levels(side), n or None)), LEVEL)


def orders_of(symbol: Symbol) -> Orders:
    """ORDER[k]."""
    rows = [
        (o.ref, o.price, o.displayed(), o.ts, symbol.locate, o.mpid, o.side)
        for o in symbol.orders()
        if o.displayed()
    ]
    return np.array(rows, ORDER_WORDS).view(ORDER)


def digest(market: Market) -> bytes:
    """Of the displayed orders."""
    hasher = hashlib.sha256()
    for locate, symbol in sorted(market.symbols.items()):
        rows = [(locate, o.side, o.price, o.ref, o.displayed()) for o in symbol.orders() if o.displayed()]
        hasher.update(np.array(rows, DIGEST_ROW).tobytes())
    return hasher.digest()


def state_digest(market: Market) -> bytes:
    """MATCH-90."""
    symbols = sorted(market.symbols.items())
    rows = [row for _, symbol in symbols for row in _rows_of(symbol)]
    ends = [(locate, s.state, s.last, s.reference, s.low, s.high) for locate, s in symbols]
    hasher = hashlib.sha256(np.array(rows, MATCH_ROW).tobytes())
    hasher.update(np.array(ends, MATCH_SYMBOL).tobytes())
    return hasher.digest()


def _rows_of(symbol: Symbol) -> Iterator[tuple[int, ...]]:
    levels = [level for side in (symbol.bids, symbol.asks) for level in side.from_best()]
    for place, orders in (
        ("F", [order for level in levels for order in level.front.values()]),
        ("K", [order for level in levels for order in level.back.values()]),
        ("W", sorted(symbol.waiting.values(), key=lambda order: order.ref)),
        ("S", sorted(symbol.stops.values(), key=lambda order: order.ref)),
    ):
        for o in orders:
            stop = o.stop if o.is_stop else 0
            yield (
                symbol.locate, ord(place), o.side, o.price, stop, o.id, o.ref, o.leaves, o.displayed(),
                o.filled, o.owner,
            )  # fmt: skip


def violations(market: Market) -> list[str]:
    """Every invariant that does not hold, in words."""
    found = []
    placed: list[Order] = []
    for locate, symbol in sorted(market.symbols.items()):
        placed += [*symbol.orders(), *symbol.waiting.values(), *symbol.stops.values()]
        found += [f"locate {locate}: {what}" for what in _wrong_in(symbol)]
    if len({id(order) for order in placed}) != len(placed):
        found.append("an order has two places")
    if {id(order) for order in placed} != {id(order) for order in market.orders.values()}:
        found.append("places and ids know different orders")
    refs = [order.ref for order in placed]
    if len(set(refs)) != len(refs):
        found.append("a reference is used twice")
    found += [f"order {o.id} is filed under {key}" for key, o in market.orders.items() if o.id != key]
    return found


def _wrong_in(symbol: Symbol) -> Iterator[str]:
    for side in (symbol.bids, symbol.asks):
        if side.prices != sorted(side.levels):
            yield "prices are not those of the levels"
        for level in side.levels.values():
            yield from _wrong_in_level(symbol, side, level)
    for name, orders, right in (
        ("stop", symbol.stops, lambda order: order.is_stop),
        ("waiting order", symbol.waiting, lambda order: not order.is_stop),
        ("all-or-none order", symbol.all_or_none, lambda order: order.flags & AON and order.level),
    ):
        for ref, order in orders.items():
            if order.ref != ref or not order.leaves or not right(order):
                yield f"{name} {order.id} is none"
    bid, ask = symbol.bids.best(), symbol.asks.best()
    apart = symbol.all_or_none or symbol.state != TRADING
    if not apart and bid and ask and crosses(BUY, bid.price, ask.price):
        yield f"bid {bid.price} crosses ask {ask.price}"


def _wrong_in_level(symbol: Symbol, side: Side, level: Level) -> Iterator[str]:
    if not level.front and not level.back:
        yield f"level {level.price} is empty"
    for queue, hidden in ((level.front, False), (level.back, True)):
        for ref, o in queue.items():
            if (o.ref, o.price, o.side, o.level) != (ref, level.price, side.letter, level):
                yield f"order {o.id} is not at its place"
            if bool(o.flags & HIDDEN) is not hidden or o.kind == MARKET or o.is_stop:
                yield f"order {o.id} is in the wrong queue"
            if not 1 <= o.at_place() <= o.leaves or (o.peak and o.shown > o.peak):
                yield f"order {o.id} shows {o.at_place()} of {o.leaves}"
            if not symbol.in_band(o.side, o.price):
                yield f"order {o.id} is outside the band"
