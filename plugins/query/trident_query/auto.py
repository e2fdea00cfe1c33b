"""The query engine `auto`: another engine for each question, chosen by rules that `explain` tells.

Rules, in order, for each kind of question (a column, spans, ends), the first engine that takes the pattern
within the limits below; sets have rules of their own (`AutoSet`):

1. `llvm`, where it is installed and the input is large enough to pay for making machine code.
2. `dfa`, within `TABLE_LIMITS`: smaller than the engine's own, because past them `glushkov` is faster made.
3. `glushkov`, up to 1,024 positions.
4. `reference`, which takes every pattern of the dialect.

A refusal on the way is not hidden: `explain` has it, with its cap, under "refused".
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import EngineSpec
from trident_core.errors import PluginError
from trident_query.column import check_column
from trident_query.limits import LimitError, Limits
from trident_query.program import Explanation, Question, check_set, text_of

TABLE_LIMITS: Final = Limits(states=10_000, table_bytes=16 << 20, seconds=2.0)
#: From so many values on, a column pays for machine code: 10 to 100 ms at 3 to 4 ns saved for a value.
LLVM_VALUES_MIN: Final = 8_000_000
#: From so many codes of a dictionary on, the look-up does.
LLVM_CODES_MIN: Final = 1_000_000
#: From so many bytes on, a text does.
LLVM_TEXT_BYTES_MIN: Final = 32 << 20
#: From so many values on that a set was asked for, its product of tables pays: 0.6 ms and more a pattern, at
#: 22 ns saved for a pattern and value.
TABLE_SET_VALUES_MIN: Final = 32_768
#: From so many on, machine code does: 3 to 19 ms a pattern, at 2 to 4 ns saved for a value and pass.
LLVM_SET_VALUES_MIN: Final = 16_000_000
#: The same where tables pass a cap, against 25 ns a pattern and value.
LLVM_BITS_SET_VALUES_MIN: Final = 512_000
#: Machine code for eight patterns takes as long as half a pass of tables.
PASSES_PER_OCTET: Final = 2
ORDER: Final = ("llvm", "dfa", "glushkov", "reference")


@cache
def _specs() -> dict[str, EngineSpec]:
    """The engines of this package that can be used here."""
    from trident_query.plugin import trident_register_queries

    found = {spec.name: spec for spec in trident_register_queries()}
    return {
        name: found[name]
        for name in ORDER
        if name in found and all(importlib.util.find_spec(module) for module in found[name].requires)
    }


@cache
def _engine(name: str) -> Any:
    """An engine, made once. None, and never asked again, where it cannot be loaded on this machine."""
    if name == "dfa":
        from trident_query.table_engine import TableQuery

        engine = TableQuery()
        engine.limits = TABLE_LIMITS
        return engine
    try:
        return _specs()[name].load()()
    except PluginError:
        return None


class AutoProgram:
    """A pattern, and a program of another engine for each kind of question. Capabilities SPANS, FIRST, ENDS.

    Not for use by several threads at once.
    """

    def __init__(self, question: Question) -> None:
        self.question, self.pattern = question, question.pattern
        self.programs: dict[str, Any] = {}
        self.refused: dict[str, str] = {}
        self.chosen: dict[str, str] = {}  # kind of question -> engine and why

    def match(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """bool[n]: does the pattern occur in each value? Raises UsageError for another type of column."""
        check_column(column)
        many = len(column) >= LLVM_VALUES_MIN
        found: NDArray[np.bool_] = self._ask("column", many, lambda program: program.match(column))
        return found

    def count(self, column: NDArray[Any]) -> int:
        """How many values match: `match(column).sum()`, without the array where the engine can do without."""
        check_column(column)
        many = len(column) >= LLVM_VALUES_MIN

        def ask(program: Any) -> int:
            if hasattr(program, "count"):
                return int(program.count(column))
            return int(program.match(column).sum())

        return int(self._ask("column", many, ask))

    def count_codes(self, codes: NDArray[Any], values: NDArray[Any]) -> int:
        """How many codes (u8, u16 or u32 [n]) have one of `values` (a column) that matches."""
        matching = self.match(values)
        engine = _engine("llvm") if len(codes) >= LLVM_CODES_MIN and "llvm" in _specs() else None
        if engine is None:
            return int(np.append(matching, False)[np.minimum(codes, len(matching))].sum())
        return int(engine.count_answers(codes, matching))

    def count_spans(self, data: bytes) -> int:
        """How many spans there are: `len(spans(data))`, without the list where the engine can do without."""
        return self._count("spans", data)

    def count_ends(self, data: bytes) -> int:
        """How many positions matches end at: `len(ends(data))`, likewise."""
        return self._count("ends", data)

    def _count(self, what: str, data: bytes) -> int:
        text = text_of(data, 0)

        def ask(program: Any) -> int:
            counting = getattr(program, f"count_{what}", None)
            return int(counting(text)) if counting else len(getattr(program, what)(text))

        return int(self._ask(what, len(text) >= LLVM_TEXT_BYTES_MIN, ask))

    def spans(self, data: bytes, limit: int = 0) -> list[tuple[int, int]]:
        """Spans as the contract says. Raises UsageError for a negative limit or data that is not bytes."""
        text = text_of(data, limit)
        found: list[tuple[int, int]] = self._ask(
            "spans", len(text) >= LLVM_TEXT_BYTES_MIN, lambda program: program.spans(text, limit)
        )
        return found

    def ends(self, data: bytes, limit: int = 0) -> list[int]:
        """Every position at which some match ends, ascending; errors as for `spans`."""
        text = text_of(data, limit)
        found: list[int] = self._ask(
            "ends", len(text) >= LLVM_TEXT_BYTES_MIN, lambda program: program.ends(text, limit)
        )
        return found

    def _ask(self, what: str, large: bool, ask: Callable[[Any], Any]) -> Any:
        for name in _specs():
            if (name == "llvm" and not large) or f"{name} {what}" in self.refused:
                continue
            if _engine(name) is None:
                continue
            try:
                answer = ask(self._program(name))
            except LimitError as error:
                self.refused[f"{name} {what}"] = error.message
                continue
            self.chosen[what] = f"{name}: {_why(name, large)}"
            return answer
        raise AssertionError("the reference takes every pattern")

    def _program(self, name: str) -> Any:
        if name not in self.programs:
            q = self.question
            self.programs[name] = _engine(name).compile(
                q.pattern, flags=q.flags, full=q.full, raw=q.raw, first=q.first
            )
        return self.programs[name]

    def explain(self) -> Explanation:
        """Which engine answers what, why, what was refused on the way, and what each compiled.

        Before anything was asked: what would answer a small column.
        """
        if not self.chosen:
            self.match(np.zeros(1, "S8"))
        used = {choice.partition(":")[0] for choice in self.chosen.values()}
        return {
            "engine": "auto",
            **self.question.explain(),
            "why": dict(self.chosen),
            "refused": dict(self.refused),
            "programs": [self.programs[name].explain() for name in ORDER if name in used],
        }


def _why(name: str, large: bool) -> str:
    if name == "llvm":
        return "the input is large enough to pay for machine code"
    size = "" if large else ", too little input to pay for machine code"
    return {
        "dfa": f"a table within the caps{size}",
        "glushkov": "a DFA would pass a cap, the positions do not",
        "reference": "too large for every compiled form",
    }.get(name, "")


class AutoSet:
    """Up to 64 patterns by another engine, chosen by how many values the set was asked for so far, this
    column included: what takes longest to make answers fastest. Capability SETS.

    `docs/query.md` has what was measured. An engine that refuses the set leaves it to the next. Not for use
    by several threads at once.
    """

    def __init__(self, patterns: Sequence[str], *, flags: str, full: bool, raw: bool) -> None:
        self.patterns = tuple(check_set(patterns))
        for pattern in self.patterns:
            Question(pattern, flags, full, raw)
        self.values = 0
        self.programs: dict[str, Any] = {}
        self.refused: dict[str, str] = {}
        self.chosen: dict[str, str] = {}  # engine -> why it was asked, the last time
        self._options = {"flags": flags, "full": full, "raw": raw}

    def match_set(self, column: NDArray[Any]) -> NDArray[np.uint64]:
        """u64[n]: bit i says whether pattern i occurs in the value."""
        check_column(column)
        self.values += len(column)
        for name, why in self._preferred():
            try:
                masks: NDArray[np.uint64] = self._program(name).match_set(column)
            except LimitError as error:
                self.refused[name] = error.message
                continue
            self.chosen[name] = why
            return masks
        raise AssertionError("the reference takes every pattern")

    def _preferred(self) -> Iterator[tuple[str, str]]:
        """Engines that did not refuse the set, the one that should answer first, with reasons."""
        told = f"{self.values:,} values so far"
        if self.values < TABLE_SET_VALUES_MIN:
            if self._usable("glushkov"):
                yield "glushkov", f"{told}, too few to pay for tables (from {TABLE_SET_VALUES_MIN:,})"
        elif self.values >= LLVM_BITS_SET_VALUES_MIN and self._usable("llvm"):
            yield from self._machine_code(told)
        if self._usable("dfa"):
            few = self.values < LLVM_SET_VALUES_MIN
            more = (
                f"too few for machine code (from {LLVM_SET_VALUES_MIN:,})" if few else "few passes of tables"
            )
            yield "dfa", f"{told}, {more}"
        if self._usable("glushkov"):
            yield "glushkov", f"{told}; tables would pass a cap, positions do not"
        yield "reference", "too large for every compiled form"

    def _machine_code(self, told: str) -> Iterator[tuple[str, str]]:
        """`llvm`, if it will have paid for itself."""
        octets, many = -(-len(self.patterns) // 8), self.values >= LLVM_SET_VALUES_MIN
        if many and octets <= PASSES_PER_OCTET:
            yield "llvm", f"{told}, from {LLVM_SET_VALUES_MIN:,} on faster than one pass of tables"
        elif not self._tables():
            yield "llvm", f"{told}, from {LLVM_BITS_SET_VALUES_MIN:,} on where tables would pass a cap"
        elif many and octets <= PASSES_PER_OCTET * (passes := len(self.programs["dfa"].groups)):
            yield "llvm", f"{told}, from {LLVM_SET_VALUES_MIN:,} on faster than {passes} passes of tables"

    def _tables(self) -> bool:
        """Does `dfa` take the set?"""
        try:
            return self._usable("dfa") and bool(self._program("dfa"))
        except LimitError as error:
            self.refused["dfa"] = error.message
            return False

    def _usable(self, name: str) -> bool:
        return name in _specs() and name not in self.refused and _engine(name) is not None

    def _program(self, name: str) -> Any:
        if name not in self.programs:
            self.programs[name] = _engine(name).compile_set(self.patterns, **self._options)
        return self.programs[name]

    def explain(self) -> Explanation:
        """Which engines answered, why each, what refused the set, and what each compiled.

        Before anything was asked: what would answer a small column.
        """
        if not self.chosen:
            self.match_set(np.zeros(1, "S8"))
        return {
            "engine": "auto",
            "why": {"set": dict(self.chosen)},
            "refused": dict(self.refused),
            "programs": [self.programs[name].explain() for name in ORDER if name in self.chosen],
        }


class AutoQuery:
    """Patterns -> programs (`trident_core.contracts.Query`)."""

    def compile(
        self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False, first: bool = False
    ) -> AutoProgram:
        """Parse; what runs is compiled when something is asked. Raises PatternError outside the dialect and
        past its caps, UsageError for a flag."""
        return AutoProgram(Question(pattern, flags, full, raw, first))

    def compile_set(
        self, patterns: Sequence[str], *, flags: str = "", full: bool = False, raw: bool = False
    ) -> AutoSet:
        """Compile up to 64 patterns. Raises as `compile` does."""
        return AutoSet(patterns, flags=flags, full=full, raw=raw)
