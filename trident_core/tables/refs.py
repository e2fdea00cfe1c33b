"""A hash index of live order references, for kernels: u64 keys to slots, open addressing, linear probing.

Two arrays of one length, a power of two: `keys` i64 (any value is a key) and `slots` i32, -1 where empty. The
caller keeps them at most half full with `grown`. Erasing shifts back what follows, so no tombstones pile up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trident_core.jit import njit_entry, njit_inlined, njit_kernel

Keys = NDArray[np.int64]
Slots = NDArray[np.int32]

CAPACITY_MIN = 1 << 12


def empty(capacity: int = CAPACITY_MIN) -> tuple[Keys, Slots]:
    """An index without entries."""
    return np.zeros(capacity, np.int64), np.full(capacity, -1, np.int32)


def grown(keys: Keys, slots: Slots, entries: int) -> tuple[Keys, Slots]:
    """An index with room for `entries` entries: the same arrays if they have it."""
    capacity = len(keys)
    while capacity < 2 * entries:
        capacity *= 2
    if capacity == len(keys):
        return keys, slots
    more = empty(capacity)
    copy_entries(keys, slots, *more)
    return more


def warm_up() -> None:
    """Compile, or load, what only growth calls."""
    copy_entries(*empty(2), *empty(2))


@njit_inlined
def home(key: int, mask: int) -> int:
    """Where the probe for `key` begins: the finaliser of splitmix64."""
    mixed = np.uint64(key)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((mixed ^ (mixed >> np.uint64(31))) & np.uint64(mask))  # type: ignore[return-value]


@njit_kernel
def find(keys: Keys, slots: Slots, key: int) -> int:
    """The slot of `key`, or -1."""
    mask = len(keys) - 1
    at = home(key, mask)
    while slots[at] >= 0 and keys[at] != key:
        at = (at + 1) & mask
    return int(slots[at])


@njit_kernel
def insert(keys: Keys, slots: Slots, key: int, slot: int) -> None:
    """Add `key`, which must not be there."""
    mask = len(keys) - 1
    at = home(key, mask)
    while slots[at] >= 0:
        at = (at + 1) & mask
    keys[at] = key
    slots[at] = slot


@njit_kernel
def erase(keys: Keys, slots: Slots, key: int) -> None:
    """Remove `key`, which must be there."""
    mask = len(keys) - 1
    hole = home(key, mask)
    while keys[hole] != key or slots[hole] < 0:
        hole = (hole + 1) & mask
    at = hole
    while True:
        at = (at + 1) & mask
        if slots[at] < 0:
            break
        # An entry may fill the hole unless its probe begins after it.
        if ((at - home(keys[at], mask)) & mask) >= ((at - hole) & mask):
            keys[hole] = keys[at]
            slots[hole] = slots[at]
            hole = at
    slots[hole] = -1


@njit_entry
def copy_entries(keys: Keys, slots: Slots, to_keys: Keys, to_slots: Slots) -> None:
    """Insert every entry of one index into another."""
    for at in range(len(keys)):
        if slots[at] >= 0:
            insert(to_keys, to_slots, keys[at], slots[at])
