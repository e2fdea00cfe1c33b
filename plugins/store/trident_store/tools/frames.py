"""The frames of one segment, on either side of damage: what checks, and where nothing does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_store.filesystem import FileSystem, read
from trident_store.format import (
    FRAME_MAGIC,
    MAX_FRAME_EVENTS,
    MAX_PAYLOAD_BYTES,
    RECORD_BYTES,
    SEGMENT_MAGIC,
    Frame,
    FrameKind,
    Position,
    crc32c,
    decode_frame,
    decode_position,
    segment_name,
    segment_number,
    seq_problem,
)

#: Larger files are mapped instead of read.
_READ_MAX: Final = 1 << 30
_MAGIC: Final = int(np.frombuffer(FRAME_MAGIC, "<u4")[0])


class Stretch(NamedTuple):
    """Bytes of a segment: a frame whose header checks and names this place, or a gap (`frame` None)."""

    offset: int
    size: int
    frame: Frame | None


class Segment:
    """One segment's bytes, read as they are. Raises OSError when they cannot be read."""

    def __init__(self, files: FileSystem, folder: Path, number: int) -> None:
        self.number, self.name = number, segment_name(number)
        self.data = bytes_of(files, folder / self.name)

    def header(self) -> tuple[bytes, Position] | None:
        """(store id, where it continues the log), None when it does not check. Raises StoreError."""
        return decode_position(SEGMENT_MAGIC, self.data[:RECORD_BYTES].tobytes())

    def stretches(self, store_id: bytes) -> Iterator[Stretch]:
        """The segment behind its header, without a gap: frames, and what lies between them."""
        at = RECORD_BYTES
        while at < len(self.data):
            frame = self.frame_at(store_id, at)
            if frame is not None:
                size = RECORD_BYTES + frame.payload_bytes
                yield Stretch(at, size, frame)
                at += size
                continue
            end = self._next(store_id, at + RECORD_BYTES)
            yield Stretch(at, end - at, None)
            at = end

    def frame_at(self, store_id: bytes, offset: int) -> Frame | None:
        """The frame whose header checks at `offset`, names this place and fits the file."""
        frame = decode_frame(store_id, self.data[offset : offset + RECORD_BYTES].tobytes())
        if frame is None or (frame.segment, frame.offset) != (self.number, offset):
            return None
        if frame.payload_bytes % RECORD_BYTES or frame.payload_bytes > MAX_PAYLOAD_BYTES:
            return None
        return frame if offset + RECORD_BYTES + frame.payload_bytes <= len(self.data) else None

    def payload(self, frame: Frame) -> NDArray[np.uint8] | None:
        """A frame's payload, None when it does not check."""
        data = self.data[frame.offset + RECORD_BYTES :][: frame.payload_bytes]
        return data if len(data) == frame.payload_bytes and crc32c(data) == frame.payload_crc else None

    def events(self, frame: Frame) -> Events | None:
        """The events of a frame that are provably those that were written; None when they are not."""
        if frame.kind != FrameKind.EVENTS or not 0 < frame.count <= MAX_FRAME_EVENTS:
            return None
        data = self.payload(frame)
        if data is None or len(data) != frame.count * EVENT.itemsize:
            return None
        events = data.view(EVENT)
        return None if seq_problem(frame, events) else events

    def _next(self, store_id: bytes, start: int) -> int:
        """Where the next frame stands; the end of the file when there is none."""
        rows = self.data[: len(self.data) // 4 * 4].view("<u4")[:: RECORD_BYTES // 4]
        for row in np.flatnonzero(rows[start // RECORD_BYTES :] == _MAGIC):
            at = (start // RECORD_BYTES + int(row)) * RECORD_BYTES
            if self.frame_at(store_id, at) is not None:
                return at
        return len(self.data)


def bytes_of(files: FileSystem, path: Path) -> NDArray[np.uint8]:
    """All bytes of a file: u8[n]. Raises OSError."""
    handle = files.open(path)
    try:
        size = files.size(handle)
        return files.map(handle, size) if size > _READ_MAX else read(files, handle, size, 0)
    finally:
        files.close(handle)


def segment_numbers(names: list[str]) -> list[int]:
    """The numbers of the segments among file names, ascending."""
    return sorted(n for n in map(segment_number, names) if n is not None)
