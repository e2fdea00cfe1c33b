"""The file `durable` of a block store: two slots, written in turns, that say how far it is durable.

The engines underneath lose a damaged tail without a word (RocksDB's log, LMDB's last meta page); against what
stands here it shows.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final, NamedTuple

from trident_core.errors import StoreError
from trident_store.blocks.format import VERSION, End
from trident_store.filesystem import FileSystem, read, write_all
from trident_store.format import crc32c

MARK_NAME: Final = "durable"
SLOT_BYTES: Final = 4_096
_MAGIC: Final = b"TBLKMARK"
_SLOT: Final = struct.Struct("<8sHHI16sQQQQQQ")
_CRC: Final = struct.Struct("<I")
_TRIES: Final = 3


class Mark(NamedTuple):
    """What is durable. `hint` is the engine's own note; `turn` counts the writes, and says in which slot."""

    store_id: bytes
    end: End
    hint: int
    turn: int


class Marks(NamedTuple):
    """What `durable` says: the later of the good slots (None: there is none), and the slots that are bad."""

    mark: Mark | None
    bad_slots: tuple[int, ...]
    missing: bool = False


def read_marks(files: FileSystem, folder: Path) -> Marks:
    """Read both slots; one that does not check is read again, for a writer may be at it.

    Raises StoreError for another format version, OSError but for a missing file.
    """
    found = _read_marks(files, folder)
    for _ in range(_TRIES - 1):
        if not found.bad_slots:
            break
        found = _read_marks(files, folder)
    return found


def _read_marks(files: FileSystem, folder: Path) -> Marks:
    try:
        handle = files.open(folder / MARK_NAME)
    except FileNotFoundError:
        return Marks(None, (0, 1), missing=True)
    try:
        slots = [_decode(read(files, handle, SLOT_BYTES, n * SLOT_BYTES).tobytes()) for n in (0, 1)]
    finally:
        files.close(handle)
    good = [slot for n, slot in enumerate(slots) if slot is not None and slot.turn % 2 == n]
    bad = tuple(n for n, slot in enumerate(slots) if slot is None or slot.turn % 2 != n)
    return Marks(max(good, key=lambda slot: slot.turn) if good else None, bad)


def _decode(data: bytes) -> Mark | None:
    size = _SLOT.size
    if len(data) < SLOT_BYTES or _CRC.unpack_from(data, size)[0] != crc32c(data[:size]):
        return None
    magic, major, minor, chain, store_id, *end, hint, turn = _SLOT.unpack_from(data)
    if magic != _MAGIC or any(data[size + _CRC.size :]):  # the rest of a slot is zero
        return None
    if major != VERSION[0] or minor > VERSION[1]:
        age = "newer" if (major, minor) > VERSION else "older"
        raise StoreError(
            f"the store's format is {major}.{minor}, {age} than this Trident's {VERSION[0]}.{VERSION[1]}",
            hint="nothing was changed; use the Trident that wrote it",
        )
    return Mark(store_id, End._make((*end[:3], chain, end[3])), hint, turn)


def write_mark(files: FileSystem, handle: int, mark: Mark) -> None:
    """Write the slot that is due and make it durable. Raises OSError."""
    end = mark.end
    data = _SLOT.pack(
        _MAGIC, *VERSION, end.chain, mark.store_id, end.blocks, end.ordinal, end.last_seq, end.meta,
        mark.hint, mark.turn,
    )  # fmt: skip
    data += _CRC.pack(crc32c(data))
    write_all(files, handle, data.ljust(SLOT_BYTES, b"\0"), mark.turn % 2 * SLOT_BYTES)
    files.sync(handle)
