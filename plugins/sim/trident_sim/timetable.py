"""When things happen: how many messages each second gets, and how many orders should be alive in it.

The rate is a U over the day times a lognormal-like burst factor (an autoregression in the logarithm with
shocks that die out). All of it is integer arithmetic, in seconds since 04:00.

(Constants of this module are compiled into njit kernels; the word makes the compile cache depend on this
file.)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_sim.rng import Stream
from trident_sim.spec import SimSpec

NS: Final = 1_000_000_000


def clock(hours: int, minutes: int = 0, seconds: int = 0) -> int:
    """Seconds since midnight."""
    return hours * 3600 + minutes * 60 + seconds


START: Final = clock(4)  # S 'S': order flow begins
OPEN: Final = clock(9, 30)
CLOSE: Final = clock(16)
FLUSHED: Final = clock(16, 5)  # most day orders are gone
END: Final = clock(20)  # S 'E': only deletes and breaks from here
LAST: Final = clock(20, 4, 50)  # no order flow after this

#: Rate by time of day: straight lines between (seconds since midnight, relative rate).
_SHAPE: Final = (
    (START, 2), (clock(7), 2), (clock(9), 9), (clock(9, 28), 14), (OPEN - 1, 40), (OPEN, 240),
    (clock(9, 35), 150), (clock(10), 90), (clock(11), 52), (clock(13), 36), (clock(14, 30), 42),
    (clock(15, 50), 78), (CLOSE - 30, 120), (CLOSE, 200),
)  # fmt: skip

#: 2**(k/8) in 1/1024.
_EIGHTHS: Final = np.array([1024, 1117, 1218, 1328, 1448, 1579, 1722, 1878], np.int64)

LIVE_PER_SYMBOL_MAX: Final = 250
_LIVE_SHARE: Final = 16  # the most orders alive: one in so many messages
LIVE_MIN: Final = 16


@dataclass(frozen=True)
class Timetable:
    """`slots` i32 and `targets` i64, one of each for every second from START to LAST. `live_peak`: the
    plan's."""

    slots: NDArray[np.int32]
    targets: NDArray[np.int64]
    live_peak: int


def make_timetable(spec: SimSpec, slots: int) -> Timetable:
    """Spread `slots` messages of order flow over the day; their sum is exact."""
    live = max(LIVE_MIN, min(slots // _LIVE_SHARE, LIVE_PER_SYMBOL_MAX * spec.symbols))
    flush = live * 7 // 10  # slots from CLOSE to FLUSHED, nearly all deletes
    late = live * 27 // 100  # slots from END to LAST, all deletes
    after = slots // 50
    day = slots - flush - late - after
    bursts = _bursts(LAST - START, Stream(spec.seed, 6))
    seconds = np.arange(START, LAST, dtype=np.int64)
    shape = _lines(seconds, _SHAPE)
    counts = np.zeros(LAST - START, np.int64)
    for start, stop, total, weight in (
        (START, CLOSE, day, shape * bursts),
        (CLOSE, FLUSHED, flush, (FLUSHED - seconds) * bursts),
        (FLUSHED, END, after, bursts),
        (END, LAST, late, LAST - seconds),
    ):
        window = slice(start - START, stop - START)
        counts[window] = _spread(total, weight[window])
    return Timetable(counts.astype(np.int32), _targets(counts, live), live)


def _lines(x: NDArray[np.int64], points: tuple[tuple[int, int], ...]) -> NDArray[np.int64]:
    """Integer interpolation between the points, the last value beyond them (floats may differ by machine)."""
    y = np.full(len(x), points[-1][1], np.int64)
    for (x0, y0), (x1, y1) in pairwise(points):
        inside = (x >= x0) & (x < x1)
        y[inside] = y0 + (y1 - y0) * (x[inside] - x0) // (x1 - x0)
    return y


def _spread(total: int, weight: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers in proportion to the weights that add up to `total`."""
    upto: NDArray[np.int64] = np.cumsum(weight)
    upto >>= max(0, int(upto[-1]).bit_length() - 32)
    counts: NDArray[np.int64] = np.diff(total * upto // upto[-1], prepend=0)
    return counts


def _bursts(n: int, stream: Stream) -> NDArray[np.int64]:
    """i64[n]: factors around 1024, from 1/16 of it to 16 times."""
    noise = (stream.between(n, -24, 25) + stream.between(n, -24, 25)).tolist()
    shocks = (stream.below(n, 180) == 0).tolist()
    level, jump, exponents = 0, 0, []
    for k in range(n):
        level = (level * 15 + noise[k] * 2) // 16
        jump = jump * 7 // 8 + (26 if shocks[k] else 0)
        exponents.append(min(31, max(-32, level + jump)))
    exponent = np.array(exponents, np.int64)
    factors: NDArray[np.int64] = (_EIGHTHS[exponent & 7] << ((exponent >> 3) + 4)) >> 4
    return factors


def _targets(counts: NDArray[np.int64], live: int) -> NDArray[np.int64]:
    """Orders that should be alive: rising with what has happened, at their peak at the close."""
    close, end = CLOSE - START, END - START
    done = np.cumsum(counts[:close])
    left = 1024 - done * 1024 // max(1, int(done[-1]))
    targets = np.empty(len(counts), np.int64)
    targets[:close] = live * (1024 * 1024 - left * left) >> 20
    falling = (
        (CLOSE, live),
        (FLUSHED, live * 45 // 100),
        (FLUSHED + 60, live * 42 // 100),
        (END, live * 42 // 100),
    )
    targets[close:end] = _lines(np.arange(CLOSE, END, dtype=np.int64), falling)
    targets[end:] = 0
    return np.maximum(targets, LIVE_MIN // 2)
