"""The bytes of a spill file (docs/line.md): frames of events and of symbols, each held by its CRCs.

A frame names the event that stood before it by sequence number and CRC, so that it can only ever be put
behind that event: in another store, or behind a gap, it does not fit.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final, NamedTuple

import google_crc32c
import numpy as np

from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError
from trident_core.session import Instrument

MAGIC: Final = b"TSPL"
MAJOR: Final = 1
HEADER_BYTES: Final = 64
#: Payloads of a frame: 2^16 events, or the details of symbols.
PAYLOAD_BYTES_MAX: Final = 64 << 20

_HEADER: Final = struct.Struct("<4sHHIIQQQQIII")
_CRC: Final = struct.Struct("<I")
_NAME: Final = re.compile(r"([0-9]{8})\.spill")


class SpillKind(IntEnum):
    EVENTS = 1
    DIRECTORY = 2


class Frame(NamedTuple):
    """A frame's header. `before_seq`, `before_crc`: of the event before it (0, 0: there is none)."""

    kind: int
    count: int  # type: ignore[assignment]  # shadows tuple.count
    payload_bytes: int
    number: int
    before_seq: int
    first_seq: int
    last_seq: int
    before_crc: int
    payload_crc: int
    file: int


def spill_name(number: int) -> str:
    return f"{number:08d}.spill"


def spill_number(name: str) -> int | None:
    """The number in a spill file's name; None for any other name."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def crc32c(data: Any) -> int:
    return int(google_crc32c.extend(0, np.frombuffer(data, np.uint8)))


def event_crc(event: Events | None) -> int:
    """CRC of EVENT[1]; 0 when there is none."""
    return crc32c(event.tobytes()) if event is not None and len(event) else 0


def encode_header(frame: Frame) -> bytes:
    body = _HEADER.pack(
        MAGIC, frame.kind, MAJOR, frame.count, frame.payload_bytes, frame.number, frame.before_seq,
        frame.first_seq, frame.last_seq, frame.before_crc, frame.payload_crc, frame.file,
    )  # fmt: skip
    return body + _CRC.pack(crc32c(body))


def decode_header(data: bytes, name: str) -> Frame | None:
    """The header in 64 bytes; None when they are none, or of another file. Raises StoreError for a frame of
    a version to come, whose events must not be taken for a torn tail."""
    if len(data) < HEADER_BYTES or data[:4] != MAGIC or _CRC.unpack(data[60:64])[0] != crc32c(data[:60]):
        return None
    _, kind, major, *rest = _HEADER.unpack(data[:60])
    if major != MAJOR:
        raise StoreError(
            f"{name} has spilled events in format {major}, this version knows {MAJOR}",
            hint="open the store with the version of Trident that wrote it",
        )
    frame = Frame(kind, *rest)
    sound = frame.payload_bytes <= PAYLOAD_BYTES_MAX and spill_number(name) == frame.file
    if frame.kind == SpillKind.EVENTS:
        sound = sound and frame.count >= 1 and frame.payload_bytes == frame.count * EVENT.itemsize
    return frame if sound and frame.kind in tuple(SpillKind) else None


def encode_instruments(instruments: Iterable[Instrument]) -> bytes:
    """JSON, filled up with blanks to a multiple of 64 bytes."""
    rows = [[each.locate, each.symbol, dict(each.details)] for each in instruments]
    text = json.dumps(rows, separators=(",", ":")).encode("ascii")
    return text.ljust(-(-len(text) // 64) * 64)


def decode_instruments(data: bytes) -> list[Instrument]:
    return [Instrument(int(locate), str(symbol), details) for locate, symbol, details in json.loads(data)]
