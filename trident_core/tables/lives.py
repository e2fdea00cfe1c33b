"""The table `orders`: one row for each order's life, from its add to its end."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EFFECT, TOP, Effects, Events, Tops
from trident_core.session import Session
from trident_core.tables import lives_kernel as k
from trident_core.tables import refs
from trident_core.tables.common import HEAD, Table, check, letters

#: One order's life; `ts_event`, `seq`, `price` are those of its entry. Law: added = filled + cancelled +
#: replaced + remaining. `fate`: F filled, C cancelled, R replaced, E evicted by a duplicate reference, L live
#: at the end. Times are UTC nanoseconds, 0: never. Columns: docs/tables.md.
ORDER_LIFE: Final = np.dtype(
    [
        *HEAD,
        ("order_id", "<u8"), ("side", "S1"), ("price", "<i8"), ("mpid", "S4"),
        ("queue_position", "<u4"), ("queue_ahead", "<u8"),
        ("added", "<u8"), ("filled", "<u8"), ("cancelled", "<u8"), ("replaced", "<u8"), ("remaining", "<u8"),
        ("fills", "<u4"), ("first_fill_ts", "<i8"),
        ("replaced_from", "<u8"), ("replaced_by", "<u8"), ("origin", "<u8"),
        ("fate", "S1"), ("end_ts", "<i8"), ("end_seq", "<u8"), ("lifetime_ns", "<u8"),
    ]
)  # fmt: skip

_SAME: Final = (
    "seq", "locate", "price", "added", "filled", "cancelled", "replaced", "remaining", "fills",
    "replaced_from", "replaced_by", "origin", "end_seq",
)  # fmt: skip


class OrderLives:
    """Follows orders batch by batch; rows come when an order ends, in the order of their ends.

    Give it every batch of a session from the first on, with the tops and effects of the same `Book.apply`.
    Memory: about 300 bytes for each live order, none for those that ended.
    """

    dtype = ORDER_LIFE

    def __init__(self, session: Session) -> None:
        self._session = session
        self._keys, self._slots = refs.empty()
        self._lives: Table = np.zeros(0, k.LIFE)
        self._free: NDArray[np.int32] = np.zeros(0, np.int32)
        self._places: Table = np.zeros(refs.CAPACITY_MIN, k.PLACE)
        self._state: NDArray[np.int64] = np.zeros(k.STATE_SLOTS, np.int64)
        self._ended: Table = np.zeros(0, k.LIFE)

    def apply(self, events: Events, effects: Effects, tops: Tops) -> Table:
        """ORDER_LIFE[k]: the orders that ended in this batch. Raises UsageError for other arrays."""
        check(events, (effects, EFFECT), (tops, TOP))
        self._make_room(len(events))
        self._state[k.ENDED] = 0
        words = np.ascontiguousarray(events).view(np.int64).reshape(-1, 8)
        effects = np.ascontiguousarray(effects)
        k.follow(
            events["type"], words, events["side"], tops["locate"], effects.view(np.int64).reshape(-1, 4),
            effects.view(np.uint32).reshape(-1, 8)[:, 6], effects["outcome"], effects["flags"],
            self._lives, self._free, self._state, self._keys, self._slots, self._places, self._ended,
        )  # fmt: skip
        return self._rows(self._ended[: self._state[k.ENDED]])

    def finish(self) -> Table:
        """ORDER_LIFE[k]: the orders that still live, by their entry."""
        slots = self._slots[self._slots >= 0]
        living = self._lives[slots]
        return self._rows(living[np.argsort(living["seq"].view(np.uint64), kind="stable")])

    def live(self) -> int:
        """How many orders are followed now."""
        return int(self._state[k.LIVING])

    def warm_up(self) -> None:
        """Compile, or load, the kernels that only growth calls; see `trident_core.contracts.Warmable`."""
        refs.warm_up()
        k.copy_places(self._places[:0], self._places)

    def _make_room(self, events: int) -> None:
        living = int(self._state[k.LIVING])
        self._keys, self._slots = refs.grown(self._keys, self._slots, living + events)
        if int(self._state[k.FREE]) < events:
            old = len(self._lives)
            size = max(2 * old, living + events)
            lives, free = np.zeros(size, k.LIFE), np.zeros(size, np.int32)
            lives[:old] = self._lives
            fresh, kept = size - old, int(self._state[k.FREE])
            free[:fresh] = np.arange(size - 1, old - 1, -1)
            free[fresh : fresh + kept] = self._free[:kept]
            self._lives, self._free = lives, free
            self._state[k.FREE] += fresh
        size = len(self._places)
        while size < 2 * (int(self._state[k.PLACES]) + events):
            size *= 2
        if size > len(self._places):
            larger = np.zeros(size, k.PLACE)
            k.copy_places(self._places, larger)
            self._places = larger
        if len(self._ended) < 2 * events:
            self._ended = np.zeros(2 * events, k.LIFE)

    def _rows(self, lives: NDArray[Any]) -> Table:
        midnight = self._session.midnight_ns()
        rows = np.zeros(len(lives), ORDER_LIFE)
        for name in _SAME:
            rows[name] = lives[name].astype(ORDER_LIFE[name], copy=False)
        rows["ts_event"] = lives["ts"] + midnight
        rows["order_id"] = lives["ref"]
        rows["side"] = letters(lives["side"])
        mpids = lives["mpid"].astype("<u4").view("S4")
        rows["mpid"] = np.strings.rstrip(mpids)
        rows["queue_position"], rows["queue_ahead"] = lives["position"], lives["ahead"]
        rows["fate"] = letters(lives["fate"])
        rows["first_fill_ts"] = np.where(lives["fills"] > 0, lives["first_fill_ts"] + midnight, 0)
        over = lives["fate"] != k.LIVE
        rows["end_ts"] = np.where(over, lives["end_ts"] + midnight, 0)
        rows["lifetime_ns"] = np.where(over, lives["end_ts"] - lives["ts"], 0)
        return rows
