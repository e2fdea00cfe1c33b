"""What the programs of all engines of this package share: the question, and the checks of what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trident_core.errors import UsageError
from trident_query.ast import Node
from trident_query.glushkov import Glushkov, glushkov
from trident_query.limits import DEFAULT, Limits
from trident_query.parse import parse
from trident_query.simplify import simplify

#: Patterns of one set: bits of a u64.
PATTERNS_MAX = 64

Explanation = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """A pattern and how it is meant. Parsed when made: raises PatternError, LimitError and UsageError.

    `flags`: letters of "imsx". `full`: the whole text must match. `raw`: padding belongs to a value. `first`:
    spans are leftmost-first instead of leftmost-longest.
    """

    pattern: str
    flags: str = ""
    full: bool = False
    raw: bool = False
    first: bool = False
    limits: Limits = DEFAULT

    def __post_init__(self) -> None:
        _ = self.node

    @cached_property
    def node(self) -> Node:
        """The tree, as written."""
        return parse(self.pattern, self.flags, full=self.full)

    @cached_property
    def glushkov(self) -> Glushkov:
        """Glushkov's automaton of the simplified tree."""
        return glushkov(simplify(self.node), pattern=self.pattern, limits=self.limits)

    def explain(self) -> Explanation:
        """What was asked, for an explanation."""
        return {
            "pattern": self.pattern,
            "flags": self.flags,
            "text": "all bytes" if self.raw else "trimmed",
            "must_match": "the whole text" if self.full else "anywhere",
            "spans": "leftmost-first" if self.first else "leftmost-longest",
        }


def text_of(data: Any, limit: int) -> bytes:
    """`data` as bytes. Raises UsageError for anything else, and for a negative limit."""
    if limit < 0:
        raise UsageError(f"a limit of {limit} spans", hint="0 means all")
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise UsageError(f"spans are looked for in bytes, not {type(data).__name__}")
    return bytes(data)


def check_set(patterns: Sequence[str]) -> list[str]:
    """The patterns of a set. Raises UsageError for none, for more than 64, and for a single str."""
    if isinstance(patterns, str):
        raise UsageError("a set is a list of patterns, not one str", hint="put it into a list")
    known = list(patterns)
    if not 1 <= len(known) <= PATTERNS_MAX:
        raise UsageError(f"a set of {len(known)} patterns", hint=f"1 to {PATTERNS_MAX}, the bits of a u64")
    return known
