"""The arrays of the contract: how engines check them, and their records with integers for byte arrays."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EFFECT, EVENT, ORDER
from trident_core.errors import UsageError


def _with_integer(dtype: np.dtype[Any], name: str, code: str) -> np.dtype[Any]:
    """The same layout, with the byte array `name` read as one little-endian integer."""
    fields: Any = dtype.fields
    names = list(dtype.names or ())
    formats = [code if field == name else fields[field][0] for field in names]
    offsets = [fields[field][1] for field in names]
    return np.dtype(
        {"names": names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize}, align=True
    )


EVENT_WORDS: Final = _with_integer(EVENT, "aux", "<u8")
EFFECT_WORDS: Final = _with_integer(EFFECT, "mpid", "<u4")
ORDER_WORDS: Final = _with_integer(ORDER, "mpid", "<u4")


def check_locate(locate: int) -> int:
    """`locate` if it is one. Raises UsageError."""
    if not 0 <= locate < 1 << 32:
        raise UsageError(f"{locate} is no locate", hint="locates are numbers of 32 bits")
    return locate


def check_array(name: str, array: NDArray[Any], dtype: np.dtype[Any]) -> int:
    """The length of `array`. Raises UsageError unless it is one-dimensional and of `dtype`."""
    if not isinstance(array, np.ndarray):
        raise UsageError(
            f"{name} is {type(array).__name__}", hint="pass a numpy array of trident_core.dtypes"
        )
    if array.dtype != dtype or array.ndim != 1:
        raise UsageError(
            f"{name} has dtype {array.dtype} and {array.ndim} dimensions", hint="see trident_core.dtypes"
        )
    return len(array)


def check_output(name: str, array: NDArray[Any] | None, dtype: np.dtype[Any], n: int) -> None:
    if array is None:
        return
    if check_array(name, array, dtype) < n:
        raise UsageError(f"{name} has room for {len(array)} of {n} events", hint="make it as long as events")
    if not array.flags.writeable:
        raise UsageError(f"{name} is read-only", hint="pass an array that may be written")
