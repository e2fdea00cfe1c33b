"""Kernel: traders with a view (value, momentum) and institutions that work parent orders.

An agent's fields. Value: `b` latency, `c` what it must be worth in 1/16 unit, `f` largest position. Momentum:
`a` which average (0 … 2), `c` threshold in 1/16 unit, `f` largest position. Institution: `a` parent + 1 (0:
none), `b` mean pause between parents ns, `c` ns between slices, `d` shares for the next parent (0: drawn),
`e` and `f` inventory and cash when the parent began.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_agents.crowd import wait
from trident_agents.curves import DAY as DAY_TABLE
from trident_agents.curves import DAY_STEPS, NS, OPEN
from trident_agents.layout import (
    BUY,
    CLOSE,
    LIVE,
    MOMENTUM,
    NOW,
    OVER,
    PARENTS,
    POV,
    SELL,
    TICK,
    TWAP,
    VALUE,
    VWAP,
)
from trident_agents.market import DAY, IOC, LIMIT, ZERO, cancel, send
from trident_agents.timers import LOOK, WORK, bell, exponential, log_time, set_timer
from trident_core.jit import I64, njit_kernel
from trident_sim.rng import below, log_uniform

_T = np.int64(ord("T"))
_NONE = np.int64(-1)


@njit_kernel
def over_share(st: Any, ts: I64) -> Any:
    """How much of the day's activity is over at `ts`, in 1/2^20."""
    length = st.g[CLOSE] - OPEN
    at = min(max(ts - OPEN, 0), length)
    step = at * DAY_STEPS // length
    if step >= DAY_STEPS:
        return st.tables[DAY_TABLE + DAY_STEPS]
    low, high = st.tables[DAY_TABLE + step], st.tables[DAY_TABLE + step + 1]
    within = at - step * length // DAY_STEPS
    return low + (high - low) * (within * 1024 // (length // DAY_STEPS + 1)) // 1024


@njit_kernel
def _take(st: Any, a: I64, side: I64, shares: I64, slack: I64) -> None:
    """Cross the spread for up to `shares`, `slack` ticks beyond the touch."""
    agent = st.agents[a]
    symbol = st.symbols[agent.symbol]
    limit = symbol.ask + slack if side == BUY else symbol.bid - slack
    if 1 <= limit < symbol.width:
        send(st, a, _NONE, agent.symbol, side, limit, shares, LIMIT, IOC, ZERO)


@njit_kernel
def look(st: Any, a: I64) -> None:
    """A trader with a view looks at the market, and trades if it pays."""
    g, agent = st.g, st.agents[a]
    s = agent.symbol
    symbol = st.symbols[s]
    if g[OVER]:
        return
    set_timer(st, g[NOW] + 4 * wait(st, s) + agent.b, LOOK, a, ZERO)
    if symbol.state != _T or symbol.bid == 0 or symbol.ask == 0:
        return
    lot = symbol.lot * (1 + below(g, 4))
    if agent.kind == VALUE:
        worth = (symbol.unit * agent.c << 12) // 16
        fair = symbol.fair + bell(st, symbol.unit << 9)
        if fair - (symbol.ask << 12) > worth and agent.inventory < agent.f:
            _take(st, a, np.int64(BUY), lot, ZERO)
        elif (symbol.bid << 12) - fair > worth and agent.inventory > -agent.f:
            _take(st, a, np.int64(SELL), lot, ZERO)
        return
    average = symbol.ema0 if agent.a == 0 else (symbol.ema1 if agent.a == 1 else symbol.ema2)
    trend = ((symbol.bid + symbol.ask) << 11) - average
    threshold = (symbol.unit * agent.c << 12) // 16
    if trend > threshold and agent.inventory < agent.f:
        _take(st, a, np.int64(BUY), lot, ZERO)
    elif trend < -threshold and agent.inventory > -agent.f:
        _take(st, a, np.int64(SELL), lot, ZERO)
    elif agent.inventory > 0 and trend < 0:
        _take(st, a, np.int64(SELL), min(agent.inventory, lot), ZERO)
    elif agent.inventory < 0 and trend > 0:
        _take(st, a, np.int64(BUY), min(-agent.inventory, lot), ZERO)


@njit_kernel
def _begin(st: Any, a: I64) -> bool:
    """The institution gets a parent order; False when the book of parents is full or the day is too old."""
    g, agent = st.g, st.agents[a]
    symbol = st.symbols[agent.symbol]
    whole_day = agent.d > 0
    lasts = g[CLOSE] - g[NOW] - (g[CLOSE] - OPEN) // 16
    if not whole_day:
        lasts = min(log_time(st, np.int64(38), np.int64(43)), lasts)
    if g[PARENTS] == len(st.parents) or lasts < 60 * NS or symbol.bid == 0 or symbol.ask == 0:
        return False
    parent = st.parents[g[PARENTS]]
    g[PARENTS] += 1
    agent.a = g[PARENTS]
    parent.locate, parent.side = agent.symbol, below(g, 2)
    parent.style = VWAP if whole_day else below(g, 3)
    parent.shares = agent.d if whole_day else 100 * (5 + log_uniform(g, np.int64(7)))
    agent.d = 0
    parent.filled, parent.value = 0, 0
    parent.arrival = (symbol.bid + symbol.ask) * TICK // 2
    parent.start, parent.end, parent.market_volume = g[NOW], g[NOW] + lasts, symbol.volume
    agent.e, agent.f = agent.inventory, agent.cash
    return True


@njit_kernel
def _due(st: Any, parent: Any) -> Any:
    """How many shares of a parent should be done by now."""
    now = st.g[NOW]
    if now >= parent.end:
        return parent.shares
    if parent.style == POV:  # a tenth of what is traded
        seen = st.symbols[parent.locate].volume - parent.market_volume
        return min(parent.shares, seen // 10)
    if parent.style == TWAP:
        return parent.shares * ((now - parent.start) >> 10) // ((parent.end - parent.start) >> 10)
    begin, end = over_share(st, parent.start), over_share(st, parent.end)
    return parent.shares * (over_share(st, now) - begin) // max(end - begin, 1)


@njit_kernel
def work(st: Any, a: I64) -> None:
    """One slice of a parent order: rest at the touch when on schedule, cross the spread when late."""
    g, agent = st.g, st.agents[a]
    symbol = st.symbols[agent.symbol]
    if g[OVER]:
        return
    if agent.a == 0 and (symbol.state != _T or not _begin(st, a)):
        set_timer(st, g[NOW] + exponential(st, agent.b), WORK, a, ZERO)
        return
    parent = st.parents[agent.a - 1]
    parent.filled = abs(agent.inventory - agent.e)
    parent.value = abs(agent.cash - agent.f)
    slot = st.quotes[a, 0]
    if slot >= 0 and st.slots[slot].life == LIVE and not st.slots[slot].pending:
        cancel(st, slot)
    if parent.filled >= parent.shares or g[NOW] > parent.end + 60 * NS:
        if slot < 0:
            parent.end = g[NOW]
            parent.market_volume = symbol.volume - parent.market_volume
            agent.a = 0
        set_timer(st, g[NOW] + exponential(st, agent.b if slot < 0 else NS), WORK, a, ZERO)
        return
    set_timer(st, g[NOW] + agent.c // 2 + exponential(st, agent.c), WORK, a, ZERO)
    late = _due(st, parent) - parent.filled
    if symbol.bid == 0 or symbol.ask == 0 or symbol.state != _T or late < 1 or slot >= 0:
        return
    lot = symbol.lot
    if late > 3 * lot:
        slack = symbol.unit // 2 if late > 8 * lot else ZERO
        _take(st, a, np.int64(parent.side), min(late, max(4 * lot, parent.shares >> 6)), slack)
    else:
        price = symbol.bid if parent.side == BUY else symbol.ask
        send(st, a, ZERO, agent.symbol, np.int64(parent.side), price, max(late, 1), LIMIT, DAY, ZERO)


@njit_kernel
def finish_parents(st: Any) -> None:
    """The day is over: note how far the parents got that are still at work."""
    for a in range(len(st.agents)):
        agent = st.agents[a]
        if agent.kind > MOMENTUM and agent.a:
            parent = st.parents[agent.a - 1]
            parent.filled, parent.value = abs(agent.inventory - agent.e), abs(agent.cash - agent.f)
            parent.end = st.g[NOW]
            parent.market_volume = st.symbols[agent.symbol].volume - parent.market_volume
            agent.a = 0
