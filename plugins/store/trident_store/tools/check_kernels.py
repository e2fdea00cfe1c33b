"""The loops that hold a table's indexes against its events, one pass each. All positions were in range."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import njit_entry, njit_inlined
from trident_store.lsm.kernels import bloom_bit, bloom_mix

_U: Final = 85
_ONE: Final = np.uint64(1)


@njit_inlined
def _place(position: Any, block_events: int, count: int) -> Any:
    """(first event of the block, events in it, row) of a position."""
    start = position // block_events * block_events
    n = min(block_events, count - start)
    return start, n, position - start


@njit_entry
def check_runs(raw64: Any, raw32: Any, starts: Any, locates: Any, block_events: int, count: int) -> int:
    """Are events sorted by (locate, seq), as the runs say? The first position that is not, or -1."""
    for run in range(starts.shape[0]):
        end = starts[run + 1] if run + 1 < starts.shape[0] else count
        before = np.uint64(0)
        for position in range(starts[run], end):
            start, n, row = _place(position, block_events, count)
            seq = raw64[start * 8 + row]
            if raw32[start * 16 + 12 * n + row] != locates[run] or seq <= before:
                return position
            before = seq
    return -1


@njit_entry
def check_zones(
    raw64: Any, raw_i64: Any, raw32: Any, raw8: Any, block_events: int, count: int, zones: Any, prices: Any,
    types: Any,
) -> int:  # fmt: skip
    """Are the zone maps true? `zones`: u64[blocks, 6], min, max of seq, ts, locate; `prices`: i64[blocks, 2].

    Counts events by type into `types`. The first block whose map is not true, or -1.
    """
    for block in range(zones.shape[0]):
        start = block * block_events
        n = min(block_events, count - start)
        base = start * 8
        for c in range(2):
            low = high = raw64[base + c * n]
            for row in range(1, n):
                value = raw64[base + c * n + row]
                low, high = min(low, value), max(high, value)
            if low != zones[block, 2 * c] or high != zones[block, 2 * c + 1]:
                return block
        first = last = raw_i64[base + 4 * n]
        for row in range(1, n):
            price = raw_i64[base + 4 * n + row]
            first, last = min(first, price), max(last, price)
        if first != prices[block, 0] or last != prices[block, 1]:
            return block
        here = start * 16 + 12 * n
        if raw32[here] != zones[block, 4] or raw32[here + n - 1] != zones[block, 5]:  # sorted by locate
            return block
        for row in range(n):
            types[raw8[start * 64 + 52 * n + row]] += 1
    return -1


@njit_entry
def check_order(
    raw64: Any, index: Any, block_events: int, count: int, window_events: int, firsts: Any, lows: Any,
    highs: Any, seen: Any,
) -> int:  # fmt: skip
    """Is the seq index every position once, seq growing, and are its windows true? `seen`: u8[count], zeros.

    The first ordinal that is not, or -1.
    """
    before = np.uint64(0)
    low = high = np.uint64(0)
    for ordinal in range(count):
        position = np.int64(index[ordinal])
        if position >= count or seen[position]:
            return ordinal
        seen[position] = 1
        start, n, row = _place(position, block_events, count)
        seq, ts = raw64[start * 8 + row], raw64[start * 8 + n + row]
        if seq <= before:
            return ordinal
        before = seq
        window = ordinal // window_events
        if ordinal % window_events == 0:
            low = high = ts
            if seq != firsts[window]:
                return ordinal
        low, high = min(low, ts), max(high, ts)
        ends = ordinal + 1 == count or (ordinal + 1) % window_events == 0
        if ends and (low != lows[window] or high != highs[window]):
            return ordinal
    return -1


@njit_entry
def names_in(raw64: Any, raw8: Any, block_events: int, count: int) -> int:
    """How many entries the index of references must have."""
    total = 0
    for start in range(0, count, block_events):
        n = min(block_events, count - start)
        for row in range(n):
            ref = raw64[start * 8 + 2 * n + row]
            total += ref != 0
            if raw8[start * 64 + 52 * n + row] == _U:
                new = raw64[start * 8 + 3 * n + row]
                total += new != 0 and new != ref
    return total


@njit_entry
def check_refs(
    raw64: Any, raw8: Any, block_events: int, count: int, refs: Any, positions: Any, bloom: Any, made: Any
) -> int:
    """Does each entry name an event that names the reference, ascending, equal ones in the order of
    appending, and has the filter each? `made` (zeros, as `bloom`) becomes what the filter should be.

    With as many entries as `names_in` counts the index is complete: no two are the same. The first entry that
    is wrong, or -1.
    """
    blocks = np.uint64(bloom.shape[0])
    before, before_seq = np.uint64(0), np.uint64(0)
    for i in range(refs.shape[0]):
        ref, position = refs[i], np.int64(positions[i])
        if position >= count or ref == 0 or ref < before:
            return i
        start, n, row = _place(position, block_events, count)
        seq = raw64[start * 8 + row]
        own = raw64[start * 8 + 2 * n + row] == ref
        replaced = raw8[start * 64 + 52 * n + row] == _U and raw64[start * 8 + 3 * n + row] == ref
        if not (own or replaced) or (ref == before and seq <= before_seq):
            return i
        if ref != before:
            mixed = bloom_mix(ref)
            block = np.intp(((mixed >> np.uint64(32)) * blocks) >> np.uint64(32))
            low = mixed & np.uint64(0xFFFFFFFF)
            missing = np.uint64(0)
            for word in range(8):
                bit = bloom_bit(low, word)
                made[block, word] |= bit
                missing |= bit & ~bloom[block, word]
            if missing:
                return i
        before, before_seq = ref, seq
    return -1
