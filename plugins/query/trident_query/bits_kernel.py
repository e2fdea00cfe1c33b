"""Kernels that simulate Glushkov's automaton with bits: position p is bit p % 64 of word p // 64.

Most positions follow the one before them, or themselves: a shift and a mask move all of those at once. The
rest ("exceptions") are ORed one by one, from a row of masks each. So a byte costs a few operations for each
word, and one row for each exception that is set.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import njit_entry, njit_inlined
from trident_query.text_kernel import (
    AT,
    BLOCK_END,
    COUNT,
    DONE,
    END_AT,
    INSIDE,
    OUT_FULL,
    START,
    _close,
)  # fmt: skip

U = np.uint64
_OUTSIDE: Final = 3


@njit_inlined
def _low_bit(x: Any) -> Any:
    """The number of the lowest bit that is set."""
    n = U(0)
    x &= ~x + U(1)
    n |= U(32) * U((x & U(0xFFFFFFFF00000000)) != U(0))
    n |= U(16) * U((x & U(0xFFFF0000FFFF0000)) != U(0))
    n |= U(8) * U((x & U(0xFF00FF00FF00FF00)) != U(0))
    n |= U(4) * U((x & U(0xF0F0F0F0F0F0F0F0)) != U(0))
    n |= U(2) * U((x & U(0xCCCCCCCCCCCCCCCC)) != U(0))
    n |= U((x & U(0xAAAAAAAAAAAAAAAA)) != U(0))
    return n


@njit_inlined
def _follow(now: Any, out: Any, ahead: Any, behind: Any, loops: Any, rows: Any, which: Any) -> None:
    """out = all positions that may follow those of `now`. `which[0]`: the exceptions, `which[1 + word, bit]`:
    the row of `rows` of each; `ahead`, `behind`, `loops`: positions followed by the next one, the one before,
    themselves.
    """
    words = len(now)
    for w in range(words):
        d = now[w]
        x = (d & loops[w]) | ((d & ahead[w]) << U(1)) | ((d & behind[w]) >> U(1))
        if w:
            x |= (now[w - 1] & ahead[w - 1]) >> U(63)
        if w + 1 < words:
            x |= (now[w + 1] & behind[w + 1]) << U(63)
        out[w] = x
    for w in range(words):
        d = now[w] & which[0, w]
        while d:
            bit = _low_bit(d)
            d &= d - U(1)
            row = rows[which[1 + w, bit]]
            for v in range(words):
                out[v] |= row[v]


@njit_inlined
def _meets(a: Any, b: Any) -> Any:
    common = U(0)
    for w in range(len(a)):
        common |= a[w] & b[w]
    return common != U(0)


@njit_entry
def match_word(
    rows: Any, pads: Any, reads: Any, first: Any, last: Any, empty: Any, kinds: Any, ahead: Any, loops: Any,
    exceptions: Any, table: Any, out: Any,
) -> None:  # fmt: skip
    """Fields (u8[n, w], any strides), up to 64 positions. `table[p]`: what follows exception p."""
    n, width = rows.shape
    for i in range(n):
        size = U(width)
        while size > U(0) and pads[rows[i, size - U(1)]]:
            size -= U(1)
        before, d, found = _OUTSIDE, U(0), False
        for j in range(size):
            value = rows[i, j]
            kind = kinds[value]
            if d & last[kind] or empty[before] >> kind & 1:
                found = True
                break
            x = (d & loops) | ((d & ahead) << U(1))
            e = d & exceptions
            while e:
                x |= table[_low_bit(e)]
                e &= e - U(1)
            d = (x | first[before]) & reads[value]
            before = kind
        out[i] = found or (d & last[_OUTSIDE]) != U(0) or (empty[before] >> _OUTSIDE & 1) != 0


@njit_entry
def match_words(
    rows: Any, pads: Any, reads: Any, first: Any, last: Any, empty: Any, kinds: Any, ahead: Any, behind: Any,
    loops: Any, follow: Any, which: Any, now: Any, then: Any, out: Any,
) -> None:  # fmt: skip
    """The same for any number of words. `now` and `then` are scratch, u64[words]."""
    n, width = rows.shape
    words = len(now)
    for i in range(n):
        size = U(width)
        while size > U(0) and pads[rows[i, size - U(1)]]:
            size -= U(1)
        before, found = _OUTSIDE, False
        for w in range(words):
            now[w] = U(0)
        for j in range(size):
            value = rows[i, j]
            kind = kinds[value]
            if empty[before] >> kind & 1 or _meets(now, last[kind]):
                found = True
                break
            _follow(now, then, ahead, behind, loops, follow, which)
            for w in range(words):
                now[w] = (then[w] | first[before, w]) & reads[value, w]
            before = kind
        out[i] = found or _meets(now, last[_OUTSIDE]) or (empty[before] >> _OUTSIDE & 1) != 0


@njit_entry
def ends(
    data: Any, s: Any, reads: Any, first: Any, last: Any, empty: Any, kinds: Any, ahead: Any, behind: Any,
    loops: Any, follow: Any, which: Any, now: Any, then: Any, out: Any,
) -> Any:  # fmt: skip
    """Positions from s[0] on at which a match ends, from the set `now` on; the next position goes to s[0]."""
    n, count, words = len(data), 0, len(now)
    at = s[0]
    while at <= n and count < len(out):
        before = _OUTSIDE if at == 0 else kinds[data[U(at - 1)]]
        after = _OUTSIDE if at == n else kinds[data[U(at)]]
        if empty[before] >> after & 1 or _meets(now, last[after]):
            out[count] = at
            count += 1
        if at < n:
            _follow(now, then, ahead, behind, loops, follow, which)
            for w in range(words):
                now[w] = (then[w] | first[before, w]) & reads[data[U(at)], w]
        at += 1
    s[0] = at
    return count


@njit_entry
def back(
    data: Any, low: Any, high: Any, reads: Any, last: Any, kinds: Any, ahead: Any, behind: Any, loops: Any,
    follow: Any, which: Any, now: Any, then: Any, out: Any,
) -> None:  # fmt: skip
    """From position `high` (exclusive) to `low`: out[i - low] = positions that read byte i and can still come
    to an end. All masks but `reads` and `last` are of the reversed automaton. `now`: the set at `high`."""
    n, words = len(data), len(now)
    for k in range(high - low):
        i = high - 1 - k
        after = _OUTSIDE if i + 1 == n else kinds[data[U(i + 1)]]
        _follow(now, then, ahead, behind, loops, follow, which)
        for w in range(words):
            now[w] = (then[w] | last[after, w]) & reads[data[U(i)], w]
            out[U(i - low), w] = now[w]


@njit_inlined
def _begins(data: Any, at: Any, alive: Any, first: Any, empty: Any, kinds: Any) -> Any:
    n = len(data)
    before = _OUTSIDE if at == 0 else kinds[data[U(at - 1)]]
    after = _OUTSIDE if at == n else kinds[data[U(at)]]
    return empty[before] >> after & 1 or _meets(alive, first[before])


@njit_entry
def walk_longest(
    data: Any, low: Any, alive: Any, first: Any, last: Any, empty: Any, kinds: Any, ahead: Any, behind: Any,
    loops: Any, follow: Any, which: Any, now: Any, then: Any, s: Any, starts_out: Any, ends_out: Any,
) -> Any:  # fmt: skip
    """Leftmost-longest spans through the positions [low, low + len(alive)); states as in `text_kernel`."""
    n, words, stop = len(data), len(now), low + len(alive)
    while True:
        at = s[AT]
        if not s[INSIDE]:
            while at < stop and not _begins(data, at, alive[U(at - low)], first, empty, kinds):
                at += 1
            s[AT] = at
            if at >= stop:
                return BLOCK_END
            s[INSIDE], s[START], s[END_AT] = 1, at, at
            before = _OUTSIDE if at == 0 else kinds[data[U(at - 1)]]
            for w in range(words):
                then[w] = first[before, w]
        else:
            _follow(now, then, ahead, behind, loops, follow, which)
        over = False
        while at < stop:
            after = _OUTSIDE if at == n else kinds[data[U(at)]]
            if at > s[START] and _meets(now, last[after]):
                s[END_AT] = at
            over = True
            for w in range(words):
                now[w] = then[w] & alive[U(at - low), w]
                over = over and now[w] == U(0)
            if over:
                break
            at += 1
            _follow(now, then, ahead, behind, loops, follow, which)
        s[AT] = at
        if not over:
            return BLOCK_END
        if _close(s, starts_out, ends_out):
            return DONE
        if s[COUNT] == len(starts_out):
            return OUT_FULL


@njit_entry
def walk_first(
    data: Any, low: Any, alive: Any, first: Any, empty: Any, kinds: Any, entry: Any, offsets: Any, steps: Any,
    s: Any, starts_out: Any, ends_out: Any,
) -> Any:  # fmt: skip
    """Leftmost-first spans. `steps[offsets[r] : offsets[r + 1]]` for r = row * 4 + kind of the next byte:
    what may come next in order of preference, -1 for the end. Rows: positions, then `entry` + kind before."""
    n, stop = len(data), low + len(alive)
    while True:
        at, row = s[AT], s[4]
        if not s[INSIDE]:
            while at < stop and not _begins(data, at, alive[U(at - low)], first, empty, kinds):
                at += 1
            s[AT] = at
            if at >= stop:
                return BLOCK_END
            s[INSIDE], s[START] = 1, at
            row = entry + (_OUTSIDE if at == 0 else kinds[data[U(at - 1)]])
        over = False
        while at < stop and not over:
            after = _OUTSIDE if at == n else kinds[data[U(at)]]
            now = alive[U(at - low)]
            for k in range(offsets[row * 4 + after], offsets[row * 4 + after + 1]):
                q = steps[U(k)]
                if q < 0:
                    over = True
                    break
                if now[q >> 6] >> U(q & 63) & U(1):
                    row = q
                    at += 1
                    break
        s[AT], s[4] = at, row
        if not over:
            return BLOCK_END
        s[END_AT] = at
        if _close(s, starts_out, ends_out):
            return DONE
        if s[COUNT] == len(starts_out):
            return OUT_FULL
