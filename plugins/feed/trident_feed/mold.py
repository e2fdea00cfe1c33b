"""MoldUDP64 1.00: a downstream packet is a 20-byte header and message blocks, each behind its length."""

from __future__ import annotations

from typing import Final, NamedTuple

HEADER_BYTES: Final = 20
END_OF_SESSION: Final = 0xFFFF
#: A sequence number from here on is not believed: it takes no exchange there, but a flipped bit does.
SEQUENCE_MAX: Final = 1 << 62


class MoldPacket(NamedTuple):
    """`sequence` is the number of the first message (of the next one when there are none). `blocks`: (count,
    bytes) of messages behind their lengths, as they stood; b"" for a message of length 0, which takes a
    number. `messages`: how many there are. `missing`: messages that the header counts and the packet does
    not hold whole."""

    session: bytes
    sequence: int
    blocks: list[tuple[int, bytes]]
    messages: int
    missing: int
    end: bool


def parse(payload: bytes, cut: bool = False) -> MoldPacket | None:
    """The packet, or None when `payload` is not MoldUDP64.

    It is when the session is printable ASCII (or all zero), the sequence number is below SEQUENCE_MAX, and
    the blocks fill the payload to its last byte; a packet that the capture `cut` may end early.
    """
    if len(payload) < HEADER_BYTES:
        return None
    session = payload[:10]
    sequence = int.from_bytes(payload[10:18], "big")
    count = payload[18] << 8 | payload[19]
    if sequence >= SEQUENCE_MAX or not (
        (session.isascii() and session.decode().isprintable()) or not any(session)
    ):
        return None
    if count in (0, END_OF_SESSION):
        if len(payload) > HEADER_BYTES:
            return None
        return MoldPacket(session, sequence, [], 0, 0, count == END_OF_SESSION)
    blocks, whole, at = _blocks(payload, count)
    if (whole < count and not cut) or (whole == count and at != len(payload)):
        return None
    return MoldPacket(session, sequence, blocks, whole, count - whole, False)


def _blocks(payload: bytes, count: int) -> tuple[list[tuple[int, bytes]], int, int]:
    """(blocks, whole messages, where the last one ends)."""
    blocks: list[tuple[int, bytes]] = []
    size = len(payload)
    begin = at = HEADER_BYTES
    first = number = 0
    while number < count and at + 2 <= size:
        end = at + 2 + (payload[at] << 8 | payload[at + 1])
        if end > size:
            break
        if end == at + 2:
            if number > first:
                blocks.append((number - first, payload[begin:at]))
            blocks.append((1, b""))
            begin, first = end, number + 1
        at = end
        number += 1
    if number > first:
        blocks.append((number - first, payload[begin:at]))
    return blocks, number, at


def cut_messages(data: bytes, count: int) -> bytes:
    """`data` (messages behind their lengths) without its first `count` messages."""
    at = 0
    for _ in range(count if data else 0):
        at += 2 + (data[at] << 8 | data[at + 1])
    return data[at:]
