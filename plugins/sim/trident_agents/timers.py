"""Kernel: what is to happen when, in a binary heap; equal times in the order in which they were set."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_agents.curves import EXP, EXP_BITS
from trident_agents.layout import DROPPED, HEAP, TIES
from trident_core.jit import I64, njit_kernel
from trident_sim.rng import below, bits31

#: TIMER.what.
(
    ARRIVAL, CANCEL, TAKE, FLICKER, NEWS, QUOTE, LOOK, WORK, PHASE, INDICATION, PACING, CLOSING_ORDERS,
) = (np.int64(k) for k in range(1, 13))  # fmt: skip

ROOM_SPARE: Final = 1 << 12


@njit_kernel
def _before(timers: Any, i: I64, j: I64) -> Any:
    if timers[i].ts != timers[j].ts:
        return timers[i].ts < timers[j].ts
    return timers[i].tie < timers[j].tie


@njit_kernel
def _swap(timers: Any, i: I64, j: I64) -> None:
    a, b = timers[i], timers[j]
    ts, tie, what, arg, more = a.ts, a.tie, a.what, a.arg, a.more
    a.ts, a.tie, a.what, a.arg, a.more = b.ts, b.tie, b.what, b.arg, b.more
    b.ts, b.tie, b.what, b.arg, b.more = ts, tie, what, arg, more


@njit_kernel
def set_timer(st: Any, ts: I64, what: I64, arg: I64, more: I64) -> None:
    """Let `what` happen at `ts`. Counted as dropped when there is no room for it."""
    g, timers = st.g, st.timers
    at = g[HEAP]
    if at == len(timers):
        g[DROPPED] += 1
        return
    g[HEAP] += 1
    g[TIES] += 1
    row = timers[at]
    row.ts, row.tie, row.what, row.arg, row.more = ts, g[TIES], what, arg, more
    while at > 0:
        above = (at - 1) >> 1
        if not _before(timers, at, above):
            break
        _swap(timers, at, above)
        at = above


@njit_kernel
def drop_first(st: Any) -> None:
    """Take the first timer, `st.timers[0]`, off the heap."""
    g, timers = st.g, st.timers
    g[HEAP] -= 1
    size = g[HEAP]
    _swap(timers, np.int64(0), size)
    at: I64 = np.int64(0)
    while True:
        least = at
        for child in range(2 * at + 1, min(2 * at + 3, size)):
            if _before(timers, child, least):
                least = child
        if least == at:
            return
        _swap(timers, at, least)
        at = least


@njit_kernel
def exponential(st: Any, mean: I64) -> Any:
    """An exponential waiting time of this mean (at most 2^40 ns)."""
    total = np.int64(0)
    k = below(st.g, 1 << EXP_BITS)
    while k == 0 and total < 40 << 16:  # the tail of the table is another draw
        total += 545_000
        k = below(st.g, 1 << EXP_BITS)
    return (mean * (total + st.tables[EXP + k]) >> 16) + 1


@njit_kernel
def log_time(st: Any, low_bits: I64, high_bits: I64) -> Any:
    """A time of 2^low to 2^high ns, every octave equally likely."""
    octave = low_bits + below(st.g, high_bits - low_bits)
    return (np.int64(1) << octave) + (bits31(st.g) << octave >> 31)


@njit_kernel
def bell(st: Any, size: I64) -> Any:
    """About normal: the sum of four uniform draws; its deviation is 1.15 `size`."""
    total = np.int64(0)
    for _ in range(4):
        total += below(st.g, 2 * size + 1) - size
    return total
