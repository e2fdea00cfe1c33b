"""Series over time: the mid, trades and their signs, counts of events."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_facts.track import NS, Floats, Track

_BUY: Final = ord("B")


class Trades(NamedTuple):
    """Marketable orders: executions of one time and one direction together.

    `sign` 1: a buyer took, -1: a seller, 0: not told (hidden orders of ITCH).
    """

    ts: NDArray[np.int64]
    size: NDArray[np.int64]
    sign: NDArray[np.int8]


def trades_of(track: Track) -> Trades:
    """All trades but crosses, by time."""
    rows = track.rows[track.of("ECP")]
    sign = np.where(rows["side"] == _BUY, -1, 1).astype(np.int8)
    if not track.levels:  # ITCH masks the side of P: always B
        sign[rows["kind"] == ord("P")] = 0
    if not len(rows):
        return Trades(rows["ts"], rows["qty"], sign)
    new = np.concatenate([[True], (np.diff(rows["ts"]) != 0) | (np.diff(sign) != 0)])
    first = np.flatnonzero(new)
    return Trades(rows["ts"][first], np.add.reduceat(rows["qty"], first), sign[first])


def spreads(track: Track) -> tuple[Floats, Floats]:
    """Spread in ticks and for how long (ns), of all states with two sides that are not crossed."""
    rows = track.rows
    span = np.diff(rows["ts"], append=track.end)
    good = (rows["bid"] > 0) & (rows["ask"] > rows["bid"]) & (span > 0)
    spread = (rows["ask"] - rows["bid"])[good] / track.tick
    return spread, span[good].astype(np.float64)


def middles(track: Track, step_ns: int) -> Floats:
    """The mid at each step (twice the mantissa), NaN while there is none; from the first event on."""
    rows = track.rows
    good = rows[(rows["bid"] > 0) & (rows["ask"] > rows["bid"])]
    if len(good) < 2:
        return np.zeros(0)
    grid = np.arange(int(good["ts"][0]), int(good["ts"][-1]) + 1, step_ns)
    at = np.searchsorted(good["ts"], grid, side="right") - 1
    middle: Floats = (good["bid"] + good["ask"])[at].astype(np.float64)
    return middle


def returns(track: Track, step_ns: int) -> Floats:
    """Log returns of the mid over each step."""
    return np.diff(np.log(middles(track, step_ns)))


def counts(track: Track, step_ns: int) -> Floats:
    """Order events (all but P and Q) in each step of the hours that have any."""
    ts = track.rows["ts"][track.of("AXDEcCU")]
    if not len(ts):
        return np.zeros(0)
    steps = (ts - ts[0]) // step_ns
    return np.bincount(steps).astype(np.float64)


def autocorrelation(values: Floats, lag: int) -> float | None:
    """At one lag; None for a series that is too short or does not vary."""
    if len(values) < 10 * lag or len(values) < 30:
        return None
    centred = values - values.mean()
    variance = float(centred @ centred)
    return float(centred[lag:] @ centred[:-lag]) / variance if variance else None


def excess_kurtosis(values: Floats) -> float | None:
    """Fourth standardised moment less 3: 0 for a normal distribution."""
    if len(values) < 30:
        return None
    centred = values - values.mean()
    variance = float(np.mean(centred**2))
    return float(np.mean(centred**4)) / variance**2 - 3 if variance else None


def hill(values: Floats, share: float = 0.05) -> float | None:
    """Hill's estimate of the exponent of a power-law tail, from the largest `share` of the values."""
    k = int(len(values) * share)
    if k < 20:
        return None
    largest = np.sort(values)[-k - 1 :]
    if largest[0] <= 0:
        return None
    mean = float(np.mean(np.log(largest[1:] / largest[0])))
    return 1 / mean if mean else None


def weighted_quantile(values: Floats, weights: Floats, q: float) -> float | None:
    if not len(values):
        return None
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, q * total[-1])])


def activity(track: Track) -> tuple[float, float] | None:
    """Order events in the first and in the last half hour, each over those of 12:00 to 12:30; None unless the
    hours reach from 09:30 to 16:00."""
    half = 1800 * NS
    if track.seconds < 6.5 * 3600:
        return None
    ts = track.rows["ts"][track.of("AXDEcCU")]
    begin, noon, end = (np.count_nonzero((ts >= at) & (ts < at + half))
                        for at in (track.start, 12 * 3600 * NS, track.end - half))  # fmt: skip
    return (begin / noon, end / noon) if noon else None
