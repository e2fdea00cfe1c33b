"""Kernel: market makers. They quote both sides around what they believe, and lean against their inventory.

They move their quotes when the market has moved: after a latency of their own, and not for less than it is
worth. An agent's fields: `a` its belief (1/4096 tick), `b` its latency ns, `c` its width in 1/16 of the
symbol's unit, `d` levels, `e` mean time between looks in arrivals of the crowd, `f` the largest inventory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_agents.crowd import wait
from trident_agents.layout import BUY, LIVE, NOW, OVER, SELL
from trident_agents.market import DAY, LIMIT, POST_ONLY, ZERO, cancel, move, send
from trident_agents.timers import QUOTE, bell, exponential, set_timer
from trident_core.jit import I64, njit_kernel
from trident_sim.rng import below
from trident_sim.world import MPIDS

_T = np.int64(ord("T"))
#: As the command has them.
_MPIDS = np.array([int.from_bytes(mpid.encode(), "little") for mpid in MPIDS], np.int64)


@njit_kernel
def nudge(st: Any, s: I64) -> None:
    """The touch of symbol `s` has moved: some of its makers will look, each after its latency."""
    symbol = st.symbols[s]
    for a in range(symbol.agents, symbol.agents + symbol.makers):
        agent = st.agents[a]
        if agent.waiting == 0 and below(st.g, 6) == 0:
            agent.waiting = 1
            set_timer(st, st.g[NOW] + exponential(st, agent.b) + agent.b, QUOTE, np.int64(a), np.int64(1))


@njit_kernel
def _quote(st: Any, a: I64, place: I64, side: I64, target: I64, tolerance: I64) -> None:
    """Bring one quote to `target` ticks; 0: take it off."""
    g, agent = st.g, st.agents[a]
    slot = st.quotes[a, place]
    if slot < 0:
        if target:
            lot = st.symbols[agent.symbol].lot
            at = send(
                st,
                a,
                place,
                agent.symbol,
                side,
                target,
                lot * (1 + (below(g, 4) == 0)),
                LIMIT,
                DAY,
                POST_ONLY,
            )
            if at >= 0 and below(g, 16) == 0:
                st.commands[at].mpid = _MPIDS[a % len(_MPIDS)]
        return
    order = st.slots[slot]
    if order.life != LIVE or order.pending or (target and abs(order.price - target) <= tolerance):
        return
    if target and below(g, 4) == 0:
        move(st, slot, target, order.leaves)
    else:
        cancel(st, slot)  # the next look puts a new one
        if target and agent.waiting == 0:
            agent.waiting = 1
            set_timer(st, g[NOW] + agent.b, QUOTE, a, np.int64(1))


@njit_kernel
def _believe(st: Any, a: I64) -> Any:
    """What the maker thinks the price is: the market's middle, and what it hears of the fair value."""
    agent = st.agents[a]
    symbol = st.symbols[agent.symbol]
    heard = symbol.fair + bell(st, symbol.unit << 9)
    agent.a += (heard - agent.a) >> 1
    if symbol.bid and symbol.ask:
        agent.a += (((symbol.bid + symbol.ask) << 11) - agent.a) >> 2
    return agent.a - agent.inventory * (symbol.unit << 12) // (2 * agent.f)


@njit_kernel
def quote(st: Any, a: I64, reacting: I64) -> None:
    """One look of maker `a`; `reacting` 1: because something happened, else the next look is set."""
    g, agent = st.g, st.agents[a]
    s = agent.symbol
    symbol = st.symbols[s]
    if g[OVER]:
        return
    if reacting:
        agent.waiting = 0
    else:
        pause = wait(st, s) + (wait(st, s) + wait(st, s)) * agent.e // 2
        set_timer(st, g[NOW] + pause, QUOTE, a, ZERO)
    if symbol.state != _T:
        return
    belief = _believe(st, a)
    half = (symbol.unit * agent.c << 12) // 32
    step = max(symbol.unit // 3, 1)
    tolerance = symbol.unit // 5
    for level in range(agent.d):
        bid = ((belief - half) >> 12) - level * step
        ask = ((belief + half + 4095) >> 12) + level * step
        if symbol.ask and bid >= symbol.ask:
            bid = symbol.ask - 1
        if symbol.bid and ask <= symbol.bid:
            ask = symbol.bid + 1
        if ask <= bid:
            ask = bid + 1
        if bid < 1 or agent.inventory > agent.f:
            bid = ZERO
        if ask >= symbol.width or agent.inventory < -agent.f:
            ask = ZERO
        _quote(st, a, np.int64(2 * level), np.int64(BUY), bid, tolerance * (level + 1))
        _quote(st, a, np.int64(2 * level + 1), np.int64(SELL), ask, tolerance * (level + 1))
