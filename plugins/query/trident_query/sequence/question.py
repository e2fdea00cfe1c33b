"""A question about sequences: the pattern, the conditions of its variables, and what is wanted of a match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from trident_core.errors import TridentError, UsageError
from trident_query.sequence.pattern import Node as Pattern
from trident_query.sequence.pattern import has_hidden, variables
from trident_query.where.tree import Call, Column, Node, walk

#: Default caps. Keys are partitions with a match under way or a value to remember.
KEYS_MAX: Final = 1 << 24
OPEN_MAX: Final = 1 << 22
STEPS_MAX: Final = 1_000_000


class SequenceError(TridentError):
    """A row pattern that cannot be answered within its caps, or whose skip has nowhere to go."""

    exit_code = 2


class Rows(StrEnum):
    """What a match gives."""

    ONE = "one"  # a row for each match
    ALL = "all"  # a row for each row of a match; for an empty match its starting row
    OMIT_EMPTY = "all but empty"
    UNMATCHED = "all and unmatched"


class Skip(StrEnum):
    """Where the search goes on after a match."""

    PAST_LAST = "past last row"
    NEXT_ROW = "to next row"
    FIRST = "to first"
    LAST = "to last"


@dataclass(frozen=True, slots=True)
class Measure:
    name: str
    tree: Node
    text: str = ""


@dataclass(frozen=True, slots=True)
class Absence:
    """Not followed by a row of `variable` within `within` ns after the match's last row."""

    variable: str
    within: int


@dataclass(frozen=True, slots=True)
class Question:
    """`define`: conditions of variables; one without a condition is satisfied by every row. `texts`: what the
    conditions were parsed from, for errors. `subsets`: union variables. `order`: (column, descending).
    `within`: most ns from the first row of a match to its last, by the column `clock`."""

    pattern: Pattern
    define: Mapping[str, Node] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    subsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()
    partition: tuple[str, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    rows: Rows = Rows.ONE
    skip: Skip = Skip.PAST_LAST
    skip_to: str = ""
    within: int | None = None
    absence: Absence | None = None
    clock: str = "ts"
    steps_max: int = STEPS_MAX

    def check(self) -> None:
        """Raises UsageError for parts that do not go together, PatternError for an unknown variable."""
        if self.rows is Rows.UNMATCHED and has_hidden(self.pattern):
            raise UsageError(
                "exclusion {- -} and WITH UNMATCHED ROWS do not go together", hint="SQL:2016 says so"
            )
        if self.within is not None and self.within < 0:
            raise UsageError(f"within {self.within} ns")
        known = set(variables(self.pattern)) | self.subsets.keys()
        absent = {self.absence.variable} if self.absence else set()
        for name in (*self.define, *absent, *(each for union in self.subsets.values() for each in union)):
            if name not in known | absent:
                raise UsageError(f"{name} is not in the pattern", hint=f"it has {', '.join(sorted(known))}")
        if self.skip_to and self.skip_to not in known:
            raise UsageError(f"SKIP TO {self.skip_to}, which is not in the pattern")
        for what, tree in (*self.define.items(), *((each.name, each.tree) for each in self.measures)):
            for name in named_variables(tree) - known - absent:
                raise UsageError(
                    f"{what} names the variable {name}, which is not in the pattern",
                    hint=f"it has {', '.join(sorted(known))}",
                )


def named_variables(tree: Node) -> set[str]:
    """The variables that an expression names."""
    found = set()
    for leaf in walk(tree):
        if isinstance(leaf, (Column, Call)) and leaf.variable is not None:
            found.add(leaf.variable)
        if isinstance(leaf, Call) and leaf.name == "classifier":
            found.update(each.name for each in leaf.arguments if isinstance(each, Column))
    return found
