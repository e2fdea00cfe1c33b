"""Kernel: what the agents know of the market: their orders, and the public ladders, kept from the reports."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_agents.layout import (
    BORN,
    BUY,
    COMMANDS,
    FREE,
    LIVE,
    LIVE_ORDERS,
    LIVE_PEAK,
    MESSAGES,
    NOW,
    REJECTED,
    SENT,
    SLOTS_FREE,
    SLOTS_USED,
    TICK,
    TRADES,
)
from trident_core.contracts.matching import Op, OrderFlag, OrderKind, ReportFlag, ReportKind, TimeInForce
from trident_core.jit import I64, njit_kernel

_NEW, _REPLACE, _REDUCE, _CANCEL = (np.int64(op) for op in (Op.NEW, Op.REPLACE, Op.REDUCE, Op.CANCEL))
LIMIT, MARKET = np.int64(OrderKind.LIMIT), np.int64(OrderKind.MARKET)
DAY, GTC, IOC, ON_OPEN, ON_CLOSE = (
    np.int64(t)
    for t in (TimeInForce.DAY, TimeInForce.GTC, TimeInForce.IOC, TimeInForce.ON_OPEN, TimeInForce.ON_CLOSE)
)
POST_ONLY, HIDDEN = np.int64(OrderFlag.POST_ONLY), np.int64(OrderFlag.HIDDEN)
ZERO: Final = np.int64(0)
_B, _S = np.int64(ord("B")), np.int64(ord("S"))

_REJECTED_ROW, _BOOKED, _FILL, _CANCELLED, _REPLACED, _REFRESHED, _CROSS, _INDICATIVE, _STATE = (
    np.int64(k) for k in (
        ReportKind.REJECTED, ReportKind.BOOKED, ReportKind.FILL, ReportKind.CANCELLED, ReportKind.REPLACED,
        ReportKind.REFRESHED, ReportKind.CROSS, ReportKind.INDICATIVE, ReportKind.STATE,
    )
)  # fmt: skip
_DISPLAYED, _IN_PLACE, _RESTS, _TWO_ROWS = (
    np.int64(f) for f in (
        ReportFlag.DISPLAYED, ReportFlag.IN_PLACE, ReportFlag.RESTS, ReportFlag.SECOND | ReportFlag.CROSS
    )
)  # fmt: skip


# --- commands -----------------------------------------------------------------------------------------------


@njit_kernel
def command(st: Any, op: I64, locate: I64) -> Any:
    """Begin a command at the present time; return its index. Fields not set afterwards are 0."""
    at = st.g[COMMANDS]
    st.g[COMMANDS] = at + 1
    row = st.commands[at]
    row.ts, row.op, row.locate = st.g[NOW], op, locate
    row.id, row.id2, row.price, row.qty, row.peak, row.min_qty = 0, 0, 0, 0, 0, 0
    row.stop, row.trail, row.step, row.slip, row.owner, row.mpid = 0, 0, 0, 0, 0, 0
    row.side, row.kind, row.tif, row.flags, row.stp, row.code = 0, 0, 0, 0, 0, 0
    return at


@njit_kernel
def send(
    st: Any, agent: I64, place: I64, s: I64, side: I64, price: I64, qty: I64, kind: I64, tif: I64, flags: I64
) -> Any:
    """A new order at `price` ticks; return its command's index (`slot_of`), -1 when too many are alive."""
    g = st.g
    if g[SLOTS_FREE] >= 0:
        slot = g[SLOTS_FREE]
        g[SLOTS_FREE] = st.slots[slot].next
    elif g[SLOTS_USED] < len(st.slots):
        slot = g[SLOTS_USED]
        g[SLOTS_USED] += 1
    else:
        return np.int64(-1)
    g[BORN] += 1
    g[LIVE_ORDERS] += 1
    g[LIVE_PEAK] = max(g[LIVE_PEAK], g[LIVE_ORDERS])
    order = st.slots[slot]
    order.born, order.price, order.leaves, order.shown = g[BORN], price, qty, 0
    order.symbol, order.agent, order.place, order.life, order.side, order.pending = (
        s,
        agent,
        place,
        SENT,
        side,
        0,
    )
    order.owner = st.agents[agent].owner
    if place >= 0:
        st.quotes[agent, place] = slot
    at = command(st, _NEW, s)
    row = st.commands[at]
    row.id, row.owner, row.price, row.qty = slot + 1, order.owner, price * TICK, qty
    row.side = _B if side == BUY else _S
    row.kind, row.tif, row.flags = kind, tif, flags
    return at


@njit_kernel
def slot_of(st: Any, at: I64) -> Any:
    return st.commands[at].id - 1


@njit_kernel
def move(st: Any, slot: I64, price: I64, qty: I64) -> None:
    """Replace a living order: at `price` ticks, for `qty` shares."""
    order = st.slots[slot]
    order.pending = 1
    row = st.commands[command(st, _REPLACE, order.symbol)]
    row.id, row.owner, row.price, row.qty = slot + 1, order.owner, price * TICK, qty


@njit_kernel
def reduce(st: Any, slot: I64, qty: I64) -> None:
    """Take `qty` shares off an order."""
    order = st.slots[slot]
    order.pending = 1
    row = st.commands[command(st, _REDUCE, order.symbol)]
    row.id, row.owner, row.qty = slot + 1, order.owner, qty


@njit_kernel
def cancel(st: Any, slot: I64) -> None:
    order = st.slots[slot]
    order.pending = 1
    row = st.commands[command(st, _CANCEL, order.symbol)]
    row.id, row.owner = slot + 1, order.owner


# --- reports ------------------------------------------------------------------------------------------------


@njit_kernel
def _show(st: Any, s: I64, side: I64, price: I64, shares: I64) -> None:
    """Add to the public ladder (or take away); the touch follows."""
    symbol = st.symbols[s]
    if price < 1 or price >= symbol.width:
        return
    at = symbol.level + side * symbol.width
    ladder = st.ladder
    ladder[at + price] += shares
    if side == BUY:
        if ladder[at + price] > 0 and price > symbol.bid:
            symbol.bid = price
            symbol.moved = 1
        elif price == symbol.bid and ladder[at + price] <= 0:
            while price > 0 and ladder[at + price] <= 0:
                price -= 1
            symbol.bid = price
            symbol.moved = 1
    elif ladder[at + price] > 0 and (price < symbol.ask or symbol.ask == 0):
        symbol.ask = price
        symbol.moved = 1
    elif price == symbol.ask and ladder[at + price] <= 0:
        while price < symbol.width and ladder[at + price] <= 0:
            price += 1
        symbol.ask = price if price < symbol.width else 0
        symbol.moved = 1


@njit_kernel
def _gone(st: Any, slot: I64) -> None:
    g, order = st.g, st.slots[slot]
    if order.life == FREE:
        return
    if order.place >= 0 and st.quotes[order.agent, order.place] == slot:
        st.quotes[order.agent, order.place] = -1
    order.life = FREE
    order.next = g[SLOTS_FREE]
    g[SLOTS_FREE] = slot
    g[LIVE_ORDERS] -= 1


@njit_kernel
def _traded(st: Any, slot: I64, qty: I64, price: I64, leaves: I64) -> None:
    """`qty` shares of an order are filled at `price` (mantissa)."""
    order = st.slots[slot]
    agent = st.agents[order.agent]
    signed = qty if order.side == BUY else -qty
    agent.inventory += signed
    agent.cash -= signed * price
    order.leaves = leaves
    if leaves == 0:
        _gone(st, slot)


@njit_kernel
def _filled(st: Any, row: Any) -> None:
    slot, s = row.id - 1, np.int64(row.locate)
    symbol, order = st.symbols[s], st.slots[slot]
    qty = row.qty
    if row.flags & _DISPLAYED:
        order.shown -= qty
        _show(st, s, np.int64(order.side), order.price, -qty)
    side = np.int64(order.side)
    _traded(st, slot, qty, row.price, row.leaves)
    if row.flags & _TWO_ROWS == 0:
        _traded(st, row.id2 - 1, qty, row.price, row.leaves2)
        symbol.volume += qty
        symbol.last = row.price // TICK
        symbol.sign = 1 if side != BUY else -1
        st.g[TRADES] += 1
    elif side == BUY:
        symbol.volume += qty


@njit_kernel
def _shrunk(st: Any, slot: I64, s: I64, flags: I64, shares: I64) -> None:
    """The displayed part of an order fell by `shares`."""
    order = st.slots[slot]
    if flags & _DISPLAYED:
        order.shown -= shares
        _show(st, s, np.int64(order.side), order.price, -shares)


@njit_kernel
def _replaced(st: Any, row: Any) -> None:
    slot, s = row.id - 1, np.int64(row.locate)
    order = st.slots[slot]
    flags = np.int64(row.flags)
    order.pending = 0
    order.leaves = row.leaves
    if flags & _IN_PLACE:
        _shrunk(st, slot, s, flags, row.leaves2)
        return
    _shrunk(st, slot, s, flags, order.shown)
    order.price = row.price // TICK
    if flags & _RESTS:
        order.shown = row.qty
        _show(st, s, np.int64(order.side), order.price, order.shown)


@njit_kernel
def learn(st: Any, row: Any) -> None:
    """Take one row of the reports in."""
    kind, flags = np.int64(row.kind), np.int64(row.flags)
    g, slot, s = st.g, row.id - 1, np.int64(row.locate)
    if kind == _FILL:
        g[MESSAGES] += 1
        _filled(st, row)
    elif kind == _BOOKED or kind == _REFRESHED:
        order = st.slots[slot]
        order.life = LIVE
        order.leaves = row.leaves
        order.price = row.price // TICK
        if flags & _DISPLAYED:
            g[MESSAGES] += 1
            order.shown += row.qty
            _show(st, s, np.int64(order.side), order.price, row.qty)
    elif kind == _CANCELLED:
        g[MESSAGES] += (flags & _DISPLAYED) != 0
        st.slots[slot].pending = 0
        _shrunk(st, slot, s, flags, row.leaves2)
        st.slots[slot].leaves = row.leaves
        if row.leaves == 0:
            _gone(st, slot)
    elif kind == _REPLACED:
        g[MESSAGES] += (flags & _DISPLAYED) != 0
        _replaced(st, row)
    elif kind == _REJECTED_ROW:
        g[REJECTED] += 1
        if slot >= 0:
            if row.code == _NEW:
                _gone(st, slot)
            else:
                st.slots[slot].pending = 0
    elif kind == _STATE:
        g[MESSAGES] += 1
        st.symbols[s].state = np.int64(row.code)
    elif kind == _CROSS:
        g[MESSAGES] += 1
        st.symbols[s].last = row.price // TICK if row.price else st.symbols[s].last
        st.symbols[s].crossed += 1
    elif kind == _INDICATIVE:
        g[MESSAGES] += 1
