"""Spans and ends of matches in a text, by DFA tables, in linear time and memory bounded by a block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_query import text_kernel as kernel
from trident_query.dfa import Dfa, determinise, minimised
from trident_query.glushkov import END, Glushkov, Steps
from trident_query.kinds import KINDS, OUTSIDE
from trident_query.limits import Limits
from trident_query.reverse import reverse

#: Positions in a block.
BLOCK: Final = 1 << 16
#: Spans or ends that a kernel hands over at a time.
ROOM: Final = 1 << 12


def by_byte(dfa: Dfa, limits: Limits) -> NDArray[Any]:
    """The table with a column for every byte, flat: [state * 256 + byte]. Raises LimitError (table_bytes)."""
    size = dfa.states * 256 * dfa.table.itemsize
    if size > limits.table_bytes:
        raise dfa.blame.error("table_bytes", size, limits.table_bytes)
    return np.ascontiguousarray(dfa.table[:, dfa.classes.as_array()]).reshape(-1)


def kinds_of(g: Glushkov) -> NDArray[np.uint8]:
    return np.frombuffer(g.kind_of, np.uint8)


class EndsTable:
    """Every position at which a match ends."""

    def __init__(self, g: Glushkov, limits: Limits) -> None:
        self.dfa = minimised(determinise(g, stop=False, limits=limits))
        self.table = by_byte(self.dfa, limits)
        self.kinds = kinds_of(g)

    def ends(self, text: bytes) -> Iterator[int]:
        data = np.frombuffer(text, np.uint8)
        out = np.empty(ROOM, np.int64)
        state = np.array([self.dfa.starts[OUTSIDE], 0], np.int64)
        while state[1] <= len(data):
            count = kernel.ends(
                data, int(state[1]), len(data) + 1, self.table, 256, self.dfa.accepts, self.kinds, state, out
            )
            yield from out[:count].tolist()


class SpansTable:
    """Leftmost-longest or leftmost-first spans. Not for use by several threads at once.

    Needs the reversed automaton with all its subsets (not minimised), and for leftmost-longest the anchored
    one. Raises LimitError where one of them, or the table of their pairs, is too large.
    """

    def __init__(self, g: Glushkov, limits: Limits, *, first: bool) -> None:
        self.g, self.first = g, first
        self.kinds = kinds_of(g)
        self.back = determinise(reverse(g, limits), stop=False, merge=False, limits=limits)
        self.back_table = by_byte(self.back, limits)
        self.forward: Dfa | None = None
        if first:
            self.by_kind = KINDS if g.conditional else 1
            pairs = (len(g) + KINDS) * self.back.states * self.by_kind
            self.path = self._pairs(pairs, np.int32, limits)
        else:
            self.forward = determinise(g, search=False, stop=False, merge=False, limits=limits)
            self.forward_table = by_byte(self.forward, limits)
            self.entries: dict[int, int] = {}
            for kind in range(KINDS - 1, -1, -1):
                self.entries[self.forward.starts[kind]] = kind
            self.going = self._pairs(self.forward.states * self.back.states, np.uint8, limits)

    def _pairs(self, count: int, dtype: Any, limits: Limits) -> NDArray[Any]:
        size = count * np.dtype(dtype).itemsize
        if size > limits.table_bytes:
            raise self.g.blame.error("table_bytes", size, limits.table_bytes)
        return np.zeros(count, dtype)

    @property
    def table_bytes(self) -> int:
        pairs = self.path if self.first else self.going
        forward = 0 if self.forward is None else self.forward_table.nbytes
        return int(self.back_table.nbytes + pairs.nbytes + forward)

    def spans(self, text: bytes, limit: int = 0) -> Iterator[tuple[int, int]]:
        """[start, end) in order; at most `limit`, 0 means all. The text is read from the right first."""
        data = np.frombuffer(text, np.uint8)
        edges = self._edges(data)
        starts, ends = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)
        s = np.zeros(kernel.STATE_WORDS, np.int64)
        s[kernel.LAST_END], s[kernel.LIMIT] = -1, limit
        for number in range(len(data) // BLOCK + 1):
            first, alive = number * BLOCK, self._alive(data, number, edges)
            while True:
                why = self._walk(data, first, alive, s, starts, ends)
                if why == kernel.ASK:
                    self._answer(s, int(alive[s[kernel.AT] - first]), data)
                    continue
                count = int(s[kernel.COUNT])
                yield from zip(starts[:count].tolist(), ends[:count].tolist(), strict=True)
                s[kernel.COUNT] = 0
                if why == kernel.DONE:
                    return
                if why == kernel.BLOCK_END:
                    break

    def _edges(self, data: NDArray[np.uint8]) -> list[int]:
        """The reversed automaton's state at the end of each block, so that any block can be walked again."""
        state = self.back.starts[OUTSIDE]
        out = np.empty(BLOCK, np.uint32)
        edges = []
        for number in range(len(data) // BLOCK, -1, -1):
            edges.append(state)
            last = min((number + 1) * BLOCK, len(data))
            if number:
                state = kernel.back(data, number * BLOCK, last, self.back_table, state, out)
        return edges[::-1]

    def _alive(self, data: NDArray[np.uint8], number: int, edges: list[int]) -> NDArray[np.uint32]:
        """The state at every position of a block; the position behind the text belongs to the last one."""
        first, last = number * BLOCK, min((number + 1) * BLOCK, len(data))
        behind = number == len(data) // BLOCK
        out = np.empty(last - first + behind, np.uint32)
        if behind:
            out[-1] = self.back.starts[OUTSIDE]
        kernel.back(data, first, last, self.back_table, edges[number], out)
        return out

    def _walk(
        self, data: Any, first: int, alive: Any, s: Any, starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> int:
        common = (data, first, alive, self.back.accepts, self.kinds)
        if self.forward is None:
            rest = (len(self.g), self.path, self.back.states, self.by_kind)
            return int(kernel.walk_first(*common, *rest, s, starts, ends))
        forward = self.forward
        begin = np.array(forward.starts, np.int64)
        rest_longest = (self.forward_table, forward.accepts, begin, self.going, self.back.states)
        return int(kernel.walk_longest(*common, *rest_longest, s, starts, ends))

    def _answer(self, s: Any, alive: int, data: NDArray[np.uint8]) -> None:
        """Fill in the entry that the kernel asked for."""
        state, living = int(s[kernel.STATE]), self.back.sets[alive]
        if self.forward is not None:
            entry = self.entries.get(state)
            if entry is not None:
                nexts: list[Steps] = [self.g.first[entry]]
            else:
                nexts = [self.g.follow[p] for p in self.forward.sets[state]]
            goes = any(not living.isdisjoint(steps) for steps in nexts)
            self.going[state * self.back.states + alive] = 1 if goes else 2
            return
        at = int(s[kernel.AT])
        kind = OUTSIDE if at == len(data) else self.g.kind_of[data[at]]
        steps = (self.g.steps[state] if state < len(self.g) else self.g.begins[state - len(self.g)])[kind]
        chosen = next(q for q in steps if q == END or q in living)
        place = (state * self.back.states + alive) * self.by_kind + (kind if self.by_kind > 1 else 0)
        self.path[place] = 1 if chosen == END else chosen + 2
