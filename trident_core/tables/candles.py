"""The table `bars`: open, high, low, close, volume and VWAP over time, prints, shares or money."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.tables import candles_kernel as k
from trident_core.tables.common import HEAD, Table, is_any
from trident_core.tables.numbering import Symbols

#: A bar. `ts_event`: start of its interval (time bars) or its first print; `seq`: of its first print.
#: `notional`: the sum of price times size, exact, at the price's scale; `vwap`: notional / volume, a float.
BAR: Final = np.dtype(
    [
        *HEAD,
        ("open", "<i8"), ("high", "<i8"), ("low", "<i8"), ("close", "<i8"), ("volume", "<u8"),
        ("trades", "<u4"), ("notional", "<u8"), ("vwap", "<f8"), ("end_ts", "<i8"), ("end_seq", "<u8"),
    ]
)  # fmt: skip

_MEASURES: Final = {
    "ms": (k.TIME, 10**6), "s": (k.TIME, 10**9), "m": (k.TIME, 60 * 10**9), "h": (k.TIME, 3600 * 10**9),
    "trades": (k.TICK, 1), "shares": (k.VOLUME, 1), "usd": (k.DOLLAR, 1),
}  # fmt: skip
_SIZE_MAX: Final = 10**12


@dataclass(frozen=True, slots=True)
class BarSpec:
    """What fills a bar: `measure` TIME (`size` in ns), TICK (prints), VOLUME (shares), DOLLAR (money)."""

    measure: int
    size: int
    text: str

    @classmethod
    def parse(cls, text: str) -> BarSpec:
        """'1s', '5m', '1h', '100trades', '10000shares', '1000000usd'. Raises UsageError."""
        match = re.fullmatch(r"(\d{1,12})(ms|s|m|h|trades|shares|usd)", text.strip())
        if match and int(match[1]) > 0:
            measure, unit = _MEASURES[match[2]]
            if measure != k.TIME or int(match[1]) * unit <= 24 * 3600 * 10**9:
                return cls(measure, int(match[1]) * unit, text.strip())
        raise UsageError(
            f"not a kind of bar: {text!r}", hint="write 1s, 5m, 1h, 100trades, 10000shares or 1000000usd"
        )


class Bars:
    """Builds bars from rows of the `trades` table, batch by batch.

    Used are E, C, P and Q with a size, unless `voided` (give the rows of a `voids.PrintLog`, which knows).
    A print that fills a bar belongs to it whole. Time bars close when the first print of another interval
    comes, all at once, by locate; the others when they are full. Empty intervals have no bar. Any split of
    the prints gives the same bars. Memory: one open bar for each symbol. The specification leaves to the
    user which prints are right for a bar; that Q (cross) prints are in is a choice, and documented.
    """

    dtype = BAR

    def __init__(self, session: Session, spec: BarSpec) -> None:
        self._session, self._spec = session, spec
        self._symbols = Symbols()
        self._bars: Table = np.zeros(0, k.OPEN_BAR)
        self._opened: NDArray[np.int64] = np.zeros(0, np.int64)
        self._state: NDArray[np.int64] = np.zeros(k.STATE_SLOTS, np.int64)
        self._state[k.INTERVAL] = -1

    def apply(self, prints: Table) -> Table:
        """BAR[k]: the bars that these prints (TRADE[n], or with `voided`) closed."""
        good = is_any(prints["kind"].view(np.uint8), "ECPQ") & (prints["size"] > 0)
        if "voided" in (prints.dtype.names or ()):
            good &= ~prints["voided"]
        prints = prints[good]
        symbols = self._symbols.numbers(prints["locate"])
        self._make_room()
        out = np.zeros(max(2 * len(self._bars) + 2, 1 << 12), k.OPEN_BAR)
        times = prints["ts_event"] - self._session.midnight_ns()
        seqs, sizes = (prints[name].astype(np.int64) for name in ("seq", "size"))
        prices = prints["price"].astype(np.int64)
        made, at = [], 0
        while True:
            self._state[k.ROWS] = 0
            at = k.build(
                self._spec.measure, self._spec.size, 10**self._session.price_decimals, symbols, times, seqs,
                prices, sizes, at, self._bars, self._opened, self._state, out,
            )  # fmt: skip
            made.append(self._rows(out[: self._state[k.ROWS]]))
            if at == len(prints):
                return np.concatenate(made)

    def finish(self) -> Table:
        """BAR[k]: the bars that are still open, by locate."""
        left = self._rows(self._bars[self._bars["trades"] > 0])
        return left[np.argsort(left["locate"], kind="stable")]

    def _make_room(self) -> None:
        old, size = len(self._bars), len(self._symbols)
        if size > old:
            bars = np.zeros(max(size, 2 * old), k.OPEN_BAR)
            bars[:old] = self._bars
            opened = np.zeros(len(bars), np.int64)
            opened[:old] = self._opened
            self._bars, self._opened = bars, opened

    def _rows(self, bars: NDArray[Any]) -> Table:
        midnight = self._session.midnight_ns()
        rows = np.zeros(len(bars), BAR)
        locates = self._symbols.locates()
        rows["ts_event"] = bars["start"] + midnight
        rows["seq"], rows["end_seq"] = bars["first_seq"], bars["last_seq"]
        rows["locate"] = locates[bars["symbol"]] if len(bars) else 0
        for name in ("open", "high", "low", "close", "volume", "trades", "notional"):
            rows[name] = bars[name].astype(BAR[name], copy=False)
        rows["vwap"] = rows["notional"] / np.maximum(rows["volume"], 1)
        rows["end_ts"] = bars["last_ts"] + midnight
        if self._spec.measure == k.TIME:  # closed together: by locate, whatever number it has
            order = np.lexsort((rows["locate"], _runs(rows["ts_event"])))
            rows = rows[order]
        return rows


def _runs(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """i64[n]: which run of equal values each value is in."""
    return np.cumsum(np.diff(values, prepend=values[:1]) != 0)


def bars(prints: Table, session: Session, text: str = "1m") -> Table:
    """BAR[k]: all bars of a day's `trades`, as they close; voids are taken out. See `Bars`, `BarSpec`."""
    from trident_core.tables.prints import voided

    built = Bars(session, BarSpec.parse(text))
    return np.concatenate([built.apply(prints[~voided(prints)]), built.finish()])
