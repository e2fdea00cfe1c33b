"""SoupBinTCP 3.00 and 4.x: logical packets of a length, a type letter and a payload, over an ordered stream.

Sequenced packets carry no number of their own: the login answer tells the first, the others count on.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from trident_core.stats import Anomalies
from trident_feed.itch import is_itch
from trident_feed.mold import SEQUENCE_MAX

#: Type letter -> (name, length that the packet must have; 0: any from 1 on). The length includes the letter.
PACKETS: Final[dict[int, tuple[str, int]]] = {
    ord("+"): ("debug", 0),
    ord("A"): ("login accepted", 31),
    ord("J"): ("login rejected", 2),
    ord("S"): ("sequenced data", 0),
    ord("H"): ("server heartbeat", 1),
    ord("Z"): ("end of session", 1),
    ord("L"): ("login request", 0),  # 47, or 52 with the heartbeat timeout of version 4.1
    ord("U"): ("unsequenced data", 0),
    ord("R"): ("client heartbeat", 1),
    ord("O"): ("logout request", 1),
}


class Messages(NamedTuple):
    """Consecutive sequenced messages: `blocks` as in MoldPacket. `start` is None while no login was seen."""

    session: bytes
    start: int | None
    blocks: list[tuple[int, bytes]]
    offset: int


class SoupReader:
    """One direction of a connection. `session` and `next` are known after a login answer.

    `push` gives the messages of the bytes pushed. It stops (`lost`) at a packet of an unknown type or a wrong
    length, until `resume`; and for good (`ended`) after the end of the session. Offsets are exact when
    `contiguous`; else (captures) every push has one, that of its packet.
    """

    def __init__(self, anomalies: Anomalies, transport: Counter[str], *, contiguous: bool) -> None:
        self.session = b""
        self.next: int | None = None
        self.lost = False
        self.ended = False
        self._renumbered = False  # by a login since the last message
        self._anomalies = anomalies
        self._transport = transport
        self._contiguous = contiguous
        self._part = b""  # of a packet that is not complete yet
        self._part_offset = 0

    @property
    def pending(self) -> int | None:
        """Offset of the packet that is not complete yet, or None."""
        return self._part_offset if self._part else None

    def resume(self) -> None:
        """Start anew on a packet boundary, after bytes were lost. Numbers go on from the last message."""
        self._part = b""
        self.lost = False

    def push(self, data: bytes, offset: int) -> list[Messages]:
        """Messages of the stream's next bytes; `offset` is where they stand, for the counts."""
        if self.ended:
            self._anomalies.add("bytes_after_end", at=offset, count=len(data))
            return []
        begin = offset - len(self._part)
        data = self._part + data
        out: list[Messages] = []
        at = 0
        while at + 3 <= len(data) and not self.ended:
            end = packet_end(data, at)
            if end is None:
                self.lost = True
                break
            if end > len(data):
                break
            where = begin + at if self._contiguous else offset
            self._packet(data[at + 2], data[at + 3 : end], where, out)
            at = end
        rest = data[at:]
        self._part = b"" if self.ended else rest
        self._part_offset = begin + at if self._contiguous else offset
        if self.ended:
            self._anomalies.add("bytes_after_end", at=self._part_offset, count=len(rest))
        return out

    def _packet(self, kind: int, payload: bytes, offset: int, out: list[Messages]) -> None:
        self._transport[f"SoupBinTCP {PACKETS[kind][0]}"] += 1
        if kind == ord("S"):
            self._sequenced(payload, offset, out)
        elif kind == ord("A"):
            self._accept(payload, offset)
        elif kind == ord("Z"):
            self.ended = True

    def _accept(self, payload: bytes, offset: int) -> None:
        digits = payload[10:].strip(b" \0")
        number = int(digits) if digits.isdigit() else -1
        if 0 <= number < SEQUENCE_MAX:
            self.session, self.next = payload[:10], max(1, number)
            self._renumbered = True
        else:
            self._anomalies.add("foreign_packet", at=offset)

    def _sequenced(self, message: bytes, offset: int, out: list[Messages]) -> None:
        block = (1, len(message).to_bytes(2, "big") + message if message else b"")
        if out and not self._renumbered:
            out[-1].blocks.append(block)
        else:
            out.append(Messages(self.session, self.next, [block], offset))
            self._renumbered = False
        if self.next is not None:
            self.next += 1


def packet_end(data: bytes | bytearray, at: int) -> int | None:
    """Where the packet at `at` ends (maybe beyond `data`); None if none of a known type and length starts
    there. At least its first three bytes must be there."""
    length = data[at] << 8 | data[at + 1]
    known = PACKETS.get(data[at + 2])
    return at + 2 + length if known is not None and length >= 1 and known[1] in (0, length) else None


def starts_packet(data: bytes) -> bool:
    """Does a SoupBinTCP packet start here? At least one whole packet must, and only known ones follow."""
    at = whole = 0
    while at + 3 <= len(data):
        end = packet_end(data, at)
        if end is None:
            return False
        at = end
        whole += at <= len(data)
    return whole > 0


def soup_score(head: bytes) -> int:
    """How sure `head` is the start of a SoupBinTCP stream that carries ITCH 5.0, 0 to 100."""
    if not starts_packet(head):
        return 0
    at = itch = other = 0
    login = False
    while at + 3 <= len(head):
        end = at + 2 + (head[at] << 8 | head[at + 1])
        if head[at + 2] == ord("S") and end <= len(head):
            if is_itch(head[at + 3 : end]):
                itch += 1
            else:
                other += 1
        login = login or (head[at + 2] == ord("A") and head[at + 13 : at + 33].strip(b" ").isdigit())
        at = end
    if itch > other:
        return 96 if itch >= 3 or login else 75
    return 40 if login and not other else 0
