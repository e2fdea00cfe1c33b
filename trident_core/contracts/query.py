"""Query engines: patterns become programs over columns of fixed-width bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:  # listing plugins must not wait for numpy
    import numpy as np
    from numpy.typing import NDArray


class Program(Protocol):
    """A compiled pattern over the bytes of one field. Dialect: docs/dialect.md."""

    pattern: str

    def match(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """bool[n]: does the pattern occur in each value? `column` is S[n] or u8[n, w]; trailing padding
        (spaces, NULs) of a value does not belong to it unless compiled with raw=True."""
        ...


@runtime_checkable
class SpanProgram(Protocol):
    """Capability SPANS."""

    def spans(self, data: bytes, limit: int = 0) -> list[tuple[int, int]]:
        """Leftmost-longest, non-overlapping [start, end) spans in `data`; limit 0 means all. Of a program
        compiled with first=True (capability FIRST): leftmost-first."""
        ...


@runtime_checkable
class EndsProgram(Protocol):
    """Capability ENDS."""

    def ends(self, data: bytes, limit: int = 0) -> list[int]:
        """Every position of `data` at which some match ends, empty ones too, ascending; limit 0 means all."""
        ...


class SetProgram(Protocol):
    """Up to 64 patterns, asked at once."""

    patterns: tuple[str, ...]

    def match_set(self, column: NDArray[Any]) -> NDArray[np.uint64]:
        """u64[n]: bit i of a value says what pattern i's own `match` would."""
        ...


@runtime_checkable
class Explained(Protocol):
    """Optional for programs: `explain` says what was compiled and why, in values that JSON has. Keys that
    mean something everywhere: engine, why, positions, states, table_bytes, prefilter."""

    def explain(self) -> dict[str, Any]: ...


@runtime_checkable
class SetQuery(Protocol):
    """Capability SETS."""

    def compile_set(
        self, patterns: Sequence[str], *, flags: str = "", full: bool = False, raw: bool = False
    ) -> SetProgram:
        """Compile 1 to 64 patterns. Raises as `compile` does, UsageError for another number of them."""
        ...


class Query(Protocol):
    """Patterns -> programs. Factory: `Query()`."""

    def compile(self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False) -> Program:
        """Compile. `flags` are letters of "ismx"; `full`: the whole value must match, as between ^ and $.
        With capability FIRST, which SPANS belongs to, there is one more, `first`: spans are leftmost-first,
        not leftmost-longest.

        Raises PatternError with the byte offset for anything outside the dialect, and for a pattern that is
        too large for the engine; it never gives a program that another engine runs in silence.
        """
        ...
