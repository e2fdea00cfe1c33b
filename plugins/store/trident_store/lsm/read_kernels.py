"""The loops that read one table: rows out of blocks, and where a run passes a seq."""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_core.jit import njit


@njit
def gather(
    raw64: Any, raw32: Any, raw16: Any, raw8: Any, positions: Any, block_events: int, count: int,
    checked: Any, out: Any,
) -> int:  # fmt: skip
    """out[i] (eight words) = the event at positions[i]. The `raw` arrays are views of a table's blocks.

    Ends at the first event of a block that is not `checked` (u8 for each block), and returns the block; -1
    when all are in `out`, -2 at a position that the table does not have.
    """
    last_start = (count - 1) // block_events * block_events
    for i in range(positions.shape[0]):
        position = np.int64(positions[i])
        if position >= count:
            return -2
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
