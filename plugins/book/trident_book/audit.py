"""The invariants of a sound book, recomputed from the orders alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trident_book.structures import LEVEL_QTY_MAX, Level, Order, Side, SymbolBook


def violations(symbols: Mapping[int, SymbolBook], orders: Mapping[int, Order]) -> list[str]:
    """All violations in words, empty when sound (rule BOOK-31 of docs/contracts/book.md)."""
    found: list[str] = []
    queued: dict[int, Order] = {}
    for locate, symbol in sorted(symbols.items()):
        if symbol.locate != locate:
            found.append(f"locate {locate} holds the book of locate {symbol.locate}")
        for side in (symbol.bids, symbol.asks):
            where = f"locate {locate} side {chr(side.letter)}"
            found.extend(f"{where}: {problem}" for problem in _side(side, symbol, orders, queued))
    found.extend(f"reference {ref} is in the index, but in no queue" for ref in orders.keys() - queued.keys())
    return found


def _side(
    side: Side, symbol: SymbolBook, orders: Mapping[int, Order], queued: dict[int, Order]
) -> Iterator[str]:
    if side.symbol is not symbol:
        yield "belongs to another symbol"
    if side.keys != sorted(side.levels):
        yield "prices are not sorted, or are not those of the levels"
    for key, level in side.levels.items():
        if level.side is not side or level.price * side.sign != key:
            yield f"the level at key {key} says it is {level.price} of side {chr(level.side.letter)}"
        yield from (f"price {level.price}: {problem}" for problem in _level(level, orders, queued))


def _level(level: Level, orders: Mapping[int, Order], queued: dict[int, Order]) -> Iterator[str]:
    if not level.queue:
        yield "empty level"
    total = sum(order.qty for order in level.queue.values())
    if level.qty != total:
        yield f"total {level.qty}, but the orders sum to {total}"
    if total > LEVEL_QTY_MAX:
        yield f"total {total} does not fit 64 bits"
    for ref, order in level.queue.items():
        if order.ref != ref or order.level is not level:
            yield f"reference {ref} queues an order that says {order.ref} at {order.level.price}"
        if order.qty <= 0:
            yield f"reference {ref} has quantity {order.qty}"
        if orders.get(ref) is not order:
            yield f"reference {ref} is queued, but the index does not lead to it"
        if ref in queued:
            yield f"reference {ref} is queued twice"
        queued[ref] = order
