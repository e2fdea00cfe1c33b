"""Columns: a pattern's circuits, one for each width and layout that is asked for."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_query.column import fixed_width
from trident_query.glushkov import Glushkov
from trident_query.limits import LimitError
from trident_query.llvm.code import RefusedError
from trident_query.llvm.fields import NAME, Match, match_code
from trident_query.llvm.host import Host, object_code
from trident_query.llvm.kernels import Kernel, kernels
from trident_query.llvm.objects import Stored

_POINTER, _I64 = ctypes.c_void_p, ctypes.c_int64
_ARGUMENTS: Final = (_POINTER, _I64, _I64, _POINTER, _POINTER)


class Layout(NamedTuple):
    """A column in memory: `values` keeps it there, value i is `width` bytes at address + i * stride."""

    values: NDArray[Any]
    address: int
    count: int  # type: ignore[assignment]  # shadows tuple.count
    stride: int
    width: int


def layout_of(column: NDArray[Any]) -> Layout:
    """Where the values of a column (S[n] or u8[n, w]) are. Copies only values whose bytes are not in a row.

    Raises UsageError for anything else.
    """
    rows = isinstance(column, np.ndarray) and column.dtype == np.uint8 and column.ndim == 2
    if rows and column.size and column.strides[1] == 1:
        return Layout(column, column.ctypes.data, len(column), column.strides[0], column.shape[1])
    values, width = fixed_width(column)
    stride = values.strides[0] if len(values) > 1 else width
    return Layout(values, values.ctypes.data, len(values), stride, width)


class Columns:
    """The circuits of one pattern. For several threads at once."""

    def __init__(self, key: str, automaton: Callable[[], Glushkov], host: Host, *, raw: bool) -> None:
        self._key, self._automaton, self._host, self._raw = key, automaton, host, raw
        self._lock = threading.Lock()
        self._kernels: dict[tuple[int, bool], Kernel | RefusedError | LimitError] = {}

    def kernel(self, layout: Layout) -> Kernel:
        """The code for a layout. Raises RefusedError or LimitError, the same each time."""
        contiguous = layout.stride == layout.width
        which = layout.width, contiguous
        with self._lock:
            known = self._kernels.get(which)
            if known is None:
                try:
                    known = self._load(*which)
                except (RefusedError, LimitError) as error:
                    known = error
                self._kernels[which] = known
        if not isinstance(known, Kernel):
            raise known.with_traceback(None)
        return known

    def _code(self, width: int, contiguous: bool) -> Match:
        return match_code(self._automaton(), width, self._host, contiguous=contiguous, raw=self._raw)

    def _load(self, width: int, contiguous: bool) -> Kernel:
        def make() -> Stored:
            made = self._code(width, contiguous)
            return Stored(object_code(made.ir, self._host), {"operations": made.operations})

        key = f"{width} {'in a row' if contiguous else 'apart'}|{self._key}"
        return kernels().get(key, self._host, NAME, _ARGUMENTS, make)

    def run(
        self, layout: Layout, bits: NDArray[np.uint8] | None = None, bools: NDArray[Any] | None = None
    ) -> int:
        """How many values match; which ones, into `bits` (u8[ceil(n / 8)]) and `bools` (bool[n])."""
        kernel = self.kernel(layout)
        return kernel.call(
            layout.address,
            layout.count,
            layout.stride,
            None if bits is None else bits.ctypes.data,
            None if bools is None else bools.ctypes.data,
        )

    def facts(self) -> list[dict[str, Any]]:
        """What was compiled for which width, for `explain`."""
        with self._lock:
            known = dict(self._kernels)
        made = []
        for (width, contiguous), kernel in known.items():
            facts: dict[str, Any] = {"width": width, "layout": "in a row" if contiguous else "apart"}
            if isinstance(kernel, Kernel):
                facts |= {"engine": "circuit", **kernel.facts, "code_bytes": kernel.library.bytes}
                facts["from"] = kernel.source
            else:
                facts |= {"engine": "other", "why": kernel.message}
            made.append(facts)
        return made
