"""The pcap capture file (draft-ietf-opsawg-pcap), in either byte order, with µs or ns times."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from trident_core.stats import Anomalies
from trident_feed.cursor import Cursor

#: Longest captured packet that is believed: libpcap's own MAXIMUM_SNAPLEN. A longer one is damage.
PACKET_MAX: Final = 262_144


class Packet(NamedTuple):
    """One captured packet. `ts` is UTC nanoseconds (0: not known), `cut` that the capture shortened it."""

    offset: int
    ts: int
    link: int
    data: bytes
    cut: bool


class _Flavour(NamedTuple):
    order: str
    tick_ns: int
    extra: int  # bytes of the record header beyond the usual 16


#: magic -> flavour. The "modified" one (a1b2cd34) has interface, protocol and packet type in each record.
FLAVOURS: Final = {
    struct.pack(order + "I", magic): _Flavour(order, tick_ns, extra)
    for order in "<>"
    for magic, tick_ns, extra in ((0xA1B2C3D4, 1000, 0), (0xA1B23C4D, 1, 0), (0xA1B2CD34, 1000, 8))
}


def is_pcap(head: bytes) -> bool:
    return head[:4] in FLAVOURS


def read_pcap(cursor: Cursor, anomalies: Anomalies) -> Iterator[Packet]:
    """Packets in file order. A file that ends inside a packet counts `torn_tail`; a length beyond PACKET_MAX
    counts `malformed` and ends the reading, for there is nothing to find the next packet by."""
    header = cursor.take(24)
    if len(header) < 24:
        anomalies.add("torn_tail", at=0)
        return
    order, tick_ns, extra = FLAVOURS[header[:4]]
    link = struct.unpack_from(order + "I", header, 20)[0] & 0xFFFF  # the upper bits tell of frame checksums
    record = struct.Struct(order + "4I")
    size = record.size + extra
    while True:
        offset = cursor.position
        head = cursor.take(size)
        if len(head) < size:
            if head:
                anomalies.add("torn_tail", at=offset)
            return
        seconds, fraction, captured, length = record.unpack_from(head)
        if captured > PACKET_MAX:
            anomalies.add("malformed", at=offset)
            return
        data = cursor.take(captured)
        if len(data) < captured:
            anomalies.add("torn_tail", at=offset)
            return
        yield Packet(offset, seconds * 1_000_000_000 + fraction * tick_ns, link, data, captured < length)
