"""The column that a program matches: fixed-width values, padded on the right with spaces or NULs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import UsageError


def fixed_width(column: NDArray[Any]) -> tuple[NDArray[np.bytes_], int]:
    """`column` (S[n] or u8[n, w], of any strides) as S[n], and the width of its values in bytes.

    Copies only where memory is not contiguous. Raises UsageError for anything else.
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "S" and column.ndim == 1:
            return column, column.dtype.itemsize
        if column.dtype == np.uint8 and column.ndim == 2:
            count, width = column.shape
            if width == 0 or count == 0:
                return np.zeros(count, dtype="S1"), width  # numpy has no S0 to view
            return np.ascontiguousarray(column).view(f"S{width}")[:, 0], width
        found = f"{column.dtype}[{', '.join(str(length) for length in column.shape)}]"
    else:
        found = type(column).__name__
    raise UsageError(
        f"a column is S[n] or u8[n, w], not {found}", hint="encode text first: np.array(texts, dtype='S')"
    )


def value_of(value: bytes, width: int, *, raw: bool) -> bytes:
    """The text of one value, from which numpy has cut the NULs at its end.

    With `raw` all `width` bytes belong to the text, else neither trailing spaces nor NULs do.
    """
    return value.ljust(width, b"\0") if raw else value.rstrip(b" \0")
