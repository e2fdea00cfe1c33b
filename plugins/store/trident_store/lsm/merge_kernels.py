"""The loops of a compaction.

What a table holds is sorted by (locate, append order), and tables that are merged follow one another in
append order: so a locate's events are its runs one behind the other; only references have to be compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trident_core.jit import njit
from trident_store.lsm.lookup import load_u32, load_u64


@njit
def map_positions(starts: Any, lengths: Any, targets: Any, out: Any) -> None:
    """out[position in the old table] = position in the new one, run by run."""
    for run in range(starts.shape[0]):
        start, target = np.int64(starts[run]), np.int64(targets[run])
        for i in range(lengths[run]):
            out[start + i] = np.uint32(target + i)


@njit
def take_positions(mapped: Any, seq_index: Any, out: Any) -> None:
    """out[i] = mapped[seq_index[i]]."""
    for i in range(seq_index.shape[0]):
        out[i] = mapped[seq_index[i]]


@njit
def window_bounds(
    raw64: Any, seq_index: Any, block_events: int, first: int, window_events: int, low: Any, high: Any
) -> None:
    """Widen the bounds of ts (low and high, one of each a window) by a table's events, whose first has the
    ordinal `first` in the new table."""
    count = seq_index.shape[0]
    last_start = (count - 1) // block_events * block_events
    for i in range(count):
        position = np.int64(seq_index[i])
        start = position // block_events * block_events
        n = block_events if start < last_start else count - last_start
        ts = raw64[start * 8 + n + position - start]
        window = (first + i) // window_events
        low[window] = min(low[window], ts)
        high[window] = max(high[window], ts)


@njit
def copy_runs(
    raw64: Any, raw32: Any, raw16: Any, raw8: Any, old_block: int, old_count: int, starts: Any, lengths: Any,
    targets: Any, begin: int, out64: Any, out32: Any, out16: Any, out8: Any, new_block: int, new_count: int,
) -> None:  # fmt: skip
    """Copy runs of one table into blocks of the new one; `out` begins at position `begin`, a block's start,
    and ends where the last of its blocks does. Parts of runs beyond it are left out."""
    end = begin + out8.shape[0] // 64
    old_last = (old_count - 1) // old_block * old_block
    new_last = (new_count - 1) // new_block * new_block
    for run in range(starts.shape[0]):
        source, target = np.int64(starts[run]), np.int64(targets[run])
        stop = min(target + np.int64(lengths[run]), end)
        if target < begin:
            source, target = source + begin - target, np.int64(begin)
        while target < stop:
            old_start, new_start = source // old_block * old_block, target // new_block * new_block
            n = old_block if old_start < old_last else old_count - old_last
            m = new_block if new_start < new_last else new_count - new_last
            a, b, base = source - old_start, target - new_start, new_start - begin
            rows = min(n - a, m - b, stop - target)
            for column in range(8):
                if column != 6:
                    p, q = old_start * 8 + column * n + a, base * 8 + column * m + b
                    out64[q : q + rows] = raw64[p : p + rows]
            p, q = old_start * 16 + 12 * n + a, base * 16 + 12 * m + b
            out32[q : q + rows] = raw32[p : p + rows]
            p, q = old_start * 32 + 27 * n + a, base * 32 + 27 * m + b
            out16[q : q + rows] = raw16[p : p + rows]
            for column in range(52, 54):
                p, q = old_start * 64 + column * n + a, base * 64 + column * m + b
                out8[q : q + rows] = raw8[p : p + rows]
            source += rows
            target += rows


@njit
def merge_refs(
    refs: Any, positions: Any, mapped: Any, cursors: Any, ends: Any, out_refs: Any, out_positions: Any
) -> int:
    """Merge sorted references of several tables until `out` is full or all are taken; how many.

    `refs`, `positions` and `mapped` hold the addresses of each table's arrays; equal references are taken in
    the order of the tables, which is that of appending.
    """
    heads, owners, tables = np.empty(refs.shape[0], np.uint64), np.empty(refs.shape[0], np.int64), 0
    for table in range(refs.shape[0]):
        if cursors[table] < ends[table]:
            heads[tables] = load_u64(refs[table] + np.uint64(8 * cursors[table]))
            owners[tables] = table
            tables += 1
    n = 0
    while n < out_refs.shape[0] and tables:
        # Looking at every head without a branch took 18 ns an entry with 8 tables and 32 with 16, a tree of
        # losers 29 and 42: its comparisons are guessed wrong.
        best, least = 0, heads[0]
        for i in range(1, tables):
            less = heads[i] < least
            best = i if less else best
            least = heads[i] if less else least
        owner = owners[best]
        at = np.uint64(cursors[owner])
        position = load_u32(positions[owner] + np.uint64(4) * at)
        out_refs[n] = least
        out_positions[n] = np.uint32(load_u32(mapped[owner] + np.uint64(4) * position))
        n += 1
        cursors[owner] += 1
        if cursors[owner] < ends[owner]:
            heads[best] = load_u64(refs[owner] + np.uint64(8) * (at + np.uint64(1)))
        else:
            tables -= 1
            for i in range(best, tables):
                heads[i], owners[i] = heads[i + 1], owners[i + 1]
    return n
