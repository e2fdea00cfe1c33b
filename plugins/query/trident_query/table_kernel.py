"""Kernels that run a DFA's table over fields: four records side by side.

Each step waits for the load of the step before, so one record alone leaves the processor idle. Tables are
flat and premultiplied: an entry is the next state times the length of a row, so that a step is an addition
and a load. Indices are unsigned: for signed ones numba adds a check to each load.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_core.jit import njit_entry

U = np.uint64


@njit_entry
def match_words(words: Any, table: Any, start: Any, accepts: Any, out: Any) -> None:
    """out[i] = is value i (u64[n]: the eight bytes of a field, contiguous) accepted?

    `table`: u16 or u32, entry [state * 256 + byte] = next state * 256. `accepts`: bool by state.
    """
    n = len(words)
    begin = U(start)
    for q in range(n // 4):
        i = U(q) * U(4)
        v0, v1, v2, v3 = words[i], words[i + U(1)], words[i + U(2)], words[i + U(3)]
        a = b = c = d = begin
        for _ in range(8):
            a = U(table[a + (v0 & U(255))])
            b = U(table[b + (v1 & U(255))])
            c = U(table[c + (v2 & U(255))])
            d = U(table[d + (v3 & U(255))])
            v0 >>= U(8)
            v1 >>= U(8)
            v2 >>= U(8)
            v3 >>= U(8)
        out[i] = accepts[a >> U(8)]
        out[i + U(1)] = accepts[b >> U(8)]
        out[i + U(2)] = accepts[c >> U(8)]
        out[i + U(3)] = accepts[d >> U(8)]
    for k in range(n - n % 4, n):
        value, a = words[k], begin
        for _ in range(8):
            a = U(table[a + (value & U(255))])
            value >>= U(8)
        out[k] = accepts[a >> U(8)]


@njit_entry
def match_rows(rows: Any, table: Any, row: Any, of: Any, start: Any, accepts: Any, out: Any) -> None:
    """out[i] = is row i (u8[n, w], of any strides), read to its full width, accepted?

    `table`: u16 or u32, entry [state * row + of[byte]] = next state * row; `of`: u8[256], byte -> column.
    """
    n, width = rows.shape
    begin, step = U(start), U(row)
    for q in range(n // 4):
        i = U(q) * U(4)
        a = b = c = d = begin
        for j in range(U(width)):
            a = U(table[a + U(of[rows[i, j]])])
            b = U(table[b + U(of[rows[i + U(1), j]])])
            c = U(table[c + U(of[rows[i + U(2), j]])])
            d = U(table[d + U(of[rows[i + U(3), j]])])
        out[i] = accepts[a // step]
        out[i + U(1)] = accepts[b // step]
        out[i + U(2)] = accepts[c // step]
        out[i + U(3)] = accepts[d // step]
    for k in range(n - n % 4, n):
        a = begin
        for j in range(U(width)):
            a = U(table[a + U(of[rows[k, j]])])
        out[k] = accepts[a // step]
