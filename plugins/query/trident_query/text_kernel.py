"""Kernels that run a DFA's tables over a text, block by block: ends of matches, and spans in linear time.

Spans take two walks. The first goes from the right, with the reversed automaton, and notes its state at every
position of a block: which positions of the pattern are *alive* there, and so also whether a match begins. The
second goes from the left, and only where it cannot fail. What it needs of a pair (state, alive) is kept in a
table that is filled when it is first asked for: the kernel stops with ASK, the caller answers, and it goes
on.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import njit_entry

U = np.uint64

#: Why `walk` stopped.
BLOCK_END, OUT_FULL, ASK, DONE = range(4)
#: Places of the vector that `walk` keeps its state in.
AT, INSIDE, START, END_AT, STATE, LAST_END, COUNT, LIMIT = range(8)
STATE_WORDS: Final = 8
#: Kind of the neighbour outside the text.
_OUTSIDE: Final = 3


@njit_entry
def ends(
    data: Any, first: Any, last: Any, table: Any, row: Any, accepts: Any, kinds: Any, s: Any, out: Any
) -> Any:
    """Positions in [first, last) at which a match ends, from the state s[0] on; last <= n + 1, the position n
    is behind the text. Returns how many went to `out`; s[1] is the position to go on from.
    """
    n, count, room = len(data), 0, len(out)
    state = U(s[0])
    at = first
    while at < last and count < room:
        kind = _OUTSIDE if at == n else kinds[data[U(at)]]
        if accepts[state] >> kind & 1:
            out[count] = at
            count += 1
        if at < n:
            state = U(table[state * U(row) + U(data[U(at)])])
        at += 1
    s[0] = state
    s[1] = at
    return count


@njit_entry
def back(data: Any, first: Any, last: Any, table: Any, state: Any, out: Any) -> Any:
    """Walk from position `last` (exclusive) to `first`: out[i - first] is the reversed automaton's state once
    it has read byte i. `table`: [state * 256 + byte]. Returns the state at `first`.
    """
    now = U(state)
    for k in range(last - first):
        i = U(last - 1 - k)
        now = U(table[now * U(256) + U(data[i])])
        out[i - U(first)] = now
    return now


@njit_entry
def next_start(alive: Any, offset: Any, begins: Any, data: Any, first: Any, kinds: Any) -> Any:
    """The first place of a block, from `offset` on, where a match begins; -1 if there is none. `begins`: mask
    of kinds of the byte before, by alive state."""
    for k in range(offset, len(alive)):
        at = first + k
        kind = _OUTSIDE if at == 0 else kinds[data[U(at - 1)]]
        if begins[alive[U(k)]] >> kind & 1:
            return k
    return -1


@njit_entry
def walk_longest(
    data: Any, first: Any, alive: Any, begins: Any, kinds: Any, table: Any, accepts: Any, starts: Any,
    going: Any, alive_count: Any, s: Any, starts_out: Any, ends_out: Any,
) -> Any:  # fmt: skip
    """Leftmost-longest spans, through the block of positions [first, first + len(alive)).

    `table`, `accepts`, `starts`: the anchored automaton (rows of 256). `going[state * alive_count + alive]`:
    1 if a match can go on, 2 if not, 0 if nobody asked yet.
    """
    n, stop, room = len(data), first + len(alive), len(starts_out)
    while True:
        if not s[INSIDE]:
            k = next_start(alive, s[AT] - first, begins, data, first, kinds)
            if k < 0:
                s[AT] = stop
                return BLOCK_END
            at = first + k
            kind = _OUTSIDE if at == 0 else kinds[data[U(at - 1)]]
            s[INSIDE], s[AT], s[START], s[END_AT], s[STATE] = 1, at, at, at, starts[kind]
        at, state, end = s[AT], U(s[STATE]), s[END_AT]
        over = False
        while at < stop:
            kind = _OUTSIDE if at == n else kinds[data[U(at)]]
            if accepts[state] >> kind & 1:
                end = at
            if at == n:
                over = True
                break
            answer = going[state * U(alive_count) + U(alive[U(at - first)])]
            if answer == 0:
                s[AT], s[STATE], s[END_AT] = at, state, end
                return ASK
            if answer == 2:
                over = True
                break
            state = U(table[state * U(256) + U(data[U(at)])])
            at += 1
        s[AT], s[STATE], s[END_AT] = at, state, end
        if not over:
            return BLOCK_END
        if _close(s, starts_out, ends_out):
            return DONE
        if s[COUNT] == room:
            return OUT_FULL
        if s[AT] >= stop:
            return BLOCK_END


@njit_entry
def _close(s: Any, starts_out: Any, ends_out: Any) -> Any:
    """A match is over: note it, and go on behind it. True when that was the last one asked for."""
    start, end = s[START], s[END_AT]
    s[INSIDE] = 0
    s[AT] = end + 1 if start == end else end
    if start != end or end != s[LAST_END]:
        starts_out[s[COUNT]], ends_out[s[COUNT]] = start, end
        s[COUNT] += 1
        s[LAST_END] = end
        s[LIMIT] -= 1
        return s[LIMIT] == 0
    return False


@njit_entry
def walk_first(
    data: Any, first: Any, alive: Any, begins: Any, kinds: Any, entry: Any, path: Any, alive_count: Any,
    by_kind: Any, s: Any, starts_out: Any, ends_out: Any,
) -> Any:  # fmt: skip
    """Leftmost-first spans, through the block of positions [first, first + len(alive)).

    One position of the pattern at a time: the most preferred that is alive. `path`, by (row, alive, kind of
    next byte if `by_kind` is 4, else 1): 0 not asked yet, 1 the match ends here, else the next position + 2.
    Rows are positions, then `entry + kind of the byte before` for where a match begins.
    """
    n, stop, room = len(data), first + len(alive), len(starts_out)
    while True:
        if not s[INSIDE]:
            k = next_start(alive, s[AT] - first, begins, data, first, kinds)
            if k < 0:
                s[AT] = stop
                return BLOCK_END
            at = first + k
            kind = _OUTSIDE if at == 0 else kinds[data[U(at - 1)]]
            s[INSIDE], s[AT], s[START], s[STATE] = 1, at, at, entry + kind
        at, row = s[AT], s[STATE]
        over = False
        while at < stop:
            kind = _OUTSIDE if at == n else kinds[data[U(at)]]
            place = (row * alive_count + alive[U(at - first)]) * by_kind + (kind if by_kind > 1 else 0)
            answer = path[U(place)]
            if answer < 2:
                over = answer == 1
                break
            row = answer - 2
            at += 1
        s[AT], s[STATE] = at, row
        if at < stop and not over:
            return ASK
        if not over:
            return BLOCK_END
        s[END_AT] = at
        if _close(s, starts_out, ends_out):
            return DONE
        if s[COUNT] == room:
            return OUT_FULL
        if s[AT] >= stop:
            return BLOCK_END
