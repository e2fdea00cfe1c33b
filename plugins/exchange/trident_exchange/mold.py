"""MoldUDP64 1.00: packets that a feed sends, requests for them to be sent again, and a reader that fills
gaps.

The layout of a packet is the feed's own (`trident_feed.mold`, `trident_feed.write`).

Source: MoldUDP64 protocol specification 1.00: downstream packet, heartbeat, end of session, request packet.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from trident_core.errors import InputError
from trident_feed import mold
from trident_feed.write import mold_packet

#: Largest datagram that is sent: an Ethernet frame without the headers of IPv4 and UDP, and room for tags.
DATAGRAM_MAX: Final = 1_400
#: A request may ask for up to 65,534 messages; an answer is one datagram.
REQUEST_BYTES: Final = 20
#: Packets that came too early are held up to here, in a client.
HELD_MAX: Final = 4_096


class Request(NamedTuple):
    """A client asks for `count` messages from number `sequence` on."""

    session: str
    sequence: int
    count: int  # type: ignore[assignment]  # shadows tuple.count


class MoldError(InputError):
    """A datagram that is not a request."""


def encode_request(request: Request) -> bytes:
    return request.session.encode("ascii").ljust(10) + struct.pack(">QH", request.sequence, request.count)


def decode_request(data: bytes) -> Request:
    """Raises MoldError for what is not 20 bytes with a printable session, a number from 1 on, and a count."""
    if len(data) != REQUEST_BYTES:
        raise MoldError(f"a request of {len(data)} bytes", hint=f"it has {REQUEST_BYTES}")
    session = data[:10].decode("latin-1")
    sequence, count = struct.unpack(">QH", data[10:])
    if not (session.isascii() and session.isprintable()):
        raise MoldError(f"the session of a request is {data[:10]!r}", hint="printable ASCII, at offset 0")
    if not 1 <= sequence < mold.SEQUENCE_MAX or not 1 <= count < mold.END_OF_SESSION:
        raise MoldError(f"a request for {count} messages from {sequence} on", hint="1 and more, at offset 10")
    return Request(session.strip(" "), sequence, count)


def packets(session: str, first: int, blocks: bytes) -> list[bytes]:
    """Messages behind their lengths, numbered from `first` on, as datagrams of at most DATAGRAM_MAX bytes."""
    head = session.encode("ascii").ljust(10)
    room = DATAGRAM_MAX - mold.HEADER_BYTES
    out = []
    begin = at = count = 0
    while at < len(blocks):
        end = at + 2 + (blocks[at] << 8 | blocks[at + 1])
        if count and end - begin > room:
            out.append(head + struct.pack(">QH", first, count) + blocks[begin:at])
            first, begin, count = first + count, at, 0
        at, count = end, count + 1
    if count:
        out.append(head + struct.pack(">QH", first, count) + blocks[begin:at])
    return out


def heartbeat(session: str, following: int) -> bytes:
    """Nothing to say: `following` is the number of the next message."""
    return mold_packet(session.encode("ascii"), following, [], 0)


def end_of_session(session: str, following: int) -> bytes:
    return mold_packet(session.encode("ascii"), following, [], mold.END_OF_SESSION)


class MoldReader:
    """A client's end: messages in order, each once; `missing` says what to ask for.

    `next` is the number of the next message. A packet of another session, or none of MoldUDP64 at all, is
    counted in `foreign` and left out.
    """

    def __init__(self, session: str = "", following: int = 1) -> None:
        self.session = session
        self.next = following
        self._end: int | None = None
        self.foreign = self.duplicates = 0
        self._announced = following
        self._held: dict[int, bytes] = {}

    def receive(self, datagram: bytes) -> list[bytes]:
        """The messages that the datagram makes available, in order."""
        packet = mold.parse(datagram)
        name = packet.session.decode("latin-1").strip(" ") if packet else ""
        if packet is None or (self.session and name != self.session):
            self.foreign += 1
            return []
        self.session = name
        number = packet.sequence
        self._announced = max(self._announced, number + packet.messages)
        for _, framed in packet.blocks:
            if not framed:  # a message of no bytes, which takes a number
                self._take(number, b"")
                number += 1
            at = 0
            while at < len(framed):
                end = at + 2 + (framed[at] << 8 | framed[at + 1])
                self._take(number, framed[at + 2 : end])
                at, number = end, number + 1
        out = []
        while self.next in self._held:
            out.append(self._held.pop(self.next))
            self.next += 1
        if packet.end:
            self._end = number
        return out

    @property
    def ended(self) -> bool:
        """The end of the session was told, and every message before it was given out."""
        return self._end is not None and self.next >= self._end

    def _take(self, number: int, message: bytes) -> None:
        if number < self.next or number in self._held:
            self.duplicates += 1
        elif len(self._held) < HELD_MAX or number == self.next:
            self._held[number] = message

    def missing(self) -> Request | None:
        """The request for the first gap, if there is one."""
        if self.next >= self._announced:
            return None
        upto = min(self._held, default=self._announced)
        return Request(self.session, self.next, min(upto - self.next, mold.END_OF_SESSION - 1))
