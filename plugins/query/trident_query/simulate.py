"""Thompson's automaton at work: sets of states, one step for each byte. No backtracking anywhere.

For a text of n bytes and a pattern of m states:

`ends`   walks left to right and keeps every state that some start has reached: O(n m) time.
`spans`  first walks right to left, to know for each position which states can still come to accept from
         there ("alive"). A match begins where the start state is alive. Then it walks left to right, from the
         leftmost such position, over alive states only, so that it stops at the end of the match and
         no byte is read twice: O(n m) time for all spans together. Leftmost-longest keeps all alive states
         and the last end; leftmost-first keeps one, the most preferred alive one, which cannot fail any more
         (A. Frisch, L. Cardelli, "Greedy Regular Expression Matching", ICALP 2004).

Steps are remembered (same set, same byte, same assertions: same next set) in a memo that is emptied when
full, so memory is bounded too. Remembering changes how fast the answer comes, never the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trident_query.kinds import HOLDING, KIND_OF, OUTSIDE
from trident_query.nfa import ACCEPT, NFA, as_set, members

#: Memory for remembered steps, per automaton, about.
MEMO_BYTES_MAX: Final = 32 << 20
#: Memory for the alive sets of one block of `spans`, about.
BLOCK_BYTES_MAX: Final = 32 << 20
#: Positions in a block of `spans`.
BLOCK_MAX: Final = 1 << 16

_NO_BYTE: Final = -1  # what is read at the end of the text


class Simulation:
    """An automaton at work. Not for use by several threads at once."""

    def __init__(self, nfa: NFA) -> None:
        self.nfa = nfa
        width = len(nfa) // 8 + 32  # bytes of a set
        self.memo_max = max(16, MEMO_BYTES_MAX // (2 * width + 160))
        self.block = min(BLOCK_MAX, max(16, BLOCK_BYTES_MAX // width))
        self._memo: dict[tuple[int, ...], tuple[int, int]] = {}
        self._back_memo: dict[tuple[int, int, int], int] = {}
        self._first_memo: dict[tuple[int, int, int], int] = {}
        self._used = 0
        for needs in nfa.needs:
            self._used |= needs
        self._free_into, self._read_into = _predecessors(nfa)

    # --- one step -------------------------------------------------------------------------------------------

    def _closure(self, seeds: int, holds: int) -> int:
        """The reading and accepting states that `seeds` reach without reading, where `holds` holds."""
        nfa = self.nfa
        reached: set[int] = set()
        pending = list(members(seeds))
        while pending:
            state = pending.pop()
            if state not in reached:
                reached.add(state)
                if nfa.reads[state] is None and not nfa.needs[state] & ~holds:
                    pending.extend(nfa.outs[state])
        return as_set(q for q in reached if q == ACCEPT or nfa.reads[q] is not None)

    def _read(self, states: int, byte: int) -> int:
        """Where `states` are after they read `byte`."""
        nfa = self.nfa
        return as_set({nfa.outs[q][0] for q in members(states) if byte in (nfa.reads[q] or ())})

    def _advance(self, seeds: int, holds: int, byte: int) -> tuple[int, int]:
        """(do `seeds` accept here, the seeds of the next position), remembered."""
        key = (seeds, holds, byte)
        known = self._memo.get(key)
        if known is None:
            here = self._closure(seeds, holds)
            known = self._remember(key, (here & 1, self._read(here, byte)))
        return known

    def _advance_alive(self, seeds: int, holds: int, byte: int, alive: int) -> tuple[int, int]:
        """The same for alive states only: those that die without accepting are left out."""
        key = (seeds, holds, byte, alive)
        known = self._memo.get(key)
        if known is None:
            here = self._closure(seeds, holds) & alive
            known = self._remember(key, (here & 1, self._read(here, byte)))
        return known

    def _remember(self, key: tuple[int, ...], value: tuple[int, int]) -> tuple[int, int]:
        if len(self._memo) >= self.memo_max:
            self._memo.clear()
        self._memo[key] = value
        return value

    def _back(self, later: int, byte: int, holds: int) -> int:
        """The states alive at a position, from those alive after `byte`, which follows it."""
        nfa = self.nfa
        alive: set[int] = set()
        pending = [ACCEPT]
        for target in members(later):
            pending.extend(q for q in self._read_into.get(target, ()) if byte in (nfa.reads[q] or ()))
        while pending:
            state = pending.pop()
            if state not in alive:
                alive.add(state)
                pending.extend(q for q in self._free_into.get(state, ()) if not nfa.needs[q] & ~holds)
        return as_set(alive)

    def _holds(self, data: bytes, first: int, last: int) -> bytes:
        """For each position of [first, last], which of the assertions in use hold there."""
        if not self._used:
            return bytes(last - first + 1)
        kinds = data[max(first - 1, 0) : last + 1].translate(KIND_OF)
        before = kinds if first else bytes([OUTSIDE]) + kinds
        after = kinds[1 if first else 0 :] + bytes([OUTSIDE])
        table = [[holding & self._used for holding in row] for row in HOLDING]
        count = last - first + 1
        return bytes(table[b][a] for b, a in zip(before[:count], after[:count], strict=True))

    # --- whole texts ----------------------------------------------------------------------------------------

    def ends(self, data: bytes) -> Iterator[int]:
        """Every position at which a match ends (empty ones too), ascending."""
        begin = 1 << self.nfa.start
        advance, size = self._advance, len(data)
        running = 0  # the seeds of matches that began before
        for first in range(0, size + 1, BLOCK_MAX):
            last = min(first + BLOCK_MAX - 1, size)
            for at, holds in enumerate(self._holds(data, first, last), first):
                byte = data[at] if at < size else _NO_BYTE
                accepts, ongoing = advance(running, holds, byte) if running else (0, 0)
                accepts_empty, begun = advance(begin, holds, byte)
                if accepts or accepts_empty:
                    yield at
                running = ongoing | begun

    def exists(self, data: bytes) -> bool:
        """Does the pattern occur in `data`?"""
        return next(self.ends(data), None) is not None

    def spans(self, data: bytes, limit: int = 0, *, first: bool = False) -> Iterator[tuple[int, int]]:
        """Leftmost-longest (`first`: leftmost-first), non-overlapping [start, end), ascending; at most
        `limit`, 0 means all.

        The next span begins at the end of the last one or later, and an empty one not at that very end.
        """
        alive = _Alive(self, data)
        given, at, last_end = 0, 0, -1
        while (start := alive.next_start(at)) is not None:
            end = self._preferred(alive, start) if first else self._longest(alive, start)
            at = end
            if start == end:
                at += 1
                if end == last_end:
                    continue
            yield start, end
            last_end = end
            given += 1
            if given == limit:
                return

    def _longest(self, alive: _Alive, start: int) -> int:
        """The end of the longest match that begins at `start`, where one does."""
        data, size = alive.data, len(alive.data)
        seeds, at, end = 1 << self.nfa.start, start, start
        while seeds:
            states, holds = alive.at(at)
            byte = data[at] if at < size else _NO_BYTE
            accepts, seeds = self._advance_alive(seeds, holds, byte, states)
            if accepts:
                end = at
            at += 1
        return end

    def _preferred(self, alive: _Alive, start: int) -> int:
        """The end of the match that Perl's preferences choose at `start`, where one begins."""
        outs, memo = self.nfa.outs, self._first_memo
        state, at = self.nfa.start, start
        while True:
            states, holds = alive.at(at)
            key = (state, states, holds)
            chosen = memo.get(key)
            if chosen is None:
                if len(memo) >= self.memo_max:
                    memo.clear()
                chosen = memo[key] = self._choose(*key)
            if chosen == ACCEPT:
                return at
            state = outs[chosen][0]
            at += 1

    def _choose(self, state: int, states: int, holds: int) -> int:
        """The most preferred of the states reached without reading that accept, or are alive and read."""
        nfa, seen = self.nfa, set[int]()
        pending = [state]
        while pending:
            q = pending.pop()
            if q == ACCEPT or (nfa.reads[q] is not None and states >> q & 1):
                return q
            if q not in seen and nfa.reads[q] is None and not nfa.needs[q] & ~holds:
                seen.add(q)
                pending.extend(reversed(nfa.outs[q]))
        raise AssertionError("a match begins here, so something is alive")


class _Alive:
    """The alive sets of a text, block by block, so that memory does not grow with positions times states.

    One walk from the right keeps the set at the right edge of each block; a block's own sets are computed
    again, from its edge, when the walk from the left comes to it.
    """

    def __init__(self, simulation: Simulation, data: bytes) -> None:
        self.simulation, self.data = simulation, data
        self.block = simulation.block
        self.edges: dict[int, int] = {}  # block -> alive at the position after its last one
        self.number = -1
        self.sets: list[int] = []
        self.holds = b""
        self.starts = b""  # 1 where a match begins
        later = 0
        for number in range(len(data) // self.block, 0, -1):
            self.edges[number] = later
            later = self._walk(number, later, None)
        self.edges[0] = later

    def _walk(self, number: int, later: int, sets: list[int] | None) -> int:
        """Walk a block from right to left; its sets go into `sets`, rightmost first; return the leftmost."""
        simulation, data, size = self.simulation, self.data, len(self.data)
        memo, memo_max = simulation._back_memo, simulation.memo_max
        first = number * self.block
        last = min(first + self.block - 1, size)
        holds = simulation._holds(data, first, last)
        for at in range(last, first - 1, -1):
            key = (later, data[at] if at < size else _NO_BYTE, holds[at - first])
            known = memo.get(key)
            if known is None:
                if len(memo) >= memo_max:
                    memo.clear()
                known = memo[key] = simulation._back(*key)
            later = known
            if sets is not None:
                sets.append(later)
        self.holds = holds
        return later

    def _load(self, number: int) -> None:
        sets: list[int] = []
        self._walk(number, self.edges[number], sets)
        sets.reverse()
        start = self.simulation.nfa.start
        self.number, self.sets = number, sets
        self.starts = bytes(states >> start & 1 for states in sets)

    def at(self, position: int) -> tuple[int, int]:
        """(alive states, assertions that hold) at a position. Positions must not go back over a block."""
        number, offset = divmod(position, self.block)
        if number != self.number:
            self._load(number)
        return self.sets[offset], self.holds[offset]

    def next_start(self, position: int) -> int | None:
        """The first position, from `position` on, at which a match begins."""
        while position <= len(self.data):
            number, offset = divmod(position, self.block)
            if number != self.number:
                self._load(number)
            found = self.starts.find(1, offset)
            if found >= 0:
                return number * self.block + found
            position = (number + 1) * self.block
        return None


def _predecessors(nfa: NFA) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """For each state, the free and the reading states that go on to it."""
    free: dict[int, list[int]] = {}
    reading: dict[int, list[int]] = {}
    for state, outs in enumerate(nfa.outs):
        into = free if nfa.reads[state] is None else reading
        for target in outs:
            into.setdefault(target, []).append(state)
    return free, reading
