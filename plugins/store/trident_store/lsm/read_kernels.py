"""The loops that read tables: rows out of blocks, filters, and the look-up of an order."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from trident_core.jit import njit
from trident_store.lsm.kernels import bloom_bit, bloom_mix


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def load_u64(typingctx: Any, address: Any) -> Any:
    """The u64 at an address: one call can so look into the filters of any number of tables."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        return builder.load(builder.inttoptr(args[0], word.as_pointer()), typ=word)

    return types.uint64(types.uint64), codegen


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def load_u32(typingctx: Any, address: Any) -> Any:
    """The u32 at an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(32)
        return builder.load(builder.inttoptr(args[0], word.as_pointer()), typ=word)

    return types.uint32(types.uint64), codegen


@njit
def gather(
    raw64: Any, raw32: Any, raw16: Any, raw8: Any, positions: Any, block_events: int, count: int, out: Any
) -> None:
    """out[i] (eight words) = the event at positions[i]. The `raw` arrays are views of a table's blocks."""
    last_start = (count - 1) // block_events * block_events
    for i in range(positions.shape[0]):
        position = np.int64(positions[i])
        start = position // block_events * block_events
        n = block_events if start < last_start else count - last_start
        row = position - start
        word = start * 8 + row
        for column in range(6):
            out[i, column] = raw64[word + column * n]
        out[i, 7] = raw64[word + 7 * n]
        packed = np.uint64(raw32[start * 16 + 12 * n + row])
        packed |= np.uint64(raw8[start * 64 + 52 * n + row]) << np.uint64(32)
        packed |= np.uint64(raw8[start * 64 + 53 * n + row]) << np.uint64(40)
        packed |= np.uint64(raw16[start * 32 + 27 * n + row]) << np.uint64(48)
        out[i, 6] = packed


@njit
def unchecked(positions: Any, block_events: int, checked: Any) -> int:
    """The first block among those of the positions that has not been checked; -1 when all have."""
    for i in range(positions.shape[0]):
        block = np.int64(positions[i]) // block_events
        if not checked[block]:
            return int(block)
    return -1


@njit
def probe(ref: Any, filters: Any, found: Any) -> int:
    """Which tables may name `ref`: found[:n] = their indices, ascending; n.

    `filters` is u64[tables, 4]: address of the Bloom filter, its blocks, least and greatest reference.
    """
    mixed = bloom_mix(ref)
    high, low = mixed >> np.uint64(32), mixed & np.uint64(0xFFFFFFFF)
    n = 0
    for table in range(filters.shape[0]):
        if ref < filters[table, 2] or ref > filters[table, 3]:
            continue
        block = (high * filters[table, 1]) >> np.uint64(32)
        address = filters[table, 0] + block * np.uint64(64)
        maybe = True
        for word in range(8):
            bit = bloom_bit(low, word)
            if not load_u64(address + np.uint64(8 * word)) & bit:
                maybe = False
                break
        if maybe:
            found[n] = table
            n += 1
    return n


@njit
def first_not_below(values: Any, wanted: Any, low: int, high: int) -> int:
    """The first index of [low, high) whose value is not below `wanted`; `high` when there is none."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
