"""The streaming pass for patterns with WITHIN: open starts of each key, one by one."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_query.sequence import within_kernel
from trident_query.sequence.alphabet import Alphabet
from trident_query.sequence.automaton import Anchored, Threads
from trident_query.sequence.kernels import MATCH_WORDS, Why
from trident_query.sequence.question import SequenceError
from trident_query.sequence.room import grow
from trident_query.sequence.walk import KEYS, NO_ENDS, NO_TIME, Matches, Walk

#: Most open starts of one key.
STARTS_MAX: Final = 1_024
#: Why the kernel stops beside the reasons of the other pass: a key has too many open starts.
_STARTS: Final = 5


class WithinPass(Walk):
    """As `Pass`, for a pattern whose matches may take `within` ns at most."""

    def __init__(
        self, threads: Threads, alphabet: Alphabet, within: int, *, count_only: bool = False
    ) -> None:
        super().__init__(threads, alphabet, within_kernel.NODE_WORDS, count_only=count_only)
        self.within = within
        self.machine = Anchored(threads)
        starts = [self.machine.start(first=first) for first in (False, True)]
        self.fresh = np.array([(state, found) for state, found in starts], np.int64)
        self.heads = np.full(KEYS, -1, np.int64)
        self.seen = np.zeros(KEYS, np.uint8)

    def waiting(self) -> bool:
        """Is a match held back now?"""
        return bool(self.pool[1:, 4].any())

    def under_way(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of these keys whose partition has begun."""
        made: NDArray[np.int64] = keys[(self.heads[keys] >= 0) | (self.seen[keys] != 0)]
        return made

    def feed(
        self, symbols: NDArray[Any], keys: NDArray[np.int32], rows: NDArray[np.int64], *, key_count: int,
        ends: NDArray[np.uint8] = NO_ENDS, times: NDArray[np.int64] = NO_TIME,
    ) -> Matches:  # fmt: skip
        """As `Pass.feed`; `times`: i64[n], ns, not falling."""
        self.heads, self.seen = grow(self.heads, key_count, -1), grow(self.seen, key_count)
        self.remember_lasts(keys, rows, times, key_count)
        stop = np.zeros(8, np.int64)
        while True:
            why = within_kernel.spans_within(
                symbols, keys, rows, times, ends, self.alphabet.of, self.table.entries, self.table.width,
                self.fresh, self._finals(), self.within, STARTS_MAX, self.seen, self.heads, self.out,
                self.pool, stop,
            )  # fmt: skip
            if why == Why.DONE:
                return self.given(stop)
            if why == _STARTS:
                raise SequenceError(
                    f"more than {STARTS_MAX:,} open starts of a key within {self.within} ns, the cap on them",
                    hint="begin the pattern with a rarer row, or shorten --within",
                )
            self.serve(why, stop)

    def _finals(self) -> NDArray[np.uint8]:
        return np.array([self.machine.finish(state) for state in range(len(self.machine.states))], np.uint8)

    def enter(self, state: int, letter: int) -> None:
        following, found = self.machine.step(state, self.alphabet.symbols[letter])
        self.table.cover(len(self.machine.states))
        self.table.put(state, letter, int(found), following)

    def finish(self, keys: NDArray[np.int64] | None = None) -> Matches:
        """The partitions of these keys (all) end."""
        wanted = np.flatnonzero(self.heads >= 0) if keys is None else np.asarray(keys, np.int64)
        most = int(self.pool[0, 0]) + 2
        if len(self.out) < most:
            self.out = np.zeros((most, MATCH_WORDS), np.int64)
        stop = np.zeros(8, np.int64)
        rows, times = self.last_rows(wanted)
        within_kernel.finish_within(
            wanted, rows, times, self._finals(), self.heads, self.out, self.pool, stop
        )
        self.seen[wanted] = 0
        if keys is None:
            self.seen[:] = 0
        return self.given(stop)
