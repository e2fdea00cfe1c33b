"""Kernels that visit one side's orders in priority (MATCH-10), an incoming one among them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.matching import numba_state as s
from trident_book.sides import key_of, next_level
from trident_core.jit import njit_inlined

_0: Final = np.uint64(0)


@njit_inlined
def first_level(st: Any, side_at: Any) -> Any:
    """(level, bits, n) to begin with: before the best level."""
    return np.uint32(0), st.book.sides[side_at].bits, np.int64(st.book.sides[side_at].n)


@njit_inlined
def next_order(st: Any, side_at: Any, at: Any, level: Any, bits: Any, n: Any) -> Any:
    """(order, level, bits, n) after the order `at`; at 0: the first. Order 0: there is none."""
    if at > 0:
        order = st.orders[at]
        if order.next > 0:
            return order.next, level, bits, n
        if order.flags & s.HIDDEN == 0 and st.book.levels[level].back_head > 0:
            return st.book.levels[level].back_head, level, bits, n
    level, bits, n = next_level(st.book, side_at, bits, n)
    found = st.book.levels[level]
    return found.head if found.head > 0 else found.back_head, level, bits, n


@njit_inlined
def quantity_of(st: Any, slot: Any, part: Any) -> Any:
    order = st.orders[slot]
    if order.flags & s.ICEBERG and order.flags & s.BOOKED:
        return order.shown if part == 0 else order.leaves - order.shown
    return order.leaves


@njit_inlined
def comes_before(st: Any, side_at: Any, own: Any, limit: Any, at: Any) -> Any:
    """Is it the incoming order's turn, where the book's next one is `at`?"""
    if own == 0:
        return False
    return at == 0 or key_of(st.orders[at].price, side_at) < key_of(limit, side_at)
