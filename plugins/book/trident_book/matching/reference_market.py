"""The market: what all its rules share, and the small steps of which they consist. Each step that something
is told of returns its rows, and is whole when it returns."""

from __future__ import annotations

from trident_book.matching.records import NO_STP, Command, Row
from trident_book.matching.reference_book import Order, Symbol
from trident_core.contracts import MarketRules, Reason, ReportFlag, ReportKind

_DISPLAYED, _LEFT = int(ReportFlag.DISPLAYED), int(ReportFlag.LEFT)


class Market:
    """Orders by id, symbols by locate, and the next reference and match number."""

    def __init__(self, rules: MarketRules) -> None:
        self.rules = rules
        self.symbols: dict[int, Symbol] = {}
        self.orders: dict[int, Order] = {}  # every living order
        self.clock = 0  # time never goes back (MATCH-3)
        self._next_ref = rules.first_ref
        self._next_match = rules.first_match

    def symbol(self, locate: int) -> Symbol:
        """The symbol, from now on one of `locates()`."""
        symbol = self.symbols.get(locate)
        if symbol is None:
            symbol = self.symbols[locate] = Symbol(locate, ord(self.rules.state))
        return symbol

    def look(self, locate: int) -> Symbol:
        """The symbol, or what it would be: to check a command by."""
        return self.symbols.get(locate) or Symbol(locate, ord(self.rules.state))

    def of(self, order: Order) -> Symbol:
        return self.symbols[order.locate]

    def find(self, command: Command) -> Order | None:
        """The living order that a command names, by id and owner (MATCH-5)."""
        order = self.orders.get(command.id)
        return order if order is not None and order.owner == command.owner else None

    def next_match(self) -> int:
        self._next_match += 1
        return self._next_match - 1

    def name_anew(self, order: Order) -> None:
        """The next reference (MATCH-6), as of now."""
        order.ref, order.ts = self._next_ref, self.clock
        self._next_ref += 1

    def tick(self, price: int) -> int:
        """MATCH-7: of the last entry whose start is at most the price."""
        return next(tick for start, tick in reversed(self.rules.ticks) if start <= price)

    def policy(self, order: Order) -> int:
        """MATCH-50: of self-trade prevention, when this order comes in; NO_STP too for an order of nobody."""
        return (order.stp or self.rules.stp or NO_STP) if order.owner else NO_STP

    def traded(self, symbol: Symbol, price: int) -> None:
        low, high = symbol.window or (price, price)
        symbol.last, symbol.window = price, (min(low, price), max(high, price))

    # --- steps ----------------------------------------------------------------------------------------------

    def rest(self, order: Order) -> Row:
        """BOOKED (MATCH-17)."""
        self.of(order).join(order)
        shown = order.displayed()
        return Row(
            ReportKind.BOOKED, order.locate, id=order.id, ref=order.ref, price=order.price, qty=shown,
            leaves=order.leaves, owner=order.owner, mpid=order.mpid, side=order.side,
            flags=_DISPLAYED if shown else 0,
        )  # fmt: skip

    def gone(self, order: Order) -> None:
        self.of(order).leave(order)
        del self.orders[order.id]

    def cancel(self, order: Order, reason: Reason) -> Row:
        """All of it."""
        return self.cut(order, order.leaves, reason)

    def cut(self, order: Order, qty: int, reason: Reason) -> Row:
        """`qty` of it, the hidden part of an iceberg first (MATCH-34)."""
        before, price = order.displayed(), order.price
        order.leaves -= qty
        order.shown = min(order.shown, order.leaves)
        return self._cancelled(order, qty, before, reason, price)

    def decrement(self, order: Order, qty: int) -> Row:
        """MATCH-51: `qty` of what it has at its place."""
        before = order.displayed()
        self.use(order, qty)
        return self._cancelled(order, qty, before, Reason.SELF_TRADE, 0)

    def _cancelled(self, order: Order, qty: int, before: int, reason: Reason, price: int) -> Row:
        after = order.displayed()
        flags = (_DISPLAYED if before else 0) | (_LEFT if before and not after else 0)
        if not order.leaves:
            self.gone(order)
        return Row(
            ReportKind.CANCELLED, order.locate, id=order.id, ref=order.ref, price=price, qty=qty,
            leaves=order.leaves, leaves2=before - after, owner=order.owner, reason=reason, side=order.side,
            flags=flags,
        )  # fmt: skip

    def use(self, order: Order, qty: int) -> None:
        """Takes `qty` of what an order has at its place."""
        order.leaves -= qty
        if order.peak and order.level is not None:
            order.shown -= qty

    def refresh(self, order: Order) -> list[Row]:
        """MATCH-16: the next peak of an iceberg that shows nothing any more."""
        if order.level is None or not order.peak or order.shown or not order.leaves:
            return []
        queue, old = order.level.front, order.ref
        del queue[old]
        self.name_anew(order)
        queue[order.ref] = order
        order.shown = min(order.peak, order.leaves)
        return [
            Row(
                ReportKind.REFRESHED, order.locate, id=order.id, ref=order.ref, ref2=old, price=order.price,
                qty=order.shown, leaves=order.leaves, owner=order.owner, mpid=order.mpid, side=order.side,
                flags=_DISPLAYED,
            )
        ]  # fmt: skip

    def fill(self, order: Order, other: Order, qty: int, price: int, match: int, flags: int = 0) -> Row:
        """The row of `order` of a trade with `other`, after both were `spend`."""
        return Row(
            ReportKind.FILL, order.locate, id=order.id, id2=other.id, ref=order.ref, ref2=match, price=price,
            qty=qty, leaves=order.leaves, leaves2=other.leaves, owner=order.owner, owner2=other.owner,
            side=order.side, flags=flags,
        )  # fmt: skip

    def spend(self, order: Order, qty: int, *, shown: bool = True) -> int:
        """One side of a trade. `shown`: from what it has at its place, else from the rest of an iceberg.
        The flags that its row has for it."""
        before = order.displayed() if shown else 0
        if shown:
            self.use(order, qty)
        else:
            order.leaves -= qty
        order.filled += qty
        return (_DISPLAYED | (0 if order.displayed() else _LEFT)) if before else 0

    def execute(self, incoming: Order, resting: Order, qty: int) -> list[Row]:
        """MATCH-12: an incoming order and one that rests, at the price of the latter."""
        price = resting.price
        flags = self.spend(resting, qty)
        self.spend(incoming, qty)
        self.traded(self.of(resting), price)
        rows = [self.fill(resting, incoming, qty, price, self.next_match(), flags)]
        rows += self.refresh(resting)
        self.bury(resting, incoming)
        return rows

    def bury(self, *orders: Order) -> None:
        """Those that have nothing left are gone."""
        for order in orders:
            if not order.leaves:
                self.gone(order)
