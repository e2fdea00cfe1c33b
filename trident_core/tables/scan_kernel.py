"""Kernels that go once over a batch: which events print, and the quotes that changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_core.dtypes import EventFlag, Outcome, TopFlag
from trident_core.jit import njit_entry

_E, _C, _P, _Q, _B = (ord(letter) for letter in "ECPQB")
_NON_PRINTABLE = int(EventFlag.NON_PRINTABLE)
_APPLIED, _OVER = int(Outcome.APPLIED), int(Outcome.OVER_EXECUTION)
_CHANGED = int(TopFlag.CHANGED)


@njit_entry
def printing(events: Any, effects: Any, out: Any) -> int:
    """Write to `out` i64[n] which events are prints or voids: E and printable C of known orders, P, Q, B."""
    count = 0
    for i in range(len(events)):
        kind = events[i].type
        if kind == _E or kind == _C:
            outcome = effects[i].outcome
            if outcome != _APPLIED and outcome != _OVER:
                continue
            if kind == _C and events[i].flags & _NON_PRINTABLE:
                continue
        elif kind != _P and kind != _Q and kind != _B:
            continue
        out[count] = i
        count += 1
    return count


@njit_entry
def count_changed(tops: Any) -> int:
    """How many tops are CHANGED."""
    count = 0
    for i in range(len(tops)):
        count += tops[i].flags & _CHANGED
    return count


@njit_entry
def changed_quotes(tops: Any, midnight: np.uint64, out: Any) -> int:
    """Write the tops that are CHANGED to `out`, BBO[n] with room for all."""
    count = 0
    for i in range(len(tops)):
        top = tops[i]
        if top.flags & _CHANGED:
            row = out[count]
            row.ts_event, row.seq, row.locate = midnight + top.ts, top.seq, top.locate
            row.bid_px, row.bid_sz, row.bid_ct = top.bid_price, top.bid_qty, top.bid_count
            row.ask_px, row.ask_sz, row.ask_ct = top.ask_price, top.ask_qty, top.ask_count
            count += 1
    return count
