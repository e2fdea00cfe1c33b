"""The table `depth`, fast: from the records of any book, without asking it for levels after every event."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EFFECT, TOP, Effects, Events, Tops
from trident_core.session import Session
from trident_core.tables import ladder_kernel as k
from trident_core.tables import refs
from trident_core.tables.common import Table, check, fill_head
from trident_core.tables.levels import depth_dtype
from trident_core.tables.numbering import Symbols


class Ladder:
    """The best n levels of both sides after each event that changes them: the rows of `levels.DepthTable`.

    Give it every batch of a session from the first on. Memory: 48 bytes for each live order, 24 for each
    level (both at most doubled by growth), and 48 n for each symbol. A level's place is searched from the
    best, so a book of many levels that is hit far from its touch costs time linear in that distance.
    Raises UsageError unless 1 <= n <= levels.DEPTH_MAX.
    """

    def __init__(self, session: Session, n: int = 10) -> None:
        self.dtype = depth_dtype(n)
        self.n = n
        self._session = session
        self._keys, self._slots = refs.empty()
        self._symbols = Symbols()
        self._orders: k.I64 = np.zeros((0, 3), np.int64)
        self._free: NDArray[np.int32] = np.zeros(0, np.int32)
        self._levels: k.I64 = np.zeros((1 << 12, 3), np.int64)
        self._sides: k.I64 = np.zeros((0, 3), np.int64)
        self._dirty: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._shown: k.I64 = np.zeros((0, 6 * n), np.int64)
        self._state: k.I64 = np.zeros(k.STATE_SLOTS, np.int64)

    def apply(self, events: Events, effects: Effects, tops: Tops) -> Table:
        """Rows of `depth_dtype(n)` for one batch. Raises UsageError for other arrays."""
        check(events, (effects, EFFECT), (tops, TOP))
        symbols = self._symbols.numbers(tops["locate"])
        self._more_symbols()
        self._make_room(len(events))
        rows = np.zeros((len(events), 6 * self.n), np.int64)
        at = np.zeros(len(events), np.int64)
        words = np.ascontiguousarray(events).view(np.int64).reshape(-1, 8)
        did = np.ascontiguousarray(effects).view(np.int64).reshape(-1, 4)
        self._state[k.NEXT] = self._state[k.ROWS] = 0
        while True:
            k.climb(
                words, events["type"], symbols, did, effects["outcome"], effects["side"], self.n,
                self._orders, self._free, self._keys, self._slots, self._levels, self._sides, self._state,
                self._dirty, self._shown, rows, at,
            )  # fmt: skip
            if self._state[k.NEXT] == len(events):
                break
            self._repack()
        count = int(self._state[k.ROWS])
        return self._table(tops[at[:count]], rows[:count])

    def warm_up(self) -> None:
        """Compile, or load, the kernels that only growth calls; see `trident_core.contracts.Warmable`."""
        refs.warm_up()
        k.repack(self._levels, self._sides[:0], self._levels)

    def _table(self, tops: Tops, numbers: k.I64) -> Table:
        made = np.zeros(len(tops), self.dtype)
        fill_head(made, tops, self._session)
        for j, name in enumerate((self.dtype.names or ())[3:]):
            made[name] = numbers[:, j]
        return made

    def _more_symbols(self) -> None:
        old, size = len(self._dirty), len(self._symbols)
        if size <= old:
            return
        size = max(size, 2 * old)
        for name, shape in (("_sides", (2 * size, 3)), ("_dirty", (size,)), ("_shown", (size, 6 * self.n))):
            array = getattr(self, name)
            larger = np.zeros(shape, array.dtype)
            larger[: len(array)] = array
            setattr(self, name, larger)

    def _make_room(self, events: int) -> None:
        living = int(self._state[k.LIVING])
        self._keys, self._slots = refs.grown(self._keys, self._slots, living + events)
        kept = int(self._state[k.FREE])
        if kept < events:
            old = len(self._orders)
            size = max(2 * old, living + events)
            orders, free = np.zeros((size, 3), np.int64), np.zeros(size, np.int32)
            orders[:old] = self._orders
            free[: size - old] = np.arange(old, size)
            free[size - old : size - old + kept] = self._free[:kept]
            self._orders, self._free = orders, free
            self._state[k.FREE] += size - old

    def _repack(self) -> None:
        in_use = int(self._sides[:, k.CAPACITY].sum())
        needed = in_use + 2 * int(self._sides[:, k.CAPACITY].max(initial=0)) + k.FIRST_LEVELS
        larger = np.zeros((max(2 * needed, len(self._levels)), 3), np.int64)
        self._state[k.USED] = k.repack(self._levels, self._sides, larger)
        self._levels = larger
