"""The memtable: the events of sealed segments, in memory while a table is made of them.

The log is the only place where events wait for a table, so that what waits is bounded by the disk and not by
memory, what becomes a table has just been checked against its CRCs, and the writer never waits for a flush.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError
from trident_core.session import Instrument
from trident_store.filesystem import FileSystem, OpenFile, read
from trident_store.format import (
    RECORD_BYTES,
    SEGMENT_MAGIC,
    FrameKind,
    Position,
    decode_instruments,
    decode_position,
    segment_name,
)
from trident_store.found import Extent
from trident_store.logfiles import LogPart
from trident_store.lsm.walk import Walker


class Memtable(NamedTuple):
    """Events in append order, and what the directory gained among them."""

    events: Events
    instruments: list[Instrument]


def load(log: LogPart) -> Memtable:
    """All of a part of the log. Raises DamagedStoreError when a frame does not check, StoreError."""
    events = np.empty(log.end.ordinal - log.start.ordinal, EVENT)
    words = events.view(np.uint64).reshape(-1, 8)
    instruments: list[Instrument] = []
    done = 0
    here = log.start
    for extent, file in log.segments:
        here = here._replace(segment=extent.number, offset=RECORD_BYTES)
        walker = Walker(log.files, file.handle, extent.number, extent.end, log.store_id)
        while here.offset < extent.end:
            try:
                here = walker.pass_over(here, 0, words, done)
            except OSError as error:
                raise StoreError(f"cannot read {segment_name(extent.number)}: {error.strerror}") from error
            done = here.ordinal - log.start.ordinal
            if here.offset >= extent.end:
                break
            frame = log.header(file, here)  # of another kind, or one that does not check
            payload = log.payload(frame, file)
            if frame.kind == FrameKind.EVENTS:
                words[done : done + frame.count] = payload.view(np.uint64).reshape(-1, 8)
                done += frame.count
            elif frame.kind == FrameKind.DIRECTORY:
                instruments += decode_instruments(payload.tobytes())
            here = frame.after()
    return Memtable(events, instruments)


def start_of(files: FileSystem, file: OpenFile, store_id: bytes) -> Position | None:
    """What a segment's header says; None when it does not check."""
    header = decode_position(SEGMENT_MAGIC, read(files, file.handle, RECORD_BYTES, 0).tobytes())
    return header[1] if header is not None and header[0] == store_id else None


def next_batch(sealed: tuple[Extent, ...], nbytes: int) -> tuple[Extent, ...]:
    """The first sealed segments, as many as have `nbytes` bytes together; at least one if there is any."""
    total = 0
    for i, extent in enumerate(sealed):
        total += extent.end
        if i and total > nbytes:
            return sealed[:i]
    return sealed
