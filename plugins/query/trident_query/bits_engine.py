"""The query engine `glushkov`: the automaton's positions as bits, no states that could blow up.

For patterns whose DFA is too large. Refuses, with LimitError, patterns of more than 1,024 positions: a byte
costs at most one row of masks for each position that is set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_query import bits_kernel, text_kernel
from trident_query.column import rows_of
from trident_query.glushkov import Glushkov, blame, glushkov
from trident_query.kinds import KINDS
from trident_query.limits import LimitError
from trident_query.program import Explanation, Question, check_set, text_of
from trident_query.reverse import reverse
from trident_query.simplify import simplify
from trident_query.spans import ROOM

#: Positions, after the split by kinds: 16 words of bits.
POSITIONS_MAX: Final = 1_024
#: Words of alive sets that are kept for a block of a text.
BLOCK_WORDS: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Masks:
    """An automaton as words of bits: u64[words], with one more axis in front where it says so."""

    reads: NDArray[np.uint64]  # [256, words]
    first: NDArray[np.uint64]  # [4, words]
    last: NDArray[np.uint64]  # [4, words]
    empty: NDArray[np.int64]  # [4]
    kinds: NDArray[np.uint8]  # [256]
    ahead: NDArray[np.uint64]
    behind: NDArray[np.uint64]
    loops: NDArray[np.uint64]
    follow: NDArray[np.uint64]  # [exceptions, words]
    which: NDArray[np.uint64]  # [1 + words, words or 64]: the exceptions, and the row of each

    @property
    def words(self) -> int:
        return len(self.loops)

    def steps(self) -> tuple[Any, Any, Any, Any, Any]:
        """What the kernels need to move on."""
        return self.ahead, self.behind, self.loops, self.follow, self.which

    def scratch(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        return np.zeros(self.words, np.uint64), np.zeros(self.words, np.uint64)


def _bits(positions: Any, words: int) -> NDArray[np.uint64]:
    mask = 0
    for p in positions:
        mask |= 1 << p
    return np.frombuffer(mask.to_bytes(words * 8, "little"), "<u8").copy()


def masks_of(g: Glushkov) -> Masks:
    """The words of an automaton. Exceptions with the same follow list share a row."""
    words = max(1, (len(g) + 63) // 64)
    ahead, behind, loops, odd = [], [], [], []
    rows: dict[tuple[int, ...], int] = {}
    which = np.zeros((1 + words, max(words, 64)), np.uint64)
    for p, steps in enumerate(g.follow):
        near = set(steps)
        if near <= {p - 1, p, p + 1}:
            ahead += [p] if p + 1 in near else []
            behind += [p] if p - 1 in near else []
            loops += [p] if p in near else []
        else:
            odd.append(p)
            which[1 + p // 64, p % 64] = rows.setdefault(steps, len(rows))
    which[0, :words] = _bits(odd, words)
    follow = np.stack([_bits(steps, words) for steps in rows]) if rows else np.zeros((1, words), np.uint64)
    reads = [[p for p, values in enumerate(g.values) if b in values] for b in range(256)]
    return Masks(
        np.stack([_bits(positions, words) for positions in reads]),
        np.stack([_bits(g.first[kind], words) for kind in range(KINDS)]),
        np.stack([_bits(g.last(kind), words) for kind in range(KINDS)]),
        np.array(g.empty, np.int64),
        np.frombuffer(g.kind_of, np.uint8),
        _bits(ahead, words),
        _bits(behind, words),
        _bits(loops, words),
        follow,
        which,
    )


def _automaton(question: Question) -> Glushkov:
    """The question's automaton. Raises LimitError for too many positions; for far too many (of fewer, some
    may turn out to be useless) before the automaton is made."""
    tree, limits = simplify(question.node), replace(question.limits, positions=4 * POSITIONS_MAX)
    try:
        g = glushkov(tree, pattern=question.pattern, limits=limits)
        read = len(g)
    except LimitError as error:
        if error.cap != "positions":
            raise
        read = int(error.value)
    if read > POSITIONS_MAX:
        raise blame(tree, question.pattern).error(
            "positions", read, POSITIONS_MAX, hint="lower the counts of repeats, or use the dfa engine"
        )
    return g


class BitsProgram:
    """A compiled pattern. Capabilities SPANS, FIRST, ENDS. Not for use by several threads at once."""

    def __init__(self, question: Question) -> None:
        self.question, self.pattern = question, question.pattern
        self.automaton = _automaton(question)
        self.masks = masks_of(self.automaton)
        self.pads = np.zeros(256, np.bool_)
        if not question.raw:
            self.pads[[0, 32]] = True

    def match(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """bool[n]: does the pattern occur in each value? Raises UsageError for another type of column."""
        rows, _ = rows_of(column)
        out = np.empty(len(rows), np.bool_)
        m = self.masks
        if m.words == 1:
            table = m.follow[m.which[1, :64].astype(np.int64), 0].copy()
            # Positions followed by the one before them are exceptions here: texts are read one way only.
            odd = m.which[0, 0] | m.behind[0]
            for p in range(64):
                if int(m.behind[0]) >> p & 1:
                    table[p] = np.uint64(1 << (p - 1))
            bits_kernel.match_word(
                rows, self.pads, m.reads[:, 0].copy(), m.first[:, 0].copy(), m.last[:, 0].copy(), m.empty,
                m.kinds, m.ahead[0], m.loops[0], odd, table, out,
            )  # fmt: skip
        else:
            bits_kernel.match_words(
                rows, self.pads, m.reads, m.first, m.last, m.empty, m.kinds, *m.steps(), *m.scratch(), out
            )
        return out

    @cached_property
    def _spans(self) -> BitsSpans:
        return BitsSpans(self.automaton, self.masks, first=self.question.first)

    def spans(self, data: bytes, limit: int = 0) -> list[tuple[int, int]]:
        """Spans as the contract says. Raises UsageError for a negative limit or data that is not bytes,
        LimitError (edges) where the reversed automaton is too large."""
        text = text_of(data, limit)
        return list(self._spans.spans(text, limit))

    def ends(self, data: bytes, limit: int = 0) -> list[int]:
        """Every position at which some match ends, ascending; errors as for `spans`."""
        text = text_of(data, limit)
        return list(islice(self._ends(text), limit or None))

    def _ends(self, text: bytes) -> Iterator[int]:
        m, data = self.masks, np.frombuffer(text, np.uint8)
        scratch, state, out = m.scratch(), np.zeros(1, np.int64), np.empty(ROOM, np.int64)
        while state[0] <= len(data):
            count = bits_kernel.ends(
                data, state, m.reads, m.first, m.last, m.empty, m.kinds, *m.steps(), *scratch, out
            )
            yield from out[:count].tolist()

    def explain(self) -> Explanation:
        """What was compiled."""
        m = self.masks
        arrays = (m.reads, m.first, m.last, m.follow, m.which)
        return {
            "engine": "glushkov",
            **self.question.explain(),
            "positions": len(self.automaton),
            "words": m.words,
            "exceptions": int(sum(int(word).bit_count() for word in m.which[0, : m.words])),
            "table_bytes": sum(int(array.nbytes) for array in arrays),
            "prefilter": None,
        }


class BitsSpans:
    """Leftmost-longest or leftmost-first spans: alive sets from the right, then a walk from the left."""

    def __init__(self, g: Glushkov, masks: Masks, *, first: bool) -> None:
        self.masks, self.first = masks, first
        self.behind = masks_of(reverse(g))
        self.block = max(4, BLOCK_WORDS // masks.words)
        self.entry = len(g)
        rows = [steps for by_kind in (*g.steps, *g.begins) for steps in by_kind] if first else []
        self.offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
        self.order = np.array([q for steps in rows for q in steps] or [0], np.int64)

    def spans(self, text: bytes, limit: int = 0) -> Iterator[tuple[int, int]]:
        """[start, end) in order; at most `limit`, 0 means all. The text is read from the right first."""
        data = np.frombuffer(text, np.uint8)
        blocks = len(data) // self.block + 1
        edges = [np.zeros(self.masks.words, np.uint64)]  # alive at the end of each block, the last one first
        for number in range(blocks - 1, 0, -1):
            edges.append(self._alive(data, number, edges[-1])[0])
        starts, ends = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)
        s = np.zeros(text_kernel.STATE_WORDS, np.int64)
        s[text_kernel.LAST_END], s[text_kernel.LIMIT] = -1, limit
        now, then = self.masks.scratch()
        for number in range(blocks):
            alive = self._alive(data, number, edges[blocks - 1 - number])
            why = text_kernel.OUT_FULL
            while why == text_kernel.OUT_FULL:
                why = self._walk(data, number * self.block, alive, now, then, s, starts, ends)
                count = int(s[text_kernel.COUNT])
                yield from zip(starts[:count].tolist(), ends[:count].tolist(), strict=True)
                s[text_kernel.COUNT] = 0
            if why == text_kernel.DONE:
                return

    def _alive(self, data: NDArray[np.uint8], number: int, edge: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The alive set of every position of a block; that behind the text, the last one's, is empty."""
        low, high = number * self.block, min((number + 1) * self.block, len(data))
        out = np.zeros((high - low + (number == len(data) // self.block), self.masks.words), np.uint64)
        m, b = self.masks, self.behind
        bits_kernel.back(
            data, low, high, m.reads, m.last, m.kinds, *b.steps(), edge.copy(), np.zeros_like(edge), out
        )
        return out

    def _walk(
        self, data: Any, low: int, alive: Any, now: Any, then: Any, s: Any, starts: Any, ends: Any
    ) -> int:
        m = self.masks
        if self.first:
            common = (data, low, alive, m.first, m.empty, m.kinds)
            order = (self.entry, self.offsets, self.order)
            return int(bits_kernel.walk_first(*common, *order, s, starts, ends))
        longest = (data, low, alive, m.first, m.last, m.empty, m.kinds, *m.steps(), now, then)
        return int(bits_kernel.walk_longest(*longest, s, starts, ends))


class BitsSet:
    """Up to 64 patterns, one after the other. Capability SETS."""

    def __init__(self, patterns: Sequence[str], *, flags: str, full: bool, raw: bool) -> None:
        self.patterns = tuple(check_set(patterns))
        self.programs = [BitsProgram(Question(p, flags, full, raw)) for p in self.patterns]

    def match_set(self, column: NDArray[Any]) -> NDArray[np.uint64]:
        """u64[n]: bit i says whether pattern i occurs in the value."""
        masks = np.zeros(len(rows_of(column)[0]), np.uint64)
        for bit, program in enumerate(self.programs):
            masks |= program.match(column).astype(np.uint64) << np.uint64(bit)
        return masks

    def explain(self) -> Explanation:
        return {"engine": "glushkov", "patterns": [program.explain() for program in self.programs]}


class BitsQuery:
    """Patterns -> programs (`trident_core.contracts.Query`)."""

    def compile(
        self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False, first: bool = False
    ) -> BitsProgram:
        """Compile. Raises PatternError outside the dialect, LimitError past a cap, UsageError for a flag."""
        return BitsProgram(Question(pattern, flags, full, raw, first))

    def compile_set(
        self, patterns: Sequence[str], *, flags: str = "", full: bool = False, raw: bool = False
    ) -> BitsSet:
        """Compile up to 64 patterns. Raises as `compile` does."""
        return BitsSet(patterns, flags=flags, full=full, raw=raw)

    def warm_up(self) -> None:
        """Compile the kernels, or load them from the cache."""
        from trident_query.warm import warm_bits

        warm_bits(self)
