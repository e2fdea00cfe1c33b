"""Kernel: what comes from outside the agents: news, and the operator's commands."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_agents.crowd import closing_order
from trident_agents.curves import NS, OPEN, POW, POW_MID, PREOPEN
from trident_agents.layout import (
    CLOSE,
    LIVE_ORDERS,
    MESSAGES,
    NOW,
    OVER,
    PACE,
    PLANNED,
    SPENT,
    TICK,
    WANTED,
)
from trident_agents.market import ZERO, command
from trident_agents.timers import (
    CLOSING_ORDERS,
    INDICATION,
    NEWS,
    PACING,
    PHASE,
    bell,
    exponential,
    set_timer,
)
from trident_agents.traders import finish_parents, over_share
from trident_core.contracts.matching import CrossType, Op
from trident_core.jit import I64, njit_kernel
from trident_sim.rng import below, log_uniform

_STATE, _REFERENCE, _INDICATE, _UNCROSS, _END_OF_DAY = (
    np.int64(op) for op in (Op.STATE, Op.REFERENCE, Op.INDICATE, Op.UNCROSS, Op.END_OF_DAY)
)
_OPENING, _CLOSING = np.int64(CrossType.OPENING), np.int64(CrossType.CLOSING)
_Q = np.int64(ord("Q"))

#: News of a symbol come this often on average; one in JUMPS is a large one.
NEWS_NS: Final = NS // 4
JUMPS: Final = 700
PACING_NS: Final = 10 * NS
CALL, OPENED, CLOSED, EXPIRED = (np.int64(k) for k in range(4))
#: After the close: when what is left of the day's orders expires.
EXPIRY_NS: Final = 300 * NS


@njit_kernel
def news(st: Any, s: I64) -> None:
    """The fair value makes a step. Its size has a mood of its own, which comes and goes; some news are
    large."""
    g, symbol = st.g, st.symbols[s]
    if g[OVER]:
        return
    set_timer(st, g[NOW] + exponential(st, np.int64(NEWS_NS)), NEWS, s, ZERO)
    symbol.mood_vol += (bell(st, np.int64(28)) >> 1) - (symbol.mood_vol >> 9)
    symbol.mood += (bell(st, np.int64(44)) >> 1) - (symbol.mood >> 6)
    size = symbol.vol * st.tables[POW + POW_MID + min(max(symbol.mood_vol >> 4, -40), 40)] >> 10
    if below(g, JUMPS) == 0:
        size *= 3 + log_uniform(g, np.int64(3))
        symbol.mood += 240
        symbol.mood_vol += 160
    lowest, highest = (symbol.width << 12) // 8, (symbol.width << 12) * 7 // 8
    symbol.fair = min(max(symbol.fair + bell(st, size), lowest), highest)
    if symbol.bid and symbol.ask:
        middle = (symbol.bid + symbol.ask) << 11
        symbol.ema0 += (middle - symbol.ema0) >> 6  # 16 s, 1 and 4 minutes
        symbol.ema1 += (middle - symbol.ema1) >> 8
        symbol.ema2 += (middle - symbol.ema2) >> 10


@njit_kernel
def pacing(st: Any) -> None:
    """Keep the day's messages near what was asked for: spend what is left over the activity that is left."""
    g = st.g
    if g[OVER]:
        return
    set_timer(st, g[NOW] + PACING_NS, PACING, ZERO, ZERO)
    over = over_share(st, g[NOW])
    g[SPENT] += (over - g[PLANNED]) * g[PACE] >> 10
    g[PLANNED] = over
    left = g[WANTED] - g[MESSAGES] - g[LIVE_ORDERS]
    if over < (1 << 20) // 50 or over > (1 << 20) * 49 // 50:
        return
    each = (g[MESSAGES] << 20) // max(g[SPENT], 1)  # messages for a whole day at pace 1
    share = (1 << 20) - over
    pace = (max(left, 0) << 20) // share * 1024 // max(each, 1)
    g[PACE] += (min(max(pace, 64), 16_384) - g[PACE]) >> 3


@njit_kernel
def indication(st: Any, s: I64, code: I64) -> None:
    g = st.g
    row = st.commands[command(st, _INDICATE, s)]
    row.code = code
    before = OPEN if code == _OPENING else g[CLOSE]
    if g[NOW] + 10 * NS < before:
        set_timer(st, g[NOW] + 10 * NS, INDICATION, s, code)


@njit_kernel
def closing_orders(st: Any, s: I64) -> None:
    """Orders for the closing cross come in the last tenth of the day."""
    g = st.g
    closing_order(st, s)
    pause = exponential(st, (g[CLOSE] - OPEN) // 10 // 24)
    if g[NOW] + pause < g[CLOSE]:
        set_timer(st, g[NOW] + pause, CLOSING_ORDERS, s, ZERO)


@njit_kernel
def phase(st: Any, which: I64, s: I64) -> None:
    """The operator changes the phase of one symbol."""
    g, symbol = st.g, st.symbols[s]
    if which == CALL:
        row = st.commands[command(st, _STATE, s)]
        row.code = _Q
        row = st.commands[command(st, _REFERENCE, s)]
        row.price = (symbol.fair >> 12) * TICK
    elif which == OPENED:
        row = st.commands[command(st, _UNCROSS, s)]
        row.code = _OPENING
        middle = symbol.fair
        symbol.ema0, symbol.ema1, symbol.ema2 = middle, middle, middle
    elif which == CLOSED:
        if g[OVER] == 0:
            g[OVER] = 1
            finish_parents(st)
        if symbol.last:
            row = st.commands[command(st, _REFERENCE, s)]
            row.price = symbol.last * TICK
        row = st.commands[command(st, _UNCROSS, s)]
        row.code = _CLOSING
    else:
        command(st, _END_OF_DAY, s)


@njit_kernel
def set_phases(st: Any, s: I64) -> None:
    """The day of one symbol; the microsecond is its own, as a venue goes through its symbols one by one."""
    g = st.g
    own = s * 1_000 + below(g, 1_000)
    set_timer(st, PREOPEN + own, PHASE, s, CALL)
    set_timer(st, OPEN + own, PHASE, s, OPENED)
    set_timer(st, g[CLOSE] + own, PHASE, s, CLOSED)
    set_timer(st, g[CLOSE] + EXPIRY_NS + own, PHASE, s, EXPIRED)
    set_timer(st, OPEN - 120 * NS + own, INDICATION, s, _OPENING)
    last = (g[CLOSE] - OPEN) // 39
    set_timer(st, g[CLOSE] - last + own, INDICATION, s, _CLOSING)
    set_timer(st, g[CLOSE] - (g[CLOSE] - OPEN) // 10 + own, CLOSING_ORDERS, s, ZERO)
    set_timer(st, OPEN - 300 * NS + own, NEWS, s, ZERO)
