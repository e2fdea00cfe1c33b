"""Kernel: messages that are wrong on purpose, each marked in `extra`.

The simulator's own book follows what docs/contracts/book.md says of each, so the rest of the day stays
consistent.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import I64, njit_kernel
from trident_sim.flow import enter, message, next_match, next_ref, pick_symbol, show, victim
from trident_sim.layout import ANOMALY_MASK, ONE, OUT, STICKY, ZERO
from trident_sim.pricing import crosses, passive, place, quantity
from trident_sim.queues import best_order, remove, unlink
from trident_sim.rng import below

UNKNOWN, DUPLICATE, OVER = range(3)  # as in spec.ANOMALY_KINDS

_C, _D, _E, _U, _X = (np.int64(ord(letter)) for letter in "CDEUX")
_CHANGES: Final = (_E, _C, _X, _D, _U)
_TRADING: Final = np.int64(ord("T"))


@njit_kernel
def disturb(st: Any, closing: I64) -> bool:
    """Write one wrong message of a kind that is asked for; False if the market has no room for it now."""
    kind = below(st.g, 3)
    while not (st.g[ANOMALY_MASK] >> kind) & 1:
        kind = (kind + 1) % 3
    if kind == UNKNOWN:
        done = _unknown(st)
    elif kind == DUPLICATE:
        done = _duplicate(st, closing)
    else:
        done = _over(st, closing)
    if done:
        st.extra[st.g[OUT] - 1] = 1 + kind
    return done


@njit_kernel
def _unknown(st: Any) -> bool:
    """A message for an order that never was. Its references are never used for another."""
    locate, ref = pick_symbol(st), next_ref(st)
    symbol = st.symbols[locate]
    kind = _CHANGES[below(st.g, len(_CHANGES))]
    if kind in (_E, _C) and symbol.state != _TRADING:
        kind = _D
    row = st.out[message(st, kind, locate)]
    row.ref = ref
    if kind != _D:
        row.qty = 100
    if kind in (_E, _C):
        row.ref2 = next_match(st, locate)
    if kind == _U:
        row.ref2 = next_ref(st)
    if kind in (_C, _U):
        row.price = passive(max(1, symbol.fair >> 8), ZERO)
    return True


@njit_kernel
def _duplicate(st: Any, closing: I64) -> bool:
    """An add, or a replace, to the reference of an order that lives: that one is evicted."""
    slot = victim(st, closing)
    if slot < 0:
        return False
    ref, old_key, old_price = st.orders[slot].ref, st.orders[slot].key, st.orders[slot].price
    if below(st.g, 3) == 0:
        source = victim(st, closing)
        if source < 0 or source == slot:
            return False
        remove(st, slot)
        order = st.orders[source]
        key, source_ref, price = order.key, order.ref, order.price
        sticky = order.sticky
        unlink(st, source)
        st.g[STICKY] -= sticky
        qty = quantity(st)
        price = enter(st, source, key, price, qty, ref, sticky)
        row = st.out[message(st, _U, key >> 1)]
        row.ref, row.ref2, row.price, row.qty = source_ref, ref, price, qty
        return True
    key = 2 * pick_symbol(st) + below(st.g, 2)
    remove(st, slot)
    price = place(st, key, ONE)
    if crosses(st, key, price):  # its own place is free
        key, price = old_key, old_price
    show(st, key, price, quantity(st), ref, ZERO)
    return True


@njit_kernel
def _over(st: Any, closing: I64) -> bool:
    """More is taken from an order than it has; it leaves."""
    locate = pick_symbol(st)
    key = 2 * locate + below(st.g, 2)
    if below(st.g, 2) and st.symbols[locate].state == _TRADING and st.depth[key]:
        slot = best_order(st, key)
        order = st.orders[slot]
        row = st.out[message(st, _E, locate)]
        row.ref2 = next_match(st, locate)
    else:
        slot = victim(st, closing)
        if slot < 0:
            return False
        order = st.orders[slot]
        row = st.out[message(st, _X, order.key >> 1)]
    row.ref, row.qty = order.ref, order.qty + 1 + below(st.g, 500)
    remove(st, slot)
    return True
