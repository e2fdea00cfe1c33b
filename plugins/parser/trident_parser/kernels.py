"""Kernels of the numba parser: ITCH 5.0 frames -> EVENT words, without a Python object per message.

Loads are unaligned big-endian loads of exactly the field's width, so nothing is read past a message. An EVENT
is written as eight 64-bit words (dtypes.EVENT): seq, ts, ref, ref2, price, qty, locate|type|side|flags, aux.
The rules are those of `reference.py`; docs/contracts/parser.md has the columns.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from trident_core.jit import njit

# Why the kernel returned, in `state[STATUS]`: contracts.Status, and one of its own.
OK, NEED_MORE, OUT_FULL, MALFORMED, END, LEARN_FULL = range(6)

# Slots of `state`, i64[8], which the kernel reads and writes. INDEX: write (seq, start, type), not EVENTs.
AT, COUNT, SEQ, STATUS, LEARNED, ISSUES, LENIENT, INDEX = range(8)

#: Positions of messages whose symbol the directory must be told; drained by Python when full.
LEARN_SLOTS: Final = 4_096
#: (kind, position) of the first skipped messages of a call, half the slots for each kind; then only counted.
ISSUE_SLOTS: Final = 16
UNKNOWN_TYPE, WRONG_LENGTH = 0, 1


def _big_endian_load(bits: int) -> Any:
    """An intrinsic that loads a big-endian integer of 16, 32 or 64 bits at any byte of a u8 array."""

    @intrinsic  # type: ignore[untyped-decorator]  # numba has no types
    def load(typingctx: Any, array: Any, index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, args[0])
            pointer = cgutils.get_item_pointer(context, builder, signature.args[0], view, [args[1]])
            value = builder.load(pointer, typ=ir.IntType(bits))
            value.align = 1
            return builder.zext(builder.bswap(value), ir.IntType(64)) if bits < 64 else builder.bswap(value)

        return types.uint64(array, types.intp), codegen

    return load


be16 = _big_endian_load(16)
be32 = _big_endian_load(32)
be64 = _big_endian_load(64)


@njit
def parse(
    frames: Any,  # u8[n]
    words: Any,  # u64[m, 8]: the caller's EVENTs
    state: Any,  # i64[8]
    lengths: Any,  # u8[256]: itch50.LENGTHS
    stocks: Any,  # u8[256]: itch50.STOCK_OFFSETS
    counts: Any,  # u64[256]
    agreed: Any,  # u64[65536]: stock field by locate on which directory and feed agree, big-endian; 0 unknown
    learn: Any,  # i64[LEARN_SLOTS]
    issues: Any,  # i64[ISSUE_SLOTS, 2]
    skipped: Any,  # i64[2]: messages skipped, by kind
) -> None:
    """Parse from state[AT] until the bytes, the room or the learn slots end.

    Lengths and stock offsets are passed in, so that the kernel has no second copy of the specification.

    One function of more than 60 lines on purpose: splitting the types into functions costs a fifth of the
    speed, since numba then passes the arrays' descriptors with every call.
    """
    at, count, seq = state[AT], state[COUNT], np.uint64(state[SEQ])
    learned, noted = state[LEARNED], state[ISSUES]
    lenient, index = state[LENIENT] != 0, state[INDEX] != 0
    end, room = frames.shape[0], words.shape[0]
    status = OK
    while at < end:
        if count == room:
            status = OUT_FULL
            break
        if learned == LEARN_SLOTS:
            status = LEARN_FULL
            break
        if end - at < (3 if lenient else 2):
            status = NEED_MORE
            break
        length = np.int64(be16(frames, at))
        if lenient:
            by_type = np.int64(lengths[frames[at + 2]])
            if by_type:
                length = by_type
            if length == 0:
                status = MALFORMED
                break
        elif length == 0:
            status = END
            at += 2
            break
        if at + 2 + length > end:
            status = NEED_MORE
            break
        letter = np.int64(frames[at + 2])
        counts[letter] += np.uint64(1)
        if length != np.int64(lengths[letter]):
            kind = WRONG_LENGTH if lengths[letter] else UNKNOWN_TYPE
            skipped[kind] += 1
            if skipped[kind] <= ISSUE_SLOTS // 2:
                issues[noted, 0] = kind
                issues[noted, 1] = at
                noted += 1
            seq += np.uint64(1)
            at += 2 + length
            continue

        locate = be16(frames, at + 3)
        ts = be16(frames, at + 7) << np.uint64(32) | be32(frames, at + 9)
        body = at + 13  # the first byte after the header
        stock_at = np.int64(stocks[letter])
        if stock_at and locate:
            stock = be64(frames, at + 2 + stock_at)
            old = agreed[locate]
            if letter == 82 or stock != old:  # R, or news
                learn[learned] = at
                learned += 1
                blank = stock == np.uint64(0x2020202020202020) or stock == np.uint64(0)
                if not blank and (letter == 82 or old == np.uint64(0)):
                    agreed[locate] = stock

        if index:
            words[count, 0] = seq
            words[count, 1] = at
            words[count, 2] = letter
            count += 1
            seq += np.uint64(1)
            at += 2 + length
            continue

        ref, ref2, price = np.uint64(0), np.uint64(0), np.uint64(0)
        qty, aux, side, flags = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
        if letter == 65 or letter == 70:  # A F
            ref = be64(frames, body)
            side = np.uint64(frames[body + 8])
            qty = be32(frames, body + 9)
            price = be32(frames, body + 21)
            if letter == 70:
                aux = _swap32(be32(frames, body + 25))
        elif letter == 68:  # D
            ref = be64(frames, body)
        elif letter == 85:  # U
            ref = be64(frames, body)
            ref2 = be64(frames, body + 8)
            qty = be32(frames, body + 16)
            price = be32(frames, body + 20)
        elif letter == 69 or letter == 67:  # E C
            ref = be64(frames, body)
            qty = be32(frames, body + 8)
            ref2 = be64(frames, body + 12)
            if letter == 67:
                price = be32(frames, body + 21)
                flags = np.uint64(1) if frames[body + 20] == 78 else np.uint64(0)
        elif letter == 88:  # X
            ref = be64(frames, body)
            qty = be32(frames, body + 8)
        elif letter == 80:  # P
            ref = be64(frames, body)
            side = np.uint64(frames[body + 8])
            qty = be32(frames, body + 9)
            price = be32(frames, body + 21)
            ref2 = be64(frames, body + 25)
        elif letter == 73:  # I
            qty = be64(frames, body)
            ref2 = be64(frames, body + 8)
            side = np.uint64(frames[body + 16])
            price = be32(frames, body + 33)
            near = be32(frames, body + 29)
            aux = _swap16(be16(frames, body + 37)) | near << np.uint64(32)
        elif letter == 81:  # Q
            qty = be64(frames, body)
            price = be32(frames, body + 16)
            ref2 = be64(frames, body + 20)
            aux = np.uint64(frames[body + 28])
        elif letter == 66:  # B
            ref2 = be64(frames, body)
        elif letter == 83 or letter == 87:  # S W
            aux = np.uint64(frames[body])
        elif letter == 89 or letter == 78:  # Y N
            aux = np.uint64(frames[body + 8])
        elif letter == 72:  # H
            aux = np.uint64(frames[body + 8]) | _swap32(be32(frames, body + 10)) << np.uint64(8)
        elif letter == 104:  # h
            aux = _swap16(be16(frames, body + 8))
        elif letter == 76:  # L
            aux = _swap32(be32(frames, body)) | _letters(frames, body + 12, 3) << np.uint64(32)
        elif letter == 82:  # R
            qty = be32(frames, body + 10)
            aux = _letters(frames, body + 8, 2)
            aux |= _letters(frames, body + 15, 4) << np.uint64(16)
            aux |= np.uint64(frames[body + 22]) << np.uint64(48)
            aux |= np.uint64(frames[body + 20]) << np.uint64(56)
        elif letter == 75:  # K
            qty = be32(frames, body + 8)
            price = be32(frames, body + 13)
            aux = np.uint64(frames[body + 12])
        elif letter == 74:  # J
            price = be32(frames, body + 8)
            qty = be32(frames, body + 20)
            aux = be32(frames, body + 12) | be32(frames, body + 16) << np.uint64(32)
        elif letter == 86:  # V
            price = be64(frames, body)
            flags = np.uint64(2)
        elif letter == 79:  # O
            price = be32(frames, body + 17)
            aux = np.uint64(frames[body + 8]) | be32(frames, body + 9) << np.uint64(32)

        words[count, 0] = seq
        words[count, 1] = ts
        words[count, 2] = ref
        words[count, 3] = ref2
        words[count, 4] = price
        words[count, 5] = qty
        kind_bits = np.uint64(letter) << np.uint64(32) | side << np.uint64(40) | flags << np.uint64(48)
        words[count, 6] = locate | kind_bits
        words[count, 7] = aux
        count += 1
        seq += np.uint64(1)
        at += 2 + length
    state[AT], state[COUNT], state[SEQ], state[STATUS] = at, count, np.int64(seq), status
    state[LEARNED], state[ISSUES] = learned, noted


@njit
def _swap32(value: Any) -> Any:
    """Four letters loaded big-endian, in the order in which a little-endian word stores them."""
    value = (value & np.uint64(0x00FF00FF)) << np.uint64(8) | (value >> np.uint64(8)) & np.uint64(0x00FF00FF)
    return (value << np.uint64(16) | value >> np.uint64(16)) & np.uint64(0xFFFFFFFF)


@njit
def _swap16(value: Any) -> Any:
    return (value << np.uint64(8) | value >> np.uint64(8)) & np.uint64(0xFFFF)


@njit
def _letters(frames: Any, at: int, size: int) -> Any:
    """`size` letters as they stand, as the low bytes of a little-endian word."""
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(frames[at + i]) << np.uint64(8 * i)
    return word
