"""Kernels that read books: levels and orders into the caller's records."""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_book.sides import next_level
from trident_core.jit import njit_entry


@njit_entry
def count_levels(st: Any, side_at: Any) -> Any:
    """How many levels a side has."""
    side = st.sides[side_at]
    bits, total = side.bits, np.int64(side.n)
    while bits:
        bits &= bits - np.uint64(1)
        total += 1
    return total


@njit_entry
def read_levels(st: Any, side_at: Any, out: Any) -> None:
    """The best len(out) levels of st.sides[side_at] as LEVELs, best first."""
    side_at = np.uint32(side_at)
    bits, n = st.sides[side_at].bits, np.int64(st.sides[side_at].n)
    for k in range(len(out)):
        slot, bits, n = next_level(st, side_at, bits, n)
        level = st.levels[slot]
        out[k].price, out[k].qty, out[k].count = level.price, level.qty, level.count


@njit_entry
def count_orders(st: Any, symbols: Any, counts: Any) -> None:
    """How many orders rest in the book of each of `symbols`."""
    for i in range(len(symbols)):
        total: Any = 0
        for number in range(2):
            side_at = np.uint32(2 * np.int64(symbols[i]) + number)
            bits, n = st.sides[side_at].bits, np.int64(st.sides[side_at].n)
            while True:
                slot, bits, n = next_level(st, side_at, bits, n)
                if slot == 0:
                    break
                total += np.int64(st.levels[slot].count)
        counts[i] = total


@njit_entry
def read_orders(st: Any, symbols: Any, out: Any) -> None:
    """All orders of `symbols`, one symbol after the other, as ORDERs in the contract's order."""
    at: Any = 0
    for symbol in symbols:
        for number in range(2):
            side_at = np.uint32(2 * np.int64(symbol) + number)
            bits, n = st.sides[side_at].bits, np.int64(st.sides[side_at].n)
            while True:
                level, bits, n = next_level(st, side_at, bits, n)
                if level == 0:
                    break
                slot = st.levels[level].head
                while slot > 0:
                    order = st.orders[slot]
                    row = out[at]
                    row.ref, row.price, row.qty, row.ts = order.ref, order.price, order.qty, order.ts
                    row.locate, row.mpid = st.tops[symbol].locate, order.mpid
                    row.side = 83 if number else 66
                    slot = order.next
                    at += 1
