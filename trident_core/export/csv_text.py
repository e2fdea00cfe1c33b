"""Integers to lines of text, by kernels: LOBSTER's two csv files."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from trident_core.jit import njit_entry, njit_inlined, njit_kernel
from trident_core.tables.lobster_kernel import (
    CROSS,
    DIRECTION,
    HEAD_COLUMNS,
    MESSAGE_PRICE,
    ORDER_ID,
    SIZE,
    TIME,
    TYPE,
)  # fmt: skip

#: The widest number with its sign, and what follows it.
NUMBER_BYTES: Final = 21
#: The widest line of a message file.
MESSAGE_BYTES: Final = HEAD_COLUMNS * NUMBER_BYTES

_PAIRS: Final = np.frombuffer("".join(f"{n:02d}" for n in range(100)).encode(), np.uint8)
_ZERO, _COMMA, _MINUS, _POINT, _NEWLINE = (ord(letter) for letter in "0,-.\n")
_ONE = np.uint64(1)
_SECOND: Final = 1_000_000_000
_DECIMALS: Final = 9


@njit_inlined
def _width(value: Any) -> Any:
    width, above = 1, np.uint64(10)
    while value >= above:
        width += 1
        if width == 20:
            break
        above *= np.uint64(10)
    return width


@njit_kernel
def _unsigned(text: Any, at: int, value: Any, end: int) -> int:
    """Write a u64 and the byte `end`; -> where the next byte goes. (Indices are u64: no sign to look at.)"""
    stop = at + _width(value)
    place = np.uint64(stop)
    while value >= np.uint64(100):
        rest = value // np.uint64(100)
        pair = np.uint64(2) * (value - rest * np.uint64(100))
        place -= np.uint64(2)
        text[place], text[place + _ONE] = _PAIRS[pair], _PAIRS[pair + _ONE]
        value = rest
    if value >= np.uint64(10):
        pair = np.uint64(2) * value
        place -= np.uint64(2)
        text[place], text[place + _ONE] = _PAIRS[pair], _PAIRS[pair + _ONE]
    else:
        text[place - _ONE] = _ZERO + value
    text[np.uint64(stop)] = end
    return stop + 1  # type: ignore[no-any-return]


@njit_kernel
def _signed(text: Any, at: int, value: int, end: int) -> int:
    if value < 0:
        text[at] = _MINUS
        return _unsigned(text, at + 1, np.uint64(-value), end)
    return _unsigned(text, at, np.uint64(value), end)


@njit_kernel
def _seconds(text: Any, at: int, ns: int) -> int:
    """Nanoseconds as seconds; zeros at the end of the decimals are left out, as in LOBSTER's samples."""
    at = _unsigned(text, at, np.uint64(ns // _SECOND), _COMMA)
    fraction = ns % _SECOND
    if fraction == 0:
        return at
    text[at - 1] = _POINT
    last = at + _DECIMALS - 1
    while fraction % 10 == 0:
        fraction //= 10
        last -= 1
    for place in range(last, at - 1, -1):
        text[place] = _ZERO + fraction % 10
        fraction //= 10
    text[last + 1] = _COMMA
    return last + 2


@njit_entry
def message_lines(heads: Any, order: Any, text: Any, ends: Any) -> None:
    """Write the rows of `heads` i64[r, 7] in the order of `order` i64[r] to `text` u8; ends[i] is where the
    i-th line ends. `text` has MESSAGE_BYTES for each."""
    at = 0
    for i in range(len(order)):
        row = heads[order[i]]
        at = _seconds(text, at, row[TIME])
        at = _signed(text, at, row[TYPE], _COMMA)
        if row[TYPE] == CROSS:
            at = _signed(text, at, row[ORDER_ID], _COMMA)
        else:
            at = _unsigned(text, at, np.uint64(row[ORDER_ID]), _COMMA)
        at = _unsigned(text, at, np.uint64(row[SIZE]), _COMMA)
        at = _signed(text, at, row[MESSAGE_PRICE], _COMMA)
        at = _signed(text, at, row[DIRECTION], _NEWLINE)
        ends[i] = at


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def _copy(typingctx: Any, text: Any, to: Any, start: Any, size: Any) -> Any:
    """`_copy(text, to, start, size)`: copy bytes inside `text`, which do not overlap. A loop takes ten times
    as long: it is not known to be free of overlaps and negative indices."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        base = builder.bitcast(array.data, cgutils.voidptr_t)
        places = [builder.gep(base, [args[1]]), builder.gep(base, [args[2]])]
        cgutils.raw_memcpy(builder, *places, args[3], 1)
        return context.get_dummy_value()

    return types.void(text, types.intp, types.intp, types.intp), codegen


@njit_entry
def level_lines(books: Any, order: Any, text: Any, ends: Any, places: Any) -> None:
    """The same of `books` i64[r, c], prices and sizes in turn; `text` has c NUMBER_BYTES for each.

    Most numbers are those of the line before, and copied from there. `places` i64[2, c + 1] is for that:
    where the numbers of a line begin, in turn of the line before and of this one.
    """
    columns = books.shape[1]
    at = 0
    for i in range(len(order)):
        row, before = books[order[i]], books[order[i - 1 if i else 0]]
        mine, theirs = places[i & 1], places[1 - (i & 1)]
        j = 0
        while j < columns:
            same = j
            while i and same < columns and row[same] == before[same]:
                mine[same] = at + theirs[same] - theirs[j]
                same += 1
            if same > j:
                size = theirs[same] - theirs[j]
                _copy(text, at, theirs[j], size)
                at += size
                j = same
                continue
            mine[j] = at
            end = _COMMA if j + 1 < columns else _NEWLINE
            if j & 1:
                at = _unsigned(text, at, np.uint64(row[j]), end)
            else:
                at = _signed(text, at, row[j], end)
            j += 1
        mine[columns] = ends[i] = at
