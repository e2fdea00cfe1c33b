"""What a market consists of: orders, the two queues of a price, sides, symbols (MATCH-10, MATCH-11)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from trident_book.matching.records import (
    AON,
    BUY,
    HIDDEN,
    MARKET,
    ON_CLOSE,
    ON_OPEN,
    SELL,
    STOP,
    STOP_LIMIT,
)


@dataclass(slots=True, eq=False)
class Order:
    """An order, from ACCEPTED until it is gone. `shown`: of icebergs at rest; `level`: where it rests."""

    id: int
    owner: int
    locate: int
    side: int
    kind: int
    tif: int
    flags: int
    stp: int
    price: int
    leaves: int
    peak: int
    min_qty: int
    stop: int
    trail: int
    step: int
    slip: int
    mpid: int
    ref: int = 0
    ts: int = 0
    filled: int = 0
    shown: int = 0
    level: Level | None = None

    @property
    def is_stop(self) -> bool:
        """Has not triggered yet."""
        return self.kind in (STOP, STOP_LIMIT)

    def displayed(self) -> int:
        """What the public book has of it (MATCH-11)."""
        if self.level is None or self.flags & (HIDDEN | AON):
            return 0
        return self.shown if self.peak else self.leaves

    def at_place(self) -> int:
        """What an incoming order can have before this one loses its place."""
        return self.shown if self.peak else self.leaves


@dataclass(slots=True, eq=False)
class Level:
    """One price: the front in time order, then the back. Orders by reference."""

    price: int
    front: dict[int, Order] = field(default_factory=dict)
    back: dict[int, Order] = field(default_factory=dict)

    def queue(self, order: Order) -> dict[int, Order]:
        return self.back if order.flags & HIDDEN else self.front

    def orders(self) -> Iterator[Order]:
        yield from self.front.values()
        yield from self.back.values()

    def first(self) -> Order:
        return next(self.orders())


class Side:
    """The bids or the asks of a symbol."""

    def __init__(self, letter: int) -> None:
        self.letter = letter
        self.prices: list[int] = []  # ascending
        self.levels: dict[int, Level] = {}

    def best(self) -> Level | None:
        if not self.prices:
            return None
        return self.levels[self.prices[-1 if self.letter == BUY else 0]]

    def from_best(self) -> Iterator[Level]:
        prices = reversed(self.prices) if self.letter == BUY else iter(self.prices)
        return (self.levels[price] for price in prices)

    def orders(self) -> Iterator[Order]:
        """From the best price to the worst, front before back, in queue order."""
        for level in self.from_best():
            yield from level.orders()

    def join(self, order: Order) -> None:
        """Last in its queue."""
        level = self.levels.get(order.price)
        if level is None:
            level = self.levels[order.price] = Level(order.price)
            insort(self.prices, order.price)
        level.queue(order)[order.ref] = order
        order.level = level

    def leave(self, order: Order) -> None:
        level = order.level
        assert level is not None
        del level.queue(order)[order.ref]
        order.level = None
        if not level.front and not level.back:
            del self.levels[level.price]
            del self.prices[bisect_left(self.prices, level.price)]


class Symbol:
    """One symbol: its book, the orders that wait, and the prices that rules ask for. A price of 0 is none."""

    def __init__(self, locate: int, state: int) -> None:
        self.locate = locate
        self.state = state
        self.last = self.reference = self.low = self.high = 0
        self.bids, self.asks = Side(BUY), Side(SELL)
        self.waiting: dict[int, Order] = {}  # for a cross, or at market in a call; by reference
        self.stops: dict[int, Order] = {}
        self.all_or_none: dict[int, Order] = {}  # those of the book
        self.window: tuple[int, int] | None = None  # lowest and highest trade that stops have not seen yet
        self.seq = self.ts = 0

    def side(self, letter: int) -> Side:
        return self.bids if letter == BUY else self.asks

    def other(self, letter: int) -> Side:
        return self.asks if letter == BUY else self.bids

    def orders(self) -> Iterator[Order]:
        yield from self.bids.orders()
        yield from self.asks.orders()

    def join(self, order: Order) -> None:
        """Last in its queue, or among those that wait."""
        if order.is_stop:
            self.stops[order.ref] = order
        elif waits_for_cross(order) or order.kind == MARKET:
            self.waiting[order.ref] = order
        else:
            order.shown = min(order.peak, order.leaves)
            self.side(order.side).join(order)
            if order.flags & AON:
                self.all_or_none[order.ref] = order

    def leave(self, order: Order) -> None:
        """From wherever it is; nothing for an order that has no place yet."""
        if order.level is not None:
            self.side(order.side).leave(order)
            self.all_or_none.pop(order.ref, None)
        self.waiting.pop(order.ref, None)
        self.stops.pop(order.ref, None)

    def in_band(self, side: int, price: int) -> bool:
        """MATCH-71."""
        return not self.high or (price <= self.high if side == BUY else price >= self.low)


def waits_for_cross(order: Order) -> bool:
    """Is it for the opening or the closing cross alone?"""
    return order.tif in (ON_OPEN, ON_CLOSE)


def crosses(side: int, limit: int, price: int) -> bool:
    """Would an order of `side` with this limit trade at `price`?"""
    return limit >= price if side == BUY else limit <= price


def stands_against(symbol: Symbol, side: int, limit: int) -> bool:
    """Does an order of the other side, displayed or not, stand at a crossing price?"""
    best = symbol.other(side).best()
    return best is not None and crosses(side, limit, best.price)
