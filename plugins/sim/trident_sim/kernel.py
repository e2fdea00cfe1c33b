"""Kernel: the day's loop. It merges order flow with the prepared messages by time, one batch at a call."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import I64, njit_entry, njit_kernel
from trident_sim.anomalies import disturb
from trident_sim.flow import add, delete, message, pick_symbol, reduce, replace, take, trade, victim
from trident_sim.layout import (
    ANOMALY_RATE,
    DEBT,
    DONE,
    LAST_TS,
    LIVE,
    LOADED,
    NEXT_ITEM,
    ONE,
    OUT,
    SECOND,
    SEQ,
    SLOT,
)
from trident_sim.prints import item_time, run_item
from trident_sim.rng import below, bits31, log_uniform
from trident_sim.timetable import CLOSE, END, NS, START

#: One step writes fewer messages than this; a batch must be larger.
STEP_MAX: Final = 64

#: Of 10,000 slots of order flow: upper bounds of U, X, orders that trade, P. The rest is A, F and D.
_U_UPTO, _X_UPTO, _TAKE_UPTO, _TRADE_UPTO = 850, 965, 1035, 1090
#: Chance of an add among adds and deletes, in 1/1024: when as many live as planned, and how far it bends.
_ADD_EVEN, _ADD_BEND, _ADD_GAIN = 518, 490, 2048

_CLOSE, _END = CLOSE - START, END - START
_N: Final = np.int64(ord("N"))


@njit_kernel
def _load_second(g: Any, plan: Any) -> bool:
    """Draw the times of the next second that has any: gaps are log-uniform, so messages come in bursts."""
    times, slots = plan.times, plan.slots
    while g[SECOND] < len(slots) and slots[g[SECOND]] == 0:
        g[SECOND] += 1
    if g[SECOND] == len(slots):
        return False
    n = slots[g[SECOND]]
    # sum * NS must fit 63 bits
    bits = 20 if n < 8_000 else (12 if n < 2_000_000 else 8)
    total = 0
    for k in range(n):
        total += log_uniform(g, bits)
        times[k] = total
    total += log_uniform(g, bits)
    start = (START + g[SECOND]) * NS
    for k in range(n):
        times[k] = start + times[k] * NS // total
    g[SECOND] += 1
    g[SLOT] = 0
    g[LOADED] = n
    return True


@njit_kernel
def _flow(st: Any, second: I64, target: I64) -> None:
    """Fill one slot of order flow: write at least one message."""
    if second >= _END:
        slot = victim(st, ONE)
        if slot >= 0:
            delete(st, slot)
        else:
            _filler(st)
        return
    if (
        st.g[ANOMALY_RATE]
        and bits31(st.g) < 2 * st.g[ANOMALY_RATE]
        and disturb(st, np.int64(second >= _CLOSE))
    ):
        return
    closing = np.int64(second >= _CLOSE)
    draw = below(st.g, 10_000)
    if draw < _U_UPTO:
        if replace(st, closing):
            return
    elif draw < _X_UPTO:
        if reduce(st, closing):
            return
    elif draw < _TAKE_UPTO:
        if take(st, pick_symbol(st)):
            return
    elif draw < _TRADE_UPTO:
        if trade(st, pick_symbol(st)):
            return
    else:
        bend = (target - st.g[LIVE]) * _ADD_GAIN // target
        bend = min(max(bend, -_ADD_BEND), _ADD_BEND)
        if below(st.g, 1024) >= _ADD_EVEN + bend:
            slot = victim(st, closing)
            if slot >= 0:
                delete(st, slot)
                return
    add(st, pick_symbol(st), target, closing)


@njit_kernel
def _filler(st: Any) -> None:
    """Nothing is left to delete: an indicator without interest."""
    row = st.out[message(st, _N, pick_symbol(st))]
    row.aux = _N  # the letter of "no interest" too


@njit_entry
def run(st: Any, plan: Any) -> None:
    """Write messages to `st.out` until it is full or the day is over (`g[DONE]`); `g[OUT]` says how many."""
    g = st.g
    g[OUT] = 0
    while g[OUT] < len(st.out) - STEP_MAX:
        more = g[SLOT] < g[LOADED] or _load_second(g, plan)
        if g[NEXT_ITEM] < len(plan.items):
            due = item_time(st, plan.items)
            if not more or due <= plan.times[g[SLOT]]:
                g[LAST_TS] = max(g[LAST_TS], due)
                run_item(st, plan.items)
                continue
        elif not more:
            g[DONE] = 1
            return
        ts = plan.times[g[SLOT]]
        g[SLOT] += 1
        if g[DEBT] > 0:  # a sweep or a cross wrote more than its slot
            g[DEBT] -= 1
            continue
        g[LAST_TS] = max(g[LAST_TS], ts)
        before = g[SEQ]
        _flow(st, g[SECOND] - 1, plan.targets[g[SECOND] - 1])
        g[DEBT] += g[SEQ] - before - 1
