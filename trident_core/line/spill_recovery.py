"""What a crash left of a spill goes into the store, as far as it continues it: a pure function of the disk.

No spilled event was ever acknowledged, so nothing that is left out was promised to anyone; and a frame is
only put behind the very event that it names, so what the store then holds is a prefix of what was fed,
without a gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Store
from trident_core.dtypes import EVENT, Events
from trident_core.filesystem import FileSystem, read
from trident_core.line.spill_format import (
    HEADER_BYTES,
    Frame,
    SpillKind,
    crc32c,
    decode_header,
    decode_instruments,
    event_crc,
    spill_name,
    spill_number,
)


class Merged(NamedTuple):
    """What became of a spill: `events` went into the store, `known` were there already; `left_out` do not
    continue it (the log before them was lost, or they were torn; 1 stands for a torn frame)."""

    events: int = 0
    known: int = 0
    left_out: int = 0
    files: int = 0


def left_files(files: FileSystem, folder: Path) -> list[int]:
    """The numbers of the spill files in a store's folder, ascending. Raises OSError."""
    return sorted(n for n in map(spill_number, files.list_directory(folder)) if n is not None)


def check_version(files: FileSystem, folder: Path) -> None:
    """Raises StoreError when there are spilled events of a format to come: before anything is written."""
    for number in left_files(files, folder):
        handle = files.open(folder / spill_name(number))
        try:
            decode_header(read(files, handle, HEADER_BYTES, 0).tobytes(), spill_name(number))
        finally:
            files.close(handle)


def merge_left(store: Store, files: FileSystem, folder: Path) -> Merged:
    """Append to `store`, just opened for writing, what the spill files in its folder have for it; sync; then
    remove them. Interrupted at any moment, it does the rest when it is called again.

    Raises StoreError and OSError as the store and the disk do, StoreError for a spill of a format to come.
    """
    numbers = left_files(files, folder)
    if not numbers:
        return Merged()
    check_version(files, folder)
    last = last_event(store)
    appended = known = left_out = 0
    for frame, payload in _frames(files, folder, numbers):
        if frame is None:
            left_out += 1
            continue
        if frame.kind == SpillKind.DIRECTORY:
            for instrument in decode_instruments(payload.tobytes()) if _behind(frame, last) else ():
                store.session.directory.put(instrument)
            continue
        events = payload.view(EVENT)
        there = _already_there(frame, events, last)
        if there is None:
            left_out += len(events)
            continue
        known += there
        if there < len(events):
            store.append(events[there:])
            appended += len(events) - there
            last = events[-1:].copy()
    store.sync()
    for number in numbers:
        files.remove(folder / spill_name(number))
    files.sync_directory(folder)
    return Merged(appended, known, left_out, len(numbers))


def last_event(store: Store) -> Events | None:
    """EVENT[1]: the store's last one; None when it is empty."""
    last = store.stats()["last_seq"]
    snapshot = store.snapshot()
    try:
        return next((events.copy() for events in snapshot.scan(seq=(last, last))), None)
    finally:
        snapshot.close()


def _behind(frame: Frame, last: Events | None) -> bool:
    """Does the frame come before what the store would get next, or right behind it?"""
    end = int(last["seq"][0]) if last is not None else 0
    return frame.before_seq < end or (frame.before_seq, frame.before_crc) == (end, event_crc(last))


def _already_there(frame: Frame, events: Events, last: Events | None) -> int | None:
    """How many of the frame's events the store has; None when the frame does not continue it."""
    end = int(last["seq"][0]) if last is not None else 0
    if frame.last_seq < end:
        return len(events)
    if frame.before_seq == end:
        return 0 if frame.before_crc == event_crc(last) else None
    at = int(np.searchsorted(events["seq"], end))
    same = frame.before_seq < end and last is not None and events[at : at + 1].tobytes() == last.tobytes()
    return at + 1 if same else None


def _frames(
    files: FileSystem, folder: Path, numbers: list[int]
) -> Iterator[tuple[Frame | None, NDArray[np.uint8]]]:
    """The frames of each file in order, up to the first that does not check, which is (None, nothing)."""
    for number in numbers:
        name, offset = spill_name(number), 0
        handle = files.open(folder / name)
        try:
            size = files.size(handle)
            while offset < size:
                frame = decode_header(read(files, handle, HEADER_BYTES, offset).tobytes(), name)
                payload = read(files, handle, frame.payload_bytes if frame else 0, offset + HEADER_BYTES)
                if frame is None or not _sound(frame, payload):
                    yield None, payload
                    break
                yield frame, payload
                offset += HEADER_BYTES + frame.payload_bytes
        finally:
            files.close(handle)


def _sound(frame: Frame, payload: NDArray[np.uint8]) -> bool:
    if len(payload) != frame.payload_bytes or crc32c(payload) != frame.payload_crc:
        return False
    if frame.kind == SpillKind.DIRECTORY:
        try:
            decode_instruments(payload.tobytes())
        except (ValueError, TypeError):
            return False
    return True
