"""What facts are measured on: the events of one symbol, each with the touch after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import Effects, Events, Outcome, Tops

NS: Final = 1_000_000_000
#: The hours that are measured where an input has them: 09:30 to 16:00.
OPEN_NS: Final = (9 * 3600 + 1800) * NS
CLOSE_NS: Final = 16 * 3600 * NS
#: Levels of the depth profile.
LEVELS: Final = 5
#: Events of one symbol that are kept, 90 bytes each.
ROWS_MAX: Final = 1 << 25

#: One event. `side`, `price` and `qty` are the resting order's and what it lost (A, U: what came); of P and Q
#: the message's. `kind` is the wire's letter, F told as A, and a C that does not print as `c`. `bid` … `ask`:
#: the touch after the event, 0 where a side is empty.
TRACK: Final = np.dtype(
    [
        ("ts", "<i8"), ("ref", "<u8"), ("ref2", "<u8"), ("price", "<i8"), ("qty", "<i8"), ("paid", "<i8"),
        ("bid", "<i8"), ("bid_qty", "<i8"), ("ask", "<i8"), ("ask_qty", "<i8"), ("locate", "<u4"),
        ("kind", "u1"), ("side", "u1"),
    ]
)  # fmt: skip

Rows = NDArray[Any]  # of TRACK
Floats = NDArray[np.float64]

_MEASURED: Final = np.frombuffer(b"AFXDECUPQ", np.uint8)


@dataclass(slots=True)
class Track:
    """One column of the table of facts.

    `rows`: TRACK[n] inside [start, end) ns since midnight; `tick` in mantissas. `depth`: mean shares by level
    (f8[LEVELS], both sides together, weighted by time), `gaps`: mean distance from the touch in ticks; NaN
    for levels that the input does not have. `levels`: how many levels the input records, 0: all.
    """

    source: str
    symbol: str
    tick: int
    start: int
    end: int
    rows: Rows
    depth: Floats
    gaps: Floats
    levels: int = 0

    @property
    def seconds(self) -> float:
        return (self.end - self.start) / NS

    def of(self, kinds: str) -> NDArray[np.int64]:
        """i64[k]: indices of the rows of these kinds."""
        wanted = np.zeros(256, np.bool_)
        wanted[np.frombuffer(kinds.encode(), np.uint8)] = True
        return np.flatnonzero(wanted[self.rows["kind"]])


def rows_of(events: Events, tops: Tops, effects: Effects) -> Rows:
    """TRACK[k]: the events that a book understood, of all symbols; tops and effects as `Book.apply` gave."""
    kind = events["type"]
    known = (effects["outcome"] == Outcome.APPLIED) | (effects["outcome"] == Outcome.OVER_EXECUTION)
    no_order = (kind == ord("P")) | (kind == ord("Q"))
    chosen = np.flatnonzero((np.isin(kind, _MEASURED) & known) | no_order)
    events, tops, effects = events[chosen], tops[chosen], effects[chosen]
    kind = events["type"].copy()
    rows = np.zeros(len(chosen), TRACK)
    of_order = np.isin(kind, np.frombuffer(b"XDEC", np.uint8))
    enters = kind == ord("U")
    rows["ts"], rows["ref"], rows["ref2"] = events["ts"], events["ref"], events["ref2"]
    rows["price"] = np.where(of_order, effects["price"], events["price"])
    rows["qty"] = np.where(of_order, effects["qty"], events["qty"])
    rows["side"] = np.where(of_order | enters, effects["side"], events["side"])
    rows["paid"] = np.where(kind == ord("C"), events["price"], rows["price"])
    rows["locate"] = tops["locate"]
    hidden_print = (kind == ord("C")) & (events["flags"] & 1 != 0)
    kind[kind == ord("F")] = ord("A")
    kind[hidden_print] = ord("c")
    rows["kind"] = kind
    put_touch(rows, tops["bid_price"], tops["bid_qty"], tops["ask_price"], tops["ask_qty"])
    return rows


def put_touch(rows: Rows, bid: Any, bid_qty: Any, ask: Any, ask_qty: Any) -> None:
    """Set the touch; prices of a side without shares become 0."""
    rows["bid_qty"], rows["ask_qty"] = bid_qty, ask_qty
    rows["bid"] = np.where(rows["bid_qty"] > 0, bid, 0)
    rows["ask"] = np.where(rows["ask_qty"] > 0, ask, 0)


class DepthMeter:
    """Shares and distances of the best LEVELS levels, weighted by the time for which they stood."""

    def __init__(self, start: int, end: int) -> None:
        self._start, self._end = start, end
        self._shares = np.zeros(LEVELS)
        self._gaps = np.zeros(LEVELS)
        self._time = np.zeros(LEVELS)
        self._last: tuple[NDArray[np.int64], Floats, Floats] | None = None

    def add(self, ts: NDArray[np.int64], prices: Floats, shares: Floats) -> None:
        """States after one another: ts i64[n], prices and shares f8[n, 2, L], bids first; L up to LEVELS."""
        if not len(ts):
            return
        if self._last is not None:
            ts = np.concatenate([self._last[0], ts])
            prices = np.concatenate([self._last[1], prices])
            shares = np.concatenate([self._last[2], shares])
        self._weigh(ts, prices[:-1], shares[:-1])
        self._last = ts[-1:].copy(), prices[-1:].copy(), shares[-1:].copy()

    def finish(self, tick: int) -> tuple[Floats, Floats]:
        """Mean shares and mean distance from the touch in ticks, f8[LEVELS] each, NaN where there is none."""
        if self._last is not None:
            ts, prices, shares = self._last
            self._weigh(np.array([int(ts[0]), self._end]), prices, shares)
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._shares / self._time, self._gaps / self._time / tick

    def _weigh(self, ts: NDArray[np.int64], prices: Floats, shares: Floats) -> None:
        span = np.diff(np.clip(ts, self._start, self._end)).astype(np.float64)
        levels = shares.shape[2]
        there = shares > 0
        weights = span[:, None, None] * there
        gap = np.abs(prices - prices[:, :, :1]) * there
        self._time[:levels] += weights.sum(axis=(0, 1))
        self._shares[:levels] += (weights * shares).sum(axis=(0, 1))
        self._gaps[:levels] += (weights * gap).sum(axis=(0, 1))


def tick_of(price: float, decimals: int) -> int:
    """The tick in mantissas: a cent, below a dollar a hundredth of one (Regulation NMS, rule 612).

    1 where the scale is coarser.
    """
    one: int = 10**decimals
    return max(1, one // 100 if price >= one else one // 10_000)
