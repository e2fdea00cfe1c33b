"""Kernels of the ladder of stops: by stop price, each price's by reference; trailing ones also by the last
price that moves them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.matching import numba_state as s
from trident_book.sides import erase, free_level, insert, key_of, level_of, new_level
from trident_core.jit import njit_inlined, njit_kernel

_1: Final = np.uint32(1)
# Places among the four of a symbol: even ones have their highest price first, odd ones their lowest.
SELLS, BUYS, TRAILING_BUYS, TRAILING_SELLS = (np.int64(place) for place in range(4))


@njit_inlined
def stops_side(st: Any, symbol: Any, place: Any) -> Any:
    return np.uint32(4) * st.symbols[symbol].stops + np.uint32(place)


@njit_kernel
def ladder_level(st: Any, side_at: Any, price: Any) -> Any:
    """The slot of the level of a price, made if there is none."""
    key = key_of(price, side_at)
    slot = level_of(st.stops, side_at, key)
    if slot == 0:
        slot = new_level(st.stops, side_at, price)
        insert(st.stops, side_at, key, slot)
    st.stops.levels[slot].count += 1
    return slot


@njit_kernel
def drop_from_level(st: Any, slot: Any) -> None:
    """One order of a level fewer; an empty level goes."""
    level = st.stops.levels[slot]
    level.count -= 1
    if level.count == 0:
        erase(st.stops, level.side, key_of(level.price, level.side), slot)
        free_level(st.stops, slot)


@njit_inlined
def moves_at(st: Any, slot: Any) -> Any:
    """The last price at which a trailing stop moves: this one or above to sell, or below to buy."""
    more = st.more[slot]
    distance = more.trail + max(more.step, np.int64(1))
    return more.stop + distance if st.orders[slot].side & _1 else more.stop - distance


@njit_inlined
def place_trailing(st: Any, slot: Any) -> None:
    order, more = st.orders[slot], st.more[slot]
    place = TRAILING_SELLS if order.side & _1 else TRAILING_BUYS
    side_at = stops_side(st, order.side >> _1, place)
    more.level = ladder_level(st, side_at, moves_at(st, slot))
    level = st.stops.levels[more.level]
    before = level.tail
    more.prev, more.next = before, 0
    st.more[before].next = slot
    level.head = level.head if before > 0 else slot
    level.tail = slot


@njit_kernel
def place_stop(st: Any, slot: Any) -> None:
    """A stop that waits for its price."""
    order, more = st.orders[slot], st.more[slot]
    symbol = st.symbols[order.side >> _1]
    if symbol.stops == 0:
        symbol.stops = st.g[s.STOPS_END]
        st.g[s.STOPS_END] += 1
    symbol.stop_count += 1
    symbol.special |= s.SPECIAL_STOPS
    side_at = stops_side(st, order.side >> _1, SELLS if order.side & _1 else BUYS)
    order.level = ladder_level(st, side_at, more.stop)
    level = st.stops.levels[order.level]
    before = level.tail
    while before > 0 and st.orders[before].ref > order.ref:
        before = st.orders[before].prev
    behind = st.orders[before].next if before > 0 else level.head
    order.prev, order.next = before, behind
    st.orders[before].next = slot
    st.orders[behind].prev = slot
    level.head = level.head if before > 0 else slot
    level.tail = level.tail if behind > 0 else slot
    if more.trail > 0:
        place_trailing(st, slot)


@njit_kernel
def leave_stops(st: Any, slot: Any) -> None:
    """Off the ladder; it still is a stop."""
    order, more = st.orders[slot], st.more[slot]
    level = st.stops.levels[order.level]
    before, behind = order.prev, order.next
    st.orders[before].next = behind
    st.orders[behind].prev = before
    level.head = level.head if before > 0 else behind
    level.tail = level.tail if behind > 0 else before
    drop_from_level(st, order.level)
    order.level = 0
    if more.level > 0:
        level = st.stops.levels[more.level]
        before, behind = more.prev, more.next
        st.more[before].next = behind
        st.more[behind].prev = before
        level.head = level.head if before > 0 else behind
        level.tail = level.tail if behind > 0 else before
        drop_from_level(st, more.level)
        more.level = 0
    symbol = st.symbols[order.side >> _1]
    symbol.stop_count -= 1
    if symbol.stop_count == 0:
        symbol.special &= ~np.uint32(s.SPECIAL_STOPS)
