"""From captured packets down to UDP and TCP: every link layer, tag and header that is read."""

from __future__ import annotations

import struct

import pytest

from trident_feed.packets import Datagram, Segment, Skipped, decode
from trident_feed.write import GROUP, SENDER, ethernet, ip, tcp, udp

V6_SRC = bytes.fromhex("20010db8000000000000000000000001"), 1000
V6_DST = bytes.fromhex("ff0e0000000000000000000000000001"), 2000
PAYLOAD = b"the payload"
PACKET = udp(PAYLOAD)
PACKET6 = udp(PAYLOAD, V6_SRC, V6_DST)
EXPECTED = Datagram(SENDER, GROUP, PAYLOAD, False)
EXPECTED6 = Datagram(V6_SRC, V6_DST, PAYLOAD, False)


@pytest.mark.parametrize(
    ("link", "frame"),
    [
        (1, ethernet(PACKET)),
        (1, ethernet(PACKET) + bytes(18)),  # padding to the least length of Ethernet
        (1, ethernet(PACKET, [(0x8100, 7)])),
        (1, ethernet(PACKET, [(0x88A8, 7), (0x8100, 8)])),
        (1, ethernet(PACKET, [(0x9100, 7), (0x9100, 8), (0x8100, 9)])),
        (1, ethernet(udp(PAYLOAD, options=b"\x94\x04\x00\x00" * 10))),
        (101, PACKET),
        (228, PACKET),
        (12, PACKET),
        (0, struct.pack("<I", 2) + PACKET),
        (0, struct.pack(">I", 2) + PACKET),
        (108, struct.pack(">I", 2) + PACKET),
        (113, bytes(14) + b"\x08\x00" + PACKET),
        (113, bytes(14) + b"\x81\x00\x00\x07\x08\x00" + PACKET),
        (276, b"\x08\x00" + bytes(18) + PACKET),
    ],
)
def test_every_way_to_ipv4(link: int, frame: bytes) -> None:
    """FEED-20."""
    assert decode(link, frame) == EXPECTED


@pytest.mark.parametrize(
    ("link", "frame"),
    [
        (1, ethernet(PACKET6)),
        (1, ethernet(PACKET6, [(0x88A8, 7), (0x8100, 8)])),
        (101, PACKET6),
        (229, PACKET6),
        (0, struct.pack("<I", 30) + PACKET6),
        (0, struct.pack("<I", 10) + PACKET6),
        (276, b"\x86\xdd" + bytes(18) + PACKET6),
    ],
)
def test_every_way_to_ipv6(link: int, frame: bytes) -> None:
    """FEED-20."""
    assert decode(link, frame) == EXPECTED6


def chained(*headers: tuple[int, bytes]) -> bytes:
    """An IPv6 packet with extension headers: (type, bytes after the next-header byte)."""
    kinds = [kind for kind, _ in headers] + [17]
    body = b"".join(bytes([after]) + rest for after, (_, rest) in zip(kinds[1:], headers, strict=True))
    return ip(kinds[0], body + PACKET6[40:], V6_SRC[0], V6_DST[0])


def test_ipv6_extension_headers() -> None:
    """FEED-20."""
    hop, routing, destination = (0, bytes(7)), (43, b"\x01" + bytes(14)), (60, bytes(7))
    authentication = (51, b"\x04" + bytes(22))
    atomic = (44, bytes(7))  # a fragment header on a packet that is whole (RFC 6946)
    assert decode(101, chained(hop, destination, routing, authentication, atomic)) == EXPECTED6


def test_fragments_are_left_out() -> None:
    """FEED-21."""
    first = ip(17, PACKET[20:], SENDER[0], GROUP[0], fragment=0x2000)
    later = ip(17, PACKET[20:], SENDER[0], GROUP[0], fragment=0x0010)
    unfragmented = ip(17, PACKET[20:], SENDER[0], GROUP[0], fragment=0x4000)  # "don't fragment"
    assert decode(101, first) == decode(101, later) == Skipped("IP fragment")
    assert decode(101, unfragmented) == EXPECTED
    for offset_and_more in (b"\x00\x01", b"\x00\x08"):
        assert decode(101, chained((44, b"\x00" + offset_and_more + bytes(4)))) == Skipped("IP fragment")


def test_tcp() -> None:
    segment = tcp(PAYLOAD, SENDER, GROUP, 12345, 0x12)
    assert decode(1, ethernet(segment) + bytes(9)) == Segment(SENDER, GROUP, 12345, 0x12, PAYLOAD, False)
    optioned = bytearray(tcp(bytes(12) + PAYLOAD, SENDER, GROUP, 5))
    optioned[20 + 12] = 0x80
    assert decode(101, bytes(optioned)) == Segment(SENDER, GROUP, 5, 0x18, PAYLOAD, False)
    optioned[20 + 12] = 0x40
    assert decode(101, bytes(optioned)) == Skipped("TCP header below 20 bytes")


@pytest.mark.parametrize(
    ("link", "frame", "reason"),
    [
        (147, PACKET, "link type 147"),
        (1, ethernet(PACKET)[:12] + b"\x08\x06" + bytes(28), "not IP"),
        (1, ethernet(PACKET)[:12] + b"\x00\x20" + bytes(40), "not IP"),
        (101, ip(1, b"ping....", SENDER[0], GROUP[0]), "IP protocol 1"),
        (101, ip(59, b"", V6_SRC[0], V6_DST[0]), "IP protocol 59"),
        (0, struct.pack("<I", 99) + PACKET, "not IP"),
        (228, b"\x55" + PACKET[1:], "not IP"),
        (228, b"\x44" + PACKET[1:], "not IP"),
        (228, PACKET[:2] + b"\x00\x13" + PACKET[4:], "not IP"),
        (101, PACKET[:24] + b"\x00\x07" + PACKET[26:], "UDP length below 8"),
    ],
)
def test_other_packets_are_skipped_with_a_reason(link: int, frame: bytes, reason: str) -> None:
    """FEED-21."""
    assert decode(link, frame) == Skipped(reason)


@pytest.mark.parametrize("packet", [PACKET, PACKET6])
@pytest.mark.parametrize("link", [0, 1, 101, 113, 276])
def test_a_packet_cut_anywhere(link: int, packet: bytes) -> None:
    kind = b"\x86\xdd" if packet is PACKET6 else b"\x08\x00"
    family = 30 if packet is PACKET6 else 2
    head = {
        0: struct.pack("<I", family), 1: bytes(12) + kind, 101: b"", 113: bytes(14) + kind,
        276: kind + bytes(18),
    }[link]  # fmt: skip
    whole = head + packet
    for size in range(len(whole)):
        got = decode(link, whole[:size], cut=True)
        if size >= len(whole) - len(PAYLOAD):
            assert isinstance(got, Datagram)
            assert got.cut
            assert got.payload == PAYLOAD[: size - len(whole)]
        else:
            assert isinstance(got, Skipped)
            assert got.short


def test_lengths_of_zero_mean_the_rest() -> None:
    offloaded = PACKET[:2] + b"\0\0" + PACKET[4:]
    assert decode(101, offloaded) == EXPECTED
    jumbo = PACKET6[:4] + b"\0\0" + PACKET6[6:44] + b"\0\0" + PACKET6[46:]
    assert decode(101, jumbo) == EXPECTED6


def test_a_length_beyond_the_packet_is_a_cut() -> None:
    longer = PACKET[:2] + b"\x00\xff" + PACKET[4:24] + b"\x00\xeb" + PACKET[26:]
    assert decode(101, longer) == EXPECTED._replace(cut=True)
