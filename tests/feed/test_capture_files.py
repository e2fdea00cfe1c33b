"""pcap and pcapng: flavours, sections, interfaces, and records that cannot be framed."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from typing import Any

import pytest

from trident_core.errors import InputError
from trident_feed.capture import CaptureFeed
from trident_feed.write import (
    pcapng,
    pcapng_block,
)  # fmt: skip

Read = Callable[..., Any]
Make = Callable[..., bytes]
Message = Callable[[int], bytes]
Build = Callable[..., bytes]

T0 = 1_700_000_000_000_000_000


def good(message: Message, first: int, last: int) -> list[tuple[int, bytes]]:
    return [(number, message(number)) for number in range(first, last + 1)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [True, False])
def test_pcap_flavours(
    order: str, nanoseconds: bool, read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-19, 20."""
    data = capture([mold(1, 3), mold(4, 5)], order=order, nanoseconds=nanoseconds)
    assert CaptureFeed.detect(data, "x") == 100
    reading = read(data)
    assert reading.numbered == good(message, 1, 5)
    assert reading.session.date == dt.date(2023, 11, 14)


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcap_with_the_modified_magic(order: str, read: Read, mold: Make, message: Message) -> None:
    """FEED-19."""
    frame = mold(1, 3)
    data = struct.pack(order + "IHHiIII", 0xA1B2CD34, 2, 4, 0, 0, 65_535, 1)
    data += struct.pack(order + "IIIIIHBB", 1_700_000_000, 0, len(frame), len(frame), 1, 8, 0, 0) + frame
    assert read(data).numbered == good(message, 1, 3)


def test_the_upper_bits_of_the_link_type_are_not_part_of_it(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    data = bytearray(capture([mold(1, 3)]))
    data[23] = 0x24  # a frame check sequence of 4 bytes follows each packet
    assert read(bytes(data)).numbered == good(message, 1, 3)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("resolution", [0, 3, 6, 9])
def test_pcapng(order: str, resolution: int, read: Read, mold: Make, message: Message) -> None:
    """FEED-19."""
    data = b"".join(pcapng([(T0, mold(1, 3)), (T0, mold(4, 5))], order=order, resolution=resolution))
    assert CaptureFeed.detect(data, "x") == 100
    reading = read(data)
    assert reading.numbered == good(message, 1, 5)
    assert reading.session.date == dt.date(2023, 11, 14)


def section(order: str, *blocks: bytes) -> bytes:
    head = pcapng_block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    return head + b"".join(blocks)


def interface(order: str, link: int, snap: int = 0, options: bytes = b"") -> bytes:
    return pcapng_block(1, struct.pack(order + "HHI", link, 0, snap) + options, order)


def enhanced(order: str, index: int, packet: bytes, ticks: int = T0 // 1000) -> bytes:
    head = struct.pack(order + "5I", index, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet))
    return pcapng_block(6, head + packet, order)


def test_pcapng_sections_interfaces_and_other_blocks(read: Read, mold: Make, message: Message) -> None:
    """FEED-19."""
    frames = [mold(n, n) for n in range(1, 8)]
    raw = [frame[14:] for frame in frames]
    binary = struct.pack("<HHBxxx", 9, 1, 0x80 | 20)  # ticks of 2^-20 s
    offset = struct.pack("<HHq", 14, 8, 1_000_000_000)
    first = section(
        "<",
        interface("<", 1),
        interface("<", 101, options=binary + offset + bytes(4)),
        pcapng_block(5, bytes(60)),  # statistics
        enhanced("<", 1, raw[0], 700_000_000 << 20),
        pcapng_block(0x0BAD, bytes(100_000)),  # unknown
        enhanced("<", 0, frames[1]),
        pcapng_block(3, struct.pack("<I", len(frames[2])) + frames[2]),  # simple
        pcapng_block(2, struct.pack("<HH4I", 1, 0, 0, 0, len(raw[3]), len(raw[3])) + raw[3]),  # obsolete
    )
    second = section(">", interface(">", 101), enhanced(">", 0, raw[4]), enhanced(">", 0, raw[5]))
    reading = read(first + second + section("<", enhanced("<", 0, raw[6])))
    assert reading.numbered == good(message, 1, 6)
    assert reading.anomalies == {"foreign_packet": 1}, "a new section has no interfaces yet"
    assert reading.session.date == dt.date(2023, 11, 14)


def test_pcapng_simple_packets_are_cut_at_the_snap_length(read: Read, mold: Make, message: Message) -> None:
    """FEED-19."""
    frame = mold(1, 3)
    cut = len(frame) - 5
    data = section("<", interface("<", 1, cut), pcapng_block(3, struct.pack("<I", len(frame)) + frame[:cut]))
    reading = read(data)
    assert reading.numbered == good(message, 1, 2)
    assert reading.anomalies == {"truncated_packet": 1}


@pytest.mark.parametrize(
    ("tail", "anomaly"),
    [
        (b"\x06\0\0\0", "torn_tail"),
        (struct.pack("<II", 6, 11), "malformed"),
        (struct.pack("<II", 6, 33), "malformed"),
        (struct.pack("<II", 6, 0xFFFFFFFC), "malformed"),
        (struct.pack("<II", 0xBAD, 0xFFFFFFFC), "torn_tail"),
        (struct.pack("<III", 6, 36, 0), "torn_tail"),
        (struct.pack("<II", 6, 12) + struct.pack("<I", 16), "malformed"),
    ],
)
def test_pcapng_blocks_that_cannot_be_framed(
    tail: bytes, anomaly: str, read: Read, mold: Make, message: Message
) -> None:
    """FEED-22."""
    reading = read(section("<", interface("<", 1), enhanced("<", 0, mold(1, 3))) + tail)
    assert reading.numbered == good(message, 1, 3)
    assert reading.anomalies == {anomaly: 1}


def test_a_packet_length_of_4_gb_ends_the_reading(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-22."""
    data = capture([mold(1, 3)])
    data += struct.pack("<4I", 0, 0, 0xFFFFFFFF, 0xFFFFFFFF) + bytes(100)
    reading = read(data)
    assert reading.numbered == good(message, 1, 3)
    assert reading.anomalies == {"malformed": 1}


def test_a_snapped_packet_gives_its_whole_messages(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-35."""
    frames = [mold(1, 3), mold(4, 6)]
    reading = read(capture(frames, snap=len(frames[0]) - 5))
    assert reading.numbered == [*good(message, 1, 2), *good(message, 4, 5)]
    assert reading.anomalies == {"truncated_packet": 2, "gap_messages": 1}
    with pytest.raises(InputError, match="tcpdump -s 0"):
        read(capture(frames, snap=70))
