"""The log's frames, read through files that stay open: a segment that is removed stays readable."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Finding
from trident_core.dtypes import EVENT
from trident_core.errors import StoreError
from trident_store.filesystem import FileSystem, OpenFile, read
from trident_store.format import (
    RECORD_BYTES,
    Frame,
    FrameKind,
    Position,
    contradiction,
    crc32c,
    decode_frame,
    segment_name,
    segment_number,
    seq_problem,
)
from trident_store.found import Extent, damage


class LogPart(NamedTuple):
    """Consecutive segments up to a place; `start` is where the first one continues the store."""

    files: FileSystem
    store_id: bytes
    start: Position
    segments: tuple[tuple[Extent, OpenFile], ...]
    end: Position

    def frames(self) -> Iterator[tuple[Frame, OpenFile]]:
        """The headers of all frames, in order. Raises DamagedStoreError, StoreError."""
        here = self.start
        for extent, file in self.segments:
            here = here._replace(segment=extent.number, offset=RECORD_BYTES)
            while here.offset < extent.end:
                frame = self.header(file, here)
                here = frame.after()
                yield frame, file

    def payload(self, frame: Frame, file: OpenFile) -> NDArray[np.uint8]:
        """A frame's payload. Raises DamagedStoreError when it does not check, StoreError."""
        payload = self._read(file, frame.segment, frame.payload_bytes, frame.offset + RECORD_BYTES)
        problem = ""
        if len(payload) < frame.payload_bytes or crc32c(payload) != frame.payload_crc:
            problem = "a frame's payload does not check"
        elif frame.kind == FrameKind.EVENTS:
            problem = seq_problem(frame, payload.view(EVENT))
        if problem:
            last = frame.ordinal + max(frame.count, 1) - 1
            raise damage(Finding(segment_name(frame.segment), frame.offset, frame.ordinal, last, problem))
        return payload

    def header(self, file: OpenFile, here: Position) -> Frame:
        """The header that stands at `here`. Raises DamagedStoreError when it does not check, StoreError."""
        data = self._read(file, here.segment, RECORD_BYTES, here.offset)
        frame = decode_frame(self.store_id, data.tobytes())
        problem = contradiction(frame, here) if frame else "a frame's header does not check"
        if frame is None or problem:
            name = segment_name(here.segment)
            raise damage(Finding(name, here.offset, here.ordinal, self.end.ordinal - 1, problem))
        return frame

    def _read(self, file: OpenFile, segment: int, size: int, offset: int) -> NDArray[np.uint8]:
        try:
            return read(self.files, file.handle, size, offset)
        except OSError as error:
            raise StoreError(f"cannot read {segment_name(segment)}: {error.strerror or error}") from error


class LogFiles:
    """The open segments of one store: each is opened once, for all snapshots that need it."""

    def __init__(self, files: FileSystem, folder: Path) -> None:
        self._files, self._folder = files, folder
        self._open: WeakValueDictionary[int, OpenFile] = WeakValueDictionary()

    def part(self, store_id: bytes, start: Position, extents: Sequence[Extent], end: Position) -> LogPart:
        """The log from `start` to `end`. Raises OSError when a segment cannot be opened."""
        segments = tuple((extent, self._file(extent.number)) for extent in extents)
        return LogPart(self._files, store_id, start, segments, end)

    def hold(self) -> list[OpenFile]:
        """Open every segment that there is now: what a walk finds later cannot go away while this is held."""
        held = []
        for number in (segment_number(name) for name in self._files.list_directory(self._folder)):
            with contextlib.suppress(FileNotFoundError):
                if number is not None:
                    held.append(self._file(number))
        return held

    def _file(self, number: int) -> OpenFile:
        file = self._open.get(number)
        if file is None:
            file = self._open[number] = OpenFile(self._files, self._folder / segment_name(number))
        return file
