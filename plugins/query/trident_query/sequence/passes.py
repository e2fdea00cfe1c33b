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
        self.queue = np.zeros(2 * kernels.BLOCK, np.int64)
        self.registers = np.zeros((0 if count_only else KEYS, 1), np.int64)

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
        self.state = grow(self.state, key_count)
        if not self.count_only or self.holds_back:
            self.registers = grow(self.registers, key_count, -1)
        self.remember_lasts(keys, rows, times, key_count)
        stop = np.zeros(8, np.int64)
        while True:
            why = self._run(symbols, keys, rows, times, ends, stop)
            if why == Why.DONE:
                break
            self.serve(why, stop)
        self.total += int(stop[3])
        return self.given(stop)

    def _run(self, symbols: Any, keys: Any, rows: Any, times: Any, ends: Any, stop: NDArray[np.int64]) -> int:
        letters, table, operations = self.alphabet.of, self.table, self.operations
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
        self.table.put(state, letter, number, following, self.operations.matches(number))

    def _numbered(self, operation: Operation) -> int:
        before = self.operations.groups, self.operations.bundles
        number = self.operations.number(operation)
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
