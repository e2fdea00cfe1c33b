"""The loops over events that sort, cut and index them. Layouts: `trident_store.lsm.layout`.

An event is a row of eight u64 words; the seventh holds locate (32 bits), type (8), side (8) and flags (16).
In a block of n rows the columns of eight bytes begin at 0, n, 2n, 3n, 4n, 5n and 7n words.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import njit
from trident_store.lsm.layout import BLOOM_SALTS

_DIGIT_BITS: Final = 11
_DIGITS: Final = 6  # of 11 bits in a u64
_BUCKETS: Final = 1 << _DIGIT_BITS
_U: Final = ord("U")
_SALTS: Final = tuple(int(salt) for salt in BLOOM_SALTS)


@njit
def radix_sort(keys: Any, values: Any, other_keys: Any, other_values: Any) -> bool:
    """Sort u64 keys, and u32 values with them, stably; digits that are all the same take no pass.

    True when the result stands in the `other` arrays.
    """
    n = keys.shape[0]
    counts = np.zeros((_DIGITS, _BUCKETS), np.uint32)
    mask = np.uint64(_BUCKETS - 1)
    for i in range(n):
        key = keys[i]
        for digit in range(_DIGITS):
            counts[digit, (key >> np.uint64(digit * _DIGIT_BITS)) & mask] += np.uint32(1)
    swapped = False
    for digit in range(_DIGITS):
        shift = np.uint64(digit * _DIGIT_BITS)
        count = counts[digit]
        if n == 0 or count[(keys[0] >> shift) & mask] == n:
            continue
        total = np.uint32(0)
        for bucket in range(_BUCKETS):
            here = count[bucket]
            count[bucket] = total
            total += here
        for i in range(n):
            key = keys[i]
            place = (key >> shift) & mask
            to = count[place]
            count[place] = to + np.uint32(1)
            other_keys[to] = key
            other_values[to] = values[i]
        keys, other_keys = other_keys, keys
        values, other_values = other_values, values
        swapped = not swapped
    return swapped


@njit
def locate_keys(words: Any, keys: Any, values: Any) -> None:
    """The sort keys of events: their locates; the values are 0, 1, 2, …"""
    for i in range(words.shape[0]):
        keys[i] = words[i, 6] & np.uint64(0xFFFFFFFF)
        values[i] = np.uint32(i)


@njit
def invert(order: Any, out: Any) -> None:
    """out[order[i]] = i."""
    for i in range(order.shape[0]):
        out[order[i]] = np.uint32(i)


@njit
def ref_entries(words: Any, positions: Any, refs: Any, out: Any) -> int:
    """Every reference that an event names, in append order, and the event's position; how many."""
    n = 0
    for i in range(words.shape[0]):
        ref = words[i, 2]
        if ref:
            refs[n] = ref
            out[n] = positions[i]
            n += 1
        if np.int64((words[i, 6] >> np.uint64(32)) & np.uint64(0xFF)) == _U:
            new = words[i, 3]
            if new and new != ref:
                refs[n] = new
                out[n] = positions[i]
                n += 1
    return n


@njit
def bloom_add(refs: Any, bloom: Any) -> None:
    """Set the bits of all references; `bloom` is u64[blocks, 8]."""
    blocks = np.uint64(bloom.shape[0])
    last = np.uint64(0)
    for i in range(refs.shape[0]):
        ref = refs[i]
        if ref == last:  # sorted, and 0 is no reference
            continue
        last = ref
        mixed = bloom_mix(ref)
        block = np.intp(((mixed >> np.uint64(32)) * blocks) >> np.uint64(32))
        low = mixed & np.uint64(0xFFFFFFFF)
        for word in range(8):
            bloom[block, word] |= bloom_bit(low, word)


@njit
def bloom_mix(ref: Any) -> Any:
    """MurmurHash3's finalizer."""
    shift = np.uint64(33)
    ref ^= ref >> shift
    ref *= np.uint64(0xFF51AFD7ED558CCD)
    ref ^= ref >> shift
    ref *= np.uint64(0xC4CEB9FE1A85EC53)
    ref ^= ref >> shift
    return ref


@njit
def bloom_bit(low: Any, word: int) -> Any:
    """The bit of a reference in the given word of its block."""
    place = ((low * np.uint64(_SALTS[word])) & np.uint64(0xFFFFFFFF)) >> np.uint64(26)
    return np.uint64(1) << place
