"""The pcapng capture file (draft-ietf-opsawg-pcapng): sections, interfaces, packets.

Every section has its own byte order and interfaces. Blocks of other kinds are passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from trident_core.stats import Anomalies
from trident_feed.cursor import Cursor
from trident_feed.pcap import PACKET_MAX, Packet

SECTION: Final = 0x0A0D0D0A
INTERFACE: Final = 1
PACKET_OBSOLETE: Final = 2
SIMPLE_PACKET: Final = 3
ENHANCED_PACKET: Final = 6

_READ: Final = frozenset((INTERFACE, PACKET_OBSOLETE, SIMPLE_PACKET, ENHANCED_PACKET))
_SECTION_MAGIC: Final = SECTION.to_bytes(4, "big")
_BYTE_ORDER: Final = 0x1A2B3C4D
_OPTION_TSRESOL: Final = 9
_OPTION_TSOFFSET: Final = 14

#: Longest block that is read whole (a packet and its options). A longer packet block is damage.
BLOCK_MAX: Final = PACKET_MAX + 65_536
#: Most interfaces of one section; a block that adds one more is damage.
INTERFACES_MAX: Final = 4096


class _Interface(NamedTuple):
    link: int
    snap: int
    ticks_per_second: int
    offset_seconds: int

    def ns(self, high: int, low: int) -> int:
        ticks = high << 32 | low
        return ticks * 1_000_000_000 // self.ticks_per_second + self.offset_seconds * 1_000_000_000


def is_pcapng(head: bytes) -> bool:
    return head[:4] == SECTION.to_bytes(4, "big") and (
        len(head) < 12 or head[8:12] in (_BYTE_ORDER.to_bytes(4, "big"), _BYTE_ORDER.to_bytes(4, "little"))
    )


def read_pcapng(cursor: Cursor, anomalies: Anomalies) -> Iterator[Packet]:
    """Packets in file order.

    A file that ends inside a block counts `torn_tail`; a block that cannot be framed counts `malformed` and
    ends the reading; a packet of an interface that was not described counts `foreign_packet`.
    """
    reader = _Reader(cursor, anomalies)
    while (block := reader.next_block()) is not None:
        kind, body, offset = block
        packet = reader.packet(kind, body, offset)
        if packet is not None:
            yield packet


class _Reader:
    def __init__(self, cursor: Cursor, anomalies: Anomalies) -> None:
        self._cursor = cursor
        self._anomalies = anomalies
        self._order = "<"
        self._interfaces: list[_Interface] = []

    def next_block(self) -> tuple[int, bytes, int] | None:
        """(type, body, offset) of the next interface or packet; None at the end, counted if not clean."""
        while True:
            offset = self._cursor.position
            block = self._block(offset)
            if block is None:
                return None
            if isinstance(block, str):
                self._anomalies.add(block, at=offset)
                return None
            if block[0] in _READ:
                return *block, offset

    def _block(self, offset: int) -> tuple[int, bytes] | str | None:
        """(type, body; empty if the type is not read), or the anomaly that ends the reading, or None."""
        head = self._cursor.take(8)
        if head[:4] == _SECTION_MAGIC:
            head += self._cursor.take(4)
            self._interfaces = []
            self._order = ">" if head[8:12] == _BYTE_ORDER.to_bytes(4, "big") else "<"
        if len(head) < 8:
            return "torn_tail" if head else None
        kind, size = struct.unpack_from(self._order + "II", head)
        if size < 12 or size % 4 or (kind in _READ and size > BLOCK_MAX) or size < len(head) + 4:
            return "malformed"
        wanted = size - len(head) - 4
        body = self._cursor.take(wanted) if kind in _READ else b""
        got = len(body) if kind in _READ else self._cursor.skip(wanted)
        tail = self._cursor.take(4)
        if got < wanted or len(tail) < 4:
            return "torn_tail"
        return (kind, body) if tail == head[4:8] else "malformed"

    def packet(self, kind: int, body: bytes, offset: int) -> Packet | None:
        """The packet of a block, or None if the block carries none."""
        if kind == INTERFACE:
            self._add_interface(body, offset)
            return None
        layout, minimum = {
            ENHANCED_PACKET: ("IIIII", 20), PACKET_OBSOLETE: ("HHIIII", 20), SIMPLE_PACKET: ("I", 4)
        }[kind]  # fmt: skip
        if len(body) < minimum:
            self._anomalies.add("truncated_packet", at=offset)
            return None
        fields = struct.unpack_from(self._order + layout, body)
        index = 0 if kind == SIMPLE_PACKET else fields[0]
        if index >= len(self._interfaces):
            self._anomalies.add("foreign_packet", at=offset)
            return None
        interface = self._interfaces[index]
        if kind == SIMPLE_PACKET:
            length, ts = fields[0], 0
            captured = min(length, interface.snap or length, len(body) - 4)
        else:
            high, low, captured, length = fields[-4:]
            ts = interface.ns(high, low)
        data = body[minimum : minimum + captured]
        return Packet(offset, ts, interface.link, data, len(data) < length)

    def _add_interface(self, body: bytes, offset: int) -> None:
        if len(body) < 8 or len(self._interfaces) == INTERFACES_MAX:
            self._anomalies.add("malformed", at=offset)
            return
        link, _, snap = struct.unpack_from(self._order + "HHI", body)
        ticks, seconds = 1_000_000, 0
        at = 8
        while at + 4 <= len(body):
            code, size = struct.unpack_from(self._order + "HH", body, at)
            value = body[at + 4 : at + 4 + size]
            if code == 0:
                break
            if code == _OPTION_TSRESOL and len(value) == 1:
                ticks = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** value[0]
            elif code == _OPTION_TSOFFSET and len(value) == 8:
                seconds = struct.unpack(self._order + "q", value)[0]
            at += 4 + (size + 3) // 4 * 4
        self._interfaces.append(_Interface(link, snap, ticks, seconds))
