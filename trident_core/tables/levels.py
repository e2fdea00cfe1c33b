"""The table `depth`: the best n levels of both sides. This is its law, plain and slow; `ladder` is fast."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.contracts import Book
from trident_core.dtypes import TOP, Events, Levels
from trident_core.errors import UsageError
from trident_core.tables.common import HEAD, Table, check

#: `depth` names its columns with two digits.
DEPTH_MAX: Final = 100


def depth_dtype(n: int) -> np.dtype[Any]:
    """The row of an n-level depth table: bid_px_00 bid_sz_00 bid_ct_00 ask_px_00 … ask_ct_{n-1}.

    Raises UsageError unless 1 <= n <= DEPTH_MAX.
    """
    if not 1 <= n <= DEPTH_MAX:
        raise UsageError(f"cannot make a depth table of {n} levels", hint=f"choose 1 to {DEPTH_MAX}")
    columns = [
        (f"{side}_{name}_{level:02d}", code)
        for level in range(n)
        for side in ("bid", "ask")
        for name, code in (("px", "<i8"), ("sz", "<u8"), ("ct", "<u4"))
    ]
    return np.dtype(HEAD + columns)


class DepthTable:
    """The best n levels of both sides, a row after each event that changes them: any book's slow, plain way.

    It feeds `book` one event at a time and compares levels before and after; a change that one symbol's event
    makes in another's book (an eviction) is seen at the other's next event. Memory: one row for each locate.
    """

    def __init__(self, book: Book, n: int = 10) -> None:
        self.dtype = depth_dtype(n)
        self._book = book
        self._n = n
        self._last = {int(locate): self._levels(int(locate)) for locate in book.locates()}

    def apply(self, events: Events) -> Table:
        """Apply `events` to the book and return their rows. Raises UsageError if it is not an EVENT array."""
        check(events)
        midnight = self._book.session.midnight_ns()
        top = np.zeros(1, TOP)
        rows: list[tuple[int, ...]] = []
        for i in range(len(events)):
            self._book.apply(events[i : i + 1], top)
            locate = int(top["locate"][0])
            levels = self._levels(locate)
            if levels != self._last.get(locate, (0,) * len(levels)):
                rows.append((midnight + int(top["ts"][0]), int(top["seq"][0]), locate, *levels))
            self._last[locate] = levels
        return np.array(rows, self.dtype)

    def _levels(self, locate: int) -> tuple[int, ...]:
        bids, asks = (self._padded(self._book.levels(locate, side, self._n)) for side in "BS")
        return tuple(number for pair in zip(bids, asks, strict=True) for level in pair for number in level)

    def _padded(self, levels: Levels) -> list[tuple[int, int, int]]:
        return [*levels.tolist(), *[(0, 0, 0)] * (self._n - len(levels))]


def depth(book: Book, events: Events, n: int = 10) -> Table:
    """Apply `events` to `book` and return the depth table of them: `DepthTable(book, n).apply(events)`."""
    return DepthTable(book, n).apply(events)
