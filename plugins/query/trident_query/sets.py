"""Many patterns at once: automata multiplied into few, as the caps allow, with a u64 mask per state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_query.classes import partition
from trident_query.dfa import Dfa, determinise, minimised, packed, padded
from trident_query.kinds import ALL_KINDS, KINDS, OUTSIDE
from trident_query.limits import Limits
from trident_query.minimise import minimise
from trident_query.program import Explanation, Question, check_set

#: States up to which automata are multiplied: the table of a product should stay in the second-level cache.
PRODUCT_STATES_MAX: Final = 2_048


@dataclass(frozen=True, slots=True)
class Masked:
    """An automaton for whole values that says which patterns accept: `masks[state]`, u64."""

    dfa: Dfa
    masks: NDArray[np.uint64]
    patterns: tuple[int, ...]


def masked(dfa: Dfa, pattern: int) -> Masked:
    """One pattern's automaton, its acceptance (before OUTSIDE) as bit `pattern`."""
    bits = (dfa.accepts >> OUTSIDE & 1).astype(np.uint64) << np.uint64(pattern)
    return Masked(dfa, bits, (pattern,))


def product(a: Masked, b: Masked, states_max: int) -> Masked | None:
    """The automaton that runs both, minimised; None if it has more than `states_max` states."""
    both = (a.dfa, b.dfa)
    classes = partition([d.classes.members(c) for d in both for c in range(d.classes.count)])
    columns = [[d.classes.of[value] for value in classes.representatives] for d in both]
    left, right = (d.table[:, c].tolist() for d, c in zip(both, columns, strict=True))
    start = (a.dfa.starts[OUTSIDE], b.dfa.starts[OUTSIDE])
    numbers = {start: 0}
    pending = [start]
    rows = []
    for p, q in pending:
        row = []
        for pair in zip(left[p], right[q], strict=True):
            number = numbers.get(pair)
            if number is None:
                number = numbers[pair] = len(pending)
                pending.append(pair)
                if number >= states_max:
                    return None
            row.append(number)
        rows.append(row)
    pairs = np.array(pending)
    masks = a.masks[pairs[:, 0]] | b.masks[pairs[:, 1]]
    blocks = minimise(np.array(rows), masks)
    count = int(blocks.max()) + 1
    first = np.zeros(count, np.int64)
    first[blocks[::-1]] = np.arange(len(blocks))[::-1]
    table = packed(blocks[np.array(rows)[first]], count)
    accepts = np.where(masks[first] != 0, ALL_KINDS, 0).astype(np.uint8)
    made = Dfa(table, accepts, (int(blocks[0]),) * KINDS, -1, classes, a.dfa.kind_of)
    return Masked(made, masks[first], a.patterns + b.patterns)


def multiplied(automata: list[Masked], states_max: int = PRODUCT_STATES_MAX) -> list[Masked]:
    """As few automata as neighbours can be multiplied into, within `states_max` states each."""
    done: list[Masked] = []
    while automata:
        made: list[Masked] = []
        for at in range(0, len(automata) - 1, 2):
            both = product(automata[at], automata[at + 1], states_max)
            if both is None:
                done += automata[at : at + 2]
            else:
                made.append(both)
        rest = automata[len(automata) & ~1 :]
        if not made:
            return done + rest
        automata = made + rest
    return done


class TableSet:
    """Up to 64 patterns, matched at once by tables. Capability SETS."""

    def __init__(self, patterns: Sequence[str], *, flags: str, full: bool, raw: bool, limits: Limits) -> None:
        from trident_query.table_engine import FieldTable

        self.patterns = tuple(check_set(patterns))
        automata = []
        for number, pattern in enumerate(self.patterns):
            question = Question(pattern, flags, full, raw, limits=limits)
            searching = minimised(determinise(question.glushkov, limits=limits))
            automata.append(masked(searching if raw else padded(searching, limits=limits), number))
        self.groups = multiplied(automata)
        self.tables = [FieldTable(group.dfa, group.masks) for group in self.groups]

    def match_set(self, column: NDArray[Any]) -> NDArray[np.uint64]:
        """u64[n]: bit i says whether pattern i occurs in the value. One pass for each automaton."""
        masks: NDArray[np.uint64] = self.tables[0].match(column)
        for table in self.tables[1:]:
            masks |= table.match(column)
        return masks

    def explain(self) -> Explanation:
        """Which patterns share an automaton, and how large each is."""
        return {
            "engine": "dfa",
            "patterns": list(self.patterns),
            "table_bytes": sum(int(table.table.nbytes) for table in self.tables),
            "automata": [
                {"patterns": list(group.patterns), "states": group.dfa.states} for group in self.groups
            ],
        }
