"""The bytes of a store's log: docs/store-format.md in code. Everything is little-endian.

A store is a folder of segments (`00000000.seg`, …) and a small file `durable`. A segment is one 64-byte
header, then frames; a frame is a 64-byte header and its payload, a multiple of 64 bytes. `durable` has two
slots that are written in turns and say how far the log is known to be durable: the *mark*. Before the mark
nothing may be amiss; after it a crash explains anything, but for what stands before a settled frame. Minor
versions are sums: 1 puts tables in the place of the log's first segments (`trident_store.lsm.layout`), with 2
the mark may trail behind what was acknowledged, and segments' files are used again.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any, Final, NamedTuple

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError, UsageError
from trident_core.session import Instrument

VERSION: Final = (1, 3)  # the greatest that is read; a store says the least that its reader must know
TABLES: Final = 1  # in a minor version: there are tables
TRAILING: Final = 2  # in a minor version: the mark may trail, segments are used again, frames may be settled
RECORD_BYTES: Final = 64  # headers, events, and the alignment of everything
MAX_FRAME_EVENTS: Final = 4_096
MAX_FRAME_INSTRUMENTS: Final = 4_096
MAX_PAYLOAD_BYTES: Final = 16 << 20

SEGMENT_MAGIC: Final = b"TRIDSEGM"
MARK_MAGIC: Final = b"TRIDMARK"
FRAME_MAGIC: Final = b"TFRM"

MARK_NAME: Final = "durable"
SECTOR_BYTES: Final = 4_096  # what a power cut may spoil as a whole: a physical sector of today's disks
MARK_SLOT_BYTES: Final = 4_096  # one slot per sector, so that a torn write spoils only one
LOCK_NAME: Final = "lock"
_SETTLED: Final = 1 << 8  # in a frame's kind

_POSITION: Final = struct.Struct("<8sHHI16sQQQI")
_FRAME: Final = struct.Struct("<4sHHIIQQQIIQI")
_CRC: Final = struct.Struct("<I")


class FrameKind(IntEnum):
    EVENTS = 1  # `count` EVENTs
    SESSION = 2  # JSON object: the session, without its directory; the first frame of a store
    DIRECTORY = 3  # JSON array of `count` instruments that the directory gained: [locate, symbol, details]
    PAD = 4  # zeros up to the next sector: what follows a sync never shares a sector with what was synced
    TABLES = 5  # in a manifest only: the tables, and where the log goes on
    JOB = 6  # in a compaction's job file only: its inputs, then what is done


class Position(NamedTuple):
    """A place in the log, between two frames: what stands before it.

    In a mark it is the place up to which the log is durable. In a segment's header it is the place where the
    segment before ended: `segment` is the segment's own number, `offset` the bytes of the one before.
    """

    segment: int = 0
    offset: int = 0
    ordinal: int = 0  # events before this place, so the ordinal of the next one
    last_seq: int = 0  # seq of the event before this place; 0 at the start
    epoch: int = 1  # how often the store had been opened for writing

    @property
    def place(self) -> tuple[int, int]:
        return self.segment, self.offset


class Frame(NamedTuple):
    """A frame's header. `segment` and `offset` say where the header itself stands."""

    kind: int
    count: int  # type: ignore[assignment]  # events or instruments; shadows tuple.count
    epoch: int
    ordinal: int
    first_seq: int
    last_seq: int
    payload_bytes: int
    payload_crc: int
    offset: int
    segment: int
    settled: bool = False  # what stands before it was durable when it was written

    def after(self) -> Position:
        """The place behind this frame."""
        events = self.count if self.kind == FrameKind.EVENTS else 0
        end = self.offset + RECORD_BYTES + self.payload_bytes
        return Position(self.segment, end, self.ordinal + events, self.last_seq, self.epoch)


def crc32c(data: bytes | NDArray[np.uint8], seed: int = 0) -> int:
    """CRC-32C (Castagnoli), continuing from `seed`."""
    return int(google_crc32c.extend(seed, data))


def segment_name(number: int) -> str:
    return f"{number:08d}.seg"


def segment_number(name: str) -> int | None:
    """The number of a segment's file name; None for any other name."""
    stem, _, extension = name.partition(".")
    return int(stem) if extension == "seg" and len(stem) == 8 and stem.isascii() and stem.isdigit() else None


def spare_name(number: int) -> str:
    """Of a file that was a segment and waits to be one again."""
    return f"{number:08d}.old"


def is_spare(name: str) -> bool:
    return name.endswith(".old") and segment_number(f"{name[:-4]}.seg") is not None


def encode_position(magic: bytes, store_id: bytes, at: Position, minor: int = 0) -> bytes:
    """A segment's header or a mark: 64 bytes. `minor`: of the format that a reader must know."""
    body = _POSITION.pack(
        magic, VERSION[0], minor, at.segment, store_id, at.ordinal, at.offset, at.last_seq, at.epoch
    )
    return body + _CRC.pack(crc32c(body))


def decode_position(magic: bytes, data: bytes) -> tuple[bytes, Position] | None:
    """(store id, position), or None when the bytes do not check. Raises StoreError for another version."""
    if len(data) != RECORD_BYTES or _CRC.unpack(data[60:])[0] != crc32c(data[:60]):
        return None
    found, major, minor, segment, store_id, ordinal, offset, last_seq, epoch = _POSITION.unpack(data[:60])
    if found != magic:
        return None
    if major != VERSION[0] or minor > VERSION[1]:
        age = "newer" if (major, minor) > VERSION else "older"
        raise StoreError(
            f"the store's format is {major}.{minor}, {age} than this Trident's {VERSION[0]}.{VERSION[1]}",
            hint="nothing was changed; use the Trident that wrote it",
        )
    return store_id, Position(segment, offset, ordinal, last_seq, epoch)


def minor_of(data: bytes) -> int:
    """The minor version in a record that `decode_position` has accepted."""
    return int(_POSITION.unpack(data[:60])[2])


def encode_frame(store_id: bytes, frame: Frame) -> bytes:
    """A frame's header: 64 bytes. Its CRC starts with the store's id: no other store's frame ever checks."""
    body = _FRAME.pack(
        FRAME_MAGIC,
        frame.kind | (_SETTLED if frame.settled else 0),
        RECORD_BYTES,
        frame.count,
        frame.epoch,
        frame.ordinal,
        frame.first_seq,
        frame.last_seq,
        frame.payload_bytes,
        frame.payload_crc,
        frame.offset,
        frame.segment,
    )
    return body + _CRC.pack(crc32c(body, crc32c(store_id)))


def decode_frame(store_id: bytes, data: bytes) -> Frame | None:
    """The header, or None when the bytes do not check."""
    if len(data) != RECORD_BYTES or data[:4] != FRAME_MAGIC:
        return None
    if _CRC.unpack(data[60:])[0] != crc32c(data[:60], crc32c(store_id)):
        return None
    _, kind, header_bytes, *rest = _FRAME.unpack(data[:60])
    known = kind & ~_SETTLED if header_bytes == RECORD_BYTES else 0
    return Frame(known, *rest)._replace(settled=bool(kind & _SETTLED))


def contradiction(frame: Frame, here: Position) -> str:
    """Why a frame whose header checks cannot stand at `here`; empty when it can. No crash explains these."""
    if (frame.segment, frame.offset) != here.place:
        return f"a frame of segment {frame.segment}, offset {frame.offset} stands in the wrong place"
    if frame.ordinal != here.ordinal:
        return f"a frame starts with event {frame.ordinal} where {here.ordinal} is due"
    if frame.epoch < here.epoch:
        return f"a frame of epoch {frame.epoch} follows one of epoch {here.epoch}"
    if frame.payload_bytes % RECORD_BYTES or frame.payload_bytes > MAX_PAYLOAD_BYTES:
        return f"a frame claims a payload of {frame.payload_bytes} bytes"
    if (frame.kind == FrameKind.SESSION) != (here.place == (0, RECORD_BYTES)):
        return "the session's frame is not the first one"
    if frame.kind == FrameKind.EVENTS:
        if not 0 < frame.count <= MAX_FRAME_EVENTS or frame.payload_bytes != frame.count * EVENT.itemsize:
            return f"a frame claims {frame.count} events in {frame.payload_bytes} bytes"
        if frame.first_seq <= here.last_seq or frame.last_seq - frame.first_seq < frame.count - 1:
            return f"seq does not grow: {frame.first_seq} to {frame.last_seq} after {here.last_seq}"
        return ""
    if frame.kind not in (FrameKind.SESSION, FrameKind.DIRECTORY, FrameKind.PAD):
        return f"a frame of unknown kind {frame.kind}"
    if frame.first_seq != here.last_seq or frame.last_seq != here.last_seq:
        return f"a frame claims seq {frame.last_seq} where {here.last_seq} is due"
    return ""


def pad_frame(here: Position, sector_bytes: int) -> tuple[Frame, bytes] | None:
    """The frame, and its payload, that fills the sector `here` stands in; None on a sector's boundary."""
    gap = -here.offset % sector_bytes
    if not gap:
        return None
    payload = bytes(gap - RECORD_BYTES)
    frame = Frame(
        kind=FrameKind.PAD,
        count=0,
        epoch=here.epoch,
        ordinal=here.ordinal,
        first_seq=here.last_seq,
        last_seq=here.last_seq,
        payload_bytes=len(payload),
        payload_crc=crc32c(payload),
        offset=here.offset,
        segment=here.segment,
    )
    return frame, payload


def seq_problem(frame: Frame, events: Events) -> str:
    """Why the events of a frame are not what its header says; empty when they are."""
    seq = events["seq"]
    if int(seq[0]) != frame.first_seq or int(seq[-1]) != frame.last_seq:
        return (
            f"the events have seq {seq[0]} to {seq[-1]}, the frame says {frame.first_seq} to {frame.last_seq}"
        )
    if not bool(np.all(seq[1:] > seq[:-1])):
        return "seq does not grow inside a frame"
    return ""


def encode_json(value: Any) -> bytes:
    """JSON in ASCII, filled with spaces to a multiple of 64 bytes. Raises TypeError or ValueError."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")
    return text + b" " * (-len(text) % RECORD_BYTES)


def encode_instruments(instruments: Iterable[Instrument]) -> bytes:
    return encode_json([[i.locate, i.symbol, dict(i.details)] for i in instruments])


def decode_instruments(payload: bytes) -> list[Instrument]:
    """Raises ValueError or TypeError when the JSON is not a list of instruments."""
    return [Instrument(int(locate), str(symbol), details) for locate, symbol, details in json.loads(payload)]


def instrument_payloads(new: list[Instrument]) -> Iterator[tuple[bytes, tuple[Instrument, ...]]]:
    """Directory frames' payloads, none larger than the format allows. Raises UsageError."""
    parts = [tuple(new[i : i + MAX_FRAME_INSTRUMENTS]) for i in range(0, len(new), MAX_FRAME_INSTRUMENTS)]
    while parts:
        part = parts.pop(0)
        try:
            payload = encode_instruments(part)
        except (TypeError, ValueError) as error:
            raise UsageError(f"an instrument's details cannot be stored: {error}") from None
        if len(payload) <= MAX_PAYLOAD_BYTES:
            yield payload, part
        elif len(part) > 1:
            parts[:0] = [part[: len(part) // 2], part[len(part) // 2 :]]
        else:
            raise UsageError(
                f"the details of {part[0].symbol!r} have more than {MAX_PAYLOAD_BYTES} bytes",
                hint="details are for what a venue says of a symbol",
            )
