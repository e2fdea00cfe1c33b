"""Books that are wrong in one way each."""

from __future__ import annotations

import copy
import os
import time
from typing import Any

import numpy as np

from trident_book.reference import ReferenceBook
from trident_core.dtypes import Effects, Events, Levels, Tops


class RightBook(ReferenceBook):
    """A book of a stranger who made no mistake."""


class KeepsPriority(ReferenceBook):
    """Leaves an order that is replaced at its own price where it was in the queue."""

    def _replace(self, row: Any) -> Any:
        old = self._orders.get(row[2])
        level = old.level if old else None
        order = list(level.queue) if level else []
        found = super()._replace(row)
        if level and row[2] != row[3] and level.price == row[4] and row[3] in level.queue and level.queue:
            place = order.index(row[2])
            rest = [ref for ref in level.queue if ref != row[3]]
            for ref in [*rest[:place], row[3], *rest[place:]]:
                level.queue.move_to_end(ref)
        return found


class CancelsToTheRest(ReferenceBook):
    """Reads X as the shares that remain."""

    def _reduce(self, row: Any) -> Any:
        order = self._orders.get(row[2])
        if row[7] == ord("X") and order is not None:
            row = (*row[:5], max(order.qty - row[5], 0), *row[6:])
        return super()._reduce(row)


class PrintsAtTheMessagesPrice(ReferenceBook):
    """Gives C's own price as the price of the level it took shares from."""

    def _reduce(self, row: Any) -> Any:
        symbol, effect = super()._reduce(row)
        return symbol, (row[4], *effect[1:]) if row[7] == ord("C") and effect[5] == 1 else effect


class DropsThePartialBatch(ReferenceBook):
    """A kernel that works on blocks of four and forgets what does not fill the last one."""

    def apply(self, events: Events, tops: Tops | None = None, effects: Effects | None = None) -> int:
        whole = len(events) if len(events) < 4 else len(events) // 4 * 4
        super().apply(events[:whole], tops, effects)
        return len(events)


class TakesUnknownsInSilence(ReferenceBook):
    """Does not count messages for unknown orders."""

    def _unknown_ref(self, seq: int, locate: int) -> Any:
        before = self.anomalies
        self.anomalies = copy.deepcopy(before)
        found = super()._unknown_ref(seq, locate)
        self.anomalies = before
        return found


class StopsInAHalt(ReferenceBook):
    """Ignores orders of a halted symbol."""

    def _add(self, row: Any) -> Any:
        if self.state(row[6]) == ord("H"):
            return self._no_effect(row)
        return super()._add(row)


class LosesPriorityOnAPartialFill(ReferenceBook):
    """An order that was partly executed goes to the tail of its queue."""

    def _reduce(self, row: Any) -> Any:
        found = super()._reduce(row)
        order = self._orders.get(row[2])
        if order is not None and row[7] == ord("E"):
            order.level.queue.move_to_end(order.ref)
        return found


class MatchesWhatCrosses(ReferenceBook):
    """Takes the feed for an exchange: an add that crosses does not rest."""

    def _add(self, row: Any) -> Any:
        touch = self._symbol(row[6]).find_touch()
        bid, asks, ask = touch[0], touch[5], touch[3]
        crosses = (asks and row[4] > ask) if row[8] == ord("B") else (touch[2] and row[4] < bid)
        return self._no_effect(row) if crosses else super()._add(row)


class FirstReferenceWins(ReferenceBook):
    """Ignores an add whose reference is still there."""

    def _add(self, row: Any) -> Any:
        return self._no_effect(row) if row[2] in self._orders else super()._add(row)


class ZeroIsNoReference(ReferenceBook):
    """Uses 0 for an empty slot, and so loses the order of that reference."""

    def _add(self, row: Any) -> Any:
        return self._no_effect(row) if row[2] == 0 else super()._add(row)


class LosesTheMpidOnReplace(ReferenceBook):
    """A replaced order has no MPID."""

    def _replace(self, row: Any) -> Any:
        found = super()._replace(row)
        order = self._orders.get(row[3])
        if order is not None:
            order.mpid = 0
        return found


class ComparesPricesUnsigned(ReferenceBook):
    """Sorts levels as if prices had no sign."""

    def levels(self, locate: int, side: str, n: int = 0) -> Levels:
        found = super().levels(locate, side)
        order = np.argsort(found["price"].astype(np.uint64), kind="stable")
        found = found[order[::-1] if side == "B" else order]
        return found[:n] if n else found


class KeepsAViewOfEvents(ReferenceBook):
    """Reads the locates of the last batch from the caller's array when it is asked."""

    def apply(self, events: Events, tops: Tops | None = None, effects: Effects | None = None) -> int:
        self._last = events
        return super().apply(events, tops, effects)

    def locates(self) -> Any:
        return np.unique(np.concatenate([super().locates(), self._last["locate"]])).astype(np.uint32)


class TradesByTheMessagesLocate(ReferenceBook):
    """Looks a reduced order up only in the symbol that the message names."""

    def _reduce(self, row: Any) -> Any:
        order = self._orders.get(row[2])
        if order is not None and order.level.side.symbol.locate != row[6]:
            return self._unknown_ref(row[0], row[6])
        return super()._reduce(row)


class BringsItsProcessDown(ReferenceBook):
    """Dies of a negative depth, as native code does, and never comes back from a symbol it does not know."""

    def levels(self, locate: int, side: Any, *n: Any) -> Levels:
        if n and n[0] < 0:
            os.abort()
        return super().levels(locate, side, *n)

    def top(self, locate: int) -> Tops:
        while not self._orders:
            time.sleep(1)
        return super().top(locate)
