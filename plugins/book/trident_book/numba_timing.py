"""The latency of the numba book's kernel, event by event, by the processor's counter.

The bracket holds a whole call of the kernel with one event: finding the order and the level, the change, the
touch, and writing both output rows. With one event there is nothing to look ahead to.
"""

from __future__ import annotations

from typing import Any

from trident_book.kernel import apply
from trident_core.jit import njit_entry
from trident_core.ticks import read_ticks


@njit_entry
def apply_timed(st: Any, events: Any, tops: Any, effects: Any, ticks: Any, start: Any, resumed: Any) -> Any:
    """Apply events from `start` on, each by a call of its own; ticks[i] is what the call of event i took.

    Stops where a pool needs room, and returns the event: call again from there with `resumed` True, and its
    bracket, begun before, holds the growth too.
    """
    i = start
    while i < len(events):
        if not (resumed and i == start):
            ticks[i] = read_ticks()
        done = apply(st, events[: i + 1], tops, effects, 1, 1, i)
        if done == i:
            return i
        ticks[i] = read_ticks() - ticks[i]
        i += 1
    return i
