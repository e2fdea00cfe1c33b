"""Kernels that ask whether the pools have room for what comes next."""

from __future__ import annotations

from typing import Any

from trident_book import records
from trident_book.index import BUCKET
from trident_book.matching import numba_state as s
from trident_core.jit import njit_inlined, njit_kernel


@njit_inlined
def ladder_room(ladder: Any) -> Any:
    """How many orders may find a place on a ladder, two levels each (as trident_book.kernel.room,
    doubled)."""
    g = ladder.g
    largest = max(records.CHUNK_ROOM, g[records.CHUNK_MAX])
    chunks = min(
        largest // 260, (len(ladder.keys) - g[records.CHUNK_END]) // (2 * records.CHUNK_SPARE * largest)
    )
    return min(chunks, (len(ladder.levels) - g[records.LEVEL_END]) // 2)


@njit_kernel
def room(st: Any) -> Any:
    """How many orders are sure to find room in all pools, each once."""
    g = st.g
    orders = len(st.orders) - g[s.ORDER_END]
    symbols = len(st.symbols) - g[s.SYMBOL_END]
    stops = len(st.stops.sides) // 4 - g[s.STOPS_END]
    owners = len(st.owners) // 2 - g[s.OWNERS_USED]
    index = len(st.ids.passed) * (BUCKET // 2) - st.ids.g[records.LIVE]
    ladders = min(ladder_room(st.book), ladder_room(st.stops))
    # Without more_of the pool of second records is as long as that of orders.
    return min(min(orders, symbols), min(min(stops, owners), min(index, ladders)))


@njit_inlined
def sure(st: Any) -> Any:
    """Takes the room for one order; False if there may be none."""
    if st.g[s.SURE] == 0:
        st.g[s.SURE] = room(st)
        if st.g[s.SURE] <= 0:
            st.g[s.SURE] = 0
            return False
    st.g[s.SURE] -= 1
    return True
