"""The reference over events: partitions by plain dictionaries, each searched by backtracking when all is
there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Query
from trident_core.dtypes import MATCHED, Events, Matched
from trident_core.errors import UsageError
from trident_core.event_types import OF_ORDERS
from trident_core.session import Session
from trident_query.sequence.events import EventSequence
from trident_query.sequence.native import is_local, strip_own
from trident_query.sequence.question import Question, SequenceError
from trident_query.sequence.reference import EventRow, Match, Matcher
from trident_query.where.fields import Checker

#: Most events that it takes: they are all kept.
EVENTS_MAX: Final = 2_000_000


class OrderBook:
    """Which order each event is of, written to be read: see `trident_query.sequence.keys`."""

    def __init__(self) -> None:
        self.order_of: dict[int, int] = {}
        self.left: dict[int, int] = {}
        self.firm: dict[int, str] = {}
        self.count = 0

    def of(self, event: Any) -> int | None:
        """A number for the event's order, never used again."""
        kind, ref = int(event["type"]), int(event["ref"])
        if kind not in OF_ORDERS or ref == 0:
            return None
        if ref not in self.order_of:
            self.order_of[ref] = self.count
            self.count += 1
        order = self.order_of[ref]
        letter = chr(kind)
        if letter in "AFU":
            self.left[order] = int(event["qty"])
        elif letter != "D" and order in self.left:
            self.left[order] -= int(event["qty"])
        if letter == "F":
            self.firm[order] = event["aux"].tobytes()[:4].rstrip(b"\0 ").decode("utf-8", "surrogateescape")
        if letter == "U" and int(event["ref2"]):
            del self.order_of[ref]
            self.order_of[int(event["ref2"])] = order
        elif letter in "DU" or (letter in "ECX" and order in self.left and self.left[order] <= 0):
            del self.order_of[ref]
        return order


class SlowSequence:
    """A search by the reference; `feed` keeps the events, `finish` answers. No state can be saved."""

    def __init__(
        self, question: Question, session: Session, per: str = "order", *, texts: Query | None = None,
        count_only: bool = False,
    ) -> None:  # fmt: skip
        question.check()
        self.question, self.session, self.per = question, session, per
        self.batches: list[Events] = []
        self.total = self.last_seq = self.kept = 0
        self.names: dict[int, int | str] = {}
        self._fast = (question, session, per, texts)
        self._again: EventSequence | None = None
        for name, text in question.texts.items():
            own = strip_own(question.define[name], name)
            if is_local(own):
                Checker(text, prev=True).condition(own)

    def feed(self, events: Events) -> Matched:
        self.kept += len(events)
        if self.kept > EVENTS_MAX:
            raise SequenceError(f"more than {EVENTS_MAX:,} events, the cap of the reference")
        self.batches.append(events.copy())
        self.last_seq = int(events["seq"][-1]) if len(events) else self.last_seq
        return np.empty(0, MATCHED)

    def finish(self) -> Matched:
        made: list[tuple[int, int, int, int, int]] = []
        for key, events in self._partitions().items():
            rows = [EventRow(event, self.session) for event in events]
            for found in Matcher(self.question, rows).matches():
                if isinstance(found, Match):
                    empty = found.start == found.end
                    first, last = rows[found.start], rows[max(found.end - 1, found.start)]
                    made.append(
                        (self._shown(key, events), first["seq"], last["seq"], last["ts"], 0 if empty else 1)
                    )
        self.total += len(made)
        made.sort(key=lambda one: (one[2], one[1]))
        return np.array(made, MATCHED)

    def _partitions(self) -> dict[Any, list[Any]]:
        orders = OrderBook()
        made: dict[Any, list[Any]] = {}
        for events in self.batches:
            for event in events:
                key: Any = "all"
                if self.per in ("order", "mpid"):
                    key = orders.of(event)
                    if self.per == "mpid":
                        key = None if key is None else orders.firm.get(key)
                elif self.per == "symbol":
                    key = int(event["locate"]) or None
                if key is not None:
                    made.setdefault(key, []).append(event)
        self.batches.clear()
        return made

    def _shown(self, key: Any, events: list[Any]) -> int:
        """The key of MATCHED: of an order the reference it began with (as an i64), of a firm its number."""
        if self.per == "order":
            return int(events[0]["ref"].astype(np.int64))
        if self.per == "mpid":
            number = next((n for n, name in self.names.items() if name == key), len(self.names))
            self.names[number] = key
            return number
        return int(key) if self.per == "symbol" else 0

    def value(self, key: int) -> int | str:
        if self.per == "order":
            return key % (1 << 64)
        if self.per == "symbol":
            return self.session.directory.symbol(key) or key
        return self.names.get(key, "all")

    def _labelling(self) -> EventSequence:
        """For the labels of matches that are known; what they are is the reference's own answer."""
        if self._again is None:
            question, session, per, texts = self._fast
            self._again = EventSequence(question, session, per, texts=texts)
        return self._again

    def partition(self, events: Events) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        return self._labelling().partition(events)

    def rows(self, events: Events, letters: NDArray[np.uint32]) -> list[dict[str, Any]]:
        return self._labelling().rows(events, letters)

    def save(self, path: Path) -> None:
        raise UsageError("the reference saves no state", hint="use the engine numba")

    def load(self, path: Path) -> None:
        raise UsageError("the reference saves no state", hint="use the engine numba")

    def explain(self) -> dict[str, Any]:
        return {"engine": "reference: backtracking, all events kept", "conditions": dict(self.question.texts)}
