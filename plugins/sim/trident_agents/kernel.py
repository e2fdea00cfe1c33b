"""Kernel: one step of the agents: they hear what the exchange reported, and what is due next is done."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_agents.crowd import arrive, flicker, let_go, take
from trident_agents.curves import NS, OPEN, PREOPEN
from trident_agents.floor import closing_orders, indication, news, pacing, phase, set_phases
from trident_agents.layout import COMMANDS, END, HEAP, INSTITUTION, MAKER, NOW, OVER, SLICE
from trident_agents.makers import nudge, quote
from trident_agents.market import ZERO, learn
from trident_agents.timers import (
    ARRIVAL,
    CANCEL,
    CLOSING_ORDERS,
    FLICKER,
    INDICATION,
    LOOK,
    NEWS,
    PACING,
    PHASE,
    QUOTE,
    TAKE,
    WORK,
    drop_first,
    exponential,
    set_timer,
)
from trident_agents.traders import look, work
from trident_core.jit import I64, njit_entry, njit_kernel

#: One timer sends fewer commands than this.
STEP_MAX: Final = 32


@njit_kernel
def _do(st: Any, what: I64, arg: I64, more: I64) -> None:
    if what == ARRIVAL:
        arrive(st, arg)
    elif what == CANCEL:
        let_go(st, arg, more)
    elif what == QUOTE:
        quote(st, arg, more)
    elif what == TAKE:
        take(st, arg, more)
    elif what == FLICKER:
        flicker(st, arg, more)
    elif what == NEWS:
        news(st, arg)
    elif what == LOOK:
        look(st, arg)
    elif what == WORK:
        work(st, arg)
    elif what == INDICATION:
        indication(st, arg, more)
    elif what == CLOSING_ORDERS:
        closing_orders(st, arg)
    elif what == PHASE:
        phase(st, more, arg)
    elif what == PACING:
        pacing(st)


@njit_entry
def step(st: Any, reports: Any) -> Any:
    """Learn from `reports`, REPORT[n], then do what is due in the next slice of time in which anything is.

    Return how many of `st.commands` that made, -1 when the day is over. Nobody knows within a slice what
    others did in it: its length is the least latency.
    """
    g = st.g
    for i in range(len(reports)):
        learn(st, reports[i])
        s = np.int64(reports[i].locate)
        if st.symbols[s].moved:
            st.symbols[s].moved = 0
            if not g[OVER]:
                nudge(st, s)
    g[COMMANDS] = 0
    while g[COMMANDS] == 0:
        if g[HEAP] == 0 or (g[OVER] and _all_over(st)):
            return np.int64(-1)
        end = st.timers[0].ts + g[SLICE]
        while g[HEAP] and st.timers[0].ts < end and g[COMMANDS] < len(st.commands) - STEP_MAX:
            first = st.timers[0]
            g[NOW] = max(g[NOW], first.ts)
            what, arg, more = first.what, first.arg, first.more
            drop_first(st)
            _do(st, what, arg, more)
    return g[COMMANDS]


@njit_kernel
def _all_over(st: Any) -> Any:
    """After the expiry only cancels are due, of orders that are gone or rest beyond the day."""
    return st.timers[0].ts > st.g[END]


@njit_entry
def begin(st: Any) -> None:
    """Set the timers that the day begins with."""
    for s in range(1, len(st.symbols)):
        set_phases(st, np.int64(s))
        set_timer(st, PREOPEN + 2_000_000 + exponential(st, np.int64(10 * NS)), ARRIVAL, np.int64(s), ZERO)
    set_timer(st, np.int64(OPEN), PACING, ZERO, ZERO)
    for a in range(1, len(st.agents)):
        kind = st.agents[a].kind
        ts = OPEN + exponential(st, np.int64(2 * NS))
        if kind == MAKER:
            set_timer(st, ts, QUOTE, np.int64(a), ZERO)
        elif kind == INSTITUTION:
            set_timer(st, ts + exponential(st, st.agents[a].b), WORK, np.int64(a), ZERO)
        else:
            set_timer(st, ts + 30 * NS, LOOK, np.int64(a), ZERO)
