"""Frames of a log passed over at memory speed: those that are as they should be, every byte checked.

The kernel only ever accepts. At the first frame that is not plainly right (another kind, a CRC, a place, a
seq that does not grow) it stops, and the survey's own code, which the reference shares, says what it is.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.jit import njit
from trident_store.filesystem import FileSystem
from trident_store.format import (
    FRAME_MAGIC,
    MAX_FRAME_EVENTS,
    MAX_PAYLOAD_BYTES,
    RECORD_BYTES,
    FrameKind,
    Position,
    crc32c,
)
from trident_store.lsm.crc_kernels import crc32c_at

#: Bytes that are read at once: they are checked while the processor's cache has them.
WINDOW_BYTES: Final = 1 << 20

_MAGIC: Final = int.from_bytes(FRAME_MAGIC, "little")
_EVENTS, _PAD = int(FrameKind.EVENTS), int(FrameKind.PAD)
_HEADER: Final = RECORD_BYTES
_SETTLED: Final = 1 << 8
_STOP, _MORE = 0, 1


@njit
def pass_frames(
    data: Any, base: Any, here: Any, segment: Any, seed: Any, stop: Any, out: Any, limits: Any
) -> int:
    """Pass over the frames in `data` (u64 words of a segment from offset `base` on) that check.

    `here` is u64[5]: offset, ordinal, last seq, epoch, rows in `out`; it ends where the kernel stopped: at a
    frame that `data` does not have whole (1), or at one for others to judge or at offset `stop` (0). Events
    are copied to `out` (rows of eight words) if it has any room. `limits`: most events, most payload bytes.
    """
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    header_bytes = np.uint64(_HEADER)
    size = np.uint64(data.shape[0] * 8)
    address = np.uint64(data.ctypes.data)
    while here[0] != stop:
        at = here[0] - base
        if at + header_bytes > size:
            return _MORE
        w = np.int64(at >> np.uint64(3))
        kind = (data[w] >> half) & np.uint64(0xFFFF & ~_SETTLED)
        right = (data[w] & low) == np.uint64(_MAGIC) and (data[w] >> np.uint64(48)) == header_bytes
        count, epoch = data[w + 1] & low, data[w + 1] >> half
        first, last = data[w + 3], data[w + 4]
        payload_bytes = data[w + 5] & low
        right = right and data[w + 6] == here[0] and (data[w + 7] & low) == segment
        right = right and data[w + 2] == here[1] and epoch >= here[3] and payload_bytes <= limits[1]
        if not right or (segment == np.uint64(0) and here[0] == header_bytes):
            return _STOP
        if kind == np.uint64(_EVENTS):
            right = count >= np.uint64(1) and count <= limits[0] and payload_bytes == count * header_bytes
            right = right and first > here[2] and last - first >= count - np.uint64(1) and last >= first
        else:
            right = kind == np.uint64(_PAD) and first == here[2] and last == here[2]
            right = right and payload_bytes & np.uint64(63) == np.uint64(0)
            count = np.uint64(0)
        if not right or crc32c_at(address + at, np.uint64(60), seed) != data[w + 7] >> half:
            return _STOP
        if at + header_bytes + payload_bytes > size:
            return _MORE
        if crc32c_at(address + at + header_bytes, payload_bytes, np.uint64(0)) != data[w + 5] >> half:
            return _STOP
        if count and not _grows(data, w + 8, np.int64(count), first, last):
            return _STOP
        if out.shape[0] and count:
            row = np.int64(here[4])
            if row + np.int64(count) > out.shape[0]:
                return _STOP
            for i in range(np.int64(count)):
                for word in range(8):
                    out[row + i, word] = data[w + 8 + 8 * i + word]
            here[4] += count
        here[0] += header_bytes + payload_bytes
        here[1] += count
        here[2] = last
        here[3] = epoch
    return _STOP


@njit
def _grows(data: Any, w: Any, count: Any, first: Any, last: Any) -> bool:
    """Do the events' seqs grow from `first` to `last`?"""
    if data[w] != first or data[w + 8 * (count - 1)] != last:
        return False
    falls = False
    for i in range(1, count):
        falls |= data[w + 8 * i] <= data[w + 8 * (i - 1)]
    return not falls


_NO_EVENTS: Final = np.empty((0, 8), np.uint64)
_LIMITS: Final = np.array([MAX_FRAME_EVENTS, MAX_PAYLOAD_BYTES], np.uint64)


class Walker:
    """Reads one segment in windows. Raises OSError when it cannot be read."""

    def __init__(self, files: FileSystem, handle: int, segment: int, size: int, store_id: bytes) -> None:
        self._files, self._handle, self._size = files, handle, size
        self._segment, self._seed = np.uint64(segment), np.uint64(crc32c(store_id))
        self._window = np.empty(min(WINDOW_BYTES, max(size, 8)) // 8, np.uint64)
        self._base, self._data = 0, self._window[:0]
        self._state = np.zeros(5, np.uint64)

    def pass_over(self, here: Position, stop: int, out: NDArray[Any] = _NO_EVENTS, row: int = 0) -> Position:
        """The place behind the frames from `here` on that check, or `stop`, an offset, when that is reached.
        Their events are put into `out` (u64[n, 8]), from `row` on, if it has rows."""
        state = self._state
        state[:] = here.offset, here.ordinal, here.last_seq, here.epoch, row
        if not self._base <= here.offset <= self._base + 8 * len(self._data):
            self._read(here.offset)
        while True:
            more = pass_frames(
                self._data, np.uint64(self._base), state, self._segment, self._seed, np.uint64(stop), out,
                _LIMITS,
            )  # fmt: skip
            offset = int(state[0])
            if not more or offset == self._base or offset + RECORD_BYTES > self._size:
                break
            self._read(offset)
            if not len(self._data):
                break
        offset, ordinal, last_seq, epoch, _ = state.tolist()
        return Position(here.segment, offset, ordinal, last_seq, epoch)

    def _read(self, offset: int) -> None:
        window = self._window[: max(self._size - offset, 0) // 8]
        got = self._files.read_into(self._handle, window.view(np.uint8), offset)
        self._base, self._data = offset, window[: got // 8]
