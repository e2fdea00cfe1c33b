"""Kernels of rows: what a report says of an order."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.matching.numba_state import MATCH_NO, REF, ROW_BASE, SEQ
from trident_book.unsigned import u
from trident_core.contracts.matching import REPORTS_MIN, ReportFlag, ReportKind
from trident_core.jit import njit_inlined, njit_kernel

_0: Final = np.uint64(0)
_1: Final = np.uint32(1)
_BUY, _SELL = ord("B"), ord("S")
# Of 64 bits: for each plain number that it is called with, numba would compile a kernel anew.
DISPLAYED: Final = np.int64(ReportFlag.DISPLAYED)
LEFT: Final = np.int64(ReportFlag.LEFT)
_FILL: Final = np.int64(ReportKind.FILL)
_CANCELLED: Final = np.int64(ReportKind.CANCELLED)


@njit_inlined
def rows_full(st: Any, rows: Any) -> Any:
    """Is there too little room for one more step?"""
    return len(rows) - (st.g[SEQ] - st.g[ROW_BASE]) < REPORTS_MIN


@njit_inlined
def next_row(st: Any, rows: Any, kind: Any) -> Any:
    """Where the next row stands, all of it 0 but for its number and time."""
    seq = st.g[SEQ] + 1
    st.g[SEQ] = seq
    at = u(seq - st.g[ROW_BASE] - 1)
    row = rows[at]
    row.seq, row.ts, row.kind = seq, st.work[u(0)].ts, kind
    row.id = row.id2 = row.ref = row.ref2 = row.qty = row.leaves = row.leaves2 = _0
    row.price = 0
    row.locate = row.owner = row.owner2 = row.mpid = np.uint32(0)
    row.reason = row.side = row.flags = row.code = 0
    return at


@njit_kernel
def order_row(st: Any, rows: Any, slot: Any, kind: Any) -> Any:
    """Where the next row stands, with what every row of an order says."""
    at = next_row(st, rows, kind)
    order, row = st.orders[slot], rows[at]
    symbol = st.symbols[order.side >> _1]
    row.locate, row.id, row.ref, row.owner = symbol.locate, order.id, order.ref, order.owner
    row.leaves, row.side = order.leaves, _SELL if order.side & _1 else _BUY
    symbol.seq, symbol.ts = row.seq, row.ts
    return at


@njit_kernel
def say(st: Any, rows: Any, slot: Any, kind: Any, price: Any, qty: Any) -> Any:
    """A row that names the price, a quantity and the participant."""
    at = order_row(st, rows, slot, kind)
    row = rows[at]
    row.price, row.qty, row.mpid = price, qty, st.orders[slot].mpid
    return at


@njit_kernel
def say_fill(
    st: Any, rows: Any, slot: Any, other: Any, price: Any, qty: Any, match_no: Any, flags: Any
) -> None:
    at = order_row(st, rows, slot, _FILL)
    row, second = rows[at], st.orders[other]
    row.id2, row.owner2, row.leaves2 = second.id, second.owner, second.leaves
    row.price, row.qty, row.ref2, row.flags = price, qty, match_no, flags


@njit_kernel
def say_cancelled(
    st: Any, rows: Any, slot: Any, price: Any, qty: Any, fell: Any, reason: Any, flags: Any
) -> None:
    """`fell`: by how much the displayed quantity did."""
    at = order_row(st, rows, slot, _CANCELLED)
    row = rows[at]
    row.price, row.qty, row.leaves2, row.reason, row.flags = price, qty, fell, reason, flags


@njit_inlined
def next_ref(st: Any) -> Any:
    st.g[REF] += 1
    return np.uint64(st.g[REF] - 1)


@njit_inlined
def next_match(st: Any) -> Any:
    st.g[MATCH_NO] += 1
    return np.uint64(st.g[MATCH_NO] - 1)
