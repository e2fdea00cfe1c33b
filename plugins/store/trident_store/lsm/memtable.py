"""The memtable: the events of sealed segments, in memory while a table is made of them.

The log is the only place where events wait for a table, so that what waits is bounded by the disk and not by
memory, what becomes a table has just been checked against its CRCs, and the writer never waits for a flush.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trident_core.dtypes import EVENT, Events
from trident_core.session import Instrument
from trident_store.filesystem import FileSystem, OpenFile, read
from trident_store.format import (
    RECORD_BYTES,
    SEGMENT_MAGIC,
    FrameKind,
    Position,
    decode_instruments,
    decode_position,
)
from trident_store.found import Extent
from trident_store.logfiles import LogPart


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
    for frame, file in log.frames():
        if frame.kind == FrameKind.EVENTS:
            words[done : done + frame.count] = log.payload(frame, file).view(np.uint64).reshape(-1, 8)
            done += frame.count
        elif frame.kind == FrameKind.DIRECTORY:
            instruments += decode_instruments(log.payload(frame, file).tobytes())
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
