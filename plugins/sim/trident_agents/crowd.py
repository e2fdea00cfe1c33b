"""Kernel: the crowd. Noise traders without a plan of their own, but with habits.

They place limit orders at log-uniform distances (Zovko and Farmer 2002) that live log-uniform times, take in
pieces (which makes signs persist: Lillo and Farmer 2004), and flicker: add and cancel in runs (Hasbrouck and
Saar 2009).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_agents.curves import DAY as DAY_TABLE
from trident_agents.curves import DAY_STEPS, OPEN, POW, POW_MID
from trident_agents.layout import BUY, CLOSE, CROWD, LIVE, NOW, OVER, OWNERS, PACE, SELL
from trident_agents.market import (
    DAY,
    GTC,
    HIDDEN,
    IOC,
    LIMIT,
    MARKET,
    ON_CLOSE,
    ON_OPEN,
    ZERO,
    cancel,
    move,
    reduce,
    send,
    slot_of,
)
from trident_agents.timers import ARRIVAL, CANCEL, FLICKER, TAKE, exponential, log_time, set_timer
from trident_core.jit import I64, njit_kernel
from trident_sim.rng import below, log_uniform

_ONE = np.int64(1)
_NOWHERE = np.int64(-1)
_CROWD = np.int64(CROWD)
_T, _Q = np.int64(ord("T")), np.int64(ord("Q"))
_MS_BITS = np.int64(20)  # 2^20 ns is a millisecond

#: Of 1,000 arrivals: upper bounds of runs that take, runs that flicker, hidden orders, icebergs. The rest
#: shows.
TAKE_UPTO, FLICKER_UPTO, HIDDEN_UPTO, ICEBERG_UPTO = 85, 135, 245, 257
#: Of 1,000 orders that show: upper bounds of those at a better price, at the touch, far away.
BETTER_UPTO, TOUCH_UPTO, FAR_UPTO = 190, 430, 520


@njit_kernel
def quantity(st: Any) -> Any:
    """Shares: mostly a round lot, many odd, now and then large."""
    draw = below(st.g, 64)
    if draw < 22:
        return np.int64(100)
    if draw < 44:
        return log_uniform(st.g, np.int64(7))
    if draw < 56:
        return 1 + below(st.g, 100)
    if draw < 62:
        return 100 * log_uniform(st.g, np.int64(3))
    return 100 * log_uniform(st.g, np.int64(6))


@njit_kernel
def wait(st: Any, s: I64) -> Any:
    """Until the next arrival of the crowd: the day's U, the pace, and the symbol's mood decide."""
    g, symbol, tables = st.g, st.symbols[s], st.tables
    step = min(max((g[NOW] - OPEN) * DAY_STEPS // (g[CLOSE] - OPEN), 0), DAY_STEPS - 1)
    usual = (1 << 20) // DAY_STEPS  # of a step, were the day even
    mean = symbol.wait * usual // (tables[DAY_TABLE + step + 1] - tables[DAY_TABLE + step])
    mood = tables[POW + POW_MID + min(max(symbol.mood >> 4, -48), 48)]
    mean = min(mean, np.int64(1) << 40) * 1024 // mood * 1024 // g[PACE]
    return exponential(st, min(max(mean, 1000), np.int64(1) << 40))


@njit_kernel
def priced(st: Any, s: I64, side: I64) -> Any:
    """A passive price in ticks; 0 for none."""
    symbol = st.symbols[s]
    own, other = (symbol.bid, symbol.ask) if side == BUY else (symbol.ask, symbol.bid)
    toward = 1 if side == BUY else -1  # toward the other side
    middle = symbol.fair >> 12
    if own == 0:
        own = middle - toward * symbol.unit
    draw = below(st.g, 1000)
    gap = abs(other - own) if other else symbol.unit
    if draw < BETTER_UPTO and gap > 1 and 2 * gap > symbol.unit:
        price = own + toward * (1 + below(st.g, (gap + 2) // 3))
    elif draw < TOUCH_UPTO:
        price = own
    elif draw < FAR_UPTO:
        price = own - toward * symbol.unit * log_uniform(st.g, np.int64(6))
    else:
        price = own - toward * (log_uniform(st.g, np.int64(4)) * symbol.unit >> 2) - toward
    if price < 1 or price >= symbol.width:
        return ZERO
    return price


@njit_kernel
def life(st: Any, away: I64, unit: I64) -> Any:
    """How long an order is left alone: log-uniform, longer behind the touch."""
    if away > 4 * unit:
        return log_time(st, np.int64(30), np.int64(44))
    if below(st.g, 8) == 0:
        return log_time(st, np.int64(28), np.int64(40))
    return log_time(st, np.int64(19), np.int64(35))


@njit_kernel
def _owned(st: Any, at: I64) -> None:
    """An order of the crowd is of one of many owners."""
    g, row = st.g, st.commands[at]
    row.owner = 1 + below(g, g[OWNERS])
    st.slots[slot_of(st, at)].owner = row.owner


@njit_kernel
def _limit(st: Any, s: I64, hidden: I64) -> None:
    """A passive order: displayed, hidden (1) or an iceberg (2)."""
    g, symbol = st.g, st.symbols[s]
    side = below(g, 2)
    if symbol.bid and symbol.ask and below(g, 4) == 0:  # more come on the side that fair value leans to
        side = BUY if symbol.fair * 2 > (symbol.bid + symbol.ask) << 12 else SELL
    price, qty = priced(st, s, side), quantity(st)
    if hidden == 1 and symbol.bid and symbol.ask > symbol.bid + 1:
        price = symbol.bid + 1 + below(g, symbol.ask - symbol.bid - 1)
    if hidden == 1 and below(g, 2):
        qty = max(qty, 100 * log_uniform(g, np.int64(3)))
    if hidden == 2:
        qty = 100 * (2 + log_uniform(g, np.int64(5)))
    if price == 0:
        return
    own = symbol.bid if side == BUY else symbol.ask
    away = abs(own - price)
    flags, tif = (HIDDEN, DAY) if hidden == 1 else (ZERO, DAY)
    if away > 2 * symbol.unit and below(g, 3) == 0:
        tif = GTC
    at = send(st, _CROWD, _NOWHERE, s, side, price, qty, LIMIT, tif, flags)
    if at < 0:
        return
    _owned(st, at)
    if hidden == 2:
        st.commands[at].peak = 100
    slot = slot_of(st, at)
    lasts = log_time(st, np.int64(28), np.int64(40)) if hidden else life(st, away, symbol.unit)
    set_timer(st, g[NOW] + lasts, CANCEL, slot, st.slots[slot].born)


@njit_kernel
def _aggress(st: Any, s: I64, side: I64) -> None:
    """Take what stands at the touch, or a bit more."""
    g, symbol = st.g, st.symbols[s]
    other = symbol.ask if side == BUY else symbol.bid
    if other == 0:
        return
    toward = 1 if side == BUY else -1
    size, draw = quantity(st), below(g, 16)
    limit = other
    if draw == 0 or size >= 500:
        limit = other + toward * symbol.unit
    elif draw < 8:  # many take just what is there
        size = min(size, max(st.ladder[symbol.level + (1 - side) * symbol.width + other], 1))
    if limit < 1 or limit >= symbol.width:
        return
    at = send(st, _CROWD, _NOWHERE, s, side, limit, size, LIMIT, IOC, ZERO)
    if at >= 0:
        _owned(st, at)


@njit_kernel
def take(st: Any, s: I64, more: I64) -> None:
    """One piece of a run that takes; `more` = 2 * pieces left + side."""
    if st.symbols[s].state != _T or st.g[OVER]:
        return
    side, left = more & 1, more >> 1
    _aggress(st, s, side)
    if left > 1:
        pause = log_time(st, _MS_BITS, np.int64(31 if below(st.g, 2) else 34))
        set_timer(st, st.g[NOW] + pause, TAKE, s, more - 2)


@njit_kernel
def flicker(st: Any, s: I64, more: I64) -> None:
    """One order of a run that adds and cancels at one place; `more` = 2 * orders left + side."""
    g, symbol = st.g, st.symbols[s]
    if symbol.state != _T or g[OVER]:
        return
    side = more & 1
    own = symbol.bid if side == BUY else symbol.ask
    if own == 0:
        return
    toward = 1 if side == BUY else -1
    other = symbol.ask if side == BUY else symbol.bid
    price = own
    if other and abs(other - own) > 1 and below(g, 2):
        price = own + toward
    at = send(st, _CROWD, _NOWHERE, s, side, price, np.int64(100), LIMIT, DAY, ZERO)
    if at < 0:
        return
    _owned(st, at)
    slot = slot_of(st, at)
    stays = log_time(st, np.int64(19), np.int64(28))
    set_timer(st, g[NOW] + stays, CANCEL, slot, st.slots[slot].born)
    if more >> 1 > 1:
        pause = stays + log_time(st, np.int64(19), np.int64(28))
        set_timer(st, g[NOW] + pause, FLICKER, s, more - 2)


@njit_kernel
def _call_order(st: Any, s: I64) -> None:
    """An order in the opening call: around the fair value, some at any price."""
    g, symbol = st.g, st.symbols[s]
    side, draw = below(g, 2), below(g, 16)
    toward = 1 if side == BUY else -1
    price = (symbol.fair >> 12) - toward * (log_uniform(g, np.int64(5)) * symbol.unit >> 1)
    if draw < 5:
        price = (symbol.fair >> 12) + toward * below(g, 2 * symbol.unit + 1)
    kind, tif = LIMIT, DAY
    if draw == 0:
        kind = MARKET
        tif = ON_OPEN
    elif draw == 1:
        tif = ON_OPEN
    if price < 1 or price >= symbol.width:
        return
    at = send(st, _CROWD, _NOWHERE, s, side, price, quantity(st), kind, tif, ZERO)
    if at < 0:
        return
    _owned(st, at)
    if tif == DAY:
        slot = slot_of(st, at)
        set_timer(st, g[NOW] + log_time(st, np.int64(33), np.int64(43)), CANCEL, slot, st.slots[slot].born)


@njit_kernel
def closing_order(st: Any, s: I64) -> None:
    """An order for the closing cross only."""
    g, symbol = st.g, st.symbols[s]
    side = below(g, 2)
    toward = 1 if side == BUY else -1
    kind, price = LIMIT, symbol.last + toward * below(g, 2 * symbol.unit + 1)
    if below(g, 2):
        kind = MARKET
    if price < 1 or price >= symbol.width:
        return
    at = send(st, _CROWD, _NOWHERE, s, side, price, quantity(st), kind, ON_CLOSE, ZERO)
    if at >= 0:
        _owned(st, at)


@njit_kernel
def arrive(st: Any, s: I64) -> None:
    """Somebody of the crowd comes to symbol `s`; the next one will, too."""
    g, symbol = st.g, st.symbols[s]
    if g[OVER]:
        return
    set_timer(st, g[NOW] + wait(st, s), ARRIVAL, s, ZERO)
    if symbol.state == _Q:
        _call_order(st, s)
        return
    if symbol.state != _T:
        return
    draw = below(g, 1000)
    wide = symbol.bid and symbol.ask - symbol.bid > symbol.unit
    if draw < TAKE_UPTO and not (wide and below(g, 2)):  # a dear spread is waited for
        side = below(g, 2)
        draw = below(g, 8)
        if draw < 2 and symbol.sign:
            side = BUY if symbol.sign > 0 else SELL
        elif draw < 4 and symbol.bid and symbol.ask:
            side = BUY if symbol.fair * 2 > (symbol.bid + symbol.ask) << 12 else SELL
        take(st, s, 2 * log_uniform(g, np.int64(3 + below(g, 2))) + side)
    elif draw < FLICKER_UPTO:
        flicker(st, s, 2 * log_uniform(g, np.int64(6)) + below(g, 2))
    elif draw < HIDDEN_UPTO:
        _limit(st, s, _ONE)
    elif draw < ICEBERG_UPTO:
        _limit(st, s, np.int64(2))
    else:
        _limit(st, s, ZERO)


@njit_kernel
def let_go(st: Any, slot: I64, born: I64) -> None:
    """The time of an order is over: it is cancelled, moved to where it belongs now, or made smaller."""
    g, order = st.g, st.slots[slot]
    if order.life != LIVE or order.born != born or order.pending:
        return
    s = np.int64(order.symbol)
    if order.leaves >= 100 and below(g, 32) == 0:
        reduce(st, slot, order.leaves // 2)
        set_timer(st, g[NOW] + life(st, ZERO, st.symbols[s].unit), CANCEL, slot, born)
        return
    if below(g, 10) == 0 and st.symbols[s].state == _T and not g[OVER] and order.shown == order.leaves:
        price = priced(st, s, np.int64(order.side))
        if price:
            away = abs(price - order.price)
            move(st, slot, price, order.leaves)
            set_timer(st, g[NOW] + life(st, away, st.symbols[s].unit), CANCEL, slot, born)
            return
    cancel(st, slot)
