"""What both streaming passes share: partitions' last rows, and the answers to a kernel that stopped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_query.sequence import room
from trident_query.sequence.alphabet import Alphabet, Table
from trident_query.sequence.automaton import Threads
from trident_query.sequence.kernels import MATCH_WORDS, Why

#: Matches and nodes that there is room for at first.
ROOM: Final = 1 << 12
#: Keys that there is room for at first.
KEYS: Final = 1 << 10
NO_ENDS: Final = np.zeros(0, np.uint8)
NO_TIME: Final = np.zeros(1, np.int64)

#: [n, 5]: key, first row, last row, 1 (0: empty, at the first row), last row's time
Matches = NDArray[np.int64]


class Walk(ABC):
    """A pass over rows that come in batches: its alphabet, table, pool of nodes and room for matches."""

    def __init__(self, threads: Threads, alphabet: Alphabet, words: int, *, count_only: bool) -> None:
        self.alphabet, self.count_only = alphabet, count_only
        self.table = Table()
        self.total = 0
        # The last row of each key and its time, where `$` may ask for it.
        self.lasts = np.zeros((KEYS if threads.uses_end else 0, 2), np.int64)
        self.pool = room.pool(ROOM, words)
        self.out = np.zeros((ROOM, MATCH_WORDS), np.int64)

    def serve(self, why: int, stop: NDArray[np.int64]) -> None:
        """Give a kernel what it stopped for."""
        if why == Why.LETTER:
            self.alphabet.add(int(stop[1]))
        elif why == Why.ENTRY:
            self.enter(int(stop[1]), int(stop[2]))
        elif why == Why.OUT:
            made = np.empty((max(2 * len(self.out), 2 * int(self.pool[0, 0])), MATCH_WORDS), np.int64)
            made[: len(self.out)] = self.out
            self.out = made
        else:
            self.pool = room.grown(self.pool)

    @abstractmethod
    def enter(self, state: int, letter: int) -> None:
        """Make the entry of a state and a letter."""

    def given(self, stop: NDArray[np.int64]) -> Matches:
        """The matches that a kernel gave, in an array that it does not write to again."""
        n = int(stop[4])
        self.total += n
        if 2 * n < len(self.out):
            return self.out[:n].copy()
        made, self.out = self.out[:n], np.empty_like(self.out)
        return made

    def remember_lasts(
        self, keys: NDArray[np.int32], rows: NDArray[np.int64], times: NDArray[np.int64], key_count: int
    ) -> None:
        if not len(self.lasts):
            return
        self.lasts = room.grow(self.lasts, key_count)
        numbers = rows if len(rows) > 1 else rows[0] + np.arange(len(keys), dtype=np.int64)
        inside = keys >= 0
        self.lasts[keys[inside], 0] = numbers[inside]  # the last of equal keys stays
        self.lasts[keys[inside], 1] = np.broadcast_to(times, len(keys))[inside]

    def last_rows(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The last row of each key and its time; zeros where nothing asks for them."""
        lasts = self.lasts[keys] if len(self.lasts) else np.zeros((len(keys), 2), np.int64)
        return lasts[:, 0].copy(), lasts[:, 1].copy()
