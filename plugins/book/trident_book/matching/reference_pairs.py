"""Two queues against each other: what all-or-none orders and crosses have in common (MATCH-60, MATCH-74)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from trident_book.matching.records import Row
from trident_book.matching.reference_book import Order
from trident_book.matching.reference_market import Market
from trident_core.contracts import ReportFlag

_SECOND = int(ReportFlag.SECOND)


@dataclass(slots=True, eq=False)
class Part:
    """An order in a queue, or one of the two parts of an iceberg that rests: what it shows, and behind it
    the rest. `least`: of less than that the queue cannot take from it."""

    order: Order
    limit: int
    qty: int
    least: int = 1
    shown: bool = True


def parts_of(order: Order) -> Iterator[Part]:
    """Of an order that rests or waits."""
    if order.level is None or not order.peak:
        yield Part(order, order.price, order.leaves)
        return
    yield Part(order, order.price, order.shown)
    if order.leaves > order.shown:
        yield Part(order, order.price, order.leaves - order.shown, shown=False)


def pair_off(
    market: Market,
    buys: list[Part],
    sells: list[Part],
    volume: int,
    terms: Callable[[Order, Order], tuple[int, list[Order], int]],
) -> Iterator[Row]:
    """Each buy against each sale in turn until `volume` is done; then icebergs show their next peaks.

    `terms(buy, sale)`: the price, the orders that get a row, the first of them first, and flags of all rows.
    """
    i = j = used_buy = used_sell = 0
    while volume:
        buy, sell = buys[i], sells[j]
        qty = min(buy.qty - used_buy, sell.qty - used_sell, volume)
        yield from _exchange(market, buy, sell, qty, terms)
        volume, used_buy, used_sell = volume - qty, used_buy + qty, used_sell + qty
        if used_buy == buy.qty:
            i, used_buy = i + 1, 0
        if used_sell == sell.qty:
            j, used_sell = j + 1, 0
    for order in _once(part.order for part in (*buys, *sells)):
        yield from market.refresh(order)


def _exchange(
    market: Market,
    buy: Part,
    sell: Part,
    qty: int,
    terms: Callable[[Order, Order], tuple[int, list[Order], int]],
) -> list[Row]:
    price, told, flags = terms(buy.order, sell.order)
    seen = {part.order.ref: market.spend(part.order, qty, shown=part.shown) for part in (buy, sell)}
    match = market.next_match()
    market.traded(market.of(buy.order), price)
    rows: list[Row] = []
    for order in told:
        other = sell.order if order is buy.order else buy.order
        mark = flags | seen[order.ref] | (_SECOND if rows else 0)
        rows.append(market.fill(order, other, qty, price, match, mark))
    market.bury(buy.order, sell.order)
    return rows


def _once(orders: Iterable[Order]) -> list[Order]:
    return list(dict.fromkeys(orders))
