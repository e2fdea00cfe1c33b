"""The streaming pass: the tables that its kernels look up, made as the data ask, and a state for each key."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_query.sequence import kernels
from trident_query.sequence.alphabet import Alphabet
from trident_query.sequence.automaton import Configurations, Operation, Threads
from trident_query.sequence.kernels import Why
from trident_query.sequence.operations import Operations
from trident_query.sequence.room import grow
from trident_query.sequence.single_kernel import ROW_END, single
from trident_query.sequence.walk import KEYS, NO_ENDS, NO_TIME, Matches, Walk


class Pass(Walk):
    """One pass over rows that come in batches; any split gives the same matches.

    `count_only`: matches are counted, their rows are not kept.
    """

    def __init__(self, threads: Threads, alphabet: Alphabet, *, count_only: bool = False) -> None:
        super().__init__(threads, alphabet, kernels.NODE_WORDS, count_only=count_only)
        self.machine = Configurations(threads)
        self.operations = Operations()
        self.state = np.zeros(KEYS, np.uint16)
        self.registers = np.zeros((0 if count_only else KEYS, 1), np.int64)
        self.queue = np.zeros(2 * kernels.BLOCK, np.int64)
        #: States and registers in one, while one register is enough; `state` and `registers` are unused then.
        self.cells: NDArray[np.int64] | None = None
        if not count_only:
            self._join()

    def _join(self) -> None:
        """State and register of each key as one cell, if the operations met so far allow it."""
        operations = self.operations
        # Where `$` may match, a partition's end may give a match.
        if self.machine.threads.uses_end or not operations.single or not _fit(self.registers):
            return
        first_rows = np.zeros(len(self.state), np.int64)
        first_rows[: len(self.registers)] = self.registers[:, 0]
        self.cells = first_rows << 16 | self.state
        self.state, self.registers = self.state[:0], self.registers[:0]

    def _part(self) -> None:
        """State and registers by themselves again."""
        if self.cells is not None:
            self.state, self.registers = self.parts()
            self.cells = None

    def parts(self) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
        """The state and the registers of all keys."""
        if self.cells is None:
            return self.state, self.registers
        return (self.cells & 0xFFFF).astype(np.uint16), (self.cells >> 16).reshape(-1, 1)

    def restore(self, state: NDArray[np.uint16], registers: NDArray[np.int64]) -> None:
        """Go on with the parts of another pass that met the same states, groups and bundles."""
        self.state, self.registers, self.cells = state, registers, None
        if not self.count_only:
            self._join()

    def under_way(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of these keys whose partition may still give a match."""
        states = self.state[keys] if self.cells is None else self.cells[keys] & 0xFFFF
        made: NDArray[np.int64] = keys[states != 0]
        return made

    @property
    def holds_back(self) -> bool:
        """Did the pattern hold back a match so far?"""
        return self.operations.bundles > 0

    def waiting(self) -> bool:
        """Is a match held back now?"""
        return bool(self.pool[0, 0])

    def feed(
        self, symbols: NDArray[Any], keys: NDArray[np.int32], rows: NDArray[np.int64], *, key_count: int,
        ends: NDArray[np.uint8] = NO_ENDS, times: NDArray[np.int64] = NO_TIME,
    ) -> Matches:  # fmt: skip
        """Rows in order: their symbols (u8/u32), keys (-1: of no partition), numbers (or one number to count
        from), times (or the time of all). The matches that are final now, in the order in which they became
        so."""
        self._make_room(key_count, rows, len(keys))
        self.remember_lasts(keys, rows, times, key_count)
        stop = np.zeros(8, np.int64)
        while True:
            why = self._run(symbols, keys, rows, times, ends, stop)
            if why == Why.DONE:
                break
            self.serve(why, stop)
        self.total += int(stop[3])
        return self.given(stop)

    def _make_room(self, key_count: int, rows: NDArray[np.int64], n: int) -> None:
        if self.cells is not None and not (_fit(rows) and _fit(rows[-1:] + n)):
            self._part()
        if self.cells is not None:
            self.cells = grow(self.cells, key_count)
            return
        self.state = grow(self.state, key_count)
        if not self.count_only or self.holds_back:
            self.registers = grow(self.registers, key_count, -1)

    def _run(self, symbols: Any, keys: Any, rows: Any, times: Any, ends: Any, stop: NDArray[np.int64]) -> int:
        letters, table, operations = self.alphabet.of, self.table, self.operations
        if self.cells is not None:
            return int(
                single(
                    symbols, keys, rows, times, ends, letters, table.singles, table.width, self.cells,
                    self.queue, self.out, stop,
                )
            )  # fmt: skip
        if self.count_only and not self.holds_back and not len(ends):
            return int(kernels.count(symbols, keys, letters, table.counts, table.width, self.state, stop))
        self._cover_registers()
        old = np.zeros(operations.size, np.int64)
        return int(
            kernels.spans(
                symbols, keys, rows, times, ends, letters, table.entries, table.closing, table.width,
                operations.words, operations.starts, operations.ops, self.state, self.registers, old,
                self.queue, self.out, self.pool, stop,
            )
        )  # fmt: skip

    def _cover_registers(self) -> None:
        """Registers for all keys, where only states were kept so far."""
        if len(self.registers) < len(self.state):
            self.registers = grow(self.registers.reshape(-1, self.operations.size), len(self.state), -1)

    def enter(self, state: int, letter: int) -> None:
        if letter == 0:
            self.table.close(state, self._numbered(self.machine.finish(state)))
            return
        following, operation = self.machine.step(state, self.alphabet.symbols[letter])
        number = self._numbered(operation)
        self.table.cover(len(self.machine.states))
        operations = self.operations
        self.table.put(state, letter, number, following, operations.matches(number), operations.flags(number))

    def _numbered(self, operation: Operation) -> int:
        before = self.operations.groups, self.operations.bundles
        number = self.operations.number(operation)
        if not self.operations.single:
            self._part()
        self._lay_out(*before)
        return number

    def _lay_out(self, groups: int, bundles: int) -> None:
        """Registers for more groups and bundles than these; what is in them moves along."""
        now = self.operations
        if (groups, bundles) == (now.groups, now.bundles):
            return
        made = np.full((len(self.registers), now.size), -1, np.int64)
        if len(made):
            made[:, :groups] = self.registers[:, :groups]
            made[:, now.groups : now.groups + 2 * bundles] = self.registers[:, groups:]
        self.registers = made

    def finish(self, keys: NDArray[np.int64] | None = None) -> Matches:
        """The partitions of these keys (all) end: what was held back is final."""
        if self.cells is not None:  # no match is held back, and none waits for the end
            self.cells[slice(None) if keys is None else keys] = 0
            return self.out[:0].copy()
        if keys is None:
            keys = np.flatnonzero(self.state)
        if not len(keys):
            return self.out[:0].copy()
        # A partition's end is a row that moves nothing but the end itself.
        rows, times = self.last_rows(keys)
        stop = np.zeros(8, np.int64)
        while True:
            self._cover_registers()
            operations, table = self.operations, self.table
            old = np.zeros(operations.size, np.int64)
            why = kernels.finish(
                keys.astype(np.int32), rows, times, table.closing, operations.starts, operations.ops,
                self.state, self.registers, old, self.out, self.pool, stop,
            )  # fmt: skip
            if why == Why.DONE:
                return self.given(stop)
            self.serve(why, stop)


def _fit(rows: NDArray[np.int64]) -> bool:
    """Do cells have room for these numbers?"""
    return not rows.size or (int(rows.min()) >= -ROW_END and int(rows.max()) < ROW_END)
