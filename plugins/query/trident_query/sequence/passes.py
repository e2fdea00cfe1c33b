"""Streaming passes over rows: the tables that kernels look up, made as the data ask, and the state of each
key.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_query.sequence import kernels, within_kernel
from trident_query.sequence.automaton import (
    EMPTY_MATCH,
    OPERATIONS_MAX,
    Anchored,
    Configurations,
    Operation,
    Threads,
)
from trident_query.sequence.kernels import MATCH_WORDS, Do, Why
from trident_query.sequence.question import KEYS_MAX, OPEN_MAX, SequenceError

#: Most entries of a table, over states and letters.
TABLE_MAX: Final = 1 << 24
#: Most distinct combinations of conditions that rows satisfy.
LETTERS_MAX: Final = 1 << 12
#: Most open starts of one key, with WITHIN.
STARTS_MAX: Final = 1_024
#: Conditions whose combinations are the symbols.
BITS_MAX: Final = 20

_ROOM: Final = 1 << 12
_NO_ENDS: Final = np.zeros(0, np.uint8)

Matches = NDArray[
    np.int64
]  # [n, 5]: key, first row, last row, 1 (0: empty, at the first row), last row's time


class Alphabet:
    """Letters of the automata: combinations of conditions, numbered as they are met. Letter 0 is the end."""

    def __init__(self, bits: int) -> None:
        if bits > BITS_MAX:
            raise SequenceError(f"{bits} conditions, more than {BITS_MAX}, the cap on sequences")
        self.of = np.full(1 << bits, -1, np.int16)
        self.symbols: list[int] = [-1]

    def add(self, symbol: int) -> None:
        if len(self.symbols) >= LETTERS_MAX:
            raise SequenceError(
                f"more than {LETTERS_MAX:,} combinations of conditions, the cap on sequences",
                hint="use fewer conditions that hold together",
            )
        self.of[symbol] = len(self.symbols)
        self.symbols.append(symbol)


class TypeAlphabet(Alphabet):
    """The same for symbols that are type letters: `bits` says which conditions each of the 256 satisfies."""

    def __init__(self, bits: list[int]) -> None:
        super().__init__(8)
        self.bits = bits

    def add(self, symbol: int) -> None:
        letters = {bits: letter for letter, bits in enumerate(self.symbols)}
        letter = letters.get(self.bits[symbol])
        if letter is None:
            super().add(symbol)
            self.symbols[-1] = self.bits[symbol]
        else:
            self.of[symbol] = letter


class Table:
    """Entries by state and letter; grows in both directions."""

    def __init__(self) -> None:
        self.width = 8
        self.entries = np.full(16 * self.width, -1, np.int32)

    def put(self, state: int, letter: int, entry: int) -> None:
        if letter >= self.width:
            self._resize(len(self.entries) // self.width, 2 * letter)
        if state * self.width + letter >= len(self.entries):
            self._resize(2 * state, self.width)
        self.entries[state * self.width + letter] = entry

    def cover(self, states: int) -> None:
        """Room for the rows of so many states."""
        if states * self.width > len(self.entries):
            self._resize(2 * states, self.width)

    def _resize(self, states: int, width: int) -> None:
        if states * width > TABLE_MAX:
            raise SequenceError(f"a table of more than {TABLE_MAX:,} entries, the cap on sequences")
        made = np.full((states, width), -1, np.int32)
        old = self.entries.reshape(-1, self.width)
        made[: len(old), : self.width] = old
        self.entries, self.width = made.reshape(-1), width


def _pool(nodes: int, words: int) -> NDArray[np.int64]:
    """Nodes in a free list: row 0 holds its head (last word) and the number of nodes in use (word 0)."""
    pool = np.zeros((nodes, words), np.int64)
    pool[:, -1] = np.arange(1, nodes + 1)
    pool[-1, -1] = -1
    return pool


def _grown(pool: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(pool) >= OPEN_MAX:
        raise SequenceError(
            f"more than {OPEN_MAX:,} matches that are not final or open starts, the cap on sequences",
            hint="bound the pattern by --within, or search a part of the day",
        )
    made = _pool(2 * len(pool), pool.shape[1])
    made[: len(pool)] = pool
    made[len(pool) :, -1] = np.append(np.arange(len(pool) + 1, 2 * len(pool)), pool[0, -1])
    made[0, -1] = len(pool)
    return made


def grow(array: NDArray[Any], keys: int, fill: int = 0) -> NDArray[Any]:
    """The array with room for so many keys."""
    if keys <= len(array):
        return array
    if keys > KEYS_MAX:
        raise SequenceError(f"more than {KEYS_MAX:,} keys at a time, the cap on sequences")
    made = np.full((max(keys, min(2 * len(array), KEYS_MAX)), *array.shape[1:]), fill, array.dtype)
    made[: len(array)] = array
    return made


class Pass:
    """One pass over rows that come in batches; any split gives the same matches.

    `count_only`: matches are counted, their rows are not kept.
    """

    def __init__(self, threads: Threads, alphabet: Alphabet, *, count_only: bool = False) -> None:
        self.alphabet, self.count_only = alphabet, count_only
        self.machine = Configurations(threads)
        self.table = Table()
        self.operations: list[Operation] = [Operation()]
        self.numbers: dict[Operation, int] = {Operation(): 0}
        self.groups, self.bundles = 1, 0
        self.total = 0
        self.state = np.zeros(1024, np.uint16)
        self.registers = np.zeros((0 if count_only else 1024, 1), np.int64)
        self.lasts = np.zeros(
            (1024 if threads.uses_end else 0, 2), np.int64
        )  # last row of each key, its time
        self.pool = _pool(_ROOM, kernels.NODE_WORDS)
        self.out = np.zeros((_ROOM, MATCH_WORDS), np.int64)
        self._encode()

    @property
    def holds_back(self) -> bool:
        """Did the pattern hold back a match so far?"""
        return self.bundles > 0

    def waiting(self) -> bool:
        """Is a match held back now?"""
        return bool(self.pool[0, 0])

    def feed(
        self, symbols: NDArray[Any], keys: NDArray[np.int32], rows: NDArray[np.int64], *, key_count: int,
        ends: NDArray[np.uint8] = _NO_ENDS, times: NDArray[np.int64] | None = None,
    ) -> Matches:  # fmt: skip
        """Rows in order: their symbols (u8/u32), keys (-1: of no partition), numbers (or one number to count
        from). The matches that are final now, in the order in which they became so."""
        self._cover(key_count)
        times = np.zeros(len(keys), np.int64) if times is None else times
        if len(self.lasts):
            self._remember_lasts(keys, rows, times)
        stop = np.zeros(8, np.int64)
        while True:
            why = self._run(symbols, keys, rows, times, ends, stop)
            if why == Why.DONE:
                break
            self._serve(why, stop)
        if self.count_only and not self.holds_back and not len(ends):
            self.total += int(stop[3])
            return self.out[:0].copy()
        self.total += int(stop[4])
        return self.out[: stop[4]].copy()

    def _run(self, symbols: Any, keys: Any, rows: Any, times: Any, ends: Any, stop: NDArray[np.int64]) -> int:
        letters, table = self.alphabet.of, self.table
        if self.count_only and not self.holds_back and not len(ends):
            return int(
                kernels.count(
                    symbols, keys, letters, table.entries, table.width, self.gains, self.state, stop
                )
            )
        if stop[3]:  # counted so far by the other kernel
            self.total += int(stop[3])
            stop[3] = 0
        if len(self.registers) < len(self.state):
            self.registers = grow(self.registers.reshape(-1, self._size()), len(self.state), -1)
        old = np.zeros(self._size(), np.int64)
        return int(
            kernels.spans(
                symbols, keys, rows, times, ends, letters, table.entries, table.width, self.starts, self.ops,
                self.state, self.registers, old, self.out, self.pool, stop,
            )
        )  # fmt: skip

    def _serve(self, why: int, stop: NDArray[np.int64]) -> None:
        if why == Why.LETTER:
            self.alphabet.add(int(stop[1]))
        elif why == Why.ENTRY:
            self._entry(int(stop[1]), int(stop[2]))
        elif why == Why.OUT:
            made = np.zeros((max(2 * len(self.out), 2 * int(self.pool[0, 0])), MATCH_WORDS), np.int64)
            made[: len(self.out)] = self.out
            self.out = made
        else:
            self.pool = _grown(self.pool)

    def _entry(self, state: int, letter: int) -> None:
        if letter == 0:
            following, operation = 0, self.machine.finish(state)
        else:
            following, operation = self.machine.step(state, self.alphabet.symbols[letter])
        number = self.numbers.get(operation)
        if number is None:
            if len(self.operations) > OPERATIONS_MAX:
                raise SequenceError(f"more than {OPERATIONS_MAX:,} operations, the cap on sequences")
            number = self.numbers[operation] = len(self.operations)
            self.operations.append(operation)
            self._layout(len(operation.groups), len(operation.bundles))
            self._encode()
        self.table.cover(len(self.machine.states))
        self.table.put(state, letter, number << 16 | following)

    def _size(self) -> int:
        return self.groups + 2 * self.bundles

    def _layout(self, groups: int, bundles: int) -> None:
        """Registers for so many groups and bundles; what is in them moves along."""
        groups, bundles = max(groups, self.groups), max(bundles, self.bundles)
        if (groups, bundles) == (self.groups, self.bundles):
            return
        made = np.full((len(self.registers), groups + 2 * bundles), -1, np.int64)
        if len(made):
            made[:, : self.groups] = self.registers[:, : self.groups]
            made[:, groups : groups + 2 * self.bundles] = self.registers[:, self.groups :]
        self.groups, self.bundles, self.registers = groups, bundles, made

    def _encode(self) -> None:
        """Operations as the kernels read them."""
        coded = [self._instructions(operation) for operation in self.operations]
        self.starts = np.cumsum([0, *map(len, coded)]).astype(np.int32)
        self.ops = np.array([each for one in coded for each in one], np.int32).reshape(-1, 3)
        self.gains = np.array(
            [sum(not isinstance(what, tuple) for what in operation.emits) for operation in self.operations],
            np.int32,
        )

    def _instructions(self, operation: Operation) -> list[tuple[int, int, int]]:
        def register(bundle: int) -> int:
            return self.groups + 2 * bundle

        made: list[tuple[int, int, int]] = []
        for what in operation.emits:
            if isinstance(what, tuple):
                made.append((Do.EMIT_BUNDLE, 0, register(what[1])))
            else:
                made.append((Do.EMIT_EMPTY, 0, 0) if what == EMPTY_MATCH else (Do.EMIT, 0, what))
        made += [(Do.DROP, 0, register(bundle)) for bundle in operation.drops]
        for new, source in enumerate(operation.groups):
            if source != new:
                made.append((Do.START, new, 0) if source < 0 else (Do.MOVE, new, source))
        for bundle, parts in enumerate(operation.bundles):
            if parts == (("bundle", bundle),):
                continue
            made.append((Do.NEW, register(bundle), 0))
            for part in parts:
                if isinstance(part, tuple):
                    made.append((Do.JOIN, register(bundle), register(part[1])))
                else:
                    push = (Do.PUSH_EMPTY, register(bundle), 0)
                    made.append(push if part == EMPTY_MATCH else (Do.PUSH, register(bundle), part))
        return made

    def _cover(self, keys: int) -> None:
        self.state = grow(self.state, keys)
        if not self.count_only or self.holds_back:
            self.registers = grow(self.registers, keys, -1)
        if len(self.lasts):
            self.lasts = grow(self.lasts, keys)

    def _remember_lasts(
        self, keys: NDArray[np.int32], rows: NDArray[np.int64], times: NDArray[np.int64]
    ) -> None:
        numbers = rows if len(rows) > 1 else rows[0] + np.arange(len(keys), dtype=np.int64)
        inside = keys >= 0
        self.lasts[keys[inside], 0] = numbers[inside]  # the last of equal keys stays
        self.lasts[keys[inside], 1] = times[inside]

    def finish(self, keys: NDArray[np.int64] | None = None) -> Matches:
        """The partitions of these keys (all) end: what was held back is final."""
        if keys is None:
            keys = np.flatnonzero(self.state)
        if not len(keys):
            return self.out[:0].copy()
        wanted = keys.astype(np.int32)
        # A partition's end is a row that moves nothing but the end itself.
        lasts = self.lasts[wanted] if len(self.lasts) else np.zeros((len(wanted), 2), np.int64)
        rows, times = lasts[:, 0].copy(), lasts[:, 1].copy()
        stop = np.zeros(8, np.int64)
        while True:
            if len(self.registers) < len(self.state):
                self.registers = grow(self.registers, len(self.state), -1)
            old = np.zeros(self._size(), np.int64)
            why = kernels.finish(
                wanted, rows, times, self.table.entries, self.table.width, self.starts, self.ops, self.state,
                self.registers, old, self.out, self.pool, stop,
            )  # fmt: skip
            if why == Why.DONE:
                break
            self._serve(why, stop)
        self.total += int(stop[4])
        return self.out[: stop[4]].copy()


class WithinPass:
    """The same for a pattern whose matches may take `within` ns at most."""

    def __init__(
        self, threads: Threads, alphabet: Alphabet, within: int, *, count_only: bool = False
    ) -> None:
        self.alphabet, self.within, self.count_only = alphabet, within, count_only
        self.machine = Anchored(threads)
        self.table = Table()
        starts = [self.machine.start(first=first) for first in (False, True)]
        self.fresh = np.array([(state, found) for state, found in starts], np.int64)
        self.total = 0
        self.heads = np.full(1024, -1, np.int64)
        self.seen = np.zeros(1024, np.uint8)
        self.lasts = np.zeros(
            (1024 if threads.uses_end else 0, 2), np.int64
        )  # last row of each key, its time
        self.pool = _pool(_ROOM, within_kernel.NODE_WORDS)
        self.out = np.zeros((_ROOM, MATCH_WORDS), np.int64)

    def waiting(self) -> bool:
        """Is a match held back now?"""
        return bool(self.pool[1:, 4].any())

    def feed(
        self, symbols: NDArray[Any], keys: NDArray[np.int32], rows: NDArray[np.int64], *, key_count: int,
        ends: NDArray[np.uint8] = _NO_ENDS, times: NDArray[np.int64] | None = None,
    ) -> Matches:  # fmt: skip
        """As `Pass.feed`; `times`: i64[n], ns, not falling."""
        assert times is not None
        self.heads, self.seen = grow(self.heads, key_count, -1), grow(self.seen, key_count)
        if len(self.lasts):
            self.lasts = grow(self.lasts, key_count)
            Pass._remember_lasts(self, keys, rows, times)  # type: ignore[arg-type]
        stop = np.zeros(8, np.int64)
        while True:
            why = within_kernel.spans_within(
                symbols, keys, rows, times, ends, self.alphabet.of, self.table.entries, self.table.width,
                self.fresh, self._finals(), self.within, STARTS_MAX, self.seen, self.heads, self.out,
                self.pool, stop,
            )  # fmt: skip
            if why == Why.DONE:
                break
            self._serve(why, stop)
        self.total += int(stop[4])
        return self.out[: stop[4]].copy()

    def _finals(self) -> NDArray[np.uint8]:
        return np.array([self.machine.finish(state) for state in range(len(self.machine.states))], np.uint8)

    def _serve(self, why: int, stop: NDArray[np.int64]) -> None:
        if why == Why.ENTRY:
            following, found = self.machine.step(int(stop[1]), self.alphabet.symbols[int(stop[2])])
            self.table.cover(len(self.machine.states))
            self.table.put(int(stop[1]), int(stop[2]), int(found) << 16 | following)
        elif why == 5:
            raise SequenceError(
                f"more than {STARTS_MAX:,} open starts of a key within {self.within} ns, the cap on starts",
                hint="begin the pattern with a rarer row, or shorten --within",
            )
        else:
            Pass._serve(self, why, stop)  # type: ignore[arg-type]

    def finish(self, keys: NDArray[np.int64] | None = None) -> Matches:
        """The partitions of these keys (all) end."""
        wanted = np.flatnonzero(self.heads >= 0) if keys is None else np.asarray(keys, np.int64)
        room = int(self.pool[0, 0]) + 2
        if len(self.out) < room:
            self.out = np.zeros((room, MATCH_WORDS), np.int64)
        stop = np.zeros(8, np.int64)
        lasts = self.lasts[wanted] if len(self.lasts) else np.zeros((len(wanted), 2), np.int64)
        rows, times = lasts[:, 0].copy(), lasts[:, 1].copy()
        within_kernel.finish_within(
            wanted, rows, times, self._finals(), self.heads, self.out, self.pool, stop
        )
        self.seen[wanted] = 0
        if keys is None:
            self.seen[:] = 0
        self.total += int(stop[4])
        return self.out[: stop[4]].copy()
