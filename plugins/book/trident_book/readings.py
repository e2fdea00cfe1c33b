"""Kernels that read books: levels and orders into the caller's records."""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_core.jit import njit_entry


@njit_entry
def read_levels(st: Any, side_at: Any, out: Any) -> None:
    """The best len(out) levels of st.sides[side_at] as LEVELs, best first."""
    side = st.sides[side_at]
    last = np.int64(side.start) + np.int64(side.n) - 1
    for k in range(len(out)):
        level = st.levels[st.slots[last - k]]
        out[k].price, out[k].qty, out[k].count = level.price, level.qty, level.count


@njit_entry
def count_orders(st: Any, symbols: Any, counts: Any) -> None:
    """How many orders rest in the book of each of `symbols`."""
    for i in range(len(symbols)):
        total: Any = 0
        for number in range(2):
            side = st.sides[2 * np.int64(symbols[i]) + number]
            for k in range(np.int64(side.n)):
                total += np.int64(st.levels[st.slots[np.int64(side.start) + k]].count)
        counts[i] = total


@njit_entry
def read_orders(st: Any, symbols: Any, out: Any) -> None:
    """All orders of `symbols`, one symbol after the other, as ORDERs in the contract's order."""
    at: Any = 0
    for symbol in symbols:
        for number in range(2):
            side = st.sides[2 * np.int64(symbol) + number]
            last = np.int64(side.start) + np.int64(side.n) - 1
            for k in range(np.int64(side.n)):
                slot = st.levels[st.slots[last - k]].head
                while slot > 0:
                    order = st.orders[slot]
                    row = out[at]
                    row.ref, row.price, row.qty, row.ts = order.ref, order.price, order.qty, order.ts
                    row.locate, row.mpid = st.tops[symbol].locate, order.mpid
                    row.side = 83 if number else 66
                    slot = order.next
                    at += 1
