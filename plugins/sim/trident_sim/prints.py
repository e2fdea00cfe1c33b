"""Kernel: the prepared messages (system events, directory, halts, crosses, imbalances, …) as their time
comes.

Most are copied as they are. What depends on the market at that moment is filled in here: the price of a
cross and the displayed orders that trade in it, collars, imbalances, and the match that a broken trade
voids.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import I64, njit_kernel
from trident_sim.flow import NON_PRINTABLE, fill, message, next_match
from trident_sim.layout import CURSOR, DEBT, DEBT_MAX, MATCH, MATCHES, NEXT_ITEM, ONE, SEQ, ZERO
from trident_sim.pricing import PRICE_MAX, passive
from trident_sim.queues import best, best_order
from trident_sim.rng import below, log_uniform

_B, _C, _H, _I, _J, _Q, _S = (np.int64(ord(letter)) for letter in "BCHIJQS")
_NONE: Final = np.int64(ord("N"))
_BUY: Final = np.int64(ord("B"))
_TRADING: Final = np.int64(ord("T"))
CROSS_FILLS_MAX: Final = 3  # displayed orders reported as filled in one cross


@njit_kernel
def item_time(st: Any, items: Any) -> Any:
    """When the next prepared message is due; those of a spin over all symbols follow each other closely."""
    item = items[st.g[NEXT_ITEM]]
    if item.type == _I and item.locate == 0:
        return item.ts + st.g[CURSOR] * item.ref
    return item.ts + 0


@njit_kernel
def run_item(st: Any, items: Any) -> None:
    """Write the next prepared message."""
    g = st.g
    item = items[g[NEXT_ITEM]]
    kind, locate, aux = np.int64(item.type), np.int64(item.locate), item.aux
    if kind == _I and locate == 0:
        g[CURSOR] += 1
        _imbalance(st, g[CURSOR], aux)
        if g[CURSOR] == len(st.symbols) - 1:
            g[CURSOR] = 0
            g[NEXT_ITEM] += 1
        return
    g[NEXT_ITEM] += 1
    if kind == _I:
        _imbalance(st, locate, aux)
    elif kind == _Q:
        _cross(st, locate, item.qty, aux)
    elif kind == _J:
        _collar(st, locate)
    elif kind == _B:
        _broken(st)
    else:
        if kind == _H:
            st.symbols[locate].state = aux & 0xFF
        row = st.out[message(st, kind, locate)]
        row.price, row.qty, row.flags, row.aux = item.price, item.qty, item.flags, aux


@njit_kernel
def _middle(st: Any, locate: I64) -> Any:
    """The fair price, but not outside the touch."""
    price = st.symbols[locate].fair >> 8
    bid, ask = best(st, 2 * locate), best(st, 2 * locate + 1)
    if bid:
        price = max(price, bid)
    if ask:
        price = min(price, ask)
    return passive(price, ZERO)


@njit_kernel
def _cross(st: Any, locate: I64, shares: I64, cross_type: I64) -> None:
    """A cross: Q, after a C that is not printable for each displayed order that traded in it. Q has no
    effect on the book; a symbol that does not trade yet has its cross printed only."""
    g = st.g
    price = _middle(st, locate) if shares else 0
    key = 2 * locate + below(st.g, 2)
    if shares and g[DEBT] < g[DEBT_MAX] and st.symbols[locate].state == _TRADING and st.depth[key]:
        price = best(st, key)
        before = g[SEQ]
        for _ in range(below(st.g, CROSS_FILLS_MAX + 1)):
            if st.depth[key] == 0 or best(st, key) != price:
                break
            slot = best_order(st, key)
            shares += st.orders[slot].qty
            fill(st, slot, st.orders[slot].qty, _C, price, NON_PRINTABLE)
        g[DEBT] += g[SEQ] - before
    row = st.out[message(st, _Q, locate)]
    row.ref2, row.price, row.qty, row.aux = next_match(st, locate), price, shares, cross_type


@njit_kernel
def _imbalance(st: Any, locate: I64, cross_type: I64) -> None:
    """I: the imbalance before a cross. A symbol that does not trade awaits its halt cross, type H."""
    g = st.g
    if st.symbols[locate].state != _TRADING:
        cross_type = _H
    price = _middle(st, locate)
    swing = max(1, price >> 8)
    near = passive(price - swing + below(g, 2 * swing), ZERO)
    far = passive(price - 2 * swing + below(g, 4 * swing), ZERO)
    paired, shares = 100 * (log_uniform(g, 12) - 1), log_uniform(g, 16)
    direction = _BUY if below(g, 2) else _S
    if below(g, 8) == 0:
        direction, shares = _NONE, 0
    percent = abs(near - price) * 100 // price
    if percent < 1:
        variation = ord("L")
    elif percent < 10:
        variation = ord("0") + percent
    elif percent < 20:
        variation = ord("A")
    else:
        variation = ord("B") if percent < 30 else ord("C")
    at = message(st, _I, locate)
    row = st.out[at]
    row.side, row.ref2, row.price, row.qty = direction, shares, price, paired
    row.aux = cross_type | variation << 8 | near << 32
    st.extra[at] = far


@njit_kernel
def _collar(st: Any, locate: I64) -> None:
    """J: the auction collar of a volatility pause, a tenth around the reference price."""
    price = _middle(st, locate)
    upper = passive(min(price + price // 10, PRICE_MAX), ZERO)
    lower = passive(price - price // 10, ONE)
    row = st.out[message(st, _J, locate)]
    row.price, row.aux = price, upper | lower << 32


@njit_kernel
def _broken(st: Any) -> None:
    """B: void a match of before; there is one, as the crosses of the opening come first."""
    start = st.g[MATCH] - below(st.g, MATCHES // 2)
    for back in range(MATCHES):
        place = (start - back) % MATCHES
        if st.matches[place, 0]:
            row = st.out[message(st, _B, st.matches[place, 1])]
            row.ref2 = st.matches[place, 0]
            st.matches[place, 0] = 0
            return
