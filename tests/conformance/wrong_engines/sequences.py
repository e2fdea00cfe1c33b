"""Sequence engines that are wrong in one way each."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import MATCHED, Events, Matched
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_query.sequence.engines import NumbaSequences, ReferenceSequences
from trident_query.sequence.events import EventSequence
from trident_query.sequence.slow_events import SlowSequence
from trident_query.where.plan import Bounds
from trident_query.where.predicate import SlowPredicate
from trident_query.where.reference import Lookup, Value, evaluate, field_of
from trident_query.where.tree import Binary, Node, Unary


class RightSequences(NumbaSequences):
    """A sequence engine without a mistake."""


# --- conditions ---------------------------------------------------------------------------------------------


class _Holds(SlowPredicate):
    """A condition that is asked of one event at a time, in another way."""

    value: Callable[[Node, Lookup], Value] = staticmethod(evaluate)
    field: Callable[..., Value] = staticmethod(field_of)

    def holds(self, event: Any) -> bool:
        def lookup(leaf: Any) -> Value:
            return type(self).field(event, leaf.name, self.session)

        return type(self).value(self.tree, lookup) is True


def _two_valued(node: Node, lookup: Lookup) -> bool:
    if isinstance(node, Unary) and node.sign == "not":
        return not _two_valued(node.item, lookup)
    if isinstance(node, Binary) and node.sign in ("and", "or"):
        left, right = _two_valued(node.left, lookup), _two_valued(node.right, lookup)
        return left and right if node.sign == "and" else left or right
    return evaluate(node, lookup) is True


def _rounded(event: Any, name: str, session: Session) -> Value:
    value = field_of(event, name, session)
    return value if value is None or isinstance(value, str) else float(value)


class _TwoValued(_Holds):
    value = staticmethod(_two_valued)


class _Rounded(_Holds):
    field = staticmethod(_rounded)


class _TightBounds(SlowPredicate):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.bounds = Bounds(types=frozenset(b"AFECXDU"))


class _Conditions(ReferenceSequences):
    made: type[SlowPredicate]

    def predicate(self, text: str, session: Session, **options: Any) -> SlowPredicate:
        return type(self).made(text, session)


class TakesUnknownForFalse(_Conditions):
    """`not` of what is unknown is true."""

    made = _TwoValued


class ComputesInFloats(_Conditions):
    """Every number is a float."""

    made = _Rounded


class SkipsByOrdersOnly(_Conditions):
    """Bounds that leave out what is no event of an order."""

    made = _TightBounds


# --- patterns -----------------------------------------------------------------------------------------------


class KnowsNoLazyOnes(ReferenceSequences):
    """`*?` is `*`."""

    def search(self, match: str, session: Session, **options: Any) -> SlowSequence:
        return super().search(re.sub(r"([*+?}])\?", r"\1", match), session, **options)


class OneRowIsInManyMatches(ReferenceSequences):
    """Goes on at the next row after a match."""

    def search(self, match: str, session: Session, **options: Any) -> SlowSequence:
        skip = options.pop("skip", "past")
        return super().search(match, session, skip="next" if skip == "past" else skip, **options)


class _Filtered(SlowSequence):
    """Drops some of the matches."""

    kept: Callable[[Matched], NDArray[np.bool_]]

    def finish(self) -> Matched:
        found = super().finish()
        made: Matched = found[self.kept(found)]
        self.total = len(made)
        return made


class LeavesOutEmptyMatches(ReferenceSequences):
    def search(self, *arguments: Any, **options: Any) -> SlowSequence:
        made = super().search(*arguments, **options)
        filtered = _Filtered(made.question, made.session, made.per)
        filtered.kept = lambda found: found["rows"] == 1
        return filtered


class LooksAtTheClockAfterwards(ReferenceSequences):
    """Finds matches as if there were no `within` and drops those that took too long."""

    def search(self, match: str, session: Session, **options: Any) -> SlowSequence:
        limited = super().search(match, session, **options)
        options["within"] = None
        made = super().search(match, session, **options)
        filtered = _Filtered(made.question, made.session, made.per)
        longest = limited.question.within

        def in_time(found: Matched) -> NDArray[np.bool_]:
            if longest is None:
                return np.ones(len(found), np.bool_)
            first = np.array([times[int(seq)] for seq in found["first"]], np.int64)
            return found["last_ts"].astype(np.int64) - first <= longest

        times: dict[int, int] = {}
        feed = filtered.feed

        def noting(events: Events) -> Matched:
            times.update(zip(events["seq"].tolist(), events["ts"].tolist(), strict=True))
            return feed(events)

        filtered.feed = noting  # type: ignore[method-assign]
        filtered.kept = in_time
        return filtered


class WaitsForNobody(ReferenceSequences):
    """`not X within T` looks at the next row only."""

    def search(self, match: str, session: Session, **options: Any) -> SlowSequence:
        absent = re.search(r"\s+not\s+(\w+)\s+within\s+\S+$", match)
        if absent:
            super().search(match, session, **options)  # what is wrong is still refused
            match = match[: absent.start()] + " not " + absent[1] + " within 0ns"
        return super().search(match, session, **options)


class WaitsWithEmptyMatches(ReferenceSequences):
    """`not X within T` leaves out empty matches, too."""

    def search(self, match: str, session: Session, **options: Any) -> SlowSequence:
        made = super().search(match, session, **options)
        filtered = _Filtered(made.question, made.session, made.per)
        filtered.kept = lambda found: (found["rows"] == 1) | (made.question.absence is None)
        return filtered


class RefusesWithoutAWord(ReferenceSequences):
    """Does not say that it is the skip that it does not take."""

    def search(self, match: str, session: Session, **options: Any) -> SlowSequence:
        made = super().search(match, session, **options)
        if options.get("skip", "past") != "past":
            raise UsageError("this cannot be answered")
        return made


# --- partitions ---------------------------------------------------------------------------------------------


class _Altered(SlowSequence):
    alter: Callable[[Events], None]

    def feed(self, events: Events) -> Matched:
        mine = events.copy()
        type(self).alter(mine)
        return super().feed(mine)


def _endless(events: Events) -> None:
    events["qty"][np.isin(events["type"], list(b"AFU"))] = 1 << 62


def _forgotten(events: Events) -> None:
    events["ref2"][events["type"] == ord("U")] = 0


class _Endless(_Altered):
    alter = staticmethod(_endless)


class _Forgotten(_Altered):
    alter = staticmethod(_forgotten)


class _Partitions(ReferenceSequences):
    made: type[SlowSequence]

    def search(self, *arguments: Any, **options: Any) -> SlowSequence:
        made = super().search(*arguments, **options)
        return type(self).made(made.question, made.session, made.per)


class KeepsOrdersThatAreFilled(_Partitions):
    """Only a delete ends an order."""

    made = _Endless


class LosesReplacedOrders(_Partitions):
    """A replace ends the order; what comes under the new reference is another."""

    made = _Forgotten


# --- streams ------------------------------------------------------------------------------------------------


class _Stream(EventSequence):
    """Made of a right one."""

    @classmethod
    def of(cls, made: EventSequence, count_only: bool) -> EventSequence:
        return cls(made.question, made.session, made.per, count_only=count_only)


class _Streams(NumbaSequences):
    made: type[_Stream]

    def search(self, *arguments: Any, count_only: bool = False, **options: Any) -> EventSequence:
        return type(self).made.of(super().search(*arguments, **options), count_only)


class _Forgetful(_Stream):
    def feed(self, events: Events) -> Matched:
        found = super().feed(events)
        return np.concatenate([found, super().finish()])


class _Late(_Stream):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.held: list[Matched] = []

    def feed(self, events: Events) -> Matched:
        self.held.append(super().feed(events))
        return np.empty(0, MATCHED)

    def finish(self) -> Matched:
        return np.concatenate([*self.held, super().finish()])


class _Fresh(_Stream):
    def load(self, path: Path) -> None:
        super().load(path)
        fresh = self.of(self, False)
        self.walk, self.keys, self.kept = fresh.walk, fresh.keys, fresh.kept


class _Trusting(_Stream):
    def fingerprint(self) -> str:
        return "any"


class _Hoarding(_Stream):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.past: list[bytes] = []

    def feed(self, events: Events) -> Matched:
        self.past.append(events.tobytes())
        return super().feed(events)

    def save(self, path: Path) -> None:
        super().save(path)
        with path.open("ab") as file:
            file.write(b"".join(self.past))


class ForgetsBetweenBatches(_Streams):
    """Every batch is a stream of its own."""

    made = _Forgetful


class GivesAllAtTheEnd(_Streams):
    """Holds matches back that are final."""

    made = _Late


class StartsAfreshFromAState(_Streams):
    """A state that is loaded is read, and forgotten."""

    made = _Fresh


class TakesAnyState(_Streams):
    """A state of another question will do."""

    made = _Trusting


class KeepsWhatIsOver(_Streams):
    """Remembers all events."""

    made = _Hoarding
