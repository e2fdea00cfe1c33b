"""Programs of the machine, run over events or over columns of them, block by block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Query
from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_query.where.kernel import BLOCK, Stop, run
from trident_query.where.lower import Code

#: Distinct texts remembered of one pattern on MPIDs or aux; then they are forgotten and asked again.
REMEMBERED_MAX: Final = 1 << 16
_FIRST_ROOM: Final = 1 << 8
_MIX: Final = 0x9E3779B97F4A7C15

Columns = Mapping[str, NDArray[Any]]


class Machine:
    """Runs one `Code`. Not for several threads at once: registers and what texts it remembers are its own."""

    def __init__(self, code: Code, texts: Query) -> None:
        self.code = code
        self._array = code.array()
        self._tables = np.array(code.tables, np.uint8).reshape(-1, 256)
        self._locates = np.stack(code.locates) if code.locates else np.zeros((0, 1), np.uint8)
        self._programs = [texts.compile(pattern) for pattern in code.memories]
        self._memories = np.zeros((len(code.memories), _FIRST_ROOM, 2), np.int64)
        self._counts = [0] * len(code.memories)
        self._r = np.zeros((max(code.registers, 1), BLOCK), np.int64)
        self._t = np.ones((code.truths, BLOCK), np.uint8)
        self._outputs = np.array(code.outputs, np.int64)
        self._no_keys = np.full(1, -1, np.int64)
        self._no_kept = np.zeros((1, max(code.slots, 1)), np.int64)

    def fields(self, data: Events | Columns) -> NDArray[np.int64]:
        """Address, stride and width of each field that the program reads."""
        rows = []
        for name in self.code.fields:
            column = "aux" if name == "mpid" else name
            array = data[column]
            expected = EVENT[column]
            if array.dtype != expected.base or array.ndim != 1 + len(expected.shape):
                raise UsageError(
                    f"column {column!r} is {array.dtype}, not {expected.base}", hint="as in EVENT"
                )
            width = 4 if name == "mpid" else expected.itemsize
            if len(expected.shape) and len(array) and array.strides[1] != 1:
                raise UsageError(f"column {column!r} must have the bytes of a row side by side")
            rows.append((array.ctypes.data, array.strides[0], width))
        return np.array(rows, np.int64).reshape(-1, 3)

    def bits(
        self, data: Events | Columns, n: int,
        keys: NDArray[np.int64] | None = None, kept: NDArray[np.int64] | None = None,
    ) -> NDArray[np.uint32]:  # fmt: skip
        """u32[n]: bit k of a row says whether the k-th predicate (of at most 32) is true there.

        `keys` (i64[n], -1 for none) and `kept` (i64[keys, slots], for the values of the rows before) belong
        to programs with prev. Raises UsageError where a sum or a product does not fit 64 bits.
        """
        fields, out, stop = self.fields(data), np.empty(n, np.uint32), np.zeros(5, np.int64)
        if keys is None:
            keys = np.full(n, -1, np.int64) if self.code.slots else self._no_keys
        while True:
            why = run(
                self._array, fields, n, self._tables, self._locates, self.code.far, self._memories, keys,
                self._no_kept if kept is None else kept, self._r, self._t, self._outputs, out, stop,
            )  # fmt: skip
            if why == Stop.DONE:
                return out
            if why == Stop.OVERFLOW:
                raise UsageError(
                    f"arithmetic on event {int(stop[4] + stop[0])} of the batch does not fit 64 bits",
                    hint="compare the values one by one",
                )
            self._learn(int(stop[2]), int(stop[1]))

    def match(self, data: Events | Columns, n: int) -> NDArray[np.bool_]:
        """bool[n]: the first predicate for all rows."""
        made: NDArray[np.bool_] = self.bits(data, n) & np.uint32(1) == 1
        return made

    def _learn(self, which: int, value: int) -> None:
        """Remember whether the pattern of a memory occurs in a text."""
        if self._counts[which] >= REMEMBERED_MAX:
            self._memories[which] = 0
            self._counts[which] = 0
        elif 2 * self._counts[which] >= self._memories.shape[1]:
            self._grow()
        raw = (value & ((1 << 64) - 1)).to_bytes(8, "little").rstrip(b"\0")
        found = bool(self._programs[which].match(np.array([raw], dtype="S8"))[0])
        _put(self._memories[which], value, found)
        self._counts[which] += 1

    def _grow(self) -> None:
        old = self._memories
        self._memories = np.zeros((len(old), 4 * old.shape[1], 2), np.int64)
        for which, memory in enumerate(old):
            for value, answer in memory[memory[:, 1] != 0].tolist():
                _put(self._memories[which], value, answer == 2)


def _put(memory: NDArray[np.int64], value: int, found: bool) -> None:
    mask = len(memory) - 1
    place = (((value & ((1 << 64) - 1)) * _MIX & ((1 << 64) - 1)) >> 20) & mask
    while memory[place, 1]:
        place = (place + 1) & mask
    memory[place] = value, 1 + found
