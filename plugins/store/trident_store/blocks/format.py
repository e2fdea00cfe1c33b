"""The bytes of a block store, version 1.0: docs/store-engines.md in code. Everything is little-endian.

A block is a header of 64 bytes and its payload, and is the value of one key, its number. Blocks count from 0
without a gap; each names the CRC of the one before, so that none can be lost, doubled or swapped unseen.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.session import Instrument, Session
from trident_store.format import FrameKind, crc32c, decode_instruments

VERSION: Final = (1, 0)
HEADER_BYTES: Final = 64
MAX_BLOCK_EVENTS: Final = 4_096
MAX_PAYLOAD_BYTES: Final = 16 << 20
BLOCK_MAGIC: Final = b"TBLK"

_HEADER: Final = struct.Struct("<4sHHIIQQQQIII")
_CRC: Final = struct.Struct("<I")


class End(NamedTuple):
    """A place between two blocks: what stands before it."""

    blocks: int = 0
    ordinal: int = 0  # events before this place
    last_seq: int = 0  # of the event before this place; 0 at the start
    chain: int = 0  # CRC of the block before this place; 0 at the start
    meta: int = 0  # number of the last session or directory block before this place


class Block(NamedTuple):
    """A block's header."""

    kind: int
    version: int
    count: int  # type: ignore[assignment]  # events or instruments; shadows tuple.count
    chain: int  # `crc` of the block before
    number: int
    ordinal: int
    first_seq: int
    last_seq: int
    meta: int
    payload_bytes: int
    payload_crc: int
    crc: int

    def after(self) -> End:
        """The place behind this block."""
        is_events = self.kind == FrameKind.EVENTS
        events, meta = (self.count, self.meta) if is_events else (0, self.number)
        return End(self.number + 1, self.ordinal + events, self.last_seq, self.crc, meta)


def key_of(number: int) -> bytes:
    """The key of a block: its number, big-endian, so that keys sort as numbers do."""
    return number.to_bytes(8, "big")


def encode_block(
    store_id: bytes, here: End, kind: FrameKind, count: int, first: int, last: int, payload: bytes
) -> tuple[bytes, End]:
    """A block that stands at `here`, and the place behind it. Events have seq `first` to `last`."""
    header = _HEADER.pack(
        BLOCK_MAGIC, kind, VERSION[0], count, here.chain, here.blocks, here.ordinal, first, last,
        here.meta, len(payload), crc32c(payload),
    )  # fmt: skip
    crc = crc32c(header, crc32c(store_id))
    is_events = kind == FrameKind.EVENTS
    meta = here.meta if is_events else here.blocks
    end = End(here.blocks + 1, here.ordinal + (count if is_events else 0), last, crc, meta)
    return b"".join((header, _CRC.pack(crc), payload)), end


def decode_block(store_id: bytes, value: bytes, number: int) -> tuple[Block | None, str]:
    """The header of the block that was found at `number`, and why it cannot be it (empty when it can).

    Everything but its place in the chain and the meaning of its payload is checked.
    """
    if len(value) < HEADER_BYTES or value[:4] != BLOCK_MAGIC:
        return None, "the block's header does not check"
    crc = _CRC.unpack_from(value, HEADER_BYTES - 4)[0]
    if crc != crc32c(value[: HEADER_BYTES - 4], crc32c(store_id)):
        return None, "the block's header does not check, or is another store's"
    _, *fields = _HEADER.unpack_from(value)
    block = Block._make((*fields, crc))
    if block.number != number:
        return None, f"block {block.number} stands in the place of block {number}"
    if block.version != VERSION[0]:
        return None, f"the block's version is {block.version}, this Trident's {VERSION[0]}"
    payload = np.frombuffer(value, np.uint8)[HEADER_BYTES : HEADER_BYTES + block.payload_bytes]
    if len(payload) < block.payload_bytes or crc32c(payload) != block.payload_crc:
        return block, "the block's payload does not check"
    return block, _shape_problem(block)


def _shape_problem(block: Block) -> str:
    if block.kind == FrameKind.EVENTS:
        if not 0 < block.count <= MAX_BLOCK_EVENTS or block.payload_bytes != block.count * EVENT.itemsize:
            return f"the block claims {block.count} events in {block.payload_bytes} bytes"
        if block.first_seq < 1 or block.last_seq - block.first_seq < block.count - 1:
            return f"seq does not grow in the block: {block.first_seq} to {block.last_seq}"
        return ""
    if block.kind not in (FrameKind.SESSION, FrameKind.DIRECTORY):
        return f"the block is of unknown kind {block.kind}"
    if (block.kind == FrameKind.SESSION) != (block.number == 0):
        return "the session's block is not the first one"
    return ""


def chain_problem(block: Block, here: End) -> str:
    """Why a sound block cannot stand at `here`; empty when it can."""
    if block.chain != here.chain or block.meta != here.meta:
        return "the block does not continue the one before it"
    if block.ordinal != here.ordinal:
        return f"the block starts with event {block.ordinal} where {here.ordinal} is due"
    first = block.first_seq if block.kind == FrameKind.EVENTS else block.first_seq + 1
    if first <= here.last_seq:
        return f"seq does not grow: {block.first_seq} to {block.last_seq} after {here.last_seq}"
    return ""


def events_of(value: bytes, block: Block) -> Events:
    """The events of a checked block: EVENT[count], an array of the caller's own."""
    payload = np.frombuffer(value, np.uint8, block.payload_bytes, HEADER_BYTES)
    return payload.copy().view(EVENT)


def session_of(value: bytes, block: Block) -> Session:
    """The session of a checked block 0. Raises ValueError, TypeError or UsageError."""
    return Session.from_json(json.loads(_text(value, block)))


def instruments_of(value: bytes, block: Block) -> Mapping[int, Instrument]:
    """The instruments of a checked directory block. Raises ValueError or TypeError."""
    return {each.locate: each for each in decode_instruments(_text(value, block))}


def content_problem(value: bytes, block: Block) -> str:
    """Why a checked block's payload is not what its header says; empty when it is."""
    try:
        if block.kind == FrameKind.SESSION:
            session_of(value, block)
        elif block.kind == FrameKind.DIRECTORY:
            instruments_of(value, block)
        else:
            seq = np.frombuffer(value, EVENT, block.count, HEADER_BYTES)["seq"]
            if (int(seq[0]), int(seq[-1])) != (block.first_seq, block.last_seq):
                return f"the events have seq {seq[0]} to {seq[-1]}, the block says otherwise"
            if not bool(np.all(seq[1:] > seq[:-1])):
                return "seq does not grow inside the block"
    except (ValueError, TypeError, UsageError) as error:
        return f"the block's JSON is not what it should be ({error})"
    return ""


def _text(value: bytes, block: Block) -> bytes:
    return value[HEADER_BYTES : HEADER_BYTES + block.payload_bytes]
