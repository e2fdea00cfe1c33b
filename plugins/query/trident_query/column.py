"""The column that a program matches: fixed-width values, padded on the right with spaces or NULs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from trident_core.errors import UsageError


def fixed_width(column: NDArray[Any]) -> tuple[NDArray[np.bytes_], int]:
    """`column` (S[n] or u8[n, w], of any strides) as S[n], and the width of its values in bytes.

    Copies only where memory is not contiguous. Raises UsageError for anything else.
    """
    check_column(column)
    if column.dtype.kind == "S":
        return column, column.dtype.itemsize
    count, width = column.shape
    if width == 0 or count == 0:
        return np.zeros(count, dtype="S1"), width  # numpy has no S0 to view
    return np.ascontiguousarray(column).view(f"S{width}")[:, 0], width


def check_column(column: NDArray[Any]) -> None:
    """Raises UsageError, with what was given, for what is neither S[n] nor u8[n, w]."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "S" and column.ndim == 1:
            return
        if column.dtype == np.uint8 and column.ndim == 2:
            return
        found = f"{column.dtype}[{', '.join(str(length) for length in column.shape)}]"
    else:
        found = type(column).__name__
    raise UsageError(
        f"a column is S[n] or u8[n, w], not {found}", hint="encode text first: np.array(texts, dtype='S')"
    )


def rows_of(column: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.uint64] | None]:
    """`column` (S[n] or u8[n, w]) as read-only u8[n, w] of any strides, without a copy; and, where values are
    eight bytes each, contiguous and aligned, the same as u64[n] (little-endian), else None.

    Raises UsageError for another type of column.
    """
    check_column(column)
    if column.dtype.kind == "S":
        # numpy views texts as bytes along a contiguous axis only, so there must be one, of length 1.
        shape, strides = (len(column), 1), (column.strides[0], column.dtype.itemsize)
        rows = as_strided(column, shape, strides, writeable=False).view(np.uint8)
    else:
        rows = column
    rows = rows[:]
    rows.flags.writeable = False
    words = None
    contiguous = rows.shape[1] == 8 and rows.strides == (8, 1) and rows.ctypes.data % 8 == 0
    if contiguous and len(rows):
        words = rows.view("<u8")[:, 0]
    return rows, words


def value_of(value: bytes, width: int, *, raw: bool) -> bytes:
    """The text of one value, from which numpy has cut the NULs at its end.

    With `raw` all `width` bytes belong to the text, else neither trailing spaces nor NULs do.
    """
    return value.ljust(width, b"\0") if raw else value.rstrip(b" \0")
