"""What a book is made of: orders in queues, queues in levels, levels on two sides of one symbol.

Only shapes and arithmetic live here; what a message means is in `reference.py`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

BUY: Final = ord("B")
SELL: Final = ord("S")

#: The most that one level can hold: its total must fit LEVEL.qty.
LEVEL_QTY_MAX: Final = (1 << 64) - 1

#: bid price, bid qty, ask price, ask qty, bid count, ask count: the order of TOP's columns.
Touch = tuple[int, int, int, int, int, int]
NO_TOUCH: Final[Touch] = (0, 0, 0, 0, 0, 0)


class Order:
    """A resting order. `mpid` is four letters as a little-endian u32, `ts` when it joined its queue."""

    __slots__ = ("level", "mpid", "qty", "ref", "ts")

    def __init__(self, ref: int, level: Level, qty: int, ts: int, mpid: int) -> None:
        self.ref = ref
        self.level = level
        self.qty = qty
        self.ts = ts
        self.mpid = mpid


class Level:
    """One price of one side: the queue, oldest first, and its total quantity."""

    __slots__ = ("price", "qty", "queue", "side")

    def __init__(self, side: Side, price: int) -> None:
        self.side = side
        self.price = price
        self.qty = 0
        # Not a dict: finding the first key of a dict scans all the keys deleted before it.
        self.queue: OrderedDict[int, Order] = OrderedDict()

    def head(self) -> Order:
        return self.queue[next(iter(self.queue))]


class Side:
    """The bids or the asks of one symbol. `keys` are prices (asks: negated), ascending, so best last."""

    __slots__ = ("keys", "letter", "levels", "sign", "symbol")

    def __init__(self, symbol: SymbolBook, letter: int) -> None:
        self.symbol = symbol
        self.letter = letter
        self.sign = 1 if letter == BUY else -1
        self.keys: list[int] = []
        self.levels: dict[int, Level] = {}

    def best(self) -> Level | None:
        return self.levels[self.keys[-1]] if self.keys else None

    def from_best(self) -> Iterator[Level]:
        return (self.levels[key] for key in reversed(self.keys))

    def has_room(self, price: int, qty: int) -> bool:
        """Would the level's total still fit its column?"""
        level = self.levels.get(price * self.sign)
        return qty <= LEVEL_QTY_MAX - (level.qty if level else 0)

    def join(self, ref: int, price: int, qty: int, ts: int, mpid: int) -> Order:
        """A new order at the tail of the queue at `price`."""
        key = price * self.sign
        level = self.levels.get(key)
        if level is None:
            level = self.levels[key] = Level(self, price)
            insort(self.keys, key)
        order = level.queue[ref] = Order(ref, level, qty, ts, mpid)
        level.qty += qty
        return order

    def leave(self, order: Order) -> None:
        """Take the order, with what is left of it, out of its queue; an empty level goes with it."""
        level = order.level
        del level.queue[order.ref]
        level.qty -= order.qty
        if not level.queue:
            key = level.price * self.sign
            del self.levels[key]
            del self.keys[bisect_left(self.keys, key)]


class SymbolBook:
    """Both sides of one symbol, its trading state, and its last event."""

    __slots__ = ("asks", "bids", "locate", "seq", "state", "touch", "ts")

    def __init__(self, locate: int) -> None:
        self.locate = locate
        self.bids = Side(self, BUY)
        self.asks = Side(self, SELL)
        self.state = 0
        self.seq = 0
        self.ts = 0
        self.touch = NO_TOUCH  # after the symbol's last event

    def find_touch(self) -> Touch:
        """The best bid and ask as they stand now; an empty side is all zeros."""
        bid, ask = self.bids.best(), self.asks.best()
        if bid is None and ask is None:
            return NO_TOUCH
        bid_price, bid_qty, bid_count = (bid.price, bid.qty, len(bid.queue)) if bid else (0, 0, 0)
        ask_price, ask_qty, ask_count = (ask.price, ask.qty, len(ask.queue)) if ask else (0, 0, 0)
        return (bid_price, bid_qty, ask_price, ask_qty, bid_count, ask_count)

    def orders(self) -> Iterator[Order]:
        """Bids then asks, best to worst price, in queue order."""
        for side in (self.bids, self.asks):
            for level in side.from_best():
                yield from level.queue.values()


def is_crossed(touch: Touch) -> bool:
    """Best bid above best ask, both present."""
    return touch[4] > 0 and touch[5] > 0 and touch[0] > touch[2]


def is_locked(touch: Touch) -> bool:
    """Best bid equal to best ask, both present."""
    return touch[4] > 0 and touch[5] > 0 and touch[0] == touch[2]
