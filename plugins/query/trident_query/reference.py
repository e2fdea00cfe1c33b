"""The reference query engine: Thompson's automaton, simulated in pure Python. It is the law.

Contract: `trident_core.contracts.Query`, docs/contracts/query.md. Dialect: docs/dialect.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import UsageError
from trident_query.column import fixed_width, value_of
from trident_query.nfa import build
from trident_query.parse import parse
from trident_query.simulate import Simulation


class ReferenceProgram:
    """A compiled pattern. Capability SPANS. Not for use by several threads at once."""

    def __init__(self, pattern: str, *, flags: str, full: bool, raw: bool) -> None:
        self.pattern = pattern
        self.flags, self.full, self.raw = flags, full, raw
        self.simulation = Simulation(build(parse(pattern, flags, full=full)))

    def match(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """bool[n]: does the pattern occur in each value of `column` (S[n] or u8[n, w])?

        Trailing spaces and NULs of a value are cut first, unless compiled with raw=True. Each distinct value
        is matched once. Raises UsageError for another type of column.
        """
        values, width = fixed_width(column)
        distinct, inverse = np.unique(values, return_inverse=True)
        exists = self.simulation.exists
        answers = [exists(value_of(value, width, raw=self.raw)) for value in distinct.tolist()]
        return np.array(answers, dtype=np.bool_)[inverse]

    def spans(self, data: bytes, limit: int = 0) -> list[tuple[int, int]]:
        """Leftmost-longest, non-overlapping [start, end) spans in `data`; limit 0 means all.

        `data` is taken as it is, padding too. An empty match is not given at the end of the match before it.
        Raises UsageError for a negative limit or for data that is not bytes.
        """
        if limit < 0:
            raise UsageError(f"a limit of {limit} spans", hint="0 means all")
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise UsageError(f"spans are looked for in bytes, not {type(data).__name__}")
        return list(self.simulation.spans(bytes(data), limit))


class ReferenceQuery:
    """Patterns -> programs (`trident_core.contracts.Query`)."""

    def compile(
        self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False
    ) -> ReferenceProgram:
        """Compile. `flags` are letters of "ismx"; `full`: the whole value must match; `raw`: padding counts.

        Raises PatternError with the byte offset for anything outside the dialect, UsageError for an unknown
        flag.
        """
        return ReferenceProgram(pattern, flags=flags, full=full, raw=raw)
