"""Kernel: order flow. What one slot of order flow does to one symbol's book, and the messages it writes.

A slot usually writes one message; a sweep writes one for each order it meets, all at one time. Nothing here
crosses or locks a book: an order that would do so trades, or the stale order in its way is deleted.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import I64, njit_kernel
from trident_sim.layout import (
    AGE_BITS,
    BIRTHS,
    LAST_SYMBOL,
    LAST_TS,
    LIVE,
    MATCH,
    MATCHES,
    ONE,
    OUT,
    REF,
    SEQ,
    SLOTS_USED,
    STASH,
    STICKY,
    ZERO,
)
from trident_sim.pricing import crosses, drift, passive, place, quantity
from trident_sim.queues import best, best_order, insert, remove, take_slot, unlink
from trident_sim.rng import below, bits31, log_uniform
from trident_sim.world import MPIDS

SWEEP_MAX: Final = 24  # orders one aggressive order can meet
NON_PRINTABLE: Final = np.int64(1)

#: As `aux` holds them.
_MPIDS: Final = np.array([int.from_bytes(mpid.encode(), "little") for mpid in MPIDS], np.int64)

_BUY, _SELL = np.int64(ord("B")), np.int64(ord("S"))
_A, _C, _D, _E, _F, _N, _P, _U, _X = (np.int64(ord(letter)) for letter in "ACDEFNPUX")
_TRADING: Final = np.int64(ord("T"))


@njit_kernel
def message(st: Any, kind: I64, locate: I64) -> Any:
    """Begin a message at the time LAST_TS; return its index in `st.out`. Fields not set afterwards are 0."""
    g = st.g
    at = g[OUT]
    g[OUT] = at + 1
    g[SEQ] += 1
    row = st.out[at]
    row.seq = g[SEQ]
    row.ts = g[LAST_TS]
    row.ref = 0
    row.ref2 = 0
    row.price = 0
    row.qty = 0
    row.locate = locate
    row.type = kind
    row.side = 0
    row.flags = 0
    row.aux = 0
    st.extra[at] = 0
    return at


@njit_kernel
def next_ref(st: Any) -> Any:
    """A new reference: nearly dense and nearly ascending, as orders of the day that are never shown take
    some, and some are shown a little later than given out."""
    g = st.g
    draw = bits31(st.g)
    if g[STASH] and draw & 7 == 0:
        ref = g[STASH]
        g[STASH] = 0
        return ref
    if not g[STASH] and (draw >> 3) & 127 == 0:
        g[STASH] = g[REF]
        g[REF] += 1
    g[REF] += 1
    if (draw >> 10) & 15 == 0:
        g[REF] += 1 + ((draw >> 14) & 3)
    return g[REF] - 1


@njit_kernel
def next_match(st: Any, locate: I64) -> Any:
    """A new match number, remembered so that a broken trade can name it."""
    g = st.g
    g[MATCH] += 1 + (below(st.g, 8) == 0)
    place_ = g[MATCH] % MATCHES
    st.matches[place_, 0] = g[MATCH]
    st.matches[place_, 1] = locate
    return g[MATCH]


@njit_kernel
def pick_symbol(st: Any) -> Any:
    """Activity is heavy-tailed over symbols, and excites itself: often the symbol of the message before."""
    g = st.g
    if g[LAST_SYMBOL] == 0 or below(st.g, 100) >= 30:
        g[LAST_SYMBOL] = st.alias[below(st.g, len(st.alias))]
    return g[LAST_SYMBOL]


@njit_kernel
def victim(st: Any, closing: I64) -> Any:
    """The slot of a live order, -1 if none was found: by age in adds, log-uniform, or (1 in 8; after the
    close always) any. Sticky orders, which rest all day, are left alone until the close."""
    g, orders = st.g, st.orders
    if g[LIVE] == 0:
        return -1
    for _ in range(16):
        if closing or below(st.g, 8) == 0:
            slot = below(st.g, g[SLOTS_USED])
            birth = orders[slot].birth
        else:
            birth = g[BIRTHS] - log_uniform(st.g, g[AGE_BITS])
            if birth < 0:
                continue
            slot = np.int64(st.ring[birth & (len(st.ring) - 1)])
        order = orders[slot]
        if order.qty > 0 and order.birth == birth and (closing or order.sticky == 0):
            return slot
    if closing:  # few are left: look at one after the other
        slot = below(st.g, g[SLOTS_USED])
        for _ in range(g[SLOTS_USED]):
            slot = slot + 1 if slot + 1 < g[SLOTS_USED] else 0
            if orders[slot].qty > 0:
                return slot
    return -1


@njit_kernel
def enter(st: Any, slot: I64, key: I64, price: I64, qty: I64, ref: I64, sticky: I64) -> Any:
    """A new order in `slot`, at the tail; return its price."""
    order = st.orders[slot]
    order.ref = ref
    order.qty = qty
    order.sticky = sticky
    order.birth = st.g[BIRTHS]
    st.g[STICKY] += sticky
    st.ring[st.g[BIRTHS] & (len(st.ring) - 1)] = slot
    st.g[BIRTHS] += 1
    return insert(st, slot, key, price)


@njit_kernel
def show(st: Any, key: I64, price: I64, qty: I64, ref: I64, sticky: I64) -> None:
    """Add an order and write its A, or F with an MPID (one in 64)."""
    price = enter(st, take_slot(st), key, price, qty, ref, sticky)
    kind, aux = _A, ZERO
    if below(st.g, 64) == 0:
        kind = _F
        aux = _MPIDS[min(below(st.g, len(_MPIDS)), below(st.g, len(_MPIDS)))]
    row = st.out[message(st, kind, key >> 1)]
    row.ref, row.price, row.qty, row.aux = ref, price, qty, aux
    row.side = _SELL if key & 1 else _BUY


@njit_kernel
def delete(st: Any, slot: I64) -> None:
    """Delete an order: D."""
    order = st.orders[slot]
    row = st.out[message(st, _D, order.key >> 1)]
    row.ref = order.ref
    remove(st, slot)


@njit_kernel
def add(st: Any, locate: I64, target: I64, closing: I64) -> None:
    """Add an order. One that would cross trades (one in twelve) or has the stale order in its way deleted."""
    symbol = st.symbols[locate]
    drift(st, locate)
    side = below(st.g, 2)
    if st.depth[2 * locate + 1 - side] == 0 and below(st.g, 4):
        side = 1 - side
    key = 2 * locate + side
    sticky = np.int64(not closing and st.g[STICKY] * 4 < target * 3 and below(st.g, 4) == 0)
    price = place(st, key, sticky)
    if crosses(st, key, price):
        if symbol.state == _TRADING and below(st.g, 12) == 0:
            sweep(st, key, quantity(st), price)
        else:
            delete(st, best_order(st, key ^ 1))
        return
    if st.g[LIVE] == len(st.orders):
        delete(st, victim(st, ONE))
        return
    show(st, key, price, quantity(st), next_ref(st), sticky)


@njit_kernel
def fill(st: Any, slot: I64, qty: I64, kind: I64, price: I64, flags: I64) -> None:
    """Execute part or all of an order: E, or C at `price`."""
    order = st.orders[slot]
    locate = order.key >> 1
    row = st.out[message(st, kind, locate)]
    row.ref, row.ref2, row.price, row.qty, row.flags = order.ref, next_match(st, locate), price, qty, flags
    if qty == order.qty:
        remove(st, slot)
    else:
        order.qty -= qty


@njit_kernel
def sweep(st: Any, key: I64, qty: I64, limit: I64) -> None:
    """An aggressive order on side `key` takes the other side's queues from their heads, up to `limit`."""
    other = key ^ 1
    for _ in range(SWEEP_MAX):
        if qty <= 0 or st.depth[other] == 0 or not crosses(st, key, limit):
            break
        slot = best_order(st, other)
        order = st.orders[slot]
        part = min(qty, order.qty)
        qty -= part
        draw = below(st.g, 100)
        own = best(st, key)
        if draw < 2 and own:  # at a better price than displayed, between the sides
            price = own + (order.price - own) // 2
            fill(st, slot, part, _C, price, ZERO)
        elif draw == 2:
            fill(st, slot, part, _C, order.price, NON_PRINTABLE)
        else:
            fill(st, slot, part, _E, ZERO, ZERO)
    if qty > 0 and below(st.g, 3) == 0 and not crosses(st, key, limit) and st.g[LIVE] < len(st.orders):
        show(st, key, limit, qty, next_ref(st), ZERO)


@njit_kernel
def take(st: Any, locate: I64) -> bool:
    """An order that trades: mostly just what stands first, at times through several levels."""
    symbol = st.symbols[locate]
    if symbol.state != _TRADING:
        return False
    key = 2 * locate + below(st.g, 2)
    fair, bid, ask = symbol.fair >> 8, best(st, 2 * locate), best(st, 2 * locate + 1)
    if bid and ask and below(st.g, 2):
        key = 2 * locate + (1 if fair * 2 < bid + ask else 0)
    if st.depth[key ^ 1] == 0:
        return False
    head = st.orders[best_order(st, key ^ 1)]
    qty, limit = quantity(st), head.price
    draw = below(st.g, 8)
    if draw < 4:
        qty = head.qty
    elif draw == 7:
        qty *= 1 + below(st.g, 8)
        reach = symbol.unit * log_uniform(st.g, 4)
        limit = max(limit - reach, 1) if key & 1 else limit + reach
        limit = passive(limit, key & 1)
    sweep(st, key, qty, limit)
    return True


@njit_kernel
def replace(st: Any, closing: I64) -> bool:
    """Replace an order: U, with a new reference, at the tail of its price's queue."""
    slot = victim(st, closing)
    if slot < 0:
        return False
    order = st.orders[slot]
    key, old_ref, old_price, sticky = order.key, order.ref, order.price, order.sticky
    drift(st, key >> 1)
    unlink(st, slot)
    st.g[STICKY] -= sticky
    price, qty = place(st, key, ZERO), order.qty
    if below(st.g, 8) == 0 or crosses(st, key, price):
        price, qty = old_price, quantity(st)
    ref = next_ref(st)
    price = enter(st, slot, key, price, qty, ref, sticky)
    row = st.out[message(st, _U, key >> 1)]
    row.ref, row.ref2, row.price, row.qty = old_ref, ref, price, qty
    return True


@njit_kernel
def reduce(st: Any, closing: I64) -> bool:
    """Cancel part of an order: X."""
    slot = victim(st, closing)
    if slot < 0 or st.orders[slot].qty < 2:
        return False
    order = st.orders[slot]
    part = order.qty // 200 * 100 if order.qty >= 200 else 1 + below(st.g, order.qty - 1)
    row = st.out[message(st, _X, order.key >> 1)]
    row.ref, row.qty = order.ref, part
    order.qty -= part
    return True


@njit_kernel
def trade(st: Any, locate: I64) -> bool:
    """A trade against an order that is not displayed: P, between the sides."""
    symbol = st.symbols[locate]
    bid, ask = best(st, 2 * locate), best(st, 2 * locate + 1)
    if symbol.state != _TRADING or not bid or not ask:
        return False
    price = (bid + ask) >> 1
    if price >= 10_000:
        price = price // 50 * 50
    row = st.out[message(st, _P, locate)]
    row.side, row.ref2, row.price, row.qty = _BUY, next_match(st, locate), price, quantity(st)
    return True
