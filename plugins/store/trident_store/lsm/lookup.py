"""The look-up of an order in any number of tables by one call: filters, indexes, rows.

Tables are mapped files of different sizes, and a call with an array for each of their parts would cost more
than the look-up. So a table is a row of addresses (`TABLE`), and words are loaded from them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from trident_core.jit import njit
from trident_store.lsm.kernels import bloom_bit, bloom_mix


class Table(IntEnum):
    """The words of a table's row, u64."""

    FILTER = 0  # address of the Bloom filter
    FILTER_BLOCKS = 1
    MIN_REF = 2
    MAX_REF = 3
    FIRSTS = 4  # address of the first reference of each page
    PAGES = 5
    CHECKED_PAGES = 6  # address of a u8 for each page
    REFS = 7  # address
    REF_COUNT = 8
    PAGE_REFS = 9
    POSITIONS = 10  # address of the position of each reference
    EVENTS = 11  # address of the blocks
    COUNT = 12
    BLOCK_EVENTS = 13
    CHECKED_BLOCKS = 14  # address of a u8 for each block
    WORDS = 16


class Found(IntEnum):
    """Why `lookup` has not found all."""

    UNCHECKED_PAGE = -1
    UNCHECKED_BLOCK = -2
    FULL = -3
    NO_EVENT = -4


# Enums are slow to compile: kernels see integers.
_FILTER, _FILTER_BLOCKS, _MIN_REF, _MAX_REF = (int(each) for each in list(Table)[:4])
_FIRSTS, _PAGES, _CHECKED_PAGES, _REFS, _REF_COUNT = (int(each) for each in list(Table)[4:9])
_PAGE_REFS, _POSITIONS, _EVENTS, _COUNT, _BLOCK_EVENTS = (int(each) for each in list(Table)[9:14])
_CHECKED_BLOCKS: Final = int(Table.CHECKED_BLOCKS)


def _loader(bits: int) -> Any:
    """A load of an unsigned word of so many bits from an address, as a u64."""

    @intrinsic  # type: ignore[untyped-decorator]  # numba has no types
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(bits)
            value = builder.load(builder.inttoptr(args[0], word.as_pointer()), typ=word)
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return types.uint64(types.uint64), codegen

    return load


load_u64, load_u32, load_u16, load_u8 = (_loader(bits) for bits in (64, 32, 16, 8))


@njit
def _maybe(table: Any, ref: Any, high: Any, low: Any) -> bool:
    """May a table name the reference?"""
    if ref < table[_MIN_REF] or ref > table[_MAX_REF]:
        return False
    block = (high * table[_FILTER_BLOCKS]) >> np.uint64(32)
    address = table[_FILTER] + block * np.uint64(64)
    missing = np.uint64(0)
    for word in range(8):
        missing |= bloom_bit(low, word) & ~load_u64(address + np.uint64(8 * word))
    return bool(missing == np.uint64(0))


@njit
def _first_not_below(address: Any, low: Any, high: Any, ref: Any) -> Any:
    """The first index of [low, high) whose u64 is not below `ref`; `high` when there is none."""
    one = np.uint64(1)
    while low < high:
        middle = (low + high) >> one
        if load_u64(address + np.uint64(8) * middle) < ref:
            low = middle + one
        else:
            high = middle
    return low


@njit
def _copy(table: Any, position: Any, out: Any) -> int:
    """out (eight words) = an event; -1, or the block that has to be checked first, or -2: there is none."""
    if position >= table[_COUNT]:
        return -2
    block = position // table[_BLOCK_EVENTS]
    if not load_u8(table[_CHECKED_BLOCKS] + block):
        return int(block)
    start = block * table[_BLOCK_EVENTS]
    n = min(table[_BLOCK_EVENTS], table[_COUNT] - start)
    row = position - start
    base = table[_EVENTS] + start * np.uint64(64)
    words = base + row * np.uint64(8)
    for column in range(6):
        out[column] = load_u64(words + np.uint64(8 * column) * n)
    out[7] = load_u64(words + np.uint64(56) * n)
    packed = load_u32(base + np.uint64(48) * n + np.uint64(4) * row)
    packed |= load_u8(base + np.uint64(52) * n + row) << np.uint64(32)
    packed |= load_u8(base + np.uint64(53) * n + row) << np.uint64(40)
    packed |= load_u16(base + np.uint64(54) * n + np.uint64(2) * row) << np.uint64(48)
    out[6] = packed
    return -1


@njit
def lookup(ref: Any, tables: Any, out: Any, state: Any) -> int:
    """Copy all events that name `ref` to `out` (rows of eight words), table by table; how many, or, negative,
    why it ended before (`Found`).

    `state` is i64[3]: the table to go on with, how many rows are in `out`, and the piece that has to be
    checked before the call is made again. It is zeros at the first call, and when all were found.
    """
    zero, one = np.uint64(0), np.uint64(1)
    mixed = bloom_mix(ref)
    high, low = mixed >> np.uint64(32), mixed & np.uint64(0xFFFFFFFF)
    for t in range(state[0], tables.shape[0]):
        table = tables[t]
        if not _maybe(table, ref, high, low):
            continue
        state[0] = t
        page = _first_not_below(table[_FIRSTS], zero, table[_PAGES], ref)
        if page > zero:
            page -= one
        n = np.int64(state[1])
        at = page * table[_PAGE_REFS]
        while at < table[_REF_COUNT]:
            if not load_u8(table[_CHECKED_PAGES] + page):
                state[2] = np.int64(page)
                return -1
            end = min((page + one) * table[_PAGE_REFS], table[_REF_COUNT])
            at = _first_not_below(table[_REFS], at, end, ref)
            while at < end and load_u64(table[_REFS] + np.uint64(8) * at) == ref:
                if n == out.shape[0]:
                    return -3
                block = _copy(table, load_u32(table[_POSITIONS] + np.uint64(4) * at), out[n])
                if block != -1:
                    state[2] = block
                    return -2 if block >= 0 else -4
                n += 1
                at += one
            if at < end:
                break
            page += one
        state[1] = n
    found = int(state[1])
    state[0], state[1] = 0, 0
    return found
