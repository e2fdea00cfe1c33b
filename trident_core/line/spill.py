"""The raw spill: a queue of events on the disk, for when the store cannot take them as fast as they come.

Written by the thread that watches the ring, read by the thread of the store; whoever calls holds one lock for
both. Nothing here is synced and nothing is acknowledged: an event counts as durable when the store has synced
it, and a spill file is removed only then. What a crash leaves of it, `spill_recovery` puts into the store.
"""

from __future__ import annotations

import contextlib
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError
from trident_core.filesystem import FileSystem, read, write_all
from trident_core.line.spill_format import (
    HEADER_BYTES,
    PAYLOAD_BYTES_MAX,
    Frame,
    SpillKind,
    crc32c,
    decode_header,
    encode_header,
    encode_instruments,
    event_crc,
    spill_name,
    spill_number,
)
from trident_core.session import Instrument, Session

FILE_BYTES: Final = 64 << 20


@dataclass(slots=True)
class _File:
    number: int
    handle: int
    end: int = 0  # bytes written


class Spill:
    """Events in the order of `put`, in files of about `file_bytes` in the store's folder.

    `pending` counts those not taken yet, `events`, `bytes` and `peak_events` what went through. Methods raise
    OSError when the disk refuses; after a `put` that failed the queue still gives out what it has, and takes
    nothing more.
    """

    def __init__(
        self, files: FileSystem, folder: Path, session: Session, *, file_bytes: int = FILE_BYTES
    ) -> None:
        self.pending = self.events = self.bytes = self.peak_events = self.files_made = 0
        self._files, self._folder, self._session, self._file_bytes = files, folder, session, file_bytes
        self._queue: deque[_File] = deque()  # the last one is written, the first one read
        self._finished: deque[_File] = deque()  # read to the end; removed when the store has synced
        self._read_at = 0
        self._frames = 0
        self._taken: Events = np.zeros(0, EVENT)  # of the frame being given out
        self._known: dict[int, Instrument] = {}  # symbols that the store, or a frame, has
        self._known_version = -1

    def note_symbols(self) -> None:
        """The store is about to record the directory as it is now: no frame need repeat it."""
        if self._known_version != self._session.directory.version:
            self._gained()

    def put(self, events: Events, before: Events | None) -> None:
        """Add events (at least one) behind `before`, EVENT[1]: what left the ring just before them.

        New symbols stand before them in the same file: a power cut that takes one file and leaves the next
        must not leave events without their symbols.
        """
        before_seq = int(before["seq"][0]) if before is not None and len(before) else 0
        before_crc = event_crc(before)
        if not self._queue or self._queue[-1].end >= self._file_bytes:
            self._queue.append(self._begin())
        if self._known_version != self._session.directory.version:
            for part in _parts(self._gained()):
                frame = Frame(
                    SpillKind.DIRECTORY, part[0], len(part[1]), 0, before_seq, before_seq, before_seq,
                    before_crc, crc32c(part[1]), 0,
                )  # fmt: skip
                self._write(frame, part[1])
        payload = events.view(np.uint8).data
        first, last = int(events["seq"][0]), int(events["seq"][-1])
        frame = Frame(
            SpillKind.EVENTS, len(events), len(payload), 0, before_seq, first, last, before_crc,
            crc32c(payload), 0,
        )  # fmt: skip
        self._write(frame, payload)
        self.pending += len(events)
        self.events += len(events)
        self.peak_events = max(self.peak_events, self.pending)

    def take(self, out: Events) -> int:
        """Move the oldest events into `out`; how many. Raises StoreError when the file does not check."""
        if not len(self._taken) and self.pending:
            self._taken = self._next_events()
        count = min(len(out), len(self._taken))
        out[:count] = self._taken[:count]
        self._taken = self._taken[count:]
        self.pending -= count
        return count

    def release(self) -> None:
        """The store has synced all that was taken: remove the files of which nothing is left."""
        if not self.pending:
            self._finished.extend(self._queue)
            self._queue.clear()
            self._read_at = 0
        while self._finished:
            file = self._finished.popleft()
            with contextlib.suppress(OSError):  # what stays is found to be in the store at the next opening
                self._files.close(file.handle)
                self._files.remove(self._folder / spill_name(file.number))

    def close(self) -> None:
        """Close the files, and leave them. Idempotent."""
        for file in (*self._finished, *self._queue):
            with contextlib.suppress(OSError):
                self._files.close(file.handle)
        self._finished.clear()
        self._queue.clear()

    # -- writing --

    def _gained(self) -> list[Instrument]:
        self._known_version = self._session.directory.version
        now = {each.locate: each for each in self._session.directory}
        gained = [each for locate, each in now.items() if self._known.get(locate) is not each]
        self._known = now
        return gained

    def _write(self, frame: Frame, payload: bytes | memoryview) -> None:
        file = self._queue[-1]
        header = encode_header(frame._replace(number=self._frames, file=file.number))
        write_all(self._files, file.handle, header, file.end)
        write_all(self._files, file.handle, payload, file.end + HEADER_BYTES)
        file.end += HEADER_BYTES + len(payload)
        self._frames += 1
        self.bytes += HEADER_BYTES + len(payload)

    def _begin(self) -> _File:
        numbers = [spill_number(name) for name in self._files.list_directory(self._folder)]
        number = max([n for n in numbers if n is not None], default=0) + 1
        handle = self._files.open(self._folder / spill_name(number), write=True, create=True)
        self.files_made += 1
        return _File(number, handle)

    # -- reading --

    def _next_events(self) -> Events:
        while True:
            file = self._queue[0]
            if self._read_at >= file.end and len(self._queue) > 1:
                self._finished.append(self._queue.popleft())
                self._read_at = 0
                continue
            name = spill_name(file.number)
            frame = decode_header(read(self._files, file.handle, HEADER_BYTES, self._read_at).tobytes(), name)
            payload = read(
                self._files, file.handle, frame.payload_bytes if frame else 0, self._read_at + HEADER_BYTES
            )
            if frame is None or crc32c(payload) != frame.payload_crc:
                raise StoreError(
                    f"{self._folder / name}: events at offset {self._read_at} were changed on the disk",
                    hint="what the store has is sound; go on with --resume",
                )
            self._read_at += HEADER_BYTES + len(payload)
            if frame.kind == SpillKind.EVENTS:
                return payload.view(EVENT)


def _parts(instruments: list[Instrument]) -> list[tuple[int, bytes]]:
    """(count, payload) of frames that hold the instruments, none larger than a frame may be."""
    payload = encode_instruments(instruments)
    if len(payload) <= PAYLOAD_BYTES_MAX or len(instruments) == 1:
        return [(len(instruments), payload)] if instruments else []
    half = len(instruments) // 2
    return _parts(instruments[:half]) + _parts(instruments[half:])
