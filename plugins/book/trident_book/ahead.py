"""Looking ahead over the batch, so that memory is asked for before it is needed.

A message of a wide feed meets about seven lines that no cache holds, each known only from the one before.
Later events take one step each along their chains, block by block, while earlier ones are applied:

    4th block   the line of the reference in the index; the symbol
    3rd         the index says the order: ask for it; an add's keys
    2nd         the order says its level and neighbours; the keys say an add's level
    1st         an add's level says the tail of its queue
    apply

What is found on the way is kept as hints: a position in the index, a level's slot. They may be outdated when
they are used, so whoever uses one checks it; a wrong one costs time only.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.index import guess, home_of, slot_at
from trident_book.prefetch import prefetch
from trident_book.records import ADD, DELETE, HINTS, NEAR, REDUCE, REPLACE, RULES
from trident_book.sides import key_of, level_at, place
from trident_book.unsigned import u
from trident_core.jit import njit_inlined

#: Events in a block; four blocks fit the rings of hints.
BLOCK: Final = 8
_SELL: Final = ord("S")
_LAST: Final = np.uint64(HINTS - 1)


@njit_inlined
def hint_of(i: Any) -> Any:
    """Where the hints of event i are."""
    return u(i) & _LAST


@njit_inlined
def first_step(st: Any, event: Any, at: Any) -> None:
    position = home_of(st, event.ref)
    st.positions[at] = position
    prefetch(st.refs, position)
    if RULES[event.type] == REPLACE:
        prefetch(st.refs, home_of(st, event.ref2))
    if event.locate < NEAR:
        symbol = np.int64(st.near[event.locate])
        prefetch(st.tops, symbol)
        prefetch(st.sides, 2 * symbol)


@njit_inlined
def second_step(st: Any, event: Any, at: Any) -> None:
    rule = RULES[event.type]
    if rule == ADD:
        if event.locate < NEAR:
            side = st.sides[u(2 * np.int64(st.near[event.locate]) + np.int64(event.side == _SELL))]
            last = np.int64(side.start) + np.int64(side.n)
            prefetch(st.keys, last)
            prefetch(st.slots, last)
    elif rule == REDUCE or rule == DELETE or rule == REPLACE:
        position = guess(st, event.ref, st.positions[at])
        st.positions[at] = position
        prefetch(st.orders, slot_at(st, position))


@njit_inlined
def third_step(st: Any, event: Any, at: Any) -> None:
    rule = RULES[event.type]
    if rule == ADD:
        if event.locate < NEAR:
            number = np.uint32(event.side == _SELL)
            side = st.sides[u(2 * np.int64(st.near[event.locate]) + np.int64(number))]
            key = key_of(event.price, number)
            level = level_at(st, side, place(st, side, key), key)
            st.level_hints[at] = level
            prefetch(st.levels, level)
    elif rule == REDUCE or rule == DELETE or rule == REPLACE:
        order = st.orders[slot_at(st, st.positions[at])]
        prefetch(st.levels, order.level)
        prefetch(st.orders, order.prev)
        prefetch(st.orders, order.next)
        if rule == REPLACE:
            side = st.sides[u(2 * np.int64(order.symbol) + np.int64(order.side))]
            key = key_of(event.price, order.side)
            level = level_at(st, side, place(st, side, key), key)
            st.level_hints[at] = level
            prefetch(st.levels, level)


@njit_inlined
def fourth_step(st: Any, event: Any, at: Any) -> None:
    rule = RULES[event.type]
    if rule == ADD or rule == REPLACE:
        prefetch(st.orders, st.levels[st.level_hints[at]].tail)
