"""The reference book: the rules of ITCH 5.0 order books, one method for each rule, in pure Python.

It is the law for every other book engine, and it is slow. Section numbers are those of the Nasdaq
TotalView-ITCH 5.0 specification. What it does not say (queues, anomalies) is in docs/contracts/book.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from trident_book.arrays import (
    EFFECT_WORDS,
    EVENT_WORDS,
    ORDER_WORDS,
    check_array,
    check_locate,
    check_output,
)
from trident_book.audit import violations
from trident_book.structures import BUY, SELL, Order, Side, SymbolBook, is_crossed, is_locked
from trident_core.contracts import TradingState
from trident_core.dtypes import (
    DIGEST_ROW,
    EFFECT,
    EVENT,
    LEVEL,
    ORDER,
    TOP,
    EffectFlag,
    Effects,
    Events,
    Levels,
    Orders,
    Outcome,
    TopFlag,
    Tops,
)
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.stats import Anomalies

if TYPE_CHECKING:  # a book that only replays needs no matching engine
    from trident_book.matching.reference import ReferenceMatcher
    from trident_core.contracts import MarketRules

#: seq, ts, ref, ref2, price, qty, locate, type, side, aux (8 bytes as a little-endian u64)
Row = tuple[int, int, int, int, int, int, int, int, int, int]
#: price, qty, remaining, mpid, side, outcome, flags: the columns of EFFECT
EffectRow = tuple[int, int, int, int, int, int, int]
Rule = Callable[[Row], tuple[SymbolBook, EffectRow]]

_COLUMNS: Final = ("seq", "ts", "ref", "ref2", "price", "qty", "locate", "type", "side", "aux")
_SLICE: Final = 8192  # events turned into Python integers at a time: bounds memory, changes no result


_ADD_MPID, _EXECUTE = ord("F"), ord("E")
_TRADING: Final = int(TradingState.TRADING)
_STATES: Final = frozenset(map(int, TradingState))
# Plain integers: arithmetic with an IntEnum or IntFlag costs microseconds.
_APPLIED: Final = int(Outcome.APPLIED)
_OVER_EXECUTION: Final = int(Outcome.OVER_EXECUTION)
_DUPLICATE_REF: Final = int(Outcome.DUPLICATE_REF)
_OUTCOME_REJECTED: Final = int(Outcome.REJECTED)
_NOT_AT_HEAD: Final = int(EffectFlag.NOT_AT_HEAD)
_LEFT: Final = int(EffectFlag.LEFT)
_LOCATE_MISMATCH: Final = int(EffectFlag.LOCATE_MISMATCH)
_CHANGED: Final = int(TopFlag.CHANGED)
_CROSSED: Final = int(TopFlag.CROSSED)
_LOCKED: Final = int(TopFlag.LOCKED)

_NOTHING: Final[EffectRow] = (0, 0, 0, 0, 0, int(Outcome.NONE), 0)
_UNKNOWN: Final[EffectRow] = (0, 0, 0, 0, 0, int(Outcome.UNKNOWN_REF), 0)
_REJECTED: Final[EffectRow] = (0, 0, 0, 0, 0, _OUTCOME_REJECTED, 0)


class ReferenceBook:
    """Full L3 books of every symbol, as docs/contracts/book.md demands. Satisfies `contracts.Book`.

    Memory grows with the live orders and with the number of locates seen, never with the number of events.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.anomalies = Anomalies()
        self._symbols: dict[int, SymbolBook] = {}
        self._orders: dict[int, Order] = {}  # every resting order of every symbol, by reference
        self._rules: dict[int, Rule] = {
            ord("A"): self._add,
            ord("F"): self._add,
            ord("E"): self._reduce,
            ord("C"): self._reduce,
            ord("X"): self._reduce,
            ord("D"): self._delete,
            ord("U"): self._replace,
            ord("H"): self._trading_action,
        }

    @classmethod
    def matcher(cls, session: Session, rules: MarketRules) -> ReferenceMatcher:
        """Capability MATCH: a market without orders yet (docs/matching.md)."""
        from trident_book.matching.reference import ReferenceMatcher

        return ReferenceMatcher(session, rules)

    # --- applying events ------------------------------------------------------------------------------------

    def apply(self, events: Events, tops: Tops | None = None, effects: Effects | None = None) -> int:
        """Apply all events in order; return how many. See `contracts.Book.apply`.

        Raises UsageError for arrays of another dtype or shape, or outputs shorter than `events`.
        """
        n = check_array("events", events, EVENT)
        check_output("tops", tops, TOP, n)
        check_output("effects", effects, EFFECT, n)
        for start in range(0, n, _SLICE):
            stop = min(start + _SLICE, n)
            top_rows: list[tuple[int, ...]] | None = None if tops is None else []
            effect_rows: list[EffectRow] | None = None if effects is None else []
            self._apply_slice(_rows(events[start:stop]), top_rows, effect_rows)
            if tops is not None and top_rows is not None:
                tops[start:stop] = top_rows
            if effects is not None and effect_rows is not None:
                effects[start:stop].view(EFFECT_WORDS)[:] = effect_rows
        return n

    def _apply_slice(
        self,
        rows: Iterator[Row],
        tops: list[tuple[int, ...]] | None,
        effects: list[EffectRow] | None,
    ) -> None:
        rules, others = self._rules, self._no_effect
        for row in rows:
            symbol, effect = rules.get(row[7], others)(row)
            before, touch = symbol.touch, symbol.find_touch()
            symbol.seq, symbol.ts, symbol.touch = row[0], row[1], touch
            if symbol.state == _TRADING and is_crossed(touch) and not is_crossed(before):
                self.anomalies.add("crossed", at=row[0])
            if tops is not None:
                changed = _CHANGED if touch != before else 0
                tops.append((row[0], row[1], *touch, symbol.locate, symbol.state, changed | _shape(touch)))
            if effects is not None:
                effects.append(effect)

    # --- the rules ------------------------------------------------------------------------------------------

    def _add(self, row: Row) -> tuple[SymbolBook, EffectRow]:
        """A, F (4.3): a new order joins the tail of its queue. It never trades: the feed is post-match."""
        seq, ts, ref, _, price, qty, locate, letter, side_letter, aux = row
        symbol = self._symbol(locate)
        side = symbol.bids if side_letter == BUY else symbol.asks
        if side_letter not in (BUY, SELL) or qty == 0 or not side.has_room(price, qty):
            self.anomalies.add("rejected_add", at=seq)
            return symbol, _REJECTED
        mpid = aux & 0xFFFF_FFFF if letter == _ADD_MPID else 0
        outcome = _DUPLICATE_REF if self._evict(ref, seq) else _APPLIED
        self._orders[ref] = side.join(ref, price, qty, ts, mpid)
        return symbol, (price, qty, qty, mpid, side_letter, outcome, 0)

    def _reduce(self, row: Row) -> tuple[SymbolBook, EffectRow]:
        """E, C, X (4.4.1 to 4.4.3): shares leave the order at its display price, whatever C's price is."""
        seq, _, ref, _, _, qty, locate, letter, _, _ = row
        order = self._orders.get(ref)
        if order is None:
            return self._unknown_ref(seq, locate)
        level = order.level
        flags = self._check_locate(order, locate, seq)
        if letter == _EXECUTE and level.head() is not order:
            self.anomalies.add("not_at_head", at=seq)
            flags |= _NOT_AT_HEAD
        outcome = _APPLIED
        if qty > order.qty:
            self.anomalies.add("over_execution", at=seq)
            outcome, qty = _OVER_EXECUTION, order.qty
        order.qty -= qty
        level.qty -= qty
        if order.qty == 0:
            self._remove(order)
            flags |= _LEFT
        side = level.side
        return side.symbol, (level.price, qty, order.qty, order.mpid, side.letter, outcome, flags)

    def _delete(self, row: Row) -> tuple[SymbolBook, EffectRow]:
        """D (4.4.4): all that is left of the order goes."""
        seq, _, ref, _, _, _, locate, _, _, _ = row
        order = self._orders.get(ref)
        if order is None:
            return self._unknown_ref(seq, locate)
        flags = self._check_locate(order, locate, seq) | _LEFT
        self._remove(order)
        level = order.level
        side = level.side
        return side.symbol, (level.price, order.qty, 0, order.mpid, side.letter, _APPLIED, flags)

    def _replace(self, row: Row) -> tuple[SymbolBook, EffectRow]:
        """U (4.4.5): the old order goes; one of a new reference, of the same side, symbol and MPID, joins the
        tail of its queue, at the same price too."""
        seq, ts, ref, new_ref, price, qty, locate, _, _, _ = row
        old = self._orders.get(ref)
        if old is None:
            return self._unknown_ref(seq, locate)
        flags = self._check_locate(old, locate, seq) | _LEFT
        side: Side = old.level.side
        self._remove(old)
        outcome, remaining = _APPLIED, qty
        if self._evict(new_ref, seq):
            outcome = _DUPLICATE_REF
        if qty == 0 or not side.has_room(price, qty):
            self.anomalies.add("rejected_add", at=seq)
            outcome, remaining = _OUTCOME_REJECTED, 0
        else:
            self._orders[new_ref] = side.join(new_ref, price, qty, ts, old.mpid)
        return side.symbol, (old.level.price, old.qty, remaining, old.mpid, side.letter, outcome, flags)

    def _trading_action(self, row: Row) -> tuple[SymbolBook, EffectRow]:
        """H (4.2.2): the state of the symbol. Orders keep coming and going during a halt."""
        symbol = self._symbol(row[6])
        state = row[9] & 0xFF
        symbol.state = state if state in _STATES else int(TradingState.UNKNOWN)
        return symbol, _NOTHING

    def _no_effect(self, row: Row) -> tuple[SymbolBook, EffectRow]:
        """All others: P, Q, B print or void trades (4.5), h is one venue's halt (4.2.8); no book changes."""
        return self._symbol(row[6]), _NOTHING

    # --- what the rules share -------------------------------------------------------------------------------

    def _symbol(self, locate: int) -> SymbolBook:
        symbol = self._symbols.get(locate)
        if symbol is None:
            symbol = self._symbols[locate] = SymbolBook(locate)
        return symbol

    def _remove(self, order: Order) -> None:
        del self._orders[order.ref]
        order.level.side.leave(order)

    def _evict(self, ref: int, seq: int) -> bool:
        """References are unique in a day: an order that still holds a newcomer's is stale, and goes."""
        stale = self._orders.get(ref)
        if stale is None:
            return False
        self.anomalies.add("duplicate_ref", at=seq)
        self._remove(stale)
        return True

    def _unknown_ref(self, seq: int, locate: int) -> tuple[SymbolBook, EffectRow]:
        self.anomalies.add("unknown_ref", at=seq)
        return self._symbol(locate), _UNKNOWN

    def _check_locate(self, order: Order, locate: int, seq: int) -> int:
        """The order's own symbol stands; a message that names another is counted."""
        if order.level.side.symbol.locate == locate:
            return 0
        self._symbol(locate)
        self.anomalies.add("locate_mismatch", at=seq)
        return _LOCATE_MISMATCH

    # --- reading --------------------------------------------------------------------------------------------

    def top(self, locate: int) -> Tops:
        """TOP[1]: the top now. CHANGED is never set: it belongs to an event."""
        symbol = self._symbols.get(check_locate(locate)) or SymbolBook(locate)
        touch = symbol.find_touch()
        row = (symbol.seq, symbol.ts, *touch, locate, symbol.state, _shape(touch))
        return np.array([row], TOP)

    def levels(self, locate: int, side: str, n: int = 0) -> Levels:
        """LEVEL[k]: the best n levels of side "B" or "S", best first; n = 0 means all.

        Raises UsageError for another side or a negative n.
        """
        if side not in ("B", "S"):
            raise UsageError(f"no side {side!r}", hint='write "B" for bids or "S" for asks')
        if n < 0:
            raise UsageError(f"cannot show {n} levels", hint="0 means all")
        symbol = self._symbols.get(check_locate(locate))
        if symbol is None:
            return np.empty(0, LEVEL)
        chosen = symbol.bids if side == "B" else symbol.asks
        best = islice(chosen.from_best(), n or None)
        rows = [(level.price, level.qty, len(level.queue)) for level in best]
        return np.array(rows, LEVEL)

    def orders(self, locate: int) -> Orders:
        """ORDER[k]: live orders, bids from best to worst, then asks; in queue order in each level."""
        symbol = self._symbols.get(check_locate(locate))
        rows = [
            (o.ref, o.level.price, o.qty, o.ts, locate, o.mpid, o.level.side.letter)
            for o in (symbol.orders() if symbol else ())
        ]
        return np.array(rows, ORDER_WORDS).view(ORDER)

    def state(self, locate: int) -> TradingState:
        """Trading state by the last H of the symbol; UNKNOWN before it."""
        symbol = self._symbols.get(check_locate(locate))
        return TradingState(symbol.state) if symbol else TradingState.UNKNOWN

    def locates(self) -> NDArray[np.uint32]:
        """Locates that have had an event that names them, ascending, 0 left out."""
        return np.array(sorted(self._symbols.keys() - {0}), np.uint32)

    def live_orders(self) -> int:
        """How many orders rest in all books."""
        return len(self._orders)

    def digest(self) -> bytes:
        """SHA-256 of the DIGEST_ROWs of all live orders; see docs/contracts/book.md for the bytes."""
        hasher = hashlib.sha256()
        for locate, symbol in sorted(self._symbols.items()):
            rows = [(locate, o.level.side.letter, o.level.price, o.ref, o.qty) for o in symbol.orders()]
            hasher.update(np.array(rows, DIGEST_ROW).tobytes())
        return hasher.digest()

    def validate(self) -> list[str]:
        """Every violated invariant in words; empty when the books are sound. Slow: it visits everything."""
        return violations(self._symbols, self._orders)


def _shape(touch: tuple[int, int, int, int, int, int]) -> int:
    """CROSSED or LOCKED, as TopFlag bits."""
    if is_crossed(touch):
        return _CROSSED
    return _LOCKED if is_locked(touch) else 0


def _rows(events: Events) -> Iterator[Row]:
    """EVENTs as tuples of Python integers."""
    integers = events.view(EVENT_WORDS)
    return zip(*(integers[name].tolist() for name in _COLUMNS), strict=True)
