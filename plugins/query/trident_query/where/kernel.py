"""The machine that predicates run on: a few instructions over registers of a block of rows.

A block (512 rows) and its registers stay in the processor's first caches, and each instruction is one loop
that compiles to vector code; so a predicate costs a fraction of a nanosecond per instruction and row, without
a compiler at query time and without a temporary as long as the data.

Fields are read through (address, stride, width), so rows (EVENT) and columns are the same to it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from trident_core.jit import njit_entry, njit_inlined, njit_kernel

BLOCK: Final = 512
#: Words of an instruction: operation, destination, two sources, an immediate.
WORDS: Final = 5


class Op(IntEnum):
    """Operations. r: i64 registers, t: truth registers; d, a, b as in the instruction; c the immediate."""

    LOAD = 0  # r[d] = field a
    CONST = 1  # r[d] = c
    SIGNED = 2  # overflow if, where t[a], r[d] does not fit: c 0: a u64 that becomes signed; 1: a price
    SCALE = 3  # r[d] = r[a] * c; overflow checked where t[b]
    PRICE = 4  # r[d] = r[a] * (c >> 32), or where the flags r[b] have bit 1 * (c & 0xFFFFFFFF); saturated
    ADD = 5  # r[d] = r[a] + r[b]; overflow checked where t[c]; SUB and MUL likewise
    SUB = 6
    MUL = 7
    REM = 8  # r[d] = r[a] % r[b], t[c] = is r[b] not 0
    PADDED = 9  # r[d]: trailing spaces and NULs of the text r[a] (b bytes, little-endian) become 0
    LUT = 10  # t[d] = table c of r[a]
    LOCATES = 11  # t[d] = table of locates c of r[a]
    MEMO = 12  # t[d] = what is remembered of r[a] in memory c, where t[b]
    CMP = 13  # t[d] = r[a] (=, !=, <, <=) r[b]: c is 0 … 3, and + 4 for u64
    AND = 14
    OR = 15
    TRUTH = 16  # t[d] = c
    PREV = 17  # r[d] = r[a] of the key's row before (slot c)
    PREV_TRUTH = 18  # t[d] = t[a] of the key's row before (slot c), false in the key's first row
    NOT = 19  # t[d] = not t[a]


class Stop(IntEnum):
    """Why `run` came back before the end."""

    DONE = 0
    OVERFLOW = 1  # of a sum or a product: row
    UNKNOWN = 2  # memory `detail` does not have the value of row


(_LOAD, _CONST, _SIGNED, _SCALE, _PRICE, _ADD, _SUB, _MUL, _REM, _PADDED, _LUT, _LOCATES, _MEMO, _CMP, _AND,
 _OR, _TRUTH, _PREV, _PREV_TRUTH, _NOT) = (int(op) for op in Op)  # fmt: skip


def _loader(bits: int) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]  # numba has no types
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(bits)
            pointer = builder.inttoptr(args[0], word.as_pointer())
            value = builder.load(pointer, typ=word, align=1)
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return types.int64(types.int64), codegen

    return load


_load64, _load32, _load16, _load8 = (_loader(bits) for bits in (64, 32, 16, 8))


@njit_inlined
def _load(field: Any, first: Any, n: Any, out: Any) -> None:
    address, stride, width = field[0] + first * field[1], field[1], field[2]
    if width == 8:
        for i in range(n):
            out[i] = _load64(address + i * stride)
    elif width == 4:
        for i in range(n):
            out[i] = _load32(address + i * stride)
    elif width == 2:
        for i in range(n):
            out[i] = _load16(address + i * stride)
    else:
        for i in range(n):
            out[i] = _load8(address + i * stride)


@njit_inlined
def _compare(kind: Any, a: Any, b: Any, out: Any, n: Any) -> None:
    if kind & 3 == 0:
        for i in range(n):
            out[i] = a[i] == b[i]
    elif kind & 3 == 1:
        for i in range(n):
            out[i] = a[i] != b[i]
    elif kind == 2:
        for i in range(n):
            out[i] = a[i] < b[i]
    elif kind == 3:
        for i in range(n):
            out[i] = a[i] <= b[i]
    elif kind == 6:
        for i in range(n):
            out[i] = np.uint64(a[i]) < np.uint64(b[i])
    else:
        for i in range(n):
            out[i] = np.uint64(a[i]) <= np.uint64(b[i])


@njit_inlined
def _product(a: Any, b: Any) -> Any:
    """a * b and whether it fits 63 bits, judged with floats: near the edge it says no."""
    return a * b, abs(float(a) * float(b)) < 9.2e18


@njit_inlined
def _price(value: Any, flags: Any, common: Any, special: Any) -> Any:
    """A price at the scale of prices; what does not fit becomes the greatest or the least."""
    made, fits = _product(value, special if flags & 2 else common)
    if fits:
        return made
    return np.int64(9223372036854775807) if value > 0 else np.int64(-9223372036854775807)


@njit_inlined
def _arithmetic(op: Any, a: Any, b: Any, out: Any, valid: Any, n: Any) -> int:
    """The row of the first overflow among the valid ones, or -1."""
    for i in range(n):
        if op == _MUL:
            out[i], fits = _product(a[i], b[i])
        else:
            second = b[i] if op == _ADD else -b[i]
            out[i] = a[i] + second
            fits = abs(float(a[i]) + float(second)) < 9.2e18
        if not fits and valid[i]:
            return int(i)
    return -1


@njit_inlined
def _padded(value: Any, width: Any) -> Any:
    """A text without its trailing spaces: they become NULs."""
    for byte in range(width - 1, -1, -1):
        last = (value >> (8 * byte)) & 0xFF
        if last == 0x20:
            value ^= np.int64(0x20) << (8 * byte)
        elif last != 0:
            break
    return value


@njit_inlined
def _remembered(memory: Any, value: Any) -> int:
    """1 or 0 as it is remembered of a value, -1 if it is not. `memory` is i64[2**k, 2]: value, 1 + answer."""
    mask = memory.shape[0] - 1
    at = (np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
    place = np.int64(at) & mask
    while memory[place, 1] != 0:
        if memory[place, 0] == value:
            return int(memory[place, 1] - 1)
        place = (place + 1) & mask
    return -1


@njit_inlined
def _place(locate: Any, places: Any, far: Any) -> Any:
    """Where a locate's answer is among so many places, -1: nowhere."""
    near = places - far.shape[0]
    if locate < near:
        return locate
    low, high = 0, far.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if far[middle] < locate:
            low = middle + 1
        else:
            high = middle
    return near + low if low < far.shape[0] and far[low] == locate else -1


@njit_inlined
def _run(
    code: Any, fields: Any, first: Any, n: Any, tables: Any, locates: Any, far: Any, memories: Any,
    keys: Any, kept: Any, r: Any, t: Any, stop: Any,
) -> int:  # fmt: skip
    """Run a program from instruction stop[3] on, on the block of n rows from `first`; `Stop`, with stop =
    row, value, memory and instruction.

    code i64[:, WORDS]; fields i64[:, 3]; tables u8[:, 256]; locates u8[:, m] with far i64[:]
    (`SymbolTables`); memories i64[:, 2**k, 2]; keys i64[rows] (-1: none) with kept i64[:, slots]; r i64[:,
    BLOCK]; t u8[:, BLOCK], t[0] all true.
    """
    for at in range(stop[3], code.shape[0]):
        op, d, a, b, c = code[at, 0], code[at, 1], code[at, 2], code[at, 3], code[at, 4]
        if op == _LOAD:
            _load(fields[a], first, n, r[d])
        elif op == _CONST:
            for i in range(n):
                r[d, i] = c
        elif op == _CMP:
            _compare(c, r[a], r[b], t[d], n)
        elif op == _LUT:
            for i in range(n):
                t[d, i] = tables[c, r[a, i] & 0xFF]
        elif op == _LOCATES:
            for i in range(n):
                place = _place(r[a, i], locates.shape[1], far)
                t[d, i] = locates[c, place] if place >= 0 else 0
        elif op == _AND:
            for i in range(n):
                t[d, i] = t[a, i] & t[b, i]
        elif op == _OR:
            for i in range(n):
                t[d, i] = t[a, i] | t[b, i]
        elif op == _NOT:
            for i in range(n):
                t[d, i] = 1 - t[a, i]
        elif op == _TRUTH:
            for i in range(n):
                t[d, i] = c
        elif op == _PADDED:
            for i in range(n):
                r[d, i] = _padded(r[a, i], b)
        elif op == _MEMO:
            for i in range(n):
                known = _remembered(memories[c], r[a, i]) if t[b, i] else 0
                if known < 0:
                    stop[0], stop[1] = i, r[a, i]
                    stop[2], stop[3] = c, at
                    return 2
                t[d, i] = known
        else:
            bad = _rare(op, d, a, b, c, first, n, keys, kept, r, t)
            if bad >= 0:
                stop[0] = bad
                return 1
    return 0


@njit_kernel
def _rare(
    op: Any, d: Any, a: Any, b: Any, c: Any, first: Any, n: Any, keys: Any, kept: Any, r: Any,
    t: Any,
) -> int:  # fmt: skip
    """The other instructions; the row of an overflow, or -1."""
    if op == _SIGNED:
        for i in range(n):
            if t[a, i] and (r[d, i] < 0 if c == 0 else abs(r[d, i]) == 9223372036854775807):
                return int(i)
    elif op == _SCALE:
        for i in range(n):
            r[d, i], fits = _product(r[a, i], c)
            if not fits and t[b, i]:
                return int(i)
    elif op == _PRICE:
        for i in range(n):
            r[d, i] = _price(r[a, i], r[b, i], c >> 32, c & 0xFFFFFFFF)
    elif op == _ADD or op == _SUB or op == _MUL:
        return _arithmetic(op, r[a], r[b], r[d], t[c], n)
    elif op == _REM:
        for i in range(n):
            t[c, i] = r[b, i] != 0
            if r[b, i] != 0:
                rest = abs(r[a, i]) % abs(r[b, i])
                r[d, i] = rest if r[a, i] >= 0 else -rest
    elif op == _PREV:
        for i in range(n):
            key = keys[first + i]
            if key >= 0:
                value = r[a, i]
                r[d, i] = kept[key, c]
                kept[key, c] = value
    elif op == _PREV_TRUTH:
        for i in range(n):
            key = keys[first + i]
            if key >= 0:
                value = t[a, i]
                t[d, i] = kept[key, c]
                kept[key, c] = value
            else:
                t[d, i] = 0
    return -1


@njit_entry
def run(
    code: Any, fields: Any, rows: Any, tables: Any, locates: Any, far: Any, memories: Any, keys: Any,
    kept: Any, r: Any, t: Any, outputs: Any, out: Any, stop: Any,
) -> int:  # fmt: skip
    """Run a program on all rows from stop[4] on: bit k of out[i] (u32) is what outputs[k] is in row i.

    `Stop`; then stop is the row, the value, the memory, the instruction and the block to go on with.
    """
    while stop[4] < rows:
        first = stop[4]
        n = min(rows - first, 512)
        why = _run(code, fields, first, n, tables, locates, far, memories, keys, kept, r, t, stop)
        if why != 0:
            return int(why)
        for i in range(n):
            out[first + i] = t[outputs[0], i]
        for k in range(1, outputs.shape[0]):
            for i in range(n):
                out[first + i] |= np.uint32(t[outputs[k], i]) << np.uint32(k)
        stop[4], stop[3] = first + n, 0
    return 0
