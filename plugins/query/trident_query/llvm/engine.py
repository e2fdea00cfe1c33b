"""The llvm query engine: each pattern becomes machine code, for columns and for texts.

Contract: `trident_core.contracts.Query`, docs/contracts/query.md. Dialect: docs/dialect.md. What this code is
not made for (values of more than 64 bytes, thousands of alternatives, texts in which every other position may
begin a match, leftmost-first spans of patterns of no fixed length) goes to another engine, and `explain` says
so, and why; what no engine of tables or bits takes raises LimitError.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import UsageError
from trident_query.limits import LimitError
from trident_query.llvm.code import RefusedError
from trident_query.llvm.codes import look_up
from trident_query.llvm.columns import Columns, Layout, layout_of
from trident_query.llvm.host import Host, host
from trident_query.llvm.texts import Bytes, TextScan
from trident_query.llvm.verify import SpentError, load_walk
from trident_query.program import Explanation, Question

if TYPE_CHECKING:
    from trident_query.llvm.sets import LlvmSet

#: Engines that are asked where there is no code for it, in this order.
_OTHERS: Final = ("dfa", "glushkov")


class LlvmProgram:
    """A compiled pattern. For several threads at once; its code runs without the GIL.

    Code is made when a width, a layout or a text is first asked about; see `explain`.
    """

    def __init__(self, question: Question, host: Host) -> None:
        self.question, self.host = question, host
        self.pattern = question.pattern
        flags = "".join(sorted(set(question.flags)))
        self._key = f"{flags}|{int(question.full)}{int(question.raw)}|{question.pattern}"
        self._columns = Columns(self._key, self._glushkov, host, raw=question.raw)
        self._lock = threading.Lock()
        self._text: TextScan | RefusedError | LimitError | None = None
        self._others: dict[str, Any] = {}
        self._other_lock = threading.Lock()
        self._asked = ""  # the other engine that answered last
        self._given_up = ""  # why texts went to the other engine although there is a scan

    def _glushkov(self) -> Any:
        return self.question.glushkov

    # --- columns --------------------------------------------------------------------------------------------

    def match(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """bool[n]: does the pattern occur in each value of `column` (S[n] or u8[n, w])?

        Trailing spaces and NULs of a value are cut first, unless compiled with raw=True. Raises UsageError
        for another type of column.
        """
        layout = layout_of(column)
        answers = np.empty(layout.count, np.bool_)
        if self._match(layout, None, answers) is None:
            return self._other_match(column)
        return answers

    def count(self, column: NDArray[Any]) -> int:
        """How many values match: `match(column).sum()`, without the array."""
        layout = layout_of(column)
        found = self._match(layout, None, None)
        return int(self._other_match(column).sum()) if found is None else found

    def bitmap(self, column: NDArray[Any]) -> NDArray[np.uint8]:
        """u8[ceil(n / 8)]: `match(column)` with a bit for each value, the first one lowest."""
        layout = layout_of(column)
        bits = np.zeros(-(-layout.count // 8), np.uint8)
        if self._match(layout, bits, None) is None:
            return np.packbits(self._other_match(column), bitorder="little")
        return bits

    def match_codes(self, codes: NDArray[Any], values: NDArray[Any]) -> NDArray[np.bool_]:
        """bool[n]: `match(values)[codes]`, codes u8, u16 or u32 [n]; a code without a value does not match.

        So a dictionary-coded column (symbols by locate) is answered without looking at its bytes.
        """
        answers = np.empty(len(codes), np.bool_)
        look_up(codes, self.match(values), self.host, answers)
        return answers

    def count_codes(self, codes: NDArray[Any], values: NDArray[Any]) -> int:
        """How many codes have a value that matches."""
        return look_up(codes, self.match(values), self.host)

    def _match(
        self, layout: Layout, bits: NDArray[np.uint8] | None, bools: NDArray[np.bool_] | None
    ) -> int | None:
        """How many match, or None where the other engine must say."""
        if layout.count == 0:
            return 0
        if layout.width == 0:
            return None
        try:
            return self._columns.run(layout, bits, bools)
        except (RefusedError, LimitError):
            return None

    # --- texts ----------------------------------------------------------------------------------------------

    def spans(self, data: bytes, limit: int = 0) -> list[tuple[int, int]]:
        """Leftmost-longest (first=True: leftmost-first), non-overlapping [start, end) spans in `data`.

        At most `limit`; 0 means all. `data` (bytes, bytearray or memoryview) is taken as it is, padding too.
        An empty match is not given at the end of the match before it. Raises UsageError for a negative limit
        or for other data.
        """
        array = _bytes_of(data, limit)
        scan = self._scan()
        if scan is not None:
            spans: list[tuple[int, int]] = []
            try:
                for found in scan.spans(array):
                    spans += map(tuple, found.tolist())
                    if limit and len(spans) >= limit:
                        return spans[:limit]
                return spans
            except SpentError as error:
                self._given_up = str(error)
        return self._other_spans(data, limit)

    def count_spans(self, data: bytes) -> int:
        """How many spans there are: `len(spans(data))`, without the list."""
        array = _bytes_of(data, 0)
        scan = self._scan()
        if scan is not None:
            try:
                return sum(map(len, scan.spans(array)))
            except SpentError as error:
                self._given_up = str(error)
        return len(self._other_spans(data, 0))

    def ends(self, data: bytes, limit: int = 0) -> list[int]:
        """Every position of `data` at which some match ends, empty ones too, ascending; limit 0 means all."""
        array = _bytes_of(data, limit)
        scan = self._scan()
        if scan is None or not scan.exact:
            return self._other_ends(data, limit)
        ends: list[int] = []
        for found in scan.candidates(array):
            ends += (found + scan.shortest).tolist()
            if limit and len(ends) >= limit:
                return ends[:limit]
        return ends

    def count_ends(self, data: bytes) -> int:
        """How many positions matches end at: `len(ends(data))`, without the list."""
        array = _bytes_of(data, 0)
        scan = self._scan()
        if scan is None or not scan.exact:
            return len(self._other_ends(data, 0))
        return scan.count_ends(array)

    def _scan(self) -> TextScan | None:
        """The scan of texts, or None where the other engine must say."""
        with self._lock:
            if self._text is None:
                try:
                    self._text = TextScan(self._key, self._glushkov, self.host)
                except (RefusedError, LimitError) as error:
                    self._text = error
            scan = self._text
        if not isinstance(scan, TextScan) or (self.question.first and not scan.exact):
            return None
        return scan

    # --- other engines --------------------------------------------------------------------------------------

    def _ask_others(self, ask: Callable[[Any], Any]) -> Any:
        """The answer of the first of the other engines whose caps allow it. Raises LimitError of the last."""
        with self._other_lock:
            for name in _OTHERS:
                try:
                    if name not in self._others:
                        self._others[name] = self._compile_with(name)
                    found = ask(self._others[name])
                except LimitError:
                    if name == _OTHERS[-1]:
                        raise
                    continue
                self._asked = name
                return found
        raise AssertionError("there are other engines")

    def _other_match(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(self._ask_others(lambda program: program.match(column)), np.bool_)

    def _other_spans(self, data: bytes, limit: int) -> list[tuple[int, int]]:
        text = bytes(data)
        return list(self._ask_others(lambda program: program.spans(text, limit)))

    def _other_ends(self, data: bytes, limit: int) -> list[int]:
        text = bytes(data)
        return list(self._ask_others(lambda program: program.ends(text, limit)))

    def _compile_with(self, name: str) -> Any:
        from trident_query.auto import TABLE_LIMITS
        from trident_query.bits_engine import POSITIONS_MAX, BitsQuery
        from trident_query.table_engine import TableQuery

        question = self.question
        if name == "dfa":
            engine: Any = TableQuery()
            if len(question.glushkov) <= POSITIONS_MAX:
                engine.limits = TABLE_LIMITS  # past them, glushkov is faster made
        else:
            engine = BitsQuery()
        return engine.compile(
            question.pattern,
            flags=question.flags,
            full=question.full,
            raw=question.raw,
            first=question.first,
        )

    def explain(self) -> Explanation:
        """What was compiled so far, in values that JSON has: of columns by width and layout, and of texts."""
        made: Explanation = {
            "engine": "llvm",
            **self.question.explain(),
            "cpu": self.host.cpu,
            "vector_bytes": self.host.width,
            "columns": self._columns.facts(),
            "prefilter": None,
        }
        if isinstance(self._text, TextScan):
            facts = self._text.facts()
            first, count = facts["window"]
            made["prefilter"] = f"{count} bytes at distance {first}, by {facts['how']}"
            made["texts"] = {"engine": "windows and a lazy automaton", **facts}
            if self._given_up:
                made["texts"]["given_up"] = self._given_up
        elif self._text is not None:
            made["texts"] = {"engine": "other", "why": self._text.message}
        if self._asked:
            made["other"] = self._asked
        return made


def _bytes_of(data: Any, limit: int) -> Bytes:
    """`data` as u8[n], not copied."""
    if limit < 0:
        raise UsageError(f"a limit of {limit} spans", hint="0 means all")
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise UsageError(f"spans are looked for in bytes, not {type(data).__name__}")
    return np.frombuffer(data, np.uint8)


class LlvmQuery:
    """Patterns -> programs (`trident_core.contracts.Query`)."""

    def __init__(self, for_host: Host | None = None) -> None:
        self.host = for_host or host()

    def compile(
        self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False, first: bool = False
    ) -> LlvmProgram:
        """Compile. `flags` are letters of "ismx"; `full`: the whole value must match; `raw`: padding counts;
        `first`: spans are leftmost-first.

        Raises PatternError with the byte offset for anything outside the dialect, UsageError for an unknown
        flag.
        """
        return LlvmProgram(Question(pattern, flags, full, raw, first), self.host)

    def compile_set(
        self, patterns: Sequence[str], *, flags: str = "", full: bool = False, raw: bool = False
    ) -> LlvmSet:
        """Compile up to 64 patterns to match at once; options and errors as for `compile`."""
        from trident_query.llvm.sets import LlvmSet

        return LlvmSet(patterns, flags=flags, full=full, raw=raw, host=self.host)

    def warm_up(self) -> None:
        """Compile what is the same for every pattern, or load it from the cache."""
        load_walk()
        for dtype in (np.uint8, np.uint16, np.uint32):
            look_up(np.zeros(1, dtype), np.ones(1, np.bool_), self.host)

    def count_answers(self, codes: NDArray[Any], answers: NDArray[np.bool_]) -> int:
        """How many codes (u8, u16 or u32 [n]) have a True in `answers` (bool[k]); one from k on has none."""
        return look_up(codes, answers, self.host)
