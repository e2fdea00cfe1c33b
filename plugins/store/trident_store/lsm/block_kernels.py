"""What is done to many blocks, windows or pages of a table in one call: filled, described, checked.

A block of n events has each column by itself, at n times the column's offset in EVENT. Bytes stand at an
address, so that the same kernels serve a buffer and a mapped file.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import njit
from trident_core.prefetch import prefetch
from trident_store.lsm.crc_kernels import crc32c_at
from trident_store.lsm.layout import COLUMN_BYTES, COLUMN_OFFSETS, COLUMNS

_OFFSETS: Final = COLUMN_OFFSETS
_BYTES: Final = COLUMN_BYTES
_COLUMNS: Final = len(COLUMNS)
_CRC_AT: Final = 14  # in a BLOCK, in words of four bytes
_ALL: Final = (1 << 64) - 1
_TILE: Final = 32  # rows


@njit
def fill_blocks(
    words: Any, order: Any, block_events: int, out64: Any, out32: Any, out16: Any, out8: Any
) -> None:
    """The events words[order], block by block, column by column; the `out` arrays are views of 64 bytes for
    each.

    Some rows at a time, each column of them in one go: columns lie apart by powers of two, so that a row
    written to all of them at once has the lines push one another out of the cache.
    """
    count = order.shape[0]
    for begin in range(0, count, block_events):
        n = min(block_events, count - begin)
        a, b, c, d = begin * 8, begin * 16 + 12 * n, begin * 32 + 27 * n, begin * 64 + 52 * n
        for start in range(0, n, _TILE):
            end = min(start + _TILE, n)
            for i in range(begin + end, min(begin + end + _TILE, count)):
                prefetch(words, np.uint64(order[i]))
            for column in range(8):
                if column == 6:
                    continue
                at = a + column * n
                for i in range(start, end):
                    out64[at + i] = words[order[begin + i], column]
            for i in range(start, end):
                packed = words[order[begin + i], 6]
                out32[b + i] = np.uint32(packed)
                out16[c + i] = np.uint16(packed >> np.uint64(48))
                out8[d + i] = np.uint8(packed >> np.uint64(32))
                out8[d + n + i] = np.uint8(packed >> np.uint64(40))


@njit
def describe_blocks(data64: Any, data32: Any, block_events: int, info64: Any, info32: Any) -> None:
    """The zone maps and CRCs of blocks: `info64` and `info32` are views of BLOCK rows, [blocks, 16] and
    [blocks, 32]; the `data` arrays of the blocks, the last of which may be smaller."""
    count = data64.shape[0] // 8
    for block in range(info64.shape[0]):
        begin = block * block_events
        n = min(block_events, count - begin)
        for column in range(2):  # seq and ts
            low, high = np.uint64(_ALL), np.uint64(0)
            at = begin * 8 + column * n
            for i in range(at, at + n):
                low, high = min(low, data64[i]), max(high, data64[i])
            info64[block, 2 * column], info64[block, 2 * column + 1] = low, high
        at = begin * 8 + 4 * n
        least = most = np.int64(data64[at])
        for i in range(at, at + n):
            least, most = min(least, np.int64(data64[i])), max(most, np.int64(data64[i]))
        info64[block, 4], info64[block, 5] = np.uint64(least), np.uint64(most)
        at = begin * 16 + 12 * n
        first = last = data32[at]
        for i in range(at, at + n):
            first, last = min(first, data32[i]), max(last, data32[i])
        info32[block, 12], info32[block, 13] = first, last
        for column in range(_COLUMNS):
            info32[block, _CRC_AT + column] = _column_crc(np.uint64(data64.ctypes.data), begin, n, column)


@njit
def _column_crc(address: Any, begin: int, n: int, column: int) -> Any:
    at = np.uint64(begin * 64 + n * _OFFSETS[column])
    return np.uint32(crc32c_at(address + at, np.uint64(n * _BYTES[column]), np.uint64(0)))


@njit
def first_bad_block(address: Any, count: int, block_events: int, crcs: Any) -> int:
    """The first block of which a column has not the CRC that `crcs`, u32[blocks, columns], says; -1: none.
    The blocks stand at an address and have `count` events."""
    for block in range(crcs.shape[0]):
        begin = block * block_events
        n = min(block_events, count - begin)
        for column in range(_COLUMNS):
            if _column_crc(address, begin, n, column) != crcs[block, column]:
                return block
    return -1


@njit
def piece_crcs(address: Any, nbytes: int, piece_bytes: int, out: Any) -> None:
    """The CRC of each piece of so many bytes at an address; the last piece, by `out`'s length, goes up to the
    end."""
    pieces = out.shape[0]
    for i in range(pieces):
        start = i * piece_bytes
        size = piece_bytes if i + 1 < pieces else nbytes - start
        at = address + np.uint64(start)
        out[i] = np.uint32(crc32c_at(at, np.uint64(size), np.uint64(0)))


@njit
def first_bad_column(address: Any, count: int, block_events: int, first: int, column: int, crcs: Any) -> int:
    """As `first_bad_block`, of one column, and of so many blocks from `first` on as `crcs` has rows."""
    for block in range(first, first + crcs.shape[0]):
        begin = block * block_events
        n = min(block_events, count - begin)
        if _column_crc(address, begin, n, column) != crcs[block - first, column]:
            return block
    return -1
