"""Where to look for a pattern in a text: windows of bytes that every match has at a fixed distance.

The byte at distance j from the start of a match, j below the shortest match's length, is read by one of the
positions that are j steps behind a first one. So every match shows, at each distance d, one of few rows of
classes, and the rarest row of up to three is what the scan looks for. How rare is judged by a fixed table of
how often bytes occur in logs and market data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trident_query.ast import ByteSet
from trident_query.glushkov import Glushkov
from trident_query.llvm.code import FALSE, TRUE, Code, RefusedError

#: Bytes of the window that every position is tested with, and of the longer prefix that is tested after it.
WINDOW_MAX: Final = 3
PREFIX_MAX: Final = 12
#: Positions of a text, of all, at which a match may seem to begin; beyond, an automaton is faster.
RATE_MAX: Final = 1 / 24
#: Buckets of rows in the tables of the window: bits of a byte.
BUCKETS: Final = 8
#: Rows that are told apart; beyond, the window is made of the classes at each distance alone.
ROWS_MAX: Final = 4_096

Row = tuple[ByteSet, ...]


def _frequencies() -> tuple[float, ...]:
    weights = [0.01] * 128 + [0.02] * 128
    for rank, letter in enumerate(b"etaoinshrdlcumwfgypbvkjxqz"):
        weights[letter] = 7.0 * 0.86**rank
        weights[letter - 32] = 0.6 + 1.4 * 0.9**rank
    for byte in range(33, 65):
        weights[byte] = 0.4
    for digit in b"0123456789":
        weights[digit] = 1.5
    for byte, weight in ((32, 14.0), (10, 1.5), (0, 2.0), (44, 1.5), (46, 1.5), (58, 1.0)):
        weights[byte] = weight
    total = sum(weights)
    return tuple(weight / total for weight in weights)


#: How often each byte is taken to occur.
FREQUENCY: Final = _frequencies()


@dataclass(slots=True)
class Prefix:
    """The beginnings of a pattern's matches. `at[j]`: the positions at distance j from the start.

    `shortest`: bytes of the shortest match, at least 1. `fixed`: all matches are that long. `before[q]`: what
    comes just before position q.
    """

    automaton: Glushkov
    at: list[list[int]]
    shortest: int
    fixed: bool
    before: dict[int, list[int]]

    @property
    def exact(self) -> bool:
        """The prefix is the pattern: where it is found, a match begins, and nothing else can be said."""
        return self.fixed and self.shortest <= PREFIX_MAX and not self.automaton.conditional

    def rate(self, first: int, count: int) -> float:
        """How often, at most, a window of `count` bytes at distance `first` is expected to be found."""
        values = self.automaton.values
        chance: dict[int, float] = {}
        for distance in range(first, first + count):
            following = {}
            for q in self.at[distance]:
                come = 1.0
                if distance > first:
                    come = sum(chance[p] for p in self.before.get(q, ()) if p in chance)
                following[q] = come * sum(FREQUENCY[byte] for byte in values[q])
            chance = following
        return min(sum(chance.values()), 1.0)

    def mask(self, code: Code, planes: list[str], first: int) -> str:
        """Where a window is found: planes[j] are the bytes at distance first + j."""
        values = self.automaton.values
        nodes: dict[int, str] = {}
        for offset, plane in enumerate(planes):
            entered: dict[str, ByteSet] = {}
            following: dict[int, str] = {}
            for q in self.at[first + offset]:
                come = TRUE
                if offset:
                    come = FALSE
                    for p in self.before.get(q, ()):
                        come = code.either(come, nodes.get(p, FALSE))
                if offset + 1 < len(planes):
                    following[q] = code.both(code.member(plane, values[q]), come)
                elif come != FALSE:
                    entered[come] = entered.get(come, frozenset()) | values[q]
            nodes = following
        found = FALSE
        for come, together in entered.items():
            found = code.either(found, code.both(code.member(planes[-1], together), come))
        return found

    def rows(self, first: int, count: int) -> list[Row]:
        """The rows of classes that a window may show; one row, of all classes, if they are too many."""
        values = self.automaton.values
        rows: dict[int, set[Row]] = {q: {(values[q],)} for q in self.at[first]}
        for distance in range(first + 1, first + count):
            following: dict[int, set[Row]] = {}
            total = 0
            for q in self.at[distance]:
                found = {(*row, values[q]) for p in self.before.get(q, ()) for row in rows.get(p, ())}
                total += len(found)
                following[q] = found
                if total > 16 * ROWS_MAX:
                    break
            rows = following
            if total > 16 * ROWS_MAX:
                return [self._union(first, count)]
        distinct = set().union(*rows.values())
        return (
            sorted(distinct, key=lambda row: [sorted(part) for part in row])
            if (len(distinct) <= ROWS_MAX)
            else [self._union(first, count)]
        )

    def _union(self, first: int, count: int) -> Row:
        values = self.automaton.values
        return tuple(
            frozenset().union(*{values[q] for q in self.at[distance]})
            for distance in range(first, first + count)
        )


def prefix(automaton: Glushkov) -> Prefix:
    """The beginnings of the matches. Raises RefusedError (cap "empty") where the empty text can match."""
    if any(automaton.empty):
        raise RefusedError("the pattern matches the empty text, so it matches everywhere", cap="empty")
    at = [sorted(set().union(*automaton.first))]
    before: dict[int, list[int]] = {}
    shortest = 0
    while at[-1] and len(at) <= PREFIX_MAX:
        if any(automaton.accepts[q] for q in at[-1]):
            shortest = len(at)
            break
        at.append(_next(automaton, at[-1]))
    shortest = shortest or len(at)
    if not at[0]:
        raise RefusedError("nothing matches the pattern", cap="nothing")
    at = at[:shortest]
    for distance in range(len(at) - 1):
        members = set(at[distance + 1])
        for p in at[distance]:
            for q in automaton.follow[p]:
                if q in members:
                    before.setdefault(q, []).append(p)
    before = {q: sorted(set(sources)) for q, sources in before.items()}
    fixed = shortest <= PREFIX_MAX and not _next(automaton, at[-1])
    return Prefix(automaton, at, shortest, fixed, before)


def _next(automaton: Glushkov, positions: list[int]) -> list[int]:
    lists = {id(automaton.follow[p]): automaton.follow[p] for p in positions}
    return sorted(set().union(*lists.values()))


@dataclass(frozen=True, slots=True)
class Window:
    """`count` bytes at distance `first` from the start of a match, expected at `rate` of all positions."""

    first: int
    count: int
    rate: float


def best_window(found: Prefix) -> Window:
    """The rarest window of up to WINDOW_MAX bytes; of equal ones the first."""
    length = min(found.shortest, PREFIX_MAX)
    count = min(WINDOW_MAX, length)
    windows = [Window(first, count, found.rate(first, count)) for first in range(length - count + 1)]
    return min(windows, key=lambda window: window.rate)


def buckets(rows: list[Row]) -> list[Row]:
    """At most BUCKETS rows that together show all of `rows`: neighbours in their order share one."""
    made = []
    for number in range(min(BUCKETS, len(rows))):
        part = rows[number * len(rows) // BUCKETS : (number + 1) * len(rows) // BUCKETS]
        if len(rows) <= BUCKETS:
            part = [rows[number]]
        made.append(tuple(frozenset().union(*column) for column in zip(*part, strict=True)))
    return made
