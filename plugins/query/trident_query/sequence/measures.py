"""Values inside a match: columns of variables, navigation, aggregates. Measures, and conditions that need
them.

`PREV` and `NEXT` move by rows of the partition from the row that their argument is of; `FIRST` and `LAST` by
rows of the variable, FIRST from the front of the whole match (as Trino has it). A column without a variable
is of the last row of the match so far; `B.price` of the last row that is mapped to B. "Running" sees the
match up to the row at hand, "final" all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from trident_core.errors import UsageError
from trident_query.where.reference import evaluate
from trident_query.where.tree import Call, Column, Literal, Node, children

if TYPE_CHECKING:
    from trident_query.sequence.question import Measure
    from trident_query.sequence.reference import Match

Row = Mapping[str, Any]

NAVIGATION: Final = frozenset({"first", "last", "prev", "next"})
PLAIN: Final[Mapping[str, Callable[..., Any]]] = {
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "lower": lambda text: None if text is None else str(text).lower(),
    "upper": lambda text: None if text is None else str(text).upper(),
    "abs": lambda value: None if value is None else abs(value),
}


def _average(values: list[Any]) -> float | None:
    return float(Fraction(sum(map(Fraction, values)), len(values))) if values else None


AGGREGATES: Final[Mapping[str, Callable[[list[Any]], Any]]] = {
    "count": len,
    "sum": lambda values: sum(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "avg": _average,
    "array_agg": list,
    "arbitrary": lambda values: values[0] if values else None,
}
PAIRED: Final = frozenset({"max_by", "min_by"})
#: Functions that say something of the match.
MATCH: Final = frozenset({"classifier", "match_number"})
FUNCTIONS: Final = NAVIGATION | PLAIN.keys() | AGGREGATES.keys() | PAIRED | MATCH


@dataclass(slots=True)
class Scope:
    """A match as it is seen from one of its rows: `labels` of its rows from `start` on, seen up to `at`."""

    rows: Sequence[Row]
    start: int
    labels: Sequence[str]
    at: int
    subsets: Mapping[str, tuple[str, ...]]
    number: int
    #: The row that all columns are of, inside a navigation or an aggregate.
    pinned: int | None = None
    final: bool = False

    @classmethod
    def of_match(
        cls, rows: Sequence[Row], found: Match, subsets: Mapping[str, tuple[str, ...]], at: int
    ) -> Scope:
        return cls(rows, found.start, found.labels, at, subsets, found.number)

    def measures(self, measures: Sequence[Measure]) -> dict[str, Any]:
        return {measure.name: self.value(measure.tree) for measure in measures}

    def value(self, node: Node) -> Any:
        return evaluate(node, self._leaf)

    def _leaf(self, leaf: Column | Call) -> Any:
        if isinstance(leaf, Column):
            row = self.pinned if self.pinned is not None else self._last(leaf.variable)
            return self._of(row, leaf.name)
        if leaf.name in NAVIGATION:
            return self._navigated(leaf)
        if leaf.name == "match_number":
            return self.number
        if leaf.name == "classifier":
            return self._classifier(leaf)
        if leaf.name in PLAIN:
            return PLAIN[leaf.name](*(self.value(argument) for argument in leaf.arguments))
        if leaf.name in AGGREGATES or leaf.name in PAIRED:
            return self._aggregate(leaf)
        raise UsageError(f"no function {leaf.name!r}", hint=f"there are {', '.join(sorted(FUNCTIONS))}")

    # --- rows

    def _seen(self, final: bool) -> range:
        """The rows of the match that can be seen."""
        end = self.start + len(self.labels)
        return range(self.start, end if final or self.final else min(self.at + 1, end))

    def _mapped(self, variable: str | None, final: bool = False) -> list[int]:
        """The rows that are mapped to a variable, to one of a union, or (None) to any."""
        seen = self._seen(final)
        if variable is None:
            return list(seen)
        names = self.subsets.get(variable, (variable,))
        return [row for row in seen if self.labels[row - self.start] in names]

    def _last(self, variable: str | None) -> int | None:
        seen = self._seen(False)
        if variable is None:
            return seen[-1] if seen else None
        names = self.subsets.get(variable, (variable,))
        return next((row for row in reversed(seen) if self.labels[row - self.start] in names), None)

    def _of(self, row: int | None, column: str) -> Any:
        if row is None or not 0 <= row < len(self.rows):
            return None
        try:
            return self.rows[row][column]
        except KeyError:
            raise UsageError(
                f"no column {column!r}", hint=f"there are {', '.join(list(self.rows[row])[:20])}"
            ) from None

    def _pinned(self, row: int | None) -> Scope:
        return Scope(self.rows, self.start, self.labels, self.at, self.subsets, self.number, row, self.final)

    # --- navigation

    def _navigated(self, call: Call) -> Any:
        inner, row = call, self._resolve(call)
        while isinstance(inner, Call) and inner.name in NAVIGATION:
            inner = inner.arguments[0]  # type: ignore[assignment]
        if row is None or not 0 <= row < len(self.rows):
            return None
        return self._pinned(row).value(inner)

    def _resolve(self, call: Call) -> int | None:
        """The row that a navigation leads to."""
        argument = call.arguments[0]
        if call.name in ("first", "last"):
            offset = self._offset(call, 0)
            first = call.name == "first"
            mapped = self._mapped(variable_of(argument), first or call.frame == "final")
            places = mapped if first else mapped[::-1]
            return places[offset] if offset < len(places) else None
        steps: list[int] = []
        while isinstance(argument := call.arguments[0], Call) and argument.name in ("prev", "next"):
            steps.append(self._step(call))
            call = argument
        steps.append(self._step(call))
        if isinstance(argument, Call) and argument.name in NAVIGATION:
            row = self._resolve(argument)
        elif self.pinned is not None:
            row = self.pinned
        else:
            row = self._last(variable_of(argument))
        for step in steps:  # the outer one first: the inner one looks from the row that it leads to
            row = None if row is None else row + step
            if row is None or not 0 <= row < len(self.rows):
                return None
        return row

    def _step(self, call: Call) -> int:
        offset = self._offset(call, 1)
        return offset if call.name == "next" else -offset

    def _offset(self, call: Call, default: int) -> int:
        if len(call.arguments) < 2:
            return default
        value = call.arguments[1].value if isinstance(call.arguments[1], Literal) else None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise UsageError(f"the offset of {call.name} must be a whole number")
        return value

    # --- classifier and aggregates

    def _classifier(self, call: Call) -> str | None:
        variable = (
            call.arguments[0].name if call.arguments and isinstance(call.arguments[0], Column) else None
        )
        row = self.pinned if self.pinned is not None else self._last(variable)
        if row is None or row not in self._seen(False):
            return None
        label = self.labels[row - self.start]
        return label if variable is None or label in self.subsets.get(variable, (variable,)) else None

    def _aggregate(self, call: Call) -> Any:
        final = call.frame == "final"
        if call.star or not call.arguments:
            return len(self._mapped(call.variable, final))
        rows = self._mapped(variable_of(call), final)
        scope = Scope(
            self.rows, self.start, self.labels, self.at, self.subsets, self.number, None, final or self.final
        )
        values = []
        for row in rows:
            scope.pinned = row
            values.append(tuple(scope.value(argument) for argument in call.arguments))
        if call.name in PAIRED:
            ranked = [pair for pair in values if pair[1] is not None]
            pick = max if call.name == "max_by" else min
            return pick(ranked, key=lambda pair: pair[1])[0] if ranked else None
        kept = [value for (value,) in values if value is not None or call.name in ("array_agg", "arbitrary")]
        return AGGREGATES[call.name](kept)


def variable_of(node: Node) -> str | None:
    """The variable that the columns of an expression are of; None: of the match as a whole.

    Raises UsageError for a mixture: SQL:2016 has none.
    """
    found: set[str | None] = set()
    pending = [node]
    while pending:
        leaf = pending.pop()
        if isinstance(leaf, Call) and leaf.name == "classifier":
            found.add(
                leaf.arguments[0].name if leaf.arguments and isinstance(leaf.arguments[0], Column) else None
            )
        elif isinstance(leaf, Column):
            found.add(leaf.variable)
        else:
            pending.extend(children(leaf))
    named = {variable for variable in found if variable is not None}
    if len(found) > 1 and named:
        raise UsageError(
            f"one function of rows of {', '.join(sorted(map(str, found)))}",
            hint="give each a function of its own",
        )
    return next(iter(named), None)
