"""The table `depth`, fast: from the records of any book, without asking it for levels after every event."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EFFECT, TOP, Effects, Events, Tops
from trident_core.session import Session
from trident_core.tables import ladder_kernel as k
from trident_core.tables.common import Table, check, fill_head
from trident_core.tables.levels import depth_dtype
from trident_core.tables.pools import BookPools, grown


class Ladder:
    """The best n levels of both sides after each event that changes them: the rows of `levels.DepthTable`.

    Give it every batch of a session from the first on. Memory: that of `BookPools`, and 48 n for each symbol.
    A level's place is searched from the best, so a book of many levels that is hit far from its touch costs
    time linear in that distance.
    Raises UsageError unless 1 <= n <= levels.DEPTH_MAX.
    """

    def __init__(self, session: Session, n: int = 10) -> None:
        self.dtype = depth_dtype(n)
        self.n = n
        self._session = session
        self._pools = BookPools()
        self._dirty: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._shown: k.I64 = np.zeros((0, 6 * n), np.int64)

    def apply(self, events: Events, effects: Effects, tops: Tops) -> Table:
        """Rows of `depth_dtype(n)` for one batch. Raises UsageError for other arrays."""
        check(events, (effects, EFFECT), (tops, TOP))
        pools, state = self._pools, self._pools.state
        symbols = pools.symbols.numbers(tops["locate"])
        room = pools.make_room(len(events))
        if room > len(self._dirty):
            self._dirty, self._shown = grown(self._dirty, room), grown(self._shown, room)
        rows = np.zeros((len(events), 6 * self.n), np.int64)
        at = np.zeros(len(events), np.int64)
        words = np.ascontiguousarray(events).view(np.int64).reshape(-1, 8)
        did = np.ascontiguousarray(effects).view(np.int64).reshape(-1, 4)
        state[k.NEXT] = state[k.ROWS] = 0
        while True:
            k.climb(
                words, events["type"], symbols, did, effects["outcome"], effects["side"], self.n,
                pools.orders, pools.free, pools.keys, pools.slots, pools.levels, pools.sides, state,
                self._dirty, self._shown, rows, at,
            )  # fmt: skip
            if state[k.NEXT] == len(events):
                break
            pools.repack()
        count = int(state[k.ROWS])
        return self._table(tops[at[:count]], rows[:count])

    def warm_up(self) -> None:
        """Compile, or load, the kernels that only growth calls; see `trident_core.contracts.Warmable`."""
        self._pools.warm_up()

    def _table(self, tops: Tops, numbers: k.I64) -> Table:
        made = np.zeros(len(tops), self.dtype)
        fill_head(made, tops, self._session)
        for j, name in enumerate((self.dtype.names or ())[3:]):
            made[name] = numbers[:, j]
        return made
