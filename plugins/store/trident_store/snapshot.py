"""A view of the log up to a place: reads the segments again at each scan, checks every frame it uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Finding
from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError, UsageError
from trident_core.session import Session
from trident_store.filesystem import FileSystem, read
from trident_store.filters import Range, check_reference, conditions, join, naming, rebatch
from trident_store.format import (
    RECORD_BYTES,
    Frame,
    FrameKind,
    Position,
    contradiction,
    crc32c,
    decode_frame,
    segment_name,
    seq_problem,
)
from trident_store.survey import Extent, damage


class LogSnapshot:
    """The first `count` events of a store; never changes, whatever the writer does. Usable in any thread,
    and after the store is closed."""

    def __init__(
        self,
        files: FileSystem,
        folder: Path,
        store_id: bytes,
        extents: Sequence[Extent],
        session: Session,
        end: Position,
    ) -> None:
        self.session = session
        self.count = end.ordinal
        self.last_seq = end.last_seq
        self._files, self._folder, self._store_id = files, folder, store_id
        self._extents = tuple(extents)
        self._closed = False

    def scan(
        self,
        *,
        seq: Range = (None, None),
        ts: Range = (None, None),
        locates: Sequence[int] | NDArray[Any] | None = None,
        types: bytes | None = None,
        batch: int = 65_536,
    ) -> Iterator[Events]:
        """See `trident_core.contracts.Snapshot.scan`. The arrays are the caller's own.

        Raises UsageError at once for a wrong argument; DamagedStoreError before it would yield an event of a
        frame that does not check.
        """
        self._require_open()
        where = conditions(seq, ts, locates, types, batch)
        return rebatch((where.pick(events) for events in self._frames(where.seq)), batch)

    def get(self, ref: int) -> Events:
        """Every event that names the order reference `ref`, or replaces an order by it (U), in append order.

        Reads the whole snapshot. Reference 0 means "no order": nothing names it. Raises UsageError unless
        0 <= ref < 2**64; DamagedStoreError as `scan` does.
        """
        self._require_open()
        check_reference(ref)
        found = [np.empty(0, EVENT)]
        if ref:
            found += (naming(events, ref) for events in self._frames((0, (1 << 64) - 1)))
        return join(found)

    def close(self) -> None:
        """Release. Idempotent; a scan under way may finish."""
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("the snapshot is closed", hint="take another one")

    def _frames(self, seq: tuple[int, int]) -> Iterator[Events]:
        """The events of each frame that may hold a seq of the closed range, in order."""
        here = Position()
        for extent in self._extents:
            here = here._replace(segment=extent.number, offset=RECORD_BYTES)
            name = segment_name(extent.number)
            try:
                handle = self._files.open(self._folder / name)
            except OSError as error:
                raise StoreError(f"cannot read {self._folder / name}: {error.strerror}") from error
            try:
                while here.offset < extent.end:
                    frame = self._header(handle, here)
                    here = frame.after()
                    if frame.kind != FrameKind.EVENTS or frame.last_seq < seq[0]:
                        continue
                    if frame.first_seq > seq[1]:
                        return
                    yield self._events(handle, frame)
            except OSError as error:
                raise StoreError(f"cannot read {self._folder / name}: {error.strerror}") from error
            finally:
                self._files.close(handle)

    def _header(self, handle: int, here: Position) -> Frame:
        data = read(self._files, handle, RECORD_BYTES, here.offset)
        frame = decode_frame(self._store_id, data.tobytes())
        problem = contradiction(frame, here) if frame else "a frame's header does not check"
        if frame is None or problem:
            name = segment_name(here.segment)
            raise damage(Finding(name, here.offset, here.ordinal, self.count - 1, problem))
        return frame

    def _events(self, handle: int, frame: Frame) -> Events:
        payload = read(self._files, handle, frame.payload_bytes, frame.offset + RECORD_BYTES)
        if len(payload) < frame.payload_bytes or crc32c(payload) != frame.payload_crc:
            problem = "a frame's payload does not check"
        else:
            problem = seq_problem(frame, payload.view(EVENT))
        if problem:
            last = frame.ordinal + frame.count - 1
            raise damage(Finding(segment_name(frame.segment), frame.offset, frame.ordinal, last, problem))
        return payload.view(EVENT)
