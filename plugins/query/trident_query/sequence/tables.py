"""Sequences in a table: any Arrow table or dict of columns, with its partition and order columns named.

question = parse_sql("SELECT … FROM t MATCH_RECOGNIZE (…)").question
rows = table_rows(question, table)          # what the question asks for
spans = table_spans(question, table)        # i64[n, 4]: partition, first row, last row, 1 or 0 (empty)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import UsageError
from trident_query.sequence.alphabet import BITS_MAX, Alphabet
from trident_query.sequence.automaton import FOUND, Anchored, Threads, label
from trident_query.sequence.code import TakeRow, compile_pattern
from trident_query.sequence.columns import Columnar, NotColumnarError, Rows, columns_of
from trident_query.sequence.measures import Scope
from trident_query.sequence.native import strip_own
from trident_query.sequence.passes import Pass
from trident_query.sequence.question import Question, SequenceError, Skip
from trident_query.sequence.question import Rows as Mode
from trident_query.sequence.reference import Match, Matcher, output
from trident_query.sequence.within_pass import WithinPass
from trident_query.where.tree import Call, Column, Node, walk


@dataclass(slots=True)
class Prepared:
    """A table in partition order with the letters of its rows."""

    question: Question
    rows: Rows
    #: First row of each partition, and the row behind the last one.
    bounds: NDArray[np.int64]
    threads: Threads
    bits: NDArray[np.uint32]
    interpreted: list[str]

    def partition_of_rows(self) -> NDArray[np.int32]:
        return np.repeat(np.arange(len(self.bounds) - 1, dtype=np.int32), np.diff(self.bounds))


def is_linear(tree: Node, name: str) -> bool:
    """Does a condition of a variable depend only on rows at fixed places around the row at hand?"""
    own = strip_own(tree, name)
    for leaf in walk(own):
        if isinstance(leaf, Column) and leaf.variable is not None:
            return False
        if isinstance(leaf, Call) and leaf.name not in ("prev", "next", "coalesce", "lower", "upper", "abs"):
            return False
    return True


def prepare(question: Question, table: Any) -> Prepared:
    """Sort, ask the conditions, and name what is not linear. Raises SequenceError for such a condition."""
    question.check()
    for name, tree in question.define.items():
        if not is_linear(tree, name):
            raise SequenceError(
                f"the condition of {name} depends on the match so far: {question.texts.get(name, '')}",
                hint="only rows at fixed places are linear; allow backtracking to try it with a cap on steps",
            )
    columns, valid = columns_of(table)
    order, bounds = _sorted(question, columns, valid)
    rows = Rows(columns, valid, order)
    names = list(question.define)
    if len(names) > BITS_MAX:
        raise SequenceError(f"{len(names)} conditions, more than {BITS_MAX}, the cap on sequences")
    spans = np.diff(bounds)
    columnar = Columnar(rows, np.repeat(bounds[:-1], spans), np.repeat(bounds[1:], spans))
    bits, interpreted = np.zeros(len(rows), np.uint32), []
    for bit, name in enumerate(names):
        own = strip_own(question.define[name], name)
        try:
            holds = columnar.condition(own)
        except NotColumnarError:
            interpreted.append(name)
            holds = _interpreted(question, rows, bounds, name, own)
        bits |= holds.astype(np.uint32) << np.uint32(bit)
    threads = Threads(compile_pattern(question.pattern), {name: bit for bit, name in enumerate(names)})
    return Prepared(question, rows, bounds, threads, bits, interpreted)


def _interpreted(
    question: Question, rows: Rows, bounds: NDArray[np.int64], name: str, tree: Node
) -> NDArray[np.bool_]:
    """A condition asked row by row; linear all the same."""
    holds = np.zeros(len(rows), np.bool_)
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        partition = rows[start:stop]
        for at in range(stop - start):
            scope = Scope(partition, at, [name], at, question.subsets, 1)
            holds[start + at] = scope.value(tree) is True
    return holds


def _sorted(question: Question, columns: Any, valid: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows by partition and order (stable, nulls last), and where partitions begin."""
    n = len(next(iter(columns.values()))) if columns else 0
    for name in (*question.partition, *(column for column, _ in question.order)):
        if name not in columns:
            raise UsageError(f"no column {name!r}", hint=f"there are {', '.join(list(columns)[:20])}")
    keys: list[NDArray[Any]] = []
    for name, descending in reversed(question.order):
        codes = _codes(columns[name], valid.get(name))
        keys.append(-codes if descending else codes)
    partition = [_codes(columns[name], valid.get(name)) for name in question.partition]
    keys += reversed(partition)
    order = np.lexsort(keys) if keys else np.arange(n)
    changes = np.zeros(max(n - 1, 0), np.bool_)
    for codes in partition:
        changes |= np.diff(codes[order]) != 0
    bounds = np.concatenate([[0], np.flatnonzero(changes) + 1, [n]]) if n else np.zeros(1, np.int64)
    return order.astype(np.int64), bounds.astype(np.int64)


def _codes(column: NDArray[Any], there: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """Ranks of the values; null ranks last."""
    if column.dtype.kind == "O":
        values = sorted({value for value in column if value is not None})
        rank = {value: place for place, value in enumerate(values)}
        return np.array([rank.get(value, len(values)) for value in column], np.int64)
    codes = np.unique(column, return_inverse=True)[1].astype(np.int64)
    if there is not None:
        codes[~there] = len(column)
    return codes


def table_spans(question: Question, table: Any) -> NDArray[np.int64]:
    """i64[n, 4]: partition, first and last row (in partition order), 1, or 0 for an empty match; by
    partition.

    SKIP past the last row only: for the others `table_rows`.
    """
    if question.skip is not Skip.PAST_LAST:
        raise SequenceError(f"SKIP {question.skip.value} has no streaming pass", hint="table_rows answers it")
    return _spans(prepare(question, table))


def _spans(made: Prepared) -> NDArray[np.int64]:
    question, n = made.question, len(made.rows)
    if not n:
        return np.zeros((0, 4), np.int64)
    alphabet = Alphabet(max(len(question.define), 1))
    keys = made.partition_of_rows()
    count = len(made.bounds) - 1
    first = np.zeros(1, np.int64)
    if question.within is None:
        walk: Pass | WithinPass = Pass(made.threads, alphabet)
        found = walk.feed(made.bits, keys, first, key_count=count)
    else:
        walk = WithinPass(made.threads, alphabet, question.within)
        times = made.rows.columns[question.clock][made.rows.order].astype(np.int64)
        found = walk.feed(made.bits, keys, first, key_count=count, times=times)
    found = np.concatenate([found, walk.finish()])
    return found[np.lexsort((found[:, 1], found[:, 0]))][:, :4]


class _FastMatcher(Matcher):
    """The reference's loop over starting rows, with matches that were found before."""

    def __init__(self, made: Prepared, start: int, stop: int, ends: dict[int, int] | list[int]) -> None:
        super().__init__(made.question, made.rows[start:stop])
        self.made, self.offset, self.ends = made, start, ends

    def match_at(self, start: int) -> Match | None:
        end = self.ends.get(start, -1) if isinstance(self.ends, dict) else self.ends[start]
        if end < 0:
            return None
        bits = self.made.bits[self.offset + start : self.offset + end].tolist()
        threads = self.made.threads
        taken = label(threads, bits, first=start == 0, last=end == len(self.rows))
        steps = [step for where in taken if isinstance(step := threads.program[where], TakeRow)]
        return Match(self.number + 1, start, end, [s.name for s in steps], [s.hidden for s in steps])


def table_rows(question: Question, table: Any, *, allow_backtracking: bool = False) -> list[dict[str, Any]]:
    """The output rows (see `trident_query.sequence.reference.output`).

    With `allow_backtracking` a condition that depends on the match so far is tried by the reference, within
    `question.steps_max` steps for each partition; without it, it is refused (SequenceError).
    """
    if allow_backtracking and not all(is_linear(tree, name) for name, tree in question.define.items()):
        from trident_query.sequence.reference import answer

        columns, valid = columns_of(table)
        count = len(next(iter(columns.values()))) if columns else 0
        return answer(question, list(Rows(columns, valid, np.arange(count))))
    made = prepare(question, table)
    return [row for start, matcher in _matchers(made) for found in matcher.matches()
            for row in output(question, matcher.rows, found)]  # fmt: skip


def _matchers(made: Prepared) -> Iterator[tuple[int, Matcher]]:
    past = made.question.skip is Skip.PAST_LAST
    spans = _spans(made) if past else np.zeros((0, 4), np.int64)
    cuts = np.searchsorted(spans[:, 0], np.arange(len(made.bounds)))
    for key, (start, stop) in enumerate(
        zip(made.bounds[:-1].tolist(), made.bounds[1:].tolist(), strict=True)
    ):
        if past:
            mine = spans[cuts[key] : cuts[key + 1]]
            if not len(mine) and made.question.rows is not Mode.UNMATCHED:
                continue
            ends: dict[int, int] | list[int] = {
                first - start: last - start + kind for _, first, last, kind in mine.tolist()
            }
        else:
            ends = all_ends(made, start, stop)
        yield start, _FastMatcher(made, start, stop, ends)


def all_ends(made: Prepared, start: int, stop: int) -> list[int]:
    """For each row of a partition the end of the match that starts there, or -1.

    Without WITHIN in one pass from the back: where the preferred match goes from each thread is known from
    where it goes one row later. With WITHIN each start is followed through its window.
    """
    bits = made.bits[start:stop].tolist()
    if made.question.within is not None:
        times = made.rows.columns[made.question.clock][made.rows.order[start:stop]].tolist()
        return _window_ends(made.threads, bits, times, made.question.within)
    threads, n = made.threads, len(bits)
    waiting = [where for where, step in enumerate(threads.program) if isinstance(step, TakeRow)]
    later: dict[int, int] = {}
    ends = [-1] * n
    for at in range(n - 1, -1, -1):
        here: dict[int, int] = {}
        for where in waiting:
            if threads.satisfied(where, bits[at]):
                here[where] = _best(threads.closure(where + 1, end=at == n - 1), later, at + 1)
        ends[at] = _best(threads.closure(0, start=at == 0), here, at)
        later = here
    return ends


def _best(targets: tuple[int, ...], known: dict[int, int], at: int) -> int:
    for target in targets:
        end = at if target == FOUND else known.get(target, -1)
        if end >= 0:
            return end
    return -1


def _window_ends(threads: Threads, bits: list[int], times: list[int], within: int) -> list[int]:
    machine, ends = Anchored(threads), []
    for start in range(len(bits)):
        state, found = machine.start(first=start == 0)
        end, at = start if found else -1, start
        while state and at < len(bits) and times[at] - times[start] <= within:
            state, found = machine.step(state, bits[at])
            at += 1
            end = at if found else end
        if state and at == len(bits) and machine.finish(state):
            end = at
        ends.append(end)
    return ends
