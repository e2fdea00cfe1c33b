"""Writing captures: MoldUDP64 and SoupBinTCP packets, the headers around them, pcap and pcapng files.

For tests, demonstrations and the simulator. What is written opens in Wireshark without a complaint.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from trident_core.errors import UsageError

_ETHERNET: Final = b"\x01\x00\x5e\x00\x00\x01" + b"\x02\x00\x00\x00\x00\x01"
#: Where `write_pcap` sends its datagrams, and where from: documentation and multicast test addresses.
GROUP: Final = bytes((233, 252, 0, 1)), 26_400
SENDER: Final = bytes((192, 0, 2, 1)), 26_400


def split_messages(framed: bytes | bytearray | memoryview) -> Iterator[bytes]:
    """The messages of a buffer in which each stands behind its 2-byte length. Raises UsageError if cut."""
    view = memoryview(framed).cast("B")
    at = 0
    while at < len(view):
        end = at + 2 + int.from_bytes(view[at : at + 2], "big")
        if at + 2 > len(view) or end > len(view):
            raise UsageError(f"the message at offset {at} is cut", hint="pass whole messages")
        yield bytes(view[at + 2 : end])
        at = end


def mold_packet(session: bytes, sequence: int, messages: Sequence[bytes], count: int | None = None) -> bytes:
    """A MoldUDP64 packet. `count` None: the number of messages; 0: a heartbeat; 0xFFFF: end of session."""
    header = session.ljust(10)[:10] + struct.pack(">QH", sequence, len(messages) if count is None else count)
    return header + b"".join(len(message).to_bytes(2, "big") + message for message in messages)


def soup_packet(kind: str, payload: bytes = b"") -> bytes:
    """A SoupBinTCP packet: length, type letter, payload."""
    return struct.pack(">HB", 1 + len(payload), ord(kind)) + payload


def soup_login(session: bytes, sequence: int) -> bytes:
    """Login accepted: the session and the number of the next sequenced message."""
    return soup_packet("A", session.rjust(10)[:10] + str(sequence).rjust(20).encode())


def udp(
    payload: bytes, src: tuple[bytes, int] = SENDER, dst: tuple[bytes, int] = GROUP, *, options: bytes = b""
) -> bytes:
    """An IP packet (version by the addresses' length) with a UDP datagram. `options`: IP options, padded to
    four bytes by the caller."""
    datagram = struct.pack(">HHHH", src[1], dst[1], 8 + len(payload), 0) + payload
    if len(src[0]) == 16:
        pseudo = src[0] + dst[0] + struct.pack(">II", len(datagram), 17)
        datagram = datagram[:6] + struct.pack(">H", _checksum(pseudo + datagram) or 0xFFFF) + datagram[8:]
    return ip(17, datagram, src[0], dst[0], options=options)


def tcp(payload: bytes, src: tuple[bytes, int], dst: tuple[bytes, int], seq: int, flags: int = 0x18) -> bytes:
    """An IP packet with a TCP segment. `flags` as on the wire; 0x18 is PSH+ACK."""
    segment = struct.pack(">HHIIBBHHH", src[1], dst[1], seq % 2**32, 1, 0x50, flags, 65535, 0, 0) + payload
    pseudo = src[0] + dst[0] + struct.pack(">HH", 6, len(segment))
    segment = segment[:16] + struct.pack(">H", _checksum(pseudo + segment)) + segment[18:]
    return ip(6, segment, src[0], dst[0])


def ip(
    protocol: int, payload: bytes, src: bytes, dst: bytes, *, fragment: int = 0, options: bytes = b""
) -> bytes:
    """An IPv4 or IPv6 packet, by the length of the addresses. `fragment`: IPv4's flags and offset field."""
    if len(src) == 16:
        return struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + src + dst + payload
    words = 5 + len(options) // 4
    total = words * 4 + len(payload)
    header = struct.pack(">BBHHHBBH", 4 << 4 | words, 0, total, 0, fragment, 64, protocol, 0) + src + dst
    header += options
    return header[:10] + struct.pack(">H", _checksum(header)) + header[12:] + payload


def ethernet(packet: bytes, vlans: Sequence[tuple[int, int]] = ()) -> bytes:
    """An Ethernet frame around an IP packet. `vlans`: (tag protocol, VLAN id), the outer one first."""
    tags = b"".join(struct.pack(">HH", protocol, vlan) for protocol, vlan in vlans)
    kind = 0x86DD if packet[0] >> 4 == 6 else 0x0800
    return _ETHERNET + tags + struct.pack(">H", kind) + packet


def pcap(
    packets: Iterable[tuple[int, bytes]],
    *,
    link: int = 1,
    order: str = "<",
    nanoseconds: bool = True,
    snap: int = 262_144,
) -> Iterator[bytes]:
    """A pcap file in pieces, of (UTC ns, packet); packets longer than `snap` are cut."""
    magic, tick_ns = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    yield struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)
    for ts, packet in packets:
        seconds, rest = divmod(ts, 1_000_000_000)
        sizes = min(len(packet), snap), len(packet)
        yield struct.pack(order + "4I", seconds, rest // tick_ns, *sizes) + packet[:snap]


def pcapng_block(kind: int, body: bytes, order: str = "<") -> bytes:
    """One pcapng block, padded."""
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + size + body + size


def pcapng(
    packets: Iterable[tuple[int, bytes]], *, link: int = 1, order: str = "<", resolution: int = 9
) -> Iterator[bytes]:
    """A pcapng section with one interface, of (UTC ns, packet). `resolution`: decimals of its times, to 9."""
    yield pcapng_block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    option = struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0)
    yield pcapng_block(1, struct.pack(order + "HHI", link, 0, 0) + option, order)
    for ts, packet in packets:
        ticks = ts // 10 ** (9 - resolution)
        size = len(packet)
        head = struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, size, size)
        yield pcapng_block(6, head + packet, order)


def mold_datagrams(
    messages: Iterable[bytes], *, session: bytes = b"TRIDENT", first: int = 1, mtu: int = 1400
) -> Iterator[bytes]:
    """Messages packed into MoldUDP64 packets of at most `mtu` bytes (but at least one message), then the end
    of the session."""
    batch: list[bytes] = []
    size = 20
    for message in messages:
        if batch and size + 2 + len(message) > mtu:
            yield mold_packet(session, first, batch)
            first += len(batch)
            batch, size = [], 20
        batch.append(message)
        size += 2 + len(message)
    if batch:
        yield mold_packet(session, first, batch)
    yield mold_packet(session, first + len(batch), [], 0xFFFF)


def write_pcap(
    path: str | Path,
    framed: bytes | bytearray | memoryview,
    *,
    session: bytes = b"TRIDENT",
    first: int = 1,
    mtu: int = 1400,
    start_ns: int = 0,
    step_ns: int = 1000,
) -> int:
    """Write framed messages as a capture of a MoldUDP64 feed; return how many packets it has.

    The first packet is captured at `start_ns` (UTC), each next one `step_ns` later. Raises UsageError for a
    cut message, OSError when the file cannot be written.
    """
    count = 0

    def packets() -> Iterator[tuple[int, bytes]]:
        nonlocal count
        for payload in mold_datagrams(split_messages(framed), session=session, first=first, mtu=mtu):
            yield start_ns + count * step_ns, ethernet(udp(payload))
            count += 1

    with open(path, "wb") as file:
        for piece in pcap(packets()):
            file.write(piece)
    return count


def _checksum(data: bytes) -> int:
    """The internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
