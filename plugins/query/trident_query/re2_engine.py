"""The query engine `re2`: google-re2 as an outside oracle (extra `re2`).

The tree of a pattern is written out again in RE2's syntax, over Latin-1, so that both mean bytes. What RE2
would understand differently, or does not take, is refused by name; it is an oracle for tests and comparisons,
not a fast engine: each value is a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import re2
from numpy.typing import NDArray

from trident_core.errors import PatternError
from trident_query.ast import Assertion, At, ByteSet, Chain, Choice, Empty, Node, OneOf, Repeat
from trident_query.column import fixed_width, value_of
from trident_query.program import Explanation, Question, check_set, text_of

_ASSERTIONS: Final = {
    At.TEXT_START: r"\A",
    At.TEXT_END: r"\z",
    At.LINE_START: "(?m:^)",
    At.LINE_END: "(?m:$)",
    At.WORD_BOUNDARY: r"\b",
    At.NOT_WORD_BOUNDARY: r"\B",
}
#: Memory that RE2 may use for a program and its lazy DFAs.
MEMORY: Final = 256 << 20


def translated(node: Node) -> str:
    """The tree as a pattern of RE2, over Latin-1."""
    match node:
        case Empty():
            return "(?:)"
        case OneOf(values):
            return _class(values)
        case Assertion(at):
            return _ASSERTIONS[at]
        case Chain(items):
            return "".join(map(_grouped, items))
        case Choice(items):
            return "|".join(map(translated, items))
        case Repeat(item, low, high, lazy=lazy):
            bounds = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get(
                (low, high), f"{{{low},{'' if high is None else high}}}"
            )
            return f"(?:{translated(item)}){bounds}{'?' if lazy else ''}"
    raise AssertionError(f"not a node: {node!r}")


def _grouped(node: Node) -> str:
    return f"(?:{translated(node)})" if isinstance(node, Choice) else translated(node)


def _class(values: ByteSet) -> str:
    if not values:
        return r"[^\x00-\xff]"
    ordered, ranges = sorted(values), []
    start = last = ordered[0]
    for value in [*ordered[1:], 1000]:
        if value != last + 1:
            ranges.append(f"\\x{start:02x}" + (f"-\\x{last:02x}" if last > start else ""))
            start = value
        last = value
    return f"[{''.join(ranges)}]"


class Re2Program:
    """A pattern compiled by RE2. Capabilities SPANS and FIRST."""

    def __init__(self, question: Question) -> None:
        self.question, self.pattern = question, question.pattern
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.longest_match = not question.first
        options.log_errors = False
        options.max_mem = MEMORY
        try:
            self.compiled = re2.compile(translated(question.node).encode("latin-1"), options)
        except re2.error as error:
            reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
            raise PatternError(
                f"RE2 does not take it: {reason[:100]}",
                pattern=question.pattern,
                position=0,
                hint="its repeats go to 1,000, nested ones multiplied",
            ) from None

    def match(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """bool[n]: does the pattern occur in each value? Each distinct value is asked once."""
        values, width = fixed_width(column)
        distinct, inverse = np.unique(values, return_inverse=True)
        raw, search = self.question.raw, self.compiled.search
        answers = [search(value_of(value, width, raw=raw)) is not None for value in distinct.tolist()]
        return np.array(answers, np.bool_)[inverse]

    def spans(self, data: bytes, limit: int = 0) -> list[tuple[int, int]]:
        """Spans as the contract says; RE2's search, and the contract's rule for empty matches."""
        text = text_of(data, limit)
        found: list[tuple[int, int]] = []
        at, last_end = 0, -1
        while at <= len(text) and not (limit and len(found) == limit):
            match = self.compiled.search(text, at)
            if match is None:
                break
            start, end = match.span()
            at = end + 1 if start == end else end
            if start != end or end != last_end:
                found.append((start, end))
                last_end = end
        return found

    def explain(self) -> Explanation:
        """What was compiled."""
        return {
            "engine": "re2",
            **self.question.explain(),
            "program_size": int(self.compiled.programsize),
            "translated": translated(self.question.node)[:200],
        }


class Re2Set:
    """Up to 64 patterns, one after the other. Capability SETS."""

    def __init__(self, patterns: Sequence[str], *, flags: str, full: bool, raw: bool) -> None:
        self.patterns = tuple(check_set(patterns))
        self.programs = [Re2Program(Question(p, flags, full, raw)) for p in self.patterns]

    def match_set(self, column: NDArray[Any]) -> NDArray[np.uint64]:
        """u64[n]: bit i says whether pattern i occurs in the value."""
        masks = np.zeros(len(column), np.uint64)
        for bit, program in enumerate(self.programs):
            masks |= program.match(column).astype(np.uint64) << np.uint64(bit)
        return masks


class Re2Query:
    """Patterns -> programs (`trident_core.contracts.Query`)."""

    def compile(
        self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False, first: bool = False
    ) -> Re2Program:
        """Compile. Raises PatternError outside the dialect, and for what RE2 refuses, with its reason."""
        return Re2Program(Question(pattern, flags, full, raw, first))

    def compile_set(
        self, patterns: Sequence[str], *, flags: str = "", full: bool = False, raw: bool = False
    ) -> Re2Set:
        """Compile up to 64 patterns. Raises as `compile` does."""
        return Re2Set(patterns, flags=flags, full=full, raw=raw)
