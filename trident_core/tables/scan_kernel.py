"""Kernels that go once over a batch: which events print, and the quotes that changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_core.dtypes import EventFlag, Outcome, TopFlag
from trident_core.jit import njit_entry

_E, _C, _P, _Q, _B = (ord(letter) for letter in "ECPQB")
_NO_LETTER = ord("N")
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
def fill_trades(
    chosen: Any, events: Any, effects: Any, tops: Any, cross_types: Any, midnight: Any, out: Any
) -> None:
    """Write the prints `chosen` to `out`, TRADE[len(chosen)] with letters as u8. `tops` may be empty."""
    for k in range(len(chosen)):
        i = chosen[k]
        event, row = events[i], out[k]
        kind = event.type
        executed = kind == _E or kind == _C
        row.ts_event, row.seq = np.int64(event.ts) + midnight, event.seq
        row.locate = tops[i].locate if executed and len(tops) > 0 else event.locate
        row.kind, row.size, row.match_number = kind, event.qty, event.ref2
        row.price = effects[i].price if kind == _E else event.price
        row.side = effects[i].side if executed else np.uint8(_NO_LETTER)
        row.order_id = event.ref if executed else np.uint64(0)
        row.cross_type = cross_types[i] if kind == _Q else np.uint8(_NO_LETTER)


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
