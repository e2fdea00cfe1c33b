"""Looking ahead over the batch, so that memory is asked for before it is needed.

A message of a wide feed meets about seven lines that no cache holds, each known only from the one before.
While event i is applied, later ones take one step each along their chains (a hint is a slot, by event):

    i + FAR     the line of the reference in the index; an add's symbol
    i + MIDDLE  the index says the order: hint, ask for it; an add's keys
    i + NEAR    the order says its level, neighbours and symbol; an add's keys say its level: hint
    i + LAST    an add's level says the tail of its queue

What is asked for may be outdated by the time it is used, never wrong: a hint only costs a wasted load.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book import index
from trident_book.compiled import njit_inlined
from trident_book.prefetch import prefetch
from trident_book.records import ADD, DELETE, HINTS, REDUCE, REPLACE, RULES
from trident_book.records import NEAR as NEAR_LOCATES
from trident_book.sides import key_of, level_at, place

FAR: Final = 24
MIDDLE: Final = 16
NEAR: Final = 8
LAST: Final = 4

_SELL: Final = ord("S")


@njit_inlined
def look_ahead(st: Any, events: Any, i: Any, n: Any) -> None:
    """Take one step for each of four later events of a batch of `n`."""
    if i + FAR < n:
        far(st, events[i + FAR])
    if i + MIDDLE < n:
        middle(st, events[i + MIDDLE], (i + MIDDLE) & (HINTS - 1))
    if i + NEAR < n:
        near(st, events[i + NEAR], (i + NEAR) & (HINTS - 1))
    if i + LAST < n:
        rule = RULES[events[i + LAST].type]
        if rule == ADD or rule == REPLACE:  # noqa: SIM109
            prefetch(st.orders, st.levels[st.level_hints[(i + LAST) & (HINTS - 1)]].tail)


@njit_inlined
def far(st: Any, event: Any) -> None:
    index.look_ahead(st, event.ref)
    if RULES[event.type] == REPLACE:
        index.look_ahead(st, event.ref2)
    elif event.locate < NEAR_LOCATES:
        symbol = np.int64(st.near[event.locate])
        prefetch(st.tops, symbol)
        prefetch(st.sides, 2 * symbol)


@njit_inlined
def middle(st: Any, event: Any, at: Any) -> None:
    rule = RULES[event.type]
    if rule == ADD:
        if event.locate < NEAR_LOCATES:
            side = st.sides[2 * np.int64(st.near[event.locate]) + np.int64(event.side == _SELL)]
            last = np.int64(side.start) + np.int64(side.n)
            prefetch(st.keys, last)
            prefetch(st.slots, last)
    elif rule == REDUCE or rule == DELETE or rule == REPLACE:  # noqa: SIM109
        slot = index.guess(st, event.ref)
        st.order_hints[at] = slot
        prefetch(st.orders, slot)


@njit_inlined
def near(st: Any, event: Any, at: Any) -> None:
    rule = RULES[event.type]
    if rule == ADD:
        if event.locate < NEAR_LOCATES:
            number = np.uint32(event.side == _SELL)
            side = st.sides[2 * np.int64(st.near[event.locate]) + np.int64(number)]
            key = key_of(event.price, number)
            level = level_at(st, side, place(st, side, key), key)
            st.level_hints[at] = level
            prefetch(st.levels, level)
    elif rule == REDUCE or rule == DELETE or rule == REPLACE:  # noqa: SIM109
        order = st.orders[st.order_hints[at]]
        prefetch(st.levels, order.level)
        prefetch(st.orders, order.prev)
        prefetch(st.orders, order.next)
        two = 2 * np.int64(order.symbol)
        prefetch(st.tops, order.symbol)
        prefetch(st.sides, two)
        if rule == REPLACE:
            side = st.sides[two + np.int64(order.side)]
            key = key_of(event.price, order.side)
            level = level_at(st, side, place(st, side, key), key)
            st.level_hints[at] = level
            prefetch(st.levels, level)
