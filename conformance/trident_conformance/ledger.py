"""What must be true of any market's reports, whatever its rules: an audit that knows no engine.

    ledger = Ledger(rules); ledger.enter(command, its reports) …; ledger.close(market)

It keeps its own account of every order from the reports alone and raises AssertionError where quantity comes
from nowhere or is lost, a limit is broken, a better price or an earlier order is passed over, a book stays
crossed, a stop triggers twice, or a number is used twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trident_core.contracts import (
    Allocation,
    MarketRules,
    Matcher,
    Op,
    OrderFlag,
    OrderKind,
    ReportFlag,
    ReportKind,
    TradingState,
)

_STOPS = (OrderKind.STOP, OrderKind.STOP_LIMIT)


@dataclass(eq=False)
class Account:
    """One order. `place` is when it took its place in its queue; 0 while it has none."""

    id: int
    locate: int
    side: int
    price: int
    leaves: int
    flags: int
    waits: bool  # for a trigger
    taken: int  # accepted and added by replaces
    bought: int = 0
    cancelled: int = 0
    place: int = 0
    ref: int = 0

    @property
    def hidden(self) -> bool:
        return bool(self.flags & OrderFlag.HIDDEN)

    @property
    def block(self) -> bool:
        return bool(self.flags & OrderFlag.AON)


class Ledger:
    """The accounts of one market. Give it every command, with all of its reports."""

    def __init__(self, rules: MarketRules) -> None:
        self.rules = rules
        self.orders: dict[int, Account] = {}
        self.states: dict[int, int] = {}
        self.bought = self.sold = 0
        self._refs: set[int] = set()
        self._matches: dict[int, int] = {}
        self._row = 0
        self._rules = {
            ReportKind.ACCEPTED: self._accepted, ReportKind.BOOKED: self._booked, ReportKind.FILL: self._fill,
            ReportKind.CANCELLED: self._cancelled, ReportKind.REPLACED: self._replaced,
            ReportKind.REFRESHED: self._refreshed, ReportKind.TRIGGERED: self._triggered,
            ReportKind.STATE: self._state, ReportKind.CROSS: self._cross,
        }  # fmt: skip

    def enter(self, command: Any, reports: Any) -> None:
        """One command and what came of it."""
        self._touched: set[int] = set()
        had_block = {order.locate for order in self.orders.values() if order.block}
        self._blocks = had_block | ({int(command["locate"])} if command["flags"] & OrderFlag.AON else set())
        for row in reports:
            self._row += 1
            assert row["seq"] == self._row, "a row is missing, or written twice"
            rule = self._rules.get(ReportKind(int(row["kind"])))
            if rule is not None:
                rule(row, command)
                self._touched.add(int(row["locate"]))
        for locate in self._touched:
            self._uncrossed(locate)

    def close(self, market: Matcher) -> None:
        """What the market has at the end is what the accounts say."""
        assert self.bought == self.sold
        assert market.live_orders() == len(self.orders)
        for order in self.orders.values():
            assert order.taken == order.bought + order.cancelled + order.leaves

    # --- rows -----------------------------------------------------------------------------------------------

    def _accepted(self, row: Any, command: Any) -> None:
        assert command["op"] == Op.NEW
        self._fresh(row["ref"])
        number, qty = int(row["id"]), int(row["qty"])
        assert number not in self.orders
        waits = int(command["kind"]) in _STOPS
        self.orders[number] = Account(
            number, int(row["locate"]), int(row["side"]), int(row["price"]), qty, int(command["flags"]),
            waits, qty, ref=int(row["ref"]),
        )  # fmt: skip

    def _booked(self, row: Any, _: Any) -> None:
        order = self.orders[int(row["id"])]
        assert order.leaves == row["leaves"] > 0
        assert not order.waits
        order.place, order.price = self._row, int(row["price"])

    def _fill(self, row: Any, _: Any) -> None:
        order, other = self.orders[int(row["id"])], self.orders[int(row["id2"])]
        price, qty, number = int(row["price"]), int(row["qty"]), int(row["ref2"])
        for each in (order, other):
            if each.price:
                assert price <= each.price if each.side == ord("B") else price >= each.price, (
                    "a limit is broken"
                )
            assert not each.waits, "a stop trades before it triggers"
        if row["flags"] & ReportFlag.SECOND:
            assert self._matches[number] == qty
            order, other = other, order
            assert (order.leaves, other.leaves) == (row["leaves2"], row["leaves"])
            self._gone(order, other)
            return
        assert number not in self._matches, "a match number is used twice"
        self._matches[number] = qty
        assert {order.side, other.side} == {ord("B"), ord("S")}
        if not row["flags"] & ReportFlag.CROSS and order.locate not in self._blocks:
            self._first(order)
        for each in (order, other):
            each.leaves, each.bought = each.leaves - qty, each.bought + qty
            self.bought += qty if each.side == ord("B") else 0
            self.sold += qty if each.side == ord("S") else 0
        assert (order.leaves, other.leaves) == (row["leaves"], row["leaves2"]), "quantity is lost"
        if not other.place and not row["flags"] & ReportFlag.CROSS:
            self._gone(order, other)
        elif order.locate not in self._blocks and not row["flags"] & ReportFlag.CROSS:
            raise AssertionError("two that rested trade without an all-or-none order between them")

    def _first(self, resting: Account) -> None:
        """No better price stands there; in FIFO, nobody earlier."""
        side = [
            o
            for o in self.orders.values()
            if (o.locate, o.side) == (resting.locate, resting.side) and o.place
        ]
        better = max if resting.side == ord("B") else min
        assert resting.price == better(o.price for o in side), "a better price is traded through"
        queue = [o for o in side if o.price == resting.price]
        if resting.hidden:
            assert all(o.hidden for o in queue), "a hidden order trades before a displayed one"
        if resting.hidden or self.rules.allocation is Allocation.FIFO:
            earlier = [o for o in queue if o.hidden == resting.hidden and o.place < resting.place]
            assert not earlier, "an earlier order is passed over"

    def _cancelled(self, row: Any, _: Any) -> None:
        order, qty = self.orders[int(row["id"])], int(row["qty"])
        order.leaves, order.cancelled = order.leaves - qty, order.cancelled + qty
        assert order.leaves == row["leaves"]
        self._gone(order)

    def _replaced(self, row: Any, command: Any) -> None:
        order = self.orders.pop(int(row["id"]))
        assert int(row["id2"]) not in self.orders
        self.orders[int(row["id2"])] = order
        order.id, open_now = int(row["id2"]), int(row["leaves"])
        order.taken, order.leaves = order.taken + open_now - order.leaves, open_now
        order.price = int(row["price"])
        if row["flags"] & ReportFlag.IN_PLACE:
            assert row["ref"] == order.ref
            return
        self._fresh(row["ref"])
        order.ref = int(row["ref"])
        order.place = self._row if row["flags"] & ReportFlag.RESTS else 0

    def _refreshed(self, row: Any, _: Any) -> None:
        order = self.orders[int(row["id"])]
        self._fresh(row["ref"])
        assert order.leaves == row["leaves"]
        order.place, order.ref = self._row, int(row["ref"])

    def _triggered(self, row: Any, _: Any) -> None:
        order = self.orders[int(row["id"])]
        assert order.waits, "a stop triggers twice"
        order.waits, order.price = False, int(row["price"])

    def _state(self, row: Any, _: Any) -> None:
        self.states[int(row["locate"])] = int(row["code"])

    def _cross(self, row: Any, _: Any) -> None:
        if row["qty"]:
            assert int(row["ref2"]) not in self._matches
            self._matches[int(row["ref2"])] = int(row["qty"])

    # --- what they share ------------------------------------------------------------------------------------

    def _fresh(self, ref: Any) -> None:
        assert int(ref) not in self._refs, "a reference is used twice"
        self._refs.add(int(ref))

    def _gone(self, *orders: Account) -> None:
        for order in orders:
            if not order.leaves:
                assert order.taken == order.bought + order.cancelled, "quantity comes from nowhere"
                del self.orders[order.id]

    def _uncrossed(self, locate: int) -> None:
        """After a command in state T, unless an all-or-none order holds two apart."""
        here = [order for order in self.orders.values() if order.locate == locate and order.place]
        trading = self.states.get(locate, ord(self.rules.state)) == TradingState.TRADING
        if not trading or any(order.block for order in here):
            return
        bids = [order.price for order in here if order.side == ord("B")]
        asks = [order.price for order in here if order.side == ord("S")]
        assert not (bids and asks and max(bids) >= min(asks)), "the book stays crossed"
