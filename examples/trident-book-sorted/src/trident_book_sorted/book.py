"""Full L3 books of every symbol: each side a SortedDict of levels, each level a dict in queue order.

The rules are those of Trident's book contract; their ids (BOOK-n) stand where they are kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from sortedcontainers import SortedDict

from trident_core.contracts import TradingState
from trident_core.dtypes import DIGEST_ROW, EFFECT, EVENT, LEVEL, ORDER, TOP, EffectFlag, Outcome, TopFlag
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.stats import Anomalies

QUANTITY_MAX = (1 << 64) - 1
NO_MPID = bytes(4)


@dataclass(slots=True)
class Order:
    ref: int
    qty: int
    ts: int
    mpid: bytes
    level: Level


@dataclass(slots=True)
class Level:
    side: Side
    price: int
    qty: int = 0
    orders: dict[int, Order] = field(default_factory=dict)  # in queue order


class Side:
    """One side of one symbol. Bids are sorted by the negative price, so that the first level is the best."""

    def __init__(self, symbol: Symbol, letter: str) -> None:
        self.symbol, self.letter = symbol, letter
        self.sign = -1 if letter == "B" else 1
        self.levels = SortedDict()

    def best(self) -> tuple[int, int, int]:
        """Price, quantity and number of orders of the best level; zeros when there is none."""
        if not self.levels:
            return 0, 0, 0
        level = self.levels.peekitem(0)[1]
        return level.price, level.qty, len(level.orders)

    def has_room(self, price: int, qty: int) -> bool:
        level = self.levels.get(self.sign * price)
        return level is None or level.qty + qty <= QUANTITY_MAX

    def join(self, ref: int, price: int, qty: int, ts: int, mpid: bytes) -> Order:
        """A new order at the tail of its queue."""
        level = self.levels.get(self.sign * price)
        if level is None:
            level = self.levels[self.sign * price] = Level(self, price)
        order = level.orders[ref] = Order(ref, qty, ts, mpid, level)
        level.qty += qty
        return order

    def leave(self, order: Order) -> None:
        level = order.level
        del level.orders[order.ref]
        level.qty -= order.qty
        if not level.orders:
            del self.levels[self.sign * level.price]


class Symbol:
    """Both sides of one symbol, and what was last said of it."""

    def __init__(self, locate: int) -> None:
        self.locate = locate
        self.bids, self.asks = Side(self, "B"), Side(self, "S")
        self.state = TradingState.UNKNOWN
        self.seq = self.ts = 0
        self.touch = (0, 0, 0, 0, 0, 0)  # after the symbol's last own event

    def find_touch(self) -> tuple[int, ...]:
        return *self.bids.best(), *self.asks.best()

    def orders(self) -> Iterator[Order]:
        """Bids from best to worst, then asks, each level in queue order."""
        for side in (self.bids, self.asks):
            for level in side.levels.values():
                yield from level.orders.values()


Effect = tuple[int, int, int, bytes, int, int, int]  # the columns of EFFECT
NOTHING: Effect = (0, 0, 0, NO_MPID, 0, Outcome.NONE, 0)
STATES = {ord(letter): TradingState(ord(letter)) for letter in "THPQ"}


class SortedBook:
    """A book of the contract trident_core.contracts.Book."""

    def __init__(self, session: Session) -> None:
        self.session, self.anomalies = session, Anomalies()
        self._symbols: dict[int, Symbol] = {}
        self._orders: dict[int, Order] = {}
        self._rules: dict[str, Callable[[np.void], tuple[Symbol, Effect]]] = {
            "A": self._add, "F": self._add, "E": self._reduce, "C": self._reduce, "X": self._reduce,
            "D": self._delete, "U": self._replace, "H": self._halt,
        }  # fmt: skip

    # --- applying events

    def apply(self, events, tops=None, effects=None) -> int:
        n = _length("events", events, EVENT)
        for name, array, dtype in (("tops", tops, TOP), ("effects", effects, EFFECT)):
            if array is not None and (_length(name, array, dtype) < n or not array.flags.writeable):
                raise UsageError(
                    f"{name} cannot take {n} rows", hint="make it writable and as long as events"
                )
        for i, event in enumerate(events):
            symbol, effect = self._rules.get(chr(event["type"]), self._nothing)(event)
            row = self._top_after(symbol, int(event["seq"]), int(event["ts"]))
            if tops is not None:
                tops[i] = row
            if effects is not None:
                effects[i] = (*effect[:3], tuple(effect[3]), *effect[4:])
        return n

    def _top_after(self, symbol: Symbol, seq: int, ts: int) -> tuple[int, ...]:
        before, symbol.touch = symbol.touch, symbol.find_touch()
        symbol.seq, symbol.ts = seq, ts
        shape = _shape(symbol.touch)
        was_crossed = _shape(before) == TopFlag.CROSSED
        if symbol.state == TradingState.TRADING and shape == TopFlag.CROSSED and not was_crossed:
            self.anomalies.add("crossed", at=seq)  # BOOK-26
        changed = TopFlag.CHANGED if symbol.touch != before else 0  # BOOK-16
        return _top(symbol, symbol.touch, shape | changed)

    def _add(self, event: np.void) -> tuple[Symbol, Effect]:
        symbol = self._symbol(int(event["locate"]))
        side = {"B": symbol.bids, "S": symbol.asks}.get(chr(event["side"]))
        price, qty, ref = int(event["price"]), int(event["qty"]), int(event["ref"])
        if side is None or qty == 0 or not side.has_room(price, qty):  # BOOK-22
            self.anomalies.add("rejected_add", at=int(event["seq"]))
            return symbol, (0, 0, 0, NO_MPID, 0, Outcome.REJECTED, 0)
        mpid = event["aux"][:4].tobytes() if event["type"] == ord("F") else NO_MPID  # BOOK-5
        outcome = Outcome.DUPLICATE_REF if self._evict(ref, int(event["seq"])) else Outcome.APPLIED
        self._orders[ref] = side.join(ref, price, qty, int(event["ts"]), mpid)
        return symbol, (price, qty, qty, mpid, ord(side.letter), outcome, 0)

    def _reduce(self, event: np.void) -> tuple[Symbol, Effect]:
        order = self._orders.get(int(event["ref"]))
        if order is None:
            return self._unknown(event)
        seq, qty, level = int(event["seq"]), int(event["qty"]), order.level
        flags, outcome = self._mismatch(order, event), Outcome.APPLIED
        if event["type"] == ord("E") and next(iter(level.orders)) != order.ref:  # BOOK-24
            self.anomalies.add("not_at_head", at=seq)
            flags |= EffectFlag.NOT_AT_HEAD
        if qty > order.qty:  # BOOK-21
            self.anomalies.add("over_execution", at=seq)
            qty, outcome = order.qty, Outcome.OVER_EXECUTION
        order.qty -= qty
        level.qty -= qty
        if order.qty == 0:
            self._remove(order)
            flags |= EffectFlag.LEFT
        side = level.side
        effect = (level.price, qty, order.qty, order.mpid, ord(side.letter), outcome, flags)
        return side.symbol, effect

    def _delete(self, event: np.void) -> tuple[Symbol, Effect]:
        order = self._orders.get(int(event["ref"]))
        if order is None:
            return self._unknown(event)
        flags = self._mismatch(order, event) | EffectFlag.LEFT
        self._remove(order)
        level, letter = order.level, ord(order.level.side.letter)
        return level.side.symbol, (level.price, order.qty, 0, order.mpid, letter, Outcome.APPLIED, flags)

    def _replace(self, event: np.void) -> tuple[Symbol, Effect]:
        old = self._orders.get(int(event["ref"]))
        if old is None:
            return self._unknown(event)
        seq, ref = int(event["seq"]), int(event["ref2"])
        price, qty, side = int(event["price"]), int(event["qty"]), old.level.side
        flags = self._mismatch(old, event) | EffectFlag.LEFT
        self._remove(old)  # BOOK-9: before the new reference is looked at (BOOK-23)
        outcome, remaining = Outcome.APPLIED, qty
        if self._evict(ref, seq):
            outcome = Outcome.DUPLICATE_REF
        if qty == 0 or not side.has_room(price, qty):
            self.anomalies.add("rejected_add", at=seq)
            outcome, remaining = Outcome.REJECTED, 0
        else:
            self._orders[ref] = side.join(ref, price, qty, int(event["ts"]), old.mpid)
        effect = (old.level.price, old.qty, remaining, old.mpid, ord(side.letter), outcome, flags)
        return side.symbol, effect

    def _halt(self, event: np.void) -> tuple[Symbol, Effect]:
        symbol = self._symbol(int(event["locate"]))
        symbol.state = STATES.get(int(event["aux"][0]), TradingState.UNKNOWN)  # BOOK-13
        return symbol, NOTHING

    def _nothing(self, event: np.void) -> tuple[Symbol, Effect]:
        return self._symbol(int(event["locate"])), NOTHING

    def _unknown(self, event: np.void) -> tuple[Symbol, Effect]:
        self.anomalies.add("unknown_ref", at=int(event["seq"]))  # BOOK-20
        return self._symbol(int(event["locate"])), (0, 0, 0, NO_MPID, 0, Outcome.UNKNOWN_REF, 0)

    def _mismatch(self, order: Order, event: np.void) -> int:
        self._symbol(int(event["locate"]))  # BOOK-29: it was named
        if order.level.side.symbol.locate == event["locate"]:
            return 0
        self.anomalies.add("locate_mismatch", at=int(event["seq"]))  # BOOK-25
        return EffectFlag.LOCATE_MISMATCH

    def _symbol(self, locate: int) -> Symbol:
        found = self._symbols.get(locate)
        if found is None:
            found = self._symbols[locate] = Symbol(locate)
        return found

    def _remove(self, order: Order) -> None:
        del self._orders[order.ref]
        order.level.side.leave(order)

    def _evict(self, ref: int, seq: int) -> bool:
        stale = self._orders.get(ref)
        if stale is None:
            return False
        self.anomalies.add("duplicate_ref", at=seq)  # BOOK-23
        self._remove(stale)
        return True

    # --- reading

    def top(self, locate: int) -> np.ndarray:
        symbol = self._known(locate)
        touch = symbol.find_touch()
        return np.array([_top(symbol, touch, _shape(touch))], TOP)

    def levels(self, locate: int, side: str, n: int = 0) -> np.ndarray:
        if side not in ("B", "S") or n < 0:
            raise UsageError(f"no {n} levels of side {side!r}", hint="side is B or S; 0 levels means all")
        symbol = self._known(locate)
        levels = (symbol.bids if side == "B" else symbol.asks).levels.values()
        rows = [(level.price, level.qty, len(level.orders)) for level in islice(levels, n or None)]
        return np.array(rows, LEVEL)

    def orders(self, locate: int) -> np.ndarray:
        rows = [
            (o.ref, o.level.price, o.qty, o.ts, locate, tuple(o.mpid), ord(o.level.side.letter))
            for o in self._known(locate).orders()
        ]
        return np.array(rows, ORDER)

    def state(self, locate: int) -> TradingState:
        return self._known(locate).state

    def locates(self) -> np.ndarray:
        return np.array(sorted(self._symbols.keys() - {0}), np.uint32)

    def live_orders(self) -> int:
        return len(self._orders)

    def digest(self) -> bytes:
        rows = [
            (locate, ord(o.level.side.letter), o.level.price, o.ref, o.qty)
            for locate, symbol in sorted(self._symbols.items())
            for o in symbol.orders()
        ]
        return hashlib.sha256(np.array(rows, DIGEST_ROW).tobytes()).digest()

    def validate(self) -> list[str]:
        found, seen = [], 0
        for symbol in self._symbols.values():
            for side in (symbol.bids, symbol.asks):
                for key, level in side.levels.items():
                    where = f"locate {symbol.locate} {side.letter} {level.price}"
                    if key != side.sign * level.price or level.side is not side:
                        found.append(f"{where}: a level in a wrong place")
                    if not level.orders:
                        found.append(f"{where}: a level without orders")
                    if level.qty != sum(order.qty for order in level.orders.values()):
                        found.append(f"{where}: the total is not that of its orders")
                    for ref, order in level.orders.items():
                        seen += 1
                        if order.qty == 0 or order.level is not level or self._orders.get(ref) is not order:
                            found.append(f"{where}: order {ref} is not what the index says")
        if seen != len(self._orders):
            found.append(f"{len(self._orders)} orders in the index, {seen} in the books")
        return found

    def _known(self, locate: int) -> Symbol:
        if not 0 <= locate < 1 << 32:
            raise UsageError(f"no locate {locate}", hint="a locate has 32 bits")
        return self._symbols.get(locate) or Symbol(locate)


def _length(name: str, array: object, dtype: np.dtype) -> int:
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
        raise UsageError(f"{name} is not a flat array of its dtype", hint="see trident_core.dtypes")
    return len(array)


def _shape(touch: tuple[int, ...]) -> int:
    """CROSSED or LOCKED (BOOK-17); the counts say whether a side has orders."""
    bid, bids, ask, asks = touch[0], touch[2], touch[3], touch[5]
    if not bids or not asks or bid < ask:
        return 0
    return TopFlag.CROSSED if bid > ask else TopFlag.LOCKED


def _top(symbol: Symbol, touch: tuple[int, ...], flags: int) -> tuple[int, ...]:
    """The columns of TOP, in the order of the record."""
    bid, bid_qty, bids, ask, ask_qty, asks = touch
    return symbol.seq, symbol.ts, bid, bid_qty, ask, ask_qty, bids, asks, symbol.locate, symbol.state, flags
