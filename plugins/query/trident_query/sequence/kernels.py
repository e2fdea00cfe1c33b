"""The streaming passes: one look-up for each row, one state for each key.

    state[key] = table[state[key], letter]

A table entry is `operation << 16 | state`, or -1 where the automaton has not been asked yet: the pass then
stops, Python makes the entry, and the pass goes on at the same row. The same for letters (`letters[symbol]`),
which are 0 for symbols that were not met yet.

Which kind of row comes next is chance to the processor, so a branch on it costs more than all the work. A
block of rows is passed through twice, without such a branch: states move on and rows that do more are noted
(`_move`); then those give matches and note starts, as the words of their operations say (`_obey`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np

from trident_core.jit import njit_entry, njit_inlined, njit_kernel
from trident_core.prefetch import prefetch


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

#: Rows ahead whose keys' states are asked for: partitions that begin are far from those at hand.
AHEAD: Final = 24
#: Rows that are moved on before what they do is done.
BLOCK: Final = 2048
#: Columns of a found match: key, first row, last row, 1 if it has rows and 0 if it is empty, the last row's
#: time.
MATCH_WORDS: Final = 5
#: Words of a pool's node: first row, last row, kind, the last row's time, next.
NODE_WORDS: Final = 5


class Word(IntEnum):
    """Words of an operation, for one that gives at most one match, notes at most one start, and does no more.

    Masks are 0 or -1: the compiler would make branches of anything that it can see through.
    """

    LISTED = 0  # it does more: see its instructions
    GIVES = 1  # 1: a match ends at this row
    SOURCE = 2  # it began in this register
    HERE = 3  # mask: no, at this row
    ROWS = 4  # 1 if it has rows, 0 if it is empty
    NOTES = 5  # mask: register TARGET = this row
    TARGET = 6


@njit_entry
def count(symbols: Any, keys: Any, letters: Any, table: Any, width: Any, state: Any, stop: Any) -> int:
    """Count final matches, for automata that never hold one back. stop: row, …; stop[3] is the count.

    symbols u8/u32[n]; keys i32[n], -1 for none; letters u16[symbols]; table i32[states * width], matches <<
    16 | state; state u16[keys].
    """
    total, last = stop[3], symbols.shape[0]
    for i in range(stop[0], last):
        prefetch(state, np.uint64(np.uint32(keys[min(i + 24, last - 1)])))
        if keys[i] < 0:
            continue
        key = np.uint64(np.uint32(keys[i]))
        letter = letters[symbols[i]]
        entry = table[np.uint64(state[key]) * np.uint64(width) + np.uint64(letter)]
        if entry < 0:
            stop[0], stop[3] = i, total
            if letter == 0:
                stop[1] = symbols[i]
                return 1
            stop[1], stop[2] = state[key], letter
            return 2
        state[key] = entry & 0xFFFF
        total += entry >> 16
    stop[0], stop[3] = last, total
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


@njit_kernel
def _move(
    symbols: Any, keys: Any, ends: Any, letters: Any, table: Any, closing: Any, width: Any, state: Any,
    queue: Any, last: Any, stop: Any,
) -> int:  # fmt: skip
    """Move states on by the rows up to `last`; what they have to do goes to the queue: operation << 32 | row.
    Why it stopped; stop[0] is the row to go on with, stop[7] whether only its end is left."""
    may_end = ends.shape[0] > 0
    n = np.uint64(stop[6])
    ending = stop[7]
    stop[7] = 0
    final = symbols.shape[0] - 1
    for i in range(stop[0], last):
        ahead = np.uint64(np.uint32(keys[min(i + 24, final)]))
        prefetch(state, ahead)
        if keys[i] < 0:
            continue
        key = np.uint64(np.uint32(keys[i]))
        if ending == 0:
            letter = letters[symbols[i]]
            entry = table[np.uint64(state[key]) * np.uint64(width) + np.uint64(letter)]
            if entry < 0:
                stop[0], stop[6] = i, n
                stop[1], stop[2] = (symbols[i], 0) if letter == 0 else (state[key], letter)
                return 1 if letter == 0 else 2
            queue[n] = np.int64(entry >> 16) << 32 | i
            n += np.uint64(entry > 0xFFFF)
            state[key] = entry & 0xFFFF
        ending = 0
        if may_end and ends[i]:
            entry = closing[state[key]]
            if entry < 0:
                stop[0], stop[1], stop[2], stop[6], stop[7] = i, state[key], 0, n, 1
                return 2
            queue[n] = np.int64(entry >> 16) << 32 | i
            n += np.uint64(entry > 0xFFFF)
            state[key] = 0
    stop[0], stop[6] = last, n
    return 0


@njit_inlined
def _simply(words: Any, at: Any, registers: Any, key: Any, row: Any, ts: Any, out: Any, n: Any) -> Any:
    """Obey the words of operation `at`; the number of matches in `out` then."""
    source, target = np.uint64(words[at, 2]), np.uint64(words[at, 6])
    first, before = registers[key, source], registers[key, target]
    registers[key, target] = before ^ ((before ^ row) & words[at, 5])
    out[n, 0] = key
    out[n, 1] = first ^ ((first ^ row) & words[at, 3])
    out[n, 2] = row
    out[n, 3] = words[at, 4]
    out[n, 4] = ts
    return n + np.uint64(words[at, 1])


@njit_kernel
def _obey_simply(
    keys: Any, rows: Any, times: Any, words: Any, registers: Any, queue: Any, out: Any, held: Any, stop: Any
) -> int:  # fmt: skip
    """Do what the queue says, from stop[5] on, up to an operation that is a list; why it stopped."""
    one_row, one_time, final = rows.shape[0] == 1, times.shape[0] == 1, stop[6] - 1
    n = np.uint64(stop[4])
    for at in range(stop[5], stop[6]):
        coming = queue[min(at + 12, final)] & 0xFFFFFFFF
        prefetch(registers, np.uint64(np.uint32(keys[coming])))
        i = queue[at] & 0xFFFFFFFF
        operation = np.uint64(queue[at] >> 32)
        full = out.shape[0] - np.int64(n) < held + 2
        if full or words[operation, 0]:
            stop[4], stop[5] = n, at
            return 3 if full else 9
        row = rows[0] + i if one_row else rows[i]
        ts = times[0] if one_time else times[i]
        n = _simply(words, operation, registers, np.uint64(np.uint32(keys[i])), row, ts, out, n)
    stop[4], stop[5], stop[6] = n, 0, 0
    return 0


@njit_kernel
def _obey_all(
    keys: Any, rows: Any, times: Any, words: Any, starts: Any, ops: Any, registers: Any, old: Any, queue: Any,
    out: Any, pool: Any, stop: Any,
) -> int:  # fmt: skip
    """The same for operations of any kind."""
    one_row, one_time = rows.shape[0] == 1, times.shape[0] == 1
    for at in range(stop[5], stop[6]):
        i = queue[at] & 0xFFFFFFFF
        operation = np.uint64(queue[at] >> 32)
        key = np.uint64(np.uint32(keys[i]))
        row = rows[0] + i if one_row else rows[i]
        ts = times[0] if one_time else times[i]
        full = out.shape[0] - stop[4] < pool[0, 0] + 2
        if full or pool.shape[0] - pool[0, 0] < 4:
            stop[5] = at
            return 3 if full else 4
        if words[operation, 0]:
            begin, end = starts[operation], starts[operation + np.uint64(1)]
            _operate(ops, begin, end, registers, old, key, row, ts, out, pool, stop)
        else:
            stop[4] = _simply(words, operation, registers, key, row, ts, out, np.uint64(stop[4]))
    stop[5], stop[6] = 0, 0
    return 0


@njit_inlined
def _obey(
    keys: Any, rows: Any, times: Any, words: Any, starts: Any, ops: Any, registers: Any, old: Any, queue: Any,
    out: Any, pool: Any, stop: Any,
) -> int:  # fmt: skip
    """Do what the queue says, from stop[5] on; why it stopped."""
    why = _obey_simply(keys, rows, times, words, registers, queue, out, pool[0, 0], stop)
    if why == 9:
        why = _obey_all(keys, rows, times, words, starts, ops, registers, old, queue, out, pool, stop)
    return int(why)


@njit_entry
def spans(
    symbols: Any, keys: Any, rows: Any, times: Any, ends: Any, letters: Any, table: Any, closing: Any,
    width: Any, words: Any, starts: Any, ops: Any, state: Any, registers: Any, old: Any, queue: Any, out: Any,
    pool: Any, stop: Any,
) -> int:  # fmt: skip
    """Final matches into out[stop[4]:].

    rows, times i64[n]: number and time of each row; of one value, rows count from it and times are it. ends
    u8[n] (or empty): 1 where the key's partition ends with the row; closing i32[states]: the entries of that
    end. words i64[operations, 8]; starts i32[operations + 1]: where each one's instructions are in ops i32[:,
    3]. queue i64[2 * BLOCK].
    """
    while True:
        why = _obey(keys, rows, times, words, starts, ops, registers, old, queue, out, pool, stop)
        if why != 0 or stop[0] >= symbols.shape[0]:
            return int(why)
        last = min(stop[0] + 2048, symbols.shape[0])
        missing = _move(
            symbols, keys, ends, letters, table, closing, width, state, queue,
            last, stop,
        )  # fmt: skip
        if missing != 0:
            # Registers may be laid out anew for the entry: what is in the queue comes first.
            why = _obey(keys, rows, times, words, starts, ops, registers, old, queue, out, pool, stop)
            return int(why if why != 0 else missing)


@njit_entry
def finish(
    keys: Any, rows: Any, times: Any, closing: Any, starts: Any, ops: Any, state: Any,
    registers: Any, old: Any, out: Any, pool: Any, stop: Any,
) -> int:  # fmt: skip
    """The partitions of keys i32[n] end, each with its last row, and that row's time (i64[n])."""
    for i in range(stop[0], keys.shape[0]):
        key = keys[i]
        entry = closing[state[key]]
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
