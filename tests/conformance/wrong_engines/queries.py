"""Query engines that are wrong in one way each."""

from __future__ import annotations

import re
from typing import Any

from trident_query.limits import LimitError
from trident_query.reference import ReferenceProgram, ReferenceQuery


class RightQuery(ReferenceQuery):
    """A query engine without a mistake."""


class OffByOne(ReferenceQuery):
    """{n,m} up to m - 1 times."""

    def compile(self, pattern: str, **options: Any) -> ReferenceProgram:
        def less(found: re.Match[str]) -> str:
            low, high = int(found[1]), int(found[2])
            return f"{{{low},{max(low, high - 1)}}}"

        program = super().compile(re.sub(r"\{(\d+),(\d+)\}", less, pattern), **options)
        program.pattern = pattern
        return program


class SeesThePadding(ReferenceQuery):
    """Always raw."""

    def compile(self, pattern: str, **options: Any) -> ReferenceProgram:
        return super().compile(pattern, **{**options, "raw": True})


class _FirstBranch(ReferenceProgram):
    def spans(self, data: bytes, limit: int = 0) -> list[tuple[int, int]]:
        try:
            found = [match.span() for match in re.finditer(self.pattern.encode(), data)]
        except re.error:
            return super().spans(data, limit)
        return found[: limit or None]


class TakesTheFirstBranch(ReferenceQuery):
    """Leftmost-first, as Perl and Python do."""

    def compile(self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False) -> Any:
        return _FirstBranch(pattern, flags=flags, full=full, raw=raw)


class EndsBeforeALastNewline(ReferenceQuery):
    """`$` also matches before a newline at the very end, as in Perl and Python."""

    def compile(self, pattern: str, **options: Any) -> ReferenceProgram:
        ends = pattern.endswith("$") and not pattern.endswith("\\$") and not options.get("flags")
        program = super().compile(pattern[:-1] + r"(?:\n?)$" if ends else pattern, **options)
        program.pattern = pattern
        return program


class HeedsNoCase(ReferenceQuery):
    """Ignores the flag i."""

    def compile(self, pattern: str, **options: Any) -> ReferenceProgram:
        return super().compile(pattern, **{**options, "flags": options.get("flags", "").replace("i", "")})


class MatchesFromTheStart(ReferenceQuery):
    """Searches only at the first byte, as `re.match` does."""

    def compile(self, pattern: str, **options: Any) -> ReferenceProgram:
        program = super().compile(rf"\A(?:{pattern})", **options)
        program.pattern = pattern
        return program


class RefusesWhatIsLong(ReferenceQuery):
    """Takes 256 positions, fewer than every engine must, and hands nothing over."""

    def compile(self, pattern: str, **options: Any) -> ReferenceProgram:
        program = super().compile(pattern, **options)
        positions = len(program.question.glushkov)
        if positions > 256:
            raise LimitError("positions", positions, 256, pattern=pattern)
        return program
