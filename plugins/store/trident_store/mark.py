"""The file `durable`: two slots, written in turns, that say how far the log is known to be durable."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from trident_store.filesystem import FileSystem, read, write_all
from trident_store.format import (
    MARK_MAGIC,
    MARK_NAME,
    MARK_SLOT_BYTES,
    RECORD_BYTES,
    Position,
    decode_position,
    encode_position,
    minor_of,
)

_TRIES: Final = 3


class Mark(NamedTuple):
    """What `durable` says. `at` is None when neither slot checks or the file is missing."""

    store_id: bytes
    at: Position | None
    bad_slots: tuple[int, ...]
    next_slot: int  # the slot to write next: a bad one, else the older
    minor: int = 0  # of the format: `format.TABLES`, `format.TRAILING` or both


def read_mark(files: FileSystem, folder: Path, *, forget: bool = False) -> Mark:
    """Read both slots, `forget`: from the disk rather than the cache. A slot that does not check is read
    again, for a writer may be at it. Raises StoreError for another version, OSError but for a missing file.
    """
    for _ in range(_TRIES - 1):
        mark = _read_mark(files, folder, forget)
        if not mark.bad_slots:
            return mark
    return _read_mark(files, folder, forget)


def _read_mark(files: FileSystem, folder: Path, forget: bool) -> Mark:
    try:
        handle = files.open(folder / MARK_NAME)
    except FileNotFoundError:
        return Mark(b"", None, (0, 1), 0)
    try:
        if forget:
            files.forget(handle)
        slots = [_read_slot(files, handle, slot) for slot in (0, 1)]
    finally:
        files.close(handle)
    good = [(found, slot) for slot, found in enumerate(slots) if found]
    bad = tuple(slot for slot, found in enumerate(slots) if not found)
    if not good:
        return Mark(b"", None, bad, 0)
    (at, minor, store_id), slot = max(good, key=lambda item: (item[0][0].place, item[0][0].epoch, item[0][1]))
    return Mark(store_id, at, bad, 1 - slot, minor)


def _read_slot(files: FileSystem, handle: int, slot: int) -> tuple[Position, int, bytes] | None:
    """(position, minor version, store id), or None when the slot does not check."""
    data = read(files, handle, MARK_SLOT_BYTES, slot * MARK_SLOT_BYTES)
    # The rest of a slot is zero: a sector that is not was spoiled, one that is missing was cut off.
    if len(data) < MARK_SLOT_BYTES or data[RECORD_BYTES:].any():
        return None
    record = data[:RECORD_BYTES].tobytes()
    found = decode_position(MARK_MAGIC, record)
    return None if found is None else (found[1], minor_of(record), found[0])


def write_slot(
    files: FileSystem, handle: int, slot: int, store_id: bytes, at: Position, minor: int = 0, *,
    sync: bool = True,
) -> None:  # fmt: skip
    """Write one slot and, unless told otherwise, make it durable. Raises OSError."""
    data = encode_position(MARK_MAGIC, store_id, at, minor).ljust(MARK_SLOT_BYTES, b"\0")
    write_all(files, handle, data, slot * MARK_SLOT_BYTES)
    if sync:
        files.sync(handle)
