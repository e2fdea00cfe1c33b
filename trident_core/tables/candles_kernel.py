"""The kernel behind the table `bars`: prints into open bars, and out when their measure is full."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.jit import njit

#: A bar of one symbol: times since midnight of its start, first and last print. Free when `trades` is 0.
OPEN_BAR: Final = np.dtype(
    [
        (name, "<i8")
        for name in (
            "symbol", "start", "first_seq", "open", "high", "low", "close", "volume", "trades", "notional",
            "last_ts", "last_seq",
        )
    ]
)  # fmt: skip

TIME, TICK, VOLUME, DOLLAR = range(4)

#: Slots of `state`: the interval that time bars are in, how many bars are open, rows written.
INTERVAL, OPEN, ROWS = range(3)
STATE_SLOTS: Final = 3


@njit
def close_all(bars: NDArray[Any], opened: Any, state: Any, out: NDArray[Any]) -> None:
    """Write every open bar, by the symbols' numbers in `opened` after sorting."""
    opened[: state[OPEN]].sort()
    for j in range(state[OPEN]):
        symbol = opened[j]
        out[state[ROWS]] = bars[symbol]
        state[ROWS] += 1
        bars[symbol].trades = 0
    state[OPEN] = 0


@njit
def _put(bar: Any, price: int, size: int, notional: int, ts: int, seq: int) -> None:
    bar.high, bar.low = max(bar.high, price), min(bar.low, price)
    bar.close, bar.last_ts, bar.last_seq = price, ts, seq
    bar.volume += size
    bar.trades += 1
    bar.notional += notional


@njit
def build(
    measure: int, size: int, scale: int, symbols: Any, times: Any, seqs: Any, prices: Any, sizes: Any,
    first: int, bars: NDArray[Any], opened: Any, state: Any, out: NDArray[Any],
) -> int:  # fmt: skip
    """Prints from `first` on into bars; -> the next print, earlier than the end when `out` may not hold what
    closing all bars and one more would write."""
    for i in range(first, len(times)):
        if len(out) - state[ROWS] < state[OPEN] + 2:
            return i
        ts, symbol, price = times[i], symbols[i], prices[i]
        start = ts
        if measure == TIME:
            interval = ts // size
            start = interval * size
            if interval != state[INTERVAL]:
                close_all(bars, opened, state, out)
                state[INTERVAL] = interval
        bar = bars[symbol]
        if bar.trades == 0:
            bar.symbol, bar.start, bar.first_seq = symbol, start, seqs[i]
            bar.open, bar.high, bar.low, bar.volume, bar.notional = price, price, price, 0, 0
            if measure == TIME:
                opened[state[OPEN]] = symbol
                state[OPEN] += 1
        _put(bar, price, sizes[i], price * sizes[i], ts, seqs[i])
        full = (
            (measure == TICK and bar.trades >= size)
            or (measure == VOLUME and bar.volume >= size)
            or (measure == DOLLAR and bar.notional >= size * scale)
        )
        if full:
            out[state[ROWS]] = bar
            state[ROWS] += 1
            bar.trades = 0
    return len(times)
