"""The pass for patterns with WITHIN: for each key a list of open starts, each with a state of its own.

Time tells starts apart that the automaton would treat as one: an older start that stands where a younger one
stands may be too old when the pattern ends, and then the younger one's match counts. So each start is
followed on its own, in the order of the starts, up to a cap.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import njit_entry, njit_inlined

#: Words of a node: start row, start time, state (0: no thread), last row of the found match, kind of match
#: (0 none, 1 with rows, 2 empty), that row's time, next.
NODE_WORDS: Final = 7


@njit_inlined
def _new(pool: Any, row: Any, ts: Any, state: Any, kind: Any) -> Any:
    node = pool[0, 6]
    pool[0, 6] = pool[node, 6]
    pool[0, 0] += 1
    pool[node, 0], pool[node, 1], pool[node, 2] = row, ts, state
    pool[node, 3], pool[node, 4], pool[node, 5], pool[node, 6] = row, kind, ts, -1
    return node


@njit_inlined
def _drop(pool: Any, node: Any) -> Any:
    """Free a node; the next one."""
    following = pool[node, 6]
    pool[node, 4] = 0
    pool[node, 6] = pool[0, 6]
    pool[0, 6] = node
    pool[0, 0] -= 1
    return following


@njit_inlined
def _drop_all(pool: Any, node: Any) -> None:
    while node >= 0:
        node = _drop(pool, node)


@njit_inlined
def _settle(heads: Any, key: Any, pool: Any, out: Any, stop: Any) -> None:
    """Give out the matches in front that hang on no thread any more."""
    node = heads[key]
    while node >= 0 and pool[node, 2] == 0:
        if pool[node, 4]:
            n = stop[4]
            out[n, 0], out[n, 1], out[n, 2] = key, pool[node, 0], pool[node, 3]
            out[n, 3], out[n, 4] = pool[node, 4] & 1, pool[node, 5]
            stop[4] = n + 1
        node = _drop(pool, node)
    heads[key] = node


@njit_inlined
def _advance(
    heads: Any,
    key: Any,
    letter: Any,
    row: Any,
    ts: Any,
    within: Any,
    table: Any,
    width: Any,
    pool: Any,
    stop: Any,
) -> Any:
    """Move all open starts of a key on by a row; the last node, -2 if a match was found (nothing starts here,
    then), or -3 if an entry is missing."""
    before, node = -1, heads[key]
    steps = 0
    # A missing entry must be found before anything changes.
    while node >= 0:
        if pool[node, 2] and table[pool[node, 2] * width + letter] < 0:
            stop[1], stop[2] = pool[node, 2], letter
            return -3
        node = pool[node, 6]
        steps += 1
    node = heads[key]
    while node >= 0:
        if pool[node, 2]:
            entry = table[pool[node, 2] * width + letter] if ts - pool[node, 1] <= within else 0
            pool[node, 2] = entry & 0xFFFF
            if entry >> 16:
                pool[node, 3], pool[node, 4], pool[node, 5] = row, 1, ts
                _drop_all(pool, pool[node, 6])
                pool[node, 6] = -1
                return -2
        if pool[node, 2] == 0 and pool[node, 4] == 0:
            node = _drop(pool, node)
            if before < 0:
                heads[key] = node
            else:
                pool[before, 6] = node
        else:
            before, node = node, pool[node, 6]
    stop[6] = max(stop[6], steps)
    return before


@njit_entry
def spans_within(
    symbols: Any, keys: Any, rows: Any, times: Any, ends: Any, letters: Any, table: Any, width: Any,
    fresh: Any, finals: Any, within: Any, open_max: Any, seen: Any, heads: Any, out: Any, pool: Any,
    stop: Any,
) -> int:  # fmt: skip
    """As `spans`; table i32[states * width] of `found << 16 | state`. `fresh`: i64[2, 2], state before the
    first row and whether the empty match is found, for the first row of a partition and for others. finals
    u8[states]: is a match found at the partition's end? times i64[n]. stop[6]: the most open starts met, 5:
    the cap."""
    for i in range(stop[0], symbols.shape[0]):
        key = keys[i]
        if key < 0:
            continue
        letter = letters[symbols[i]]
        if letter == 0:
            stop[0], stop[1] = i, symbols[i]
            return 1
        row = rows[i] if rows.shape[0] > 1 else rows[0] + i
        if out.shape[0] - stop[4] < pool[0, 0] + 2:
            stop[0] = i
            return 3
        if pool.shape[0] - pool[0, 0] < 4:
            stop[0] = i
            return 4
        first = 1 - seen[key]
        start = fresh[first, 0]
        if start and table[start * width + letter] < 0:
            stop[0], stop[1], stop[2] = i, start, letter
            return 2
        last = _advance(heads, key, letter, row, times[i], within, table, width, pool, stop)
        if last == -3:
            stop[0] = i
            return 2
        seen[key] = 1
        if last != -2:
            entry = table[start * width + letter] if start else np.int64(0)
            kind = 1 if entry >> 16 else (2 if fresh[first, 1] else 0)
            if entry & 0xFFFF or kind:
                node = _new(pool, row, times[i], entry & 0xFFFF, kind)
                if last < 0:
                    heads[key] = node
                else:
                    pool[last, 6] = node
        if stop[6] > open_max:
            stop[0] = i
            return 5
        _settle(heads, key, pool, out, stop)
        if ends.shape[0] and ends[i]:
            finish_key(heads, key, row, times[i], finals, pool, out, stop)
            seen[key] = 0
    stop[0] = symbols.shape[0]
    return 0


@njit_inlined
def finish_key(heads: Any, key: Any, row: Any, ts: Any, finals: Any, pool: Any, out: Any, stop: Any) -> None:
    """The partition of a key ends with `row`: threads end, what they held back is final."""
    node = heads[key]
    while node >= 0:
        if pool[node, 2] and finals[pool[node, 2]]:
            pool[node, 3], pool[node, 4], pool[node, 5] = row, 1, ts
            _drop_all(pool, pool[node, 6])
            pool[node, 6] = -1
        pool[node, 2] = 0
        node = pool[node, 6]
    _settle(heads, key, pool, out, stop)


@njit_entry
def finish_within(
    keys: Any, lasts: Any, times: Any, finals: Any, heads: Any, out: Any, pool: Any, stop: Any
) -> None:
    """End the partitions of all these keys; lasts, times i64[n]: the last row of each, its time. `out` must
    have room for all nodes of the pool."""
    for i in range(keys.shape[0]):
        finish_key(heads, keys[i], lasts[i], times[i], finals, pool, out, stop)
