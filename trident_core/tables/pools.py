"""The pools in which kernels keep levels and live orders of every symbol, and how these grow."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trident_core.tables import ladder_kernel as k
from trident_core.tables import refs
from trident_core.tables.numbering import Symbols

Scalar = TypeVar("Scalar", bound=np.generic)


class BookPools:
    """Levels and live orders, for the kernels of `ladder_kernel` and those made of them.

    Memory: 48 bytes for each live order, 24 for each level; both at most doubled by growth.
    """

    def __init__(self, state_slots: int = k.STATE_SLOTS) -> None:
        self.symbols = Symbols()
        self.keys, self.slots = refs.empty()
        self.orders: k.I64 = np.zeros((0, 3), np.int64)
        self.free: NDArray[np.int32] = np.zeros(0, np.int32)
        self.levels: k.I64 = np.zeros((1 << 12, 3), np.int64)
        self.sides: k.I64 = np.zeros((0, 3), np.int64)
        self.state: k.I64 = np.zeros(state_slots, np.int64)

    def warm_up(self) -> None:
        """Compile, or load, the kernels that only growth calls."""
        refs.warm_up()
        k.repack(self.levels, self.sides[:0], self.levels)

    def make_room(self, events: int) -> int:
        """Room for so many events more, of the symbols numbered so far; -> symbols there is room for."""
        size = len(self.symbols)
        if 2 * size > len(self.sides):
            self.sides = grown(self.sides, 2 * max(size, len(self.sides)))
        living = int(self.state[k.LIVING])
        self.keys, self.slots = refs.grown(self.keys, self.slots, living + events)
        kept = int(self.state[k.FREE])
        if kept < events:
            old = len(self.orders)
            more = max(2 * old, living + events)
            free = np.zeros(more, np.int32)
            free[: more - old] = np.arange(old, more)
            free[more - old : more - old + kept] = self.free[:kept]
            self.orders, self.free = grown(self.orders, more), free
            self.state[k.FREE] += more - old
        return len(self.sides) // 2

    def repack(self) -> None:
        """More room for levels: a kernel found the pool full."""
        capacities = self.sides[:, k.CAPACITY]
        needed = int(capacities.sum()) + 2 * int(capacities.max(initial=0)) + k.FIRST_LEVELS
        larger = np.zeros((max(2 * needed, len(self.levels)), 3), np.int64)
        self.state[k.USED] = k.repack(self.levels, self.sides, larger)
        self.levels = larger


def grown(array: NDArray[Scalar], size: int) -> NDArray[Scalar]:
    """The array with rows of zeros behind it."""
    larger = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
