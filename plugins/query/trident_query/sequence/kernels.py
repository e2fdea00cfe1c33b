"""The streaming passes: one look-up for each row, one state for each key.

    state[key] = table[state[key], letter]

A table entry is `operation << 16 | state`, or -1 where the automaton has not been asked yet: the pass then
stops, Python makes the entry, and the pass goes on at the same row. The same for letters (`letters[symbol]`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np

from trident_core.jit import njit_entry, njit_inlined


class Why(IntEnum):
    """Why a pass stopped."""

    DONE = 0
    LETTER = 1  # stop[1] is a symbol without a letter
    ENTRY = 2  # stop[1], stop[2] are a state and a letter without an entry
    OUT = 3  # no room for matches
    POOL = 4  # no room for matches that are not final, or for open starts


class Do(IntEnum):
    """Operations on the registers of a key: (what, destination, source)."""

    START = 0  # register = the row at hand
    MOVE = 1  # register = old register
    EMIT = 2  # a match from the row in old register `source` (-1: this row) to this row
    EMIT_EMPTY = 3
    EMIT_BUNDLE = 4  # all matches of the old bundle
    NEW = 5  # an empty bundle
    JOIN = 6  # and the matches of an old bundle
    PUSH = 7  # and the match that EMIT would give
    PUSH_EMPTY = 8
    DROP = 9  # the nodes of an old bundle are free


_START, _MOVE, _EMIT, _EMIT_EMPTY, _EMIT_BUNDLE, _NEW, _JOIN, _PUSH, _PUSH_EMPTY = (
    int(do) for do in list(Do)[:9]
)

#: Columns of a found match: key, first row, last row, 1 if it has rows and 0 if it is empty, the last row's
#: time.
MATCH_WORDS: Final = 5
#: Words of a pool's node: first row, last row, kind, the last row's time, next.
NODE_WORDS: Final = 5


@njit_entry
def count(
    symbols: Any, keys: Any, letters: Any, table: Any, width: Any, gains: Any, state: Any, stop: Any
) -> int:
    """Count final matches, for automata that never hold one back. stop: row, …; stop[3] is the count.

    symbols u8/u32[n]; keys i32[n], -1 for none; letters i16[symbols]; table i32[states * width]; gains
    i32[ops]; state u16[keys].
    """
    total = stop[3]
    for i in range(stop[0], symbols.shape[0]):
        key = keys[i]
        if key < 0:
            continue
        letter = letters[symbols[i]]
        if letter < 0:
            stop[0], stop[1], stop[3] = i, symbols[i], total
            return 1
        entry = table[np.int64(state[key]) * width + letter]
        if entry < 0:
            stop[0], stop[1], stop[2], stop[3] = i, state[key], letter, total
            return 2
        state[key] = entry & 0xFFFF
        total += gains[entry >> 16]
    stop[0], stop[3] = symbols.shape[0], total
    return 0


@njit_inlined
def _give(out: Any, stop: Any, key: Any, first: Any, last: Any, kind: Any, ts: Any) -> None:
    n = stop[4]
    out[n, 0], out[n, 1], out[n, 2], out[n, 3], out[n, 4] = key, first, last, kind, ts
    stop[4] = n + 1


@njit_inlined
def _node(pool: Any, first: Any, last: Any, kind: Any, ts: Any) -> Any:
    """A node of the pool's free list; pool[0, 4] is its head, pool[0, 0] the number of nodes in use."""
    node = pool[0, 4]
    pool[0, 4] = pool[node, 4]
    pool[0, 0] += 1
    pool[node, 0], pool[node, 1], pool[node, 2], pool[node, 3], pool[node, 4] = first, last, kind, ts, -1
    return node


@njit_inlined
def _free(pool: Any, node: Any) -> None:
    pool[node, 4] = pool[0, 4]
    pool[0, 4] = node
    pool[0, 0] -= 1


@njit_inlined
def _append(registers: Any, key: Any, at: Any, head: Any, tail: Any, pool: Any) -> None:
    """Append a list of nodes to the bundle in registers at, at + 1."""
    if head < 0:
        return
    if registers[key, at] < 0:
        registers[key, at] = head
    else:
        pool[registers[key, at + 1], 4] = head
    registers[key, at + 1] = tail


@njit_inlined
def _operate(
    ops: Any, begin: Any, end: Any, registers: Any, old: Any, key: Any, row: Any, ts: Any, out: Any,
    pool: Any, stop: Any,
) -> None:  # fmt: skip
    for r in range(registers.shape[1]):
        old[r] = registers[key, r]
    for at in range(begin, end):
        what, to, source = ops[at, 0], ops[at, 1], ops[at, 2]
        if what == _START:
            registers[key, to] = row
        elif what == _MOVE:
            registers[key, to] = old[source]
        elif what == _EMIT:
            _give(out, stop, key, row if source < 0 else old[source], row, 1, ts)
        elif what == _EMIT_EMPTY:
            _give(out, stop, key, row, row, 0, ts)
        elif what == _EMIT_BUNDLE:
            node = old[source]
            while node >= 0:
                _give(out, stop, key, pool[node, 0], pool[node, 1], pool[node, 2], pool[node, 3])
                following = pool[node, 4]
                _free(pool, node)
                node = following
        elif what == _NEW:
            registers[key, to] = -1
            registers[key, to + 1] = -1
        elif what == _JOIN:
            _append(registers, key, to, old[source], old[source + 1], pool)
        elif what == _PUSH:
            node = _node(pool, row if source < 0 else old[source], row, 1, ts)
            _append(registers, key, to, node, node, pool)
        elif what == _PUSH_EMPTY:
            node = _node(pool, row, row, 0, ts)
            _append(registers, key, to, node, node, pool)
        else:
            node = old[source]
            while node >= 0:
                following = pool[node, 4]
                _free(pool, node)
                node = following


@njit_entry
def spans(
    symbols: Any, keys: Any, rows: Any, times: Any, ends: Any, letters: Any, table: Any, width: Any,
    starts: Any, ops: Any, state: Any, registers: Any, old: Any, out: Any, pool: Any, stop: Any,
) -> int:  # fmt: skip
    """Final matches into out[stop[4]:]. rows i64[n]: the number of each row, or one that the first row counts
    from; times i64[n]; ends u8[n] (or empty): 1 where the key's partition ends with the row. Letter 0 is that
    end.

    starts i32[operations + 1]: where each operation's instructions are in ops i32[:, 3].
    """
    for i in range(stop[0], symbols.shape[0]):
        key = keys[i]
        if key < 0:
            continue
        letter = letters[symbols[i]]
        row = rows[i] if rows.shape[0] > 1 else rows[0] + i
        if stop[5] == 0:
            if letter < 0:
                stop[0], stop[1] = i, symbols[i]
                return 1
            entry = table[np.int64(state[key]) * width + letter]
            if entry < 0:
                stop[0], stop[1], stop[2] = i, state[key], letter
                return 2
            operation = entry >> 16
            if operation:
                if out.shape[0] - stop[4] < pool[0, 0] + 2:
                    stop[0] = i
                    return 3
                if pool.shape[0] - pool[0, 0] < 4:
                    stop[0] = i
                    return 4
                _operate(
                    ops, starts[operation], starts[operation + 1], registers, old, key, row, times[i], out,
                    pool, stop,
                )  # fmt: skip
            state[key] = entry & 0xFFFF
        if ends.shape[0] and ends[i]:
            entry = table[np.int64(state[key]) * width]
            if entry < 0 or out.shape[0] - stop[4] < pool[0, 0] + 2:
                stop[0], stop[1], stop[2], stop[5] = i, state[key], 0, 1
                return 2 if entry < 0 else 3
            operation = entry >> 16
            if operation:
                _operate(
                    ops, starts[operation], starts[operation + 1], registers, old, key, row, times[i], out,
                    pool, stop,
                )  # fmt: skip
            state[key] = 0
        stop[5] = 0
    stop[0] = symbols.shape[0]
    return 0


@njit_entry
def finish(
    keys: Any, rows: Any, times: Any, table: Any, width: Any, starts: Any, ops: Any, state: Any,
    registers: Any, old: Any, out: Any, pool: Any, stop: Any,
) -> int:  # fmt: skip
    """The partitions of keys i32[n] end, each with its last row, and that row's time (i64[n])."""
    for i in range(stop[0], keys.shape[0]):
        key = keys[i]
        entry = table[np.int64(state[key]) * width]
        if entry < 0 or out.shape[0] - stop[4] < pool[0, 0] + 2:
            stop[0], stop[1], stop[2] = i, state[key], 0
            return 2 if entry < 0 else 3
        operation = entry >> 16
        if operation:
            _operate(
                    ops, starts[operation], starts[operation + 1], registers, old, key, rows[i], times[i],
                    out, pool, stop,
                )  # fmt: skip
        state[key] = 0
    stop[0] = keys.shape[0]
    return 0
