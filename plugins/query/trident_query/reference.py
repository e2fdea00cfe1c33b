"""The reference query engine: Thompson's automaton, simulated in pure Python. It is the law.

Contract: `trident_core.contracts.Query`, docs/contracts/query.md. Dialect: docs/dialect.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_query.column import fixed_width, value_of
from trident_query.nfa import build
from trident_query.program import Explanation, Question, check_set, text_of
from trident_query.simulate import Simulation


class ReferenceProgram:
    """A compiled pattern. Capabilities SPANS, FIRST, ENDS. Not for use by several threads at once."""

    def __init__(
        self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False, first: bool = False
    ) -> None:
        self.question = Question(pattern, flags, full, raw, first)
        self.pattern = pattern
        self.simulation = Simulation(build(self.question.node))

    def match(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """bool[n]: does the pattern occur in each value of `column` (S[n] or u8[n, w])?

        Trailing spaces and NULs of a value are cut first, unless compiled with raw=True. Each distinct value
        is matched once. Raises UsageError for another type of column.
        """
        values, width = fixed_width(column)
        distinct, inverse = np.unique(values, return_inverse=True)
        exists = self.simulation.exists
        answers = [exists(value_of(value, width, raw=self.question.raw)) for value in distinct.tolist()]
        return np.array(answers, dtype=np.bool_)[inverse]

    def spans(self, data: bytes, limit: int = 0) -> list[tuple[int, int]]:
        """Leftmost-longest, non-overlapping [start, end) spans in `data`; limit 0 means all. With first=True,
        leftmost-first ones.

        `data` is taken as it is, padding too. An empty match is not given at the end of the match before it.
        Raises UsageError for a negative limit or for data that is not bytes.
        """
        text = text_of(data, limit)
        return list(self.simulation.spans(text, limit, first=self.question.first))

    def ends(self, data: bytes, limit: int = 0) -> list[int]:
        """Every position of `data` at which some match ends, empty ones too, ascending; limit 0 means all."""
        text = text_of(data, limit)
        return list(islice(self.simulation.ends(text), limit or None))

    def explain(self) -> Explanation:
        """What was compiled."""
        states = len(self.simulation.nfa)
        return {"engine": "reference", **self.question.explain(), "nfa_states": states}


class ReferenceSet:
    """Many patterns at once, one after the other. Capability SETS."""

    def __init__(self, patterns: Sequence[str], *, flags: str, full: bool, raw: bool) -> None:
        self.patterns = tuple(check_set(patterns))
        self.programs = [ReferenceProgram(p, flags=flags, full=full, raw=raw) for p in self.patterns]

    def match_set(self, column: NDArray[Any]) -> NDArray[np.uint64]:
        """u64[n]: bit i says whether pattern i occurs in the value. Columns as for `match`."""
        masks = np.zeros(len(column), np.uint64)
        for bit, program in enumerate(self.programs):
            masks |= program.match(column).astype(np.uint64) << np.uint64(bit)
        return masks

    def explain(self) -> Explanation:
        return {"engine": "reference", "patterns": [program.explain() for program in self.programs]}


class ReferenceQuery:
    """Patterns -> programs (`trident_core.contracts.Query`)."""

    def compile(
        self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False, first: bool = False
    ) -> ReferenceProgram:
        """Compile. `flags` are letters of "ismx"; `full`: the whole value must match; `raw`: padding counts;
        `first`: spans are leftmost-first.

        Raises PatternError with the byte offset for anything outside the dialect, UsageError for an unknown
        flag.
        """
        return ReferenceProgram(pattern, flags=flags, full=full, raw=raw, first=first)

    def compile_set(
        self, patterns: Sequence[str], *, flags: str = "", full: bool = False, raw: bool = False
    ) -> ReferenceSet:
        """Compile up to 64 patterns that are asked at once. Raises as `compile` does."""
        return ReferenceSet(patterns, flags=flags, full=full, raw=raw)
