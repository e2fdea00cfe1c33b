"""Rows of several shards in the order of the input again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.jit import njit_entry, njit_inlined

Rows = NDArray[Any]


def merge_rows(parts: Sequence[Rows], key: str) -> Rows:
    """One array of all rows of one dtype, by the column `key`; each part is sorted by it.

    Where keys are equal, those of an earlier part come first. The part itself if it is one.
    """
    parts = [part for part in parts if len(part)] or [parts[0]]
    while len(parts) > 1:
        pairs = [tuple(parts[i : i + 2]) for i in range(0, len(parts), 2)]
        parts = [_merged(*pair, key) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


def _merged(first: Rows, second: Rows, key: str) -> Rows:
    size, at = first.dtype.itemsize, _offset(first.dtype, key)
    unit = np.dtype("u1" if size % 4 or at % 4 else "u4")
    made = np.empty(len(first) + len(second), first.dtype)
    a, b, out = (rows.view(unit).reshape(len(rows), -1) for rows in (first, second, made))
    merge(a, b, out, at // unit.itemsize)
    return made


def _offset(dtype: np.dtype[Any], key: str) -> int:
    fields: Any = dtype.fields
    return int(fields[key][1])


@njit_inlined
def key_of(rows: Any, i: Any, column: Any) -> Any:
    """The little-endian u64 that begins in a column of u8 or u4."""
    key = np.uint64(0)
    for j in range(8 // rows.itemsize):
        key |= np.uint64(rows[i, column + j]) << np.uint64(8 * rows.itemsize * j)
    return key


@njit_entry
def merge(first: Any, second: Any, out: Any, column: Any) -> None:
    """Two arrays of rows, both sorted by the key in `column`, into one."""
    width, a, b = out.shape[1], 0, 0
    key, other = key_of(first, 0, column), key_of(second, 0, column)
    for i in range(len(out)):
        if b == len(second) or (a < len(first) and key <= other):
            for j in range(width):
                out[i, j] = first[a, j]
            a += 1
            if a < len(first):
                key = key_of(first, a, column)
        else:
            for j in range(width):
                out[i, j] = second[b, j]
            b += 1
            if b < len(second):
                other = key_of(second, b, column)
