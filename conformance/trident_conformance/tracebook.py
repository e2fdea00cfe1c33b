"""Our matching engines before the tools of PyPI `tracebook-conformance`, which have a reference of their own.

    tracebook-conformance qualify --profile fifo-full-v1 --output-dir DIR \\
        --timeout 60 --candidate python -m trident_conformance.tracebook --book numba

speaks its protocol (a line of JSON a message) on standard input and output. What its semantics have that ours
word otherwise: prices are snapped to the tick before they come in; a replace is a cancel and a new order
without a place to keep; a reduction by more than is open is refused; ids are unique within a symbol only.
Stops, auctions and so on it has none.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from trident_conformance.engines import select
from trident_conformance.orders import to_commands
from trident_core.contracts import (
    Allocation,
    Kind,
    MarketRules,
    Matcher,
    Op,
    OrderKind,
    ReportKind,
    SelfTrade,
    TimeInForce,
)
from trident_core.contracts.matching import PRICE_MAX
from trident_core.engines import make_matcher
from trident_core.errors import TridentError
from trident_core.orders import Reports, submit_all
from trident_core.session import Session

if TYPE_CHECKING:
    from tracebook.conformance.model import BookState, ConformanceConfig, Observation
    from tracebook.events import MarketEvent

#: Of one order, in units of the last decimal; times the orders alive it must stay below 2^63.
QTY_MAX: Final = 2**53 - 1
ORDERS_MAX: Final = 1023
_NOBODY: Final = -1
_STP: Final = {
    "NONE": SelfTrade.NONE,
    "CANCEL_RESTING": SelfTrade.RESTING,
    "CANCEL_INCOMING": SelfTrade.INCOMING,
}
_KIND: Final = {
    "LIMIT": (OrderKind.LIMIT, TimeInForce.DAY),
    "MARKET": (OrderKind.MARKET, TimeInForce.DAY),
    "IOC": (OrderKind.LIMIT, TimeInForce.IOC),
    "FOK": (OrderKind.LIMIT, TimeInForce.FOK),
}


class _RefusedError(Exception):
    """What the engine is not asked for, by the reason code of the protocol."""


class Adapter:
    """One market of `book` behind tracebook's `EngineAdapter`."""

    def __init__(self, config: ConformanceConfig, book: str) -> None:
        from tracebook.conformance.model import EngineMetadata

        self.metadata = EngineMetadata(f"trident-{book}", "1", "Python")
        self._tick = Decimal(str(config.tick_size))
        self._places = config.quantity_decimal_places
        rules = MarketRules(
            allocation=Allocation(config.matching_algorithm), stp=_STP[config.self_trade_policy.name],
            qty_max=QTY_MAX, max_orders=ORDERS_MAX,
        )  # fmt: skip
        self._market: Matcher = make_matcher(select(Kind.BOOK, [book])[0].spec, Session(), rules)
        self._locates: dict[str, int] = {}
        self._alive: dict[tuple[str, int], dict[str, Any]] = {}  # symbol and its id -> the order
        self._by_id: dict[int, tuple[str, int]] = {}
        self._by_ref: dict[int, tuple[str, int]] = {}
        self._owners: dict[int, int] = {_NOBODY: 0}

    def apply(self, event: MarketEvent, index: int) -> Observation:
        """One event, and what is to be seen of it."""
        from tracebook.conformance.model import Observation, Outcome

        trades: list[Any] = []
        try:
            for row in self._asked(event, index):
                trades += self._take(event.symbol, submit_all(self._market, to_commands([row])))
            outcome = Outcome("applied")
        except _RefusedError as refusal:
            outcome = Outcome("rejected", str(refusal))
        state = self.snapshot()
        return Observation(index, outcome, tuple(trades), state.digest(), state.order_count)

    def _asked(self, event: MarketEvent, index: int) -> list[dict[str, Any]]:
        """The commands for an event. Raises _RefusedError."""
        key, known = (event.symbol, event.order_id or 0), event.symbol in self._locates
        order = self._alive.get(key)
        if event.op in ("cancel", "reduce", "replace") and order is None:
            raise _RefusedError("ORDER_NOT_ACTIVE")
        if not known:
            self._locates[event.symbol] = len(self._locates) + 1
        if event.op == "clear":
            return [{"op": Op.END_OF_DAY, "locate": self._locates[event.symbol]}]
        if order is None:
            side = ord(event.side.name[0])
            return [self._new(key, event, index, side, event.owner, event.order_type.name, "INVALID_ORDER")]
        named = {"id": order["id"], "owner": order["owner"]}
        if event.op == "new":
            raise _RefusedError("DUPLICATE_ORDER_ID")
        if event.op == "cancel":
            return [{"op": Op.CANCEL, **named}]
        if event.op == "reduce":
            qty = self._qty(event.quantity, "INVALID_ORDER")
            if qty > order["leaves"]:
                raise _RefusedError("INVALID_ORDER")
            return [{"op": Op.REDUCE, "qty": qty, **named}]
        again = self._new(
            key, event, index, order["side"], order["source"], "LIMIT", "INVALID_REPLACEMENT", order
        )
        return [{"op": Op.CANCEL, **named}, again]

    def _new(
        self, key: tuple[str, int], event: MarketEvent, index: int, side: int, owner: int, kind: str,
        refusal: str, old: dict[str, Any] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        letter, tif = _KIND[kind]
        qty = old["leaves"] if old and event.quantity is None else self._qty(event.quantity, refusal)
        price = old["price"] if old and event.price is None else self._price(event, kind, refusal)
        order = {
            "op": int(Op.NEW), "id": len(self._by_id) + 1, "locate": self._locates[event.symbol],
            "side": side, "owner": self._owners.setdefault(owner, len(self._owners)),
            "kind": int(letter), "tif": int(tif), "price": price, "qty": qty, "ts": index,
        }  # fmt: skip
        self._by_id[order["id"]] = key
        self._alive[key] = order | {"leaves": qty, "source": owner}
        return order

    def _qty(self, quantity: float | None, refusal: str) -> int:
        if quantity is None or quantity <= 0:
            raise _RefusedError(refusal)
        return int((Decimal(str(quantity)) * 10**self._places).to_integral_value())

    def _price(self, event: MarketEvent, kind: str, refusal: str) -> int:
        """In ticks."""
        if kind == "MARKET":
            return 0
        ticks = round((event.price or 0) / float(self._tick)) if (event.price or 0) > 0 else 0
        if not 1 <= ticks <= PRICE_MAX:
            raise _RefusedError(refusal)
        return ticks

    def _take(self, symbol: str, reports: Reports) -> list[Any]:
        """The trades among reports; who lives and with how much."""
        trades = []
        for row in reports:
            if row["kind"] == ReportKind.REJECTED:
                raise TridentError(f"the engine refused what was checked before: {row}")
            if row["kind"] in (ReportKind.FILL, ReportKind.CANCELLED, ReportKind.BOOKED):
                self._count(int(row["id"]), int(row["leaves"]))
            if row["kind"] == ReportKind.BOOKED:
                self._by_ref[int(row["ref"])] = self._by_id[int(row["id"])]
            if row["kind"] == ReportKind.FILL:
                self._count(int(row["id2"]), int(row["leaves2"]))
                trades.append(self._trade(symbol, row))
        return trades

    def _count(self, number: int, leaves: int) -> None:
        key = self._by_id[number]
        order = self._alive.get(key)
        if order is not None and order["id"] == number:
            order["leaves"] = leaves
            if not leaves:
                del self._alive[key]

    def _trade(self, symbol: str, row: Any) -> Any:
        from tracebook.conformance.model import TradeFill

        resting, incoming = self._by_id[int(row["id"])][1], self._by_id[int(row["id2"])][1]
        buy, sell = (resting, incoming) if row["side"] == ord("B") else (incoming, resting)
        return TradeFill(
            symbol, buy, sell, self._told_price(int(row["price"])), self._told_qty(int(row["qty"]))
        )

    def _told_price(self, ticks: int) -> str:
        from tracebook.conformance.model import canonical_decimal

        return str(canonical_decimal(ticks * self._tick))

    def _told_qty(self, qty: int) -> str:
        from tracebook.conformance.model import canonical_decimal

        return str(canonical_decimal(Decimal(qty).scaleb(-self._places), self._places))

    def snapshot(self) -> BookState:
        """The books as the engine shows them."""
        from tracebook.conformance.model import BookSnapshot, BookState, RestingOrder

        books = []
        for symbol, locate in sorted(self._locates.items()):
            sides: dict[str, list[Any]] = {"B": [], "S": []}
            for row in self._market.orders(locate):
                key = self._by_ref[int(row["ref"])]
                price, qty = self._told_price(int(row["price"])), self._told_qty(int(row["qty"]))
                owner = self._alive[key]["source"]
                sides[chr(row["side"])].append(RestingOrder(key[1], price, qty, owner))
            books.append(BookSnapshot(symbol, tuple(sides["B"]), tuple(sides["S"])))
        return BookState(tuple(books))

    def close(self) -> None:
        """Nothing is held."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one run on standard input and output."""
    parser = argparse.ArgumentParser(
        prog="python -m trident_conformance.tracebook", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument(
        "--book", default="reference", metavar="NAME", help="the engine to show (default: reference)"
    )
    options = parser.parse_args(arguments)
    from tracebook.conformance.protocol import serve_stdio

    return int(serve_stdio(lambda config: Adapter(config, options.book)))


if __name__ == "__main__":
    sys.exit(main())
