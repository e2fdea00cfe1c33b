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
    raw64: Any, raw32: Any, raw16: Any, raw8: Any, positions: Any, block_events: int, count: int,
    checked: Any, out: Any,
) -> int:  # fmt: skip
    """out[i] (eight words) = the event at positions[i]. The `raw` arrays are views of a table's blocks.

    Ends at the first event of a block that is not `checked` (u8 for each block), and returns the block; -1
    when all are in `out`.
    """
    last_start = (count - 1) // block_events * block_events
    for i in range(positions.shape[0]):
        position = np.int64(positions[i])
        block = position // block_events
        if not checked[block]:
            return int(block)
        start = block * block_events
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
def find_ref(firsts: Any, refs: Any, page_refs: int, ref: Any, checked: Any, found: Any) -> int:
    """Where a reference stands in the index: found = [low, high). `firsts` is the first one of each page.

    Returns a page that has to be checked first, or -1.
    """
    low, high = 0, firsts.shape[0]
    while low < high:  # pages that begin below `ref`
        middle = (low + high) >> 1
        if firsts[middle] < ref:
            low = middle + 1
        else:
            high = middle
    page = max(low - 1, 0)
    last = page
    while last + 1 < firsts.shape[0] and firsts[last + 1] <= ref:
        last += 1
    for each in range(page, last + 1):
        if not checked[each]:
            return int(each)
    low, high = page * page_refs, min((last + 1) * page_refs, refs.shape[0])
    end = high
    while low < high:
        middle = (low + high) >> 1
        if refs[middle] < ref:
            low = middle + 1
        else:
            high = middle
    found[0] = low
    while low < end and refs[low] == ref:
        low += 1
    found[1] = low
    return -1


@njit
def cut_run(raw64: Any, start: int, end: int, block_events: int, seq: Any) -> int:
    """The first position of a run, [start, end), whose seq is not below `seq`; `end` when there is none."""
    while start < end:
        middle = (start + end) >> 1
        block = middle // block_events * block_events
        if raw64[block * 8 + middle - block] < seq:
            start = middle + 1
        else:
            end = middle
    return start
