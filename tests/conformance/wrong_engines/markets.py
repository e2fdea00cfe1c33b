"""Books that match wrongly in one way each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from trident_book.matching import (
    reference_changes,
    reference_crosses,
    reference_entry,
    reference_trading,
)
from trident_book.matching.records import FOK, SELL, Row
from trident_book.matching.reference import ReferenceMatcher
from trident_book.matching.reference_book import Order
from trident_book.matching.reference_market import Market
from trident_book.reference import ReferenceBook
from trident_core.contracts import MarketRules, ReportKind
from trident_core.orders import Commands, Reports
from trident_core.session import Session


class _Wrong(ReferenceBook):
    """`faults`: what stands in for functions of the reference's modules, while the market is at work."""

    faults: ClassVar[dict[tuple[Any, str], Any]] = {}
    market_class: ClassVar[type[Market]] = Market

    @classmethod
    def matcher(cls, session: Session, rules: MarketRules) -> ReferenceMatcher:
        return _WrongMatcher(session, rules, cls)


class _WrongMatcher(ReferenceMatcher):
    def __init__(self, session: Session, rules: MarketRules, book: type[_Wrong]) -> None:
        super().__init__(session, rules)
        self._market = book.market_class(rules)
        self._faults = book.faults

    def submit(self, commands: Commands, reports: Reports) -> Any:
        right = {place: getattr(*place) for place in self._faults}
        for (module, name), wrong in self._faults.items():
            setattr(module, name, wrong)
        try:
            return super().submit(commands, reports)
        finally:
            for (module, name), function in right.items():
                setattr(module, name, function)


def _always_in_place(order: Order, terms: Any) -> bool:
    return (terms.price, terms.stop, terms.trail) == (order.price, order.stop, order.trail)


class GrowsInPlace(_Wrong):
    """A replace to more keeps its place."""

    faults: ClassVar = {(reference_changes, "_keeps_place"): _always_in_place}


class FillsOrKillsSome(_Wrong):
    """A FOK trades what there is."""

    faults: ClassVar = {
        (reference_entry, "falls_short"): lambda market, order, limit: (
            None if order.tif == FOK else reference_trading.falls_short(market, order, limit)
        )
    }


def _rounds_up(market: Market, order: Order, others: list[Order]) -> Iterator[Row]:
    sizes = [resting.at_place() for resting in others]
    wanted, total = min(order.leaves, sum(sizes)), sum(sizes)
    for resting, size in zip(others, sizes, strict=True):
        share = min(-(-wanted * size // total), order.leaves)
        if share:
            yield from market.execute(order, resting, share)


class SharesOutRoundedUp(_Wrong):
    """Pro rata rounds shares up, and the last gets what is left."""

    faults: ClassVar = {(reference_trading, "_pro_rata"): _rounds_up}


class _KeepsIcebergs(Market):
    def refresh(self, order: Order) -> list[Row]:
        queue = list(order.level.front.values()) if order.level else []
        rows = super().refresh(order)
        if rows and order.level:
            order.level.front.clear()
            order.level.front.update((each.ref, each) for each in queue)
        return rows


class IcebergsKeepTheirPlace(_Wrong):
    """The next peak stands where the last one stood."""

    market_class = _KeepsIcebergs


class _TradesWithItself(Market):
    def policy(self, order: Order) -> int:
        return super().policy(order) if order.stp else ord("N")


class ForgetsTheMarketsPolicy(_Wrong):
    """Self-trade prevention of the market's rules is ignored."""

    market_class = _TradesWithItself


def _far_from_the_reference(market: Market, symbol: Any) -> int:
    return 0


class CrossesWithoutAReference(_Wrong):
    """Of equal prices always the highest."""

    faults: ClassVar = {(reference_crosses, "_reference_price"): _far_from_the_reference}


def _told_twice(market: Market, stop: Order) -> Iterator[Row]:
    for row in _TRIGGER(market, stop):
        yield row
        if row.kind == ReportKind.TRIGGERED:
            yield row


_TRIGGER = reference_entry._trigger


class StopsTriggerTwice(_Wrong):
    """A stop is reported as triggered twice."""

    faults: ClassVar = {(reference_entry, "_trigger"): _told_twice}


class _ToTheTail(Market):
    def execute(self, incoming: Order, resting: Order, qty: int) -> list[Row]:
        rows = super().execute(incoming, resting, qty)
        if resting.level and resting.leaves:
            queue = resting.level.queue(resting)
            queue[resting.ref] = queue.pop(resting.ref)
        return rows


class LosesPriorityOnAFill(_Wrong):
    """What is left of an order that traded goes to the tail."""

    market_class = _ToTheTail


class StopsFireBackwards(_Wrong):
    """Stops trigger in the order in which they came."""

    faults: ClassVar = {(reference_entry, "_by_price"): lambda symbol: list(symbol.stops.values())}


class StopsDoNotTrail(_Wrong):
    """A trailing stop stays where it is."""

    faults: ClassVar = {(reference_entry, "_follow"): lambda market, stop, last: None}


class BlocksArePartial(_Wrong):
    """An all-or-none order is like any other."""

    faults: ClassVar = {
        (reference_entry, "decides"): lambda market, order, limit: False,
        (reference_entry, "try_blocks"): lambda market, symbol: iter(()),
    }


class BlocksAreStuck(_Wrong):
    """What an all-or-none order held apart stays so when it leaves."""

    faults: ClassVar = {(reference_entry, "try_blocks"): lambda market, symbol: iter(())}


class SlipsWithoutLimit(_Wrong):
    """A market order goes as far as there is something."""

    faults: ClassVar = {
        (reference_entry, "limit_of"): lambda market, order: (
            reference_trading.limit_of(market, order) if order.price else 0 if order.side == SELL else 2**40
        )
    }


class MassCancelsEveryone(_Wrong):
    """Whoever asks."""

    faults: ClassVar = {
        (reference_changes, "_CHOSEN"): {
            **reference_changes._CHOSEN,
            ord("M"): (33, lambda order, c: c.locate in (0, order.locate) and c.side in (0, order.side)),
        }
    }


class ForgetsTheRest(ReferenceBook):
    """A command that has more to report than there is room for is cut off."""

    @classmethod
    def matcher(cls, session: Session, rules: MarketRules) -> ReferenceMatcher:
        return _CutsOff(session, rules)


class _CutsOff(ReferenceMatcher):
    def submit(self, commands: Commands, reports: Reports) -> Any:
        done = super().submit(commands, reports)
        if self._running is not None:
            for _ in self._running:
                pass
            self._running = None
        return done._replace(more=False)


__all__ = [
    "BlocksArePartial", "BlocksAreStuck", "CrossesWithoutAReference", "FillsOrKillsSome",
    "ForgetsTheMarketsPolicy", "ForgetsTheRest", "GrowsInPlace", "IcebergsKeepTheirPlace",
    "LosesPriorityOnAFill", "MassCancelsEveryone", "SharesOutRoundedUp", "SlipsWithoutLimit",
    "StopsDoNotTrail", "StopsFireBackwards",
    "StopsTriggerTwice",
]  # fmt: skip
