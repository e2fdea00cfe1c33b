"""Looking for something in a segment's bytes: the next frame, only zeros, the end of what is sound."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from trident_store.filesystem import FileSystem, read
from trident_store.format import FRAME_MAGIC, RECORD_BYTES, Frame, Position, decode_frame

_WINDOW: Final = 1 << 20  # bytes read at a time


class Walker(Protocol):
    """Passes over frames of one segment that are sound, faster than a survey can."""

    def pass_over(self, here: Position, stop: int) -> Position:
        """The place behind those from `here` on; `stop`, an offset behind a frame (0: none), is not passed.
        Raises OSError."""
        ...


def find_frame(
    files: FileSystem, handle: int, store_id: bytes, segment: int, start: int, size: int, *, settled: bool
) -> Frame | None:
    """The next frame (the next settled one) of a segment, from `start` on, whose header checks and says that
    it stands where it does. Raises OSError."""
    magic = np.frombuffer(FRAME_MAGIC, "<u4")[0]
    for base in range(start, size, _WINDOW):
        block = read(files, handle, min(_WINDOW, size - base), base)
        rows = block[: len(block) // RECORD_BYTES * RECORD_BYTES].reshape(-1, RECORD_BYTES)
        words = rows.view("<u4")
        for row in np.flatnonzero((words[:, 0] == magic) & (words[:, 14] == segment)):
            frame = decode_frame(store_id, rows[row].tobytes())
            place = (segment, base + int(row) * RECORD_BYTES)
            if frame is None or (frame.segment, frame.offset) != place:
                continue
            if frame.settled or not settled:
                return frame
    return None


def only_zeros(files: FileSystem, handle: int, start: int, size: int) -> bool:
    """Are there only zeros from `start` to `size`? Raises OSError."""
    starts = range(start, size, _WINDOW)
    return not any(read(files, handle, min(_WINDOW, size - at), at).any() for at in starts)
