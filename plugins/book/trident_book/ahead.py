"""Looking ahead over the batch, so that memory is asked for before it is needed.

A message of a wide feed meets about seven lines that no cache holds, each known only from the one before.
Later events take one step each along their chains, block by block, while earlier ones are applied:

    4th block   the bucket of the reference in the index; the symbol, its side
    3rd         the bucket says the order: ask for it; the side says an add's place in the window
    2nd         the order says its level, neighbours and side; the window says an add's level
    1st         an add's level says the tail of its queue
    apply

What is found on the way is kept as hints: slots of orders and levels. They may be outdated when they are
used, so whoever uses one checks it; a wrong one costs time only. The steps choose by arithmetic, not by
branches: what an event will be cannot be predicted, and a wrong guess costs more than a line asked for in
vain.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.index import bucket_of, guess, hash_of
from trident_book.records import ADD, HINTS, NEAR, REPLACE, RULES, WINDOW
from trident_book.sides import bit_of, inside_hint, key_of
from trident_book.unsigned import u
from trident_core.jit import njit_inlined
from trident_core.prefetch import prefetch

#: Events in a block; four blocks fit the rings of hints.
BLOCK: Final = 8
_SELL: Final = ord("S")
_LAST: Final = np.uint64(HINTS - 1)
_63: Final = np.uint64(WINDOW - 1)


@njit_inlined
def hint_of(i: Any) -> Any:
    """Where the hints of event i are."""
    return u(i) & _LAST


@njit_inlined
def side_of(st: Any, event: Any) -> Any:
    """The side that an add is for, of symbol 0 if the locate is not looked up directly."""
    symbol = st.near[np.uint64(event.locate) & np.uint64(NEAR - 1)]
    return np.uint32(2) * symbol + np.uint32(event.side == _SELL)


@njit_inlined
def first_step(st: Any, event: Any, at: Any) -> None:
    prefetch(st.refs, bucket_of(st, hash_of(st, event.ref)) << np.uint64(4))
    side_at = side_of(st, event)
    prefetch(st.tops, side_at >> np.uint32(1))
    prefetch(st.sides, side_at)


@njit_inlined
def second_step(st: Any, event: Any, at: Any) -> None:
    slot = guess(st, event.ref)
    st.order_hints[at] = slot
    prefetch(st.orders, slot)
    side_at = side_of(st, event)
    bit = bit_of(st.sides[side_at], key_of(event.price, side_at)) & _63
    prefetch(st.window, np.uint64(side_at) * np.uint64(WINDOW) + bit)


@njit_inlined
def third_step(st: Any, event: Any, at: Any) -> None:
    rule = RULES[event.type]
    order = st.orders[st.order_hints[at]]
    added = side_of(st, event)
    level = inside_hint(st, added, key_of(event.price, added))
    level = level if rule == ADD else order.level
    st.level_hints[at] = level
    prefetch(st.levels, level)
    prefetch(st.orders, order.prev)
    prefetch(st.orders, order.next)
    prefetch(st.sides, order.side)
    if rule == REPLACE:
        bit = bit_of(st.sides[order.side], key_of(event.price, order.side)) & _63
        prefetch(st.window, np.uint64(order.side) * np.uint64(WINDOW) + bit)


@njit_inlined
def fourth_step(st: Any, event: Any, at: Any) -> None:
    rule = RULES[event.type]
    tail = st.levels[st.level_hints[at]].tail
    prefetch(st.orders, tail if rule == ADD else np.uint32(0))
    if rule == REPLACE:
        side_at = st.orders[st.order_hints[at]].side
        prefetch(st.levels, inside_hint(st, side_at, key_of(event.price, side_at)))
