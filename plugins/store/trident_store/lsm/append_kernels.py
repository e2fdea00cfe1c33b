"""The loops of an append: whether seq grows, and a payload copied with its CRC."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import njit
from trident_store.lsm.crc_kernels import crc32c_at
from trident_store.lsm.lookup import load_u64

_WORDS: Final = (
    768  # copied before their CRC is taken: three lanes of `crc32c_at`, and still in the nearest cache
)


@njit
def not_growing(at: Any, count: int, last_seq: Any) -> int:
    """The first of so many events at an address whose seq is not above the one before, `last_seq` for the
    first; -1: none."""
    grows = True
    before = last_seq
    for i in range(count):
        seq = load_u64(at + np.uint64(64 * i))
        grows &= seq > before
        before = seq
    if grows:
        return -1
    before = last_seq
    for i in range(count):
        seq = load_u64(at + np.uint64(64 * i))
        if seq <= before:
            return i
        before = seq
    return -1


@njit
def copy_crc(at: Any, to: Any) -> Any:
    """Fill `to` (u64[n]) from an address; the CRC-32C of what stands there then."""
    n = to.shape[0]
    target = np.uint64(to.ctypes.data)
    crc = np.uint64(0)
    for start in range(0, n, _WORDS):
        end = min(start + _WORDS, n)
        for i in range(start, end):
            to[i] = load_u64(at + np.uint64(8 * i))
        crc = crc32c_at(target + np.uint64(8 * start), np.uint64(8 * (end - start)), crc)
    return crc
