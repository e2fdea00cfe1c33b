"""`not X within 5ms` after a match: matches wait until an X of their partition comes, or the time is over."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trident_query.sequence.kernels import MATCH_WORDS
from trident_query.sequence.question import OPEN_MAX, Absence, SequenceError
from trident_query.sequence.walk import Matches


class AbsenceFilter:
    """Lets a match through once no row of the variable can come in time any more.

    `pending`: matches that wait. `rows`: i64[n, 3], key, number and time of the variable's rows that a match
    still held back by the automaton may have to look at.
    """

    def __init__(self, absence: Absence) -> None:
        self.absence = absence
        self.pending = np.zeros((0, MATCH_WORDS), np.int64)
        self.rows = np.zeros((0, 3), np.int64)

    def feed(
        self, found: Matches, keys: NDArray[np.int32], rows: NDArray[np.int64], times: NDArray[np.int64],
        wanted: NDArray[np.bool_], ended: NDArray[np.int64], *, held: bool,
    ) -> Matches:  # fmt: skip
        """The matches that are final now. `wanted`: where the variable's condition holds; `ended`: keys whose
        partitions are over; `held`: are matches held back still?"""
        at = np.flatnonzero(wanted & (keys >= 0))
        new = np.stack([keys[at].astype(np.int64), rows[at], times[at]], axis=1)
        self.rows = np.concatenate([self.rows, new])
        waiting = np.concatenate([self.pending, found])
        until = waiting[:, 4] + self.absence.within
        empty = waiting[:, 3] == 0
        final = ~self._cancelled(waiting, until) | empty
        over = (until < times[-1]) | np.isin(waiting[:, 0], ended) | empty
        self.pending = waiting[final & ~over]
        self.rows = self.rows[~np.isin(self.rows[:, 0], ended)] if held else self.rows[:0]
        if max(len(self.pending), len(self.rows)) > OPEN_MAX:
            raise SequenceError(
                f"more than {OPEN_MAX:,} matches or rows wait for an absence, the cap on sequences"
            )
        made: Matches = waiting[final & over]
        return made

    def _cancelled(self, waiting: Matches, until: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Does a row of the variable come after the match, in its partition and in time?"""
        if not len(self.rows) or not len(waiting):
            return np.zeros(len(waiting), np.bool_)
        order = np.lexsort((self.rows[:, 1], self.rows[:, 0]))
        known = self.rows[order]
        # The first row of the same key behind the match's last row, by a search over (key, number).
        numbers, ranks = np.unique(np.concatenate([known[:, 1], waiting[:, 2]]), return_inverse=True)
        codes = known[:, 0] * (len(numbers) + 1) + ranks[: len(known)]
        wish = waiting[:, 0] * (len(numbers) + 1) + ranks[len(known) :] + 1
        place = np.minimum(np.searchsorted(codes, wish), len(codes) - 1)
        made: NDArray[np.bool_] = (
            (codes[place] >= wish) & (known[place, 0] == waiting[:, 0]) & (known[place, 2] <= until)
        )
        return made

    def finish(self, found: Matches) -> Matches:
        """The stream ends: nothing can come any more but what was there for matches held back."""
        empty = found[:, 3] == 0
        kept = found[~self._cancelled(found, found[:, 4] + self.absence.within) | empty]
        made = np.concatenate([self.pending, kept])
        self.pending, self.rows = self.pending[:0], self.rows[:0]
        return made
