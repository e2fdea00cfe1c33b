"""The reference of row patterns: SQL:2016's semantics by backtracking, written to be read. It is the law.

A search starts at each row of a partition in turn. From a starting row the pattern is followed in the order
of preference (the first branch of an alternation, one more iteration of a greedy loop, none of a lazy one)
and backs up where a row does not satisfy the variable's condition; the first way that reaches the end is the
match. Conditions may look at the match so far: the row at hand is mapped to the variable tentatively while
its condition is asked. Then the search goes on where AFTER MATCH SKIP says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from trident_core.session import Session
from trident_query.sequence.code import At, Enter, Found, Jump, TakeRow, Try, compile_pattern
from trident_query.sequence.measures import Scope
from trident_query.sequence.pattern import ANY
from trident_query.sequence.question import Question, Rows, SequenceError, Skip
from trident_query.where.fields import FIELDS
from trident_query.where.reference import field_of

Row = Mapping[str, Any]


class EventRow(Mapping[str, Any]):
    """An event as a row: its fields (`trident_query.where.fields`) as plain values."""

    def __init__(self, event: Any, session: Session) -> None:
        self.event, self.session = event, session

    def __getitem__(self, name: str) -> Any:
        if name not in FIELDS:
            raise KeyError(name)
        return field_of(self.event, name, self.session)

    def __iter__(self) -> Iterator[str]:
        return iter(FIELDS)

    def __len__(self) -> int:
        return len(FIELDS)


@dataclass(slots=True)
class Match:
    """Rows [start, end) of a partition; `labels` and `hidden`, one for each. Empty: start == end."""

    number: int
    start: int
    end: int
    labels: list[str] = field(default_factory=list)
    hidden: list[bool] = field(default_factory=list)


class Matcher:
    """Finds the matches of one partition, given as its rows in order."""

    def __init__(self, question: Question, rows: Sequence[Row]) -> None:
        self.question, self.rows = question, rows
        self.labels: list[str] = []
        self.hidden: list[bool] = []
        self.program = compile_pattern(question.pattern)
        self.start = self.number = self.steps = 0

    def matches(self) -> Iterator[Match | int]:
        """The matches in order; between them the index of each row that starts none and is in none so far."""
        at, covered = 0, 0
        while at < len(self.rows):
            found = self.match_at(at)
            if found is None:
                if at >= covered:
                    yield at
                at += 1
                continue
            if self._absent(found):
                self.number = found.number
                yield found
            covered = max(covered, found.end)
            at = self._next(found)

    def match_at(self, start: int) -> Match | None:
        """The preferred match that starts at a row."""
        self.start, self.labels, self.hidden = start, [], []
        # What to try next, the best last: an instruction, a row, where each loop's iteration began.
        pending: list[tuple[int, int, dict[int, int]]] = [(0, start, {})]
        while pending:
            where, at, loops = pending.pop()
            del self.labels[at - start :], self.hidden[at - start :]
            end = self._follow(where, at, loops, pending)
            if end is not None:
                return Match(self.number + 1, start, end, list(self.labels), list(self.hidden))
        return None

    def _follow(
        self, where: int, at: int, loops: dict[int, int], pending: list[tuple[int, int, dict[int, int]]]
    ) -> int | None:
        """Follow the pattern until it ends (then the row that it ended at) or cannot go on (then None)."""
        while True:
            step = self.program[where]
            where += 1
            if isinstance(step, Found):
                return at
            if isinstance(step, TakeRow):
                if not self._take(step, at):
                    return None
                at += 1
            elif isinstance(step, Try):
                pending.append((step.second, at, loops))
                where = step.first
            elif isinstance(step, Jump):
                where = step.to
            elif isinstance(step, At):
                if at != (len(self.rows) if step.end else 0):
                    return None
            elif isinstance(step, Enter):
                loops = {**loops, step.loop: at}
            elif loops[step.loop] != at:
                where = step.head

    def _take(self, step: TakeRow, at: int) -> bool:
        """Map one row to a variable, if its condition holds."""
        self.steps += 1
        if self.steps > self.question.steps_max:
            raise SequenceError(
                f"more than {self.question.steps_max:,} steps of backtracking, the cap, at row {at}",
                hint="make conditions that look only at the row and the rows before it, or raise --steps",
            )
        if at == len(self.rows) or self._too_late(at):
            return False
        self.labels.append(step.name)
        self.hidden.append(step.hidden)
        return self._holds(step.name, at)

    def _too_late(self, at: int) -> bool:
        within, clock = self.question.within, self.question.clock
        return within is not None and self.rows[at][clock] - self.rows[self.start][clock] > within

    def _holds(self, name: str, at: int) -> bool:
        condition = self.question.define.get(name)
        if name == ANY or condition is None:
            return True
        scope = Scope(self.rows, self.start, self.labels, at, self.question.subsets, self.number + 1)
        return scope.value(condition) is True

    def _absent(self, found: Match) -> bool:
        """Is what must not follow absent?"""
        absence, clock = self.question.absence, self.question.clock
        if absence is None or found.end == found.start:
            return True
        until = self.rows[found.end - 1][clock] + absence.within
        condition = self.question.define.get(absence.variable)
        for at in range(found.end, len(self.rows)):
            if self.rows[at][clock] > until:
                return True
            scope = Scope(self.rows, at, [absence.variable], at, self.question.subsets, 1)
            if condition is None or scope.value(condition) is True:
                return False
        return True

    def _next(self, found: Match) -> int:
        """The row that the search goes on from."""
        skip, name = self.question.skip, self.question.skip_to
        if found.end == found.start or skip is Skip.NEXT_ROW:
            return found.start + 1
        if skip is Skip.PAST_LAST:
            return found.end
        names = self.question.subsets.get(name, (name,))
        places = [at for at, label in enumerate(found.labels) if label in names]
        if not places:
            raise SequenceError(f"AFTER MATCH SKIP failed: pattern variable {name} is not present in match")
        place = places[0] if skip is Skip.FIRST else places[-1]
        if place == 0:
            raise SequenceError("AFTER MATCH SKIP failed: cannot skip to first row of match")
        return found.start + place


def partitions(question: Question, rows: Sequence[Row]) -> list[list[Row]]:
    """The rows by partition (in the order of their keys), each in the order that is asked for; nulls last."""
    ordered = list(rows)
    for column, descending in reversed(question.order):
        ordered.sort(key=lambda row: _sort_key(row[column]), reverse=descending)
    if not question.partition:
        return [ordered] if ordered else []

    def key(row: Row) -> tuple[Any, ...]:
        return tuple(_sort_key(row[column]) for column in question.partition)

    ordered.sort(key=key)
    return [list(group) for _, group in groupby(ordered, key=key)]


def _sort_key(value: Any) -> tuple[bool, Any]:
    return value is None, 0 if value is None else value


def answer(question: Question, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """All output rows of a question: see `output`."""
    question.check()
    made: list[dict[str, Any]] = []
    for partition in partitions(question, rows):
        for found in Matcher(question, partition).matches():
            made += output(question, partition, found)
    return made


def output(question: Question, rows: Sequence[Row], found: Match | int) -> Iterator[dict[str, Any]]:
    """The output rows of a match, or of a row without one.

    One row per match: partition columns, measures. All rows: partition columns, order columns, measures, then
    the other columns of the row.
    """
    mode = question.rows
    if isinstance(found, int):
        if mode is Rows.UNMATCHED:
            yield _row(question, rows[found], {measure.name: None for measure in question.measures})
        return
    if mode is Rows.ONE:
        first = rows[found.start]
        values = Scope.of_match(rows, found, question.subsets, found.end - 1).measures(question.measures)
        yield {**{column: first[column] for column in question.partition}, **values}
        return
    if found.start == found.end:
        if mode is not Rows.OMIT_EMPTY:
            scope = Scope.of_match(rows, found, question.subsets, found.start - 1)
            yield _row(question, rows[found.start], scope.measures(question.measures))
        return
    for at in range(found.start, found.end):
        if not found.hidden[at - found.start]:
            scope = Scope.of_match(rows, found, question.subsets, at)
            yield _row(question, rows[at], scope.measures(question.measures))


def _row(question: Question, row: Row, measures: Mapping[str, Any]) -> dict[str, Any]:
    leading = [*question.partition, *(column for column, _ in question.order)]
    made = {column: row[column] for column in leading}
    made.update(measures)
    made.update({column: value for column, value in row.items() if column not in made})
    return made
