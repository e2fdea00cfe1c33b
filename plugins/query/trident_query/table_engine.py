"""The query engine `dfa`: a dense table over bytes, one load for each byte, four records side by side.

Programs are refused with LimitError where an automaton passes a cap (`trident_query.limits`): another engine
may take them, this one never hands them on in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_query import table_kernel
from trident_query.column import rows_of
from trident_query.dfa import Dfa, determinise, minimised, padded
from trident_query.kinds import OUTSIDE
from trident_query.limits import DEFAULT, Limits
from trident_query.program import Explanation, Question, text_of
from trident_query.sets import TableSet
from trident_query.spans import EndsTable, SpansTable

#: Up to so many states a table has a column for each byte; beyond, one for each byte class, for the caches.
BY_BYTE_STATES_MAX: Final = 4_096


class FieldTable:
    """An automaton laid out for columns. `accepts` may be bool, or u64 masks of many patterns."""

    def __init__(self, dfa: Dfa, accepts: NDArray[Any]) -> None:
        self.states = dfa.states
        self.classes = dfa.classes.count
        if dfa.states <= BY_BYTE_STATES_MAX:
            self.row, of = 256, np.arange(256, dtype=np.uint8)
            table = dfa.table[:, dfa.classes.as_array()]
        else:
            self.row, of = self.classes, dfa.classes.as_array()
            table = dfa.table
        dtype = np.uint16 if dfa.states * self.row <= 1 << 16 else np.uint32
        self.of = of.copy()
        self.table = (table.astype(np.uint32) * np.uint32(self.row)).astype(dtype).reshape(-1)
        self.start = dfa.starts[OUTSIDE] * self.row
        self.accepts = accepts

    def match(self, column: NDArray[Any]) -> NDArray[Any]:
        """accepts[state] for each value of a column (S[n] or u8[n, w]), read to its full width."""
        rows, words = rows_of(column)
        out = np.empty(len(rows), self.accepts.dtype)
        if words is not None and self.row == 256:
            table_kernel.match_words(words, self.table, self.start, self.accepts, out)
        else:
            table_kernel.match_rows(rows, self.table, self.row, self.of, self.start, self.accepts, out)
        return out


class TableProgram:
    """A compiled pattern. Capabilities SPANS, FIRST, ENDS. Not for use by several threads at once."""

    def __init__(self, question: Question) -> None:
        self.question, self.pattern = question, question.pattern
        limits = question.limits
        searching = minimised(determinise(question.glushkov, limits=limits))
        self.dfa = searching if question.raw else padded(searching, limits=limits)
        self.fields = FieldTable(self.dfa, (self.dfa.accepts >> OUTSIDE & 1).astype(np.bool_))

    @cached_property
    def _spans(self) -> SpansTable:
        return SpansTable(self.question.glushkov, self.question.limits, first=self.question.first)

    @cached_property
    def _ends(self) -> EndsTable:
        return EndsTable(self.question.glushkov, self.question.limits)

    def match(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """bool[n]: does the pattern occur in each value? Raises UsageError for another type of column."""
        return self.fields.match(column)

    def spans(self, data: bytes, limit: int = 0) -> list[tuple[int, int]]:
        """Spans as the contract says. Raises LimitError when the automata of spans pass a cap, UsageError
        for a negative limit or data that is not bytes."""
        text = text_of(data, limit)
        return list(self._spans.spans(text, limit))

    def ends(self, data: bytes, limit: int = 0) -> list[int]:
        """Every position at which some match ends, ascending; errors as for `spans`."""
        text = text_of(data, limit)
        return list(islice(self._ends.ends(text), limit or None))

    def explain(self) -> Explanation:
        """What was compiled."""
        return {
            "engine": "dfa",
            **self.question.explain(),
            "positions": len(self.question.glushkov),
            "states": self.dfa.states,
            "byte_classes": self.dfa.classes.count,
            "table_bytes": int(self.fields.table.nbytes),
            "layout": "by byte" if self.fields.row == 256 else "by byte class",
            "prefilter": None,
        }


class TableQuery:
    """Patterns -> programs (`trident_core.contracts.Query`)."""

    limits: Limits = DEFAULT

    def compile(
        self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False, first: bool = False
    ) -> TableProgram:
        """Compile. Raises PatternError outside the dialect, LimitError past a cap, UsageError for a flag."""
        return TableProgram(Question(pattern, flags, full, raw, first, self.limits))

    def compile_set(
        self, patterns: Sequence[str], *, flags: str = "", full: bool = False, raw: bool = False
    ) -> TableSet:
        """Compile up to 64 patterns into as few automata as the caps allow. Raises as `compile` does."""
        return TableSet(patterns, flags=flags, full=full, raw=raw, limits=self.limits)

    def warm_up(self) -> None:
        """Compile the kernels, or load them from the cache."""
        from trident_query.warm import warm_tables

        warm_tables(self)
