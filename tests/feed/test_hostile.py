"""Hostile input: whatever the bytes, a feed ends in counted anomalies or in one line, in bounded memory."""

from __future__ import annotations

import io
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.contracts import FeedOptions
from trident_core.errors import InputError
from trident_core.session import Session
from trident_core.source import Source, open_source
from trident_core.stats import KNOWN_ANOMALIES, Anomalies
from trident_feed.capture import CaptureFeed
from trident_feed.files import ItchFileFeed, SoupFileFeed
from trident_feed.packets import decode
from trident_feed.tcp import DIRECTIONS_MAX
from trident_feed.write import ethernet, mold_packet, pcapng, soup_login, soup_packet, tcp, udp

Read = Callable[..., Any]
SERVER = bytes((192, 0, 2, 9)), 18_000
CLIENT = bytes((192, 0, 2, 7)), 40_000


def one_line(error: InputError) -> bool:
    assert "\n" not in str(error)
    assert error.hint
    return True


def outcome(read: Read, data: bytes, feed: type = CaptureFeed, **options: Any) -> tuple[Any, ...]:
    """What a reading comes to, comparable; checks that numbers rise."""
    try:
        reading = read(data, feed, **options)
    except InputError as error:
        return ("error", str(error), one_line(error))
    assert reading.numbers == sorted(set(reading.numbers))
    assert set(reading.anomalies) <= set(KNOWN_ANOMALIES)
    return ("read", reading.numbered, reading.anomalies, reading.session.date)


@pytest.fixture(scope="module")
def mixed(mold: Callable[..., bytes], message: Callable[[int], bytes]) -> list[tuple[int, bytes]]:
    """(time, frame): MoldUDP64 in every dress, SoupBinTCP, other traffic."""
    stream = soup_login(b"SOUP", 1) + b"".join(soup_packet("S", message(n)) for n in range(1, 5))
    frames = [
        mold(1, 3),
        ethernet(udp(mold_packet(b"SESSION", 4, [message(4), b""])), [(0x88A8, 1), (0x8100, 2)]),
        mold(6, 5),
        ethernet(udp(mold_packet(b"SESSION", 6, [message(6)]), (bytes(16), 1), (bytes(15) + b"\1", 2))),
        ethernet(tcp(b"", SERVER, CLIENT, 99, 0x12)),
        ethernet(tcp(stream[:50], SERVER, CLIENT, 100)),
        ethernet(tcp(stream[50:], SERVER, CLIENT, 150)),
        mold(7, 7),
        mold(8, 7, count=0xFFFF),
    ]
    return [(1_700_000_000_000_000_000 + n, frame) for n, frame in enumerate(frames)]


@pytest.fixture(scope="module")
def captures(mixed: list[tuple[int, bytes]], capture: Callable[..., bytes]) -> dict[str, bytes]:
    return {"pcap": capture([frame for _, frame in mixed]), "pcapng": b"".join(pcapng(mixed))}


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_a_capture_cut_at_every_byte(kind: str, captures: dict[str, bytes], read: Read) -> None:
    """FEED-7, 22."""
    data = captures[kind]
    whole = outcome(read, data)
    assert [number for number, _ in whole[1]] == [1, 2, 3, 4, 6, 7]
    for size in range(12, len(data)):
        got = outcome(read, data[:size])
        if got[0] == "read":
            assert whole[1][: len(got[1])] == got[1]


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_flipped_bits(kind: str, captures: dict[str, bytes], read: Read, data: st.DataObject) -> None:
    """FEED-7."""
    damaged = bytearray(captures[kind])
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    lenient = data.draw(st.booleans())
    results = [outcome(read, bytes(damaged), lenient=lenient, chunk=size) for size in (1, 64, 1 << 20)]
    assert results[0] == results[1] == results[2]


@settings(max_examples=300, deadline=None)
@given(
    head=st.sampled_from(
        [
            b"",
            b"\xd4\xc3\xb2\xa1" + bytes(20),
            b"\n\r\r\n\x1c\0\0\0\x4d\x3c\x2b\x1a" + bytes(12) + b"\x1c\0\0\0",
        ]
    ),
    body=st.binary(max_size=400),
    lenient=st.booleans(),
)
def test_random_bytes(head: bytes, body: bytes, lenient: bool, read: Read) -> None:
    """FEED-7."""
    for feed in (CaptureFeed, ItchFileFeed, SoupFileFeed):
        assert 0 <= feed.detect(head + body, "x") <= 100
        outcome(read, head + body, feed, lenient=lenient)


@settings(max_examples=300, deadline=None)
@given(link=st.sampled_from([0, 1, 12, 101, 108, 113, 228, 229, 276, 7]), data=st.binary(max_size=120))
def test_random_packets(link: int, data: bytes) -> None:
    decode(link, data)
    decode(link, b"\x02\0\0\0\x45" + data, cut=True)


@settings(max_examples=100, deadline=None)
@given(frames=st.lists(st.integers(0, 8), max_size=30), chunk=st.integers(1, 300))
def test_packets_in_any_order_and_number(
    frames: list[int],
    chunk: int,
    mixed: list[tuple[int, bytes]],
    capture: Callable[..., bytes],
    read: Read,
) -> None:
    """FEED-29, 30."""
    data = capture([mixed[n][1] for n in frames])
    assert outcome(read, data) == outcome(read, data, chunk=chunk)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_soup_stream_with_flipped_bits(
    data: st.DataObject, message: Callable[[int], bytes], read: Read
) -> None:
    stream = bytearray(soup_login(b"S", 1) + b"".join(soup_packet("S", message(n)) for n in range(1, 9)))
    stream[data.draw(st.integers(0, len(stream) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    size = data.draw(st.integers(0, len(stream)))
    cut = bytes(stream[:size])
    assert outcome(read, cut, SoupFileFeed) == outcome(read, cut, SoupFileFeed, chunk=1)


# --- Memory -------------------------------------------------------------------------------------------------


class Endless:
    """A source that makes its bytes while they are read."""

    name, path = "endless", None

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.anomalies = Anomalies()
        self._pieces = pieces
        self._ahead = b""

    def peek(self, n: int) -> bytes:
        while len(self._ahead) < n and (piece := next(self._pieces, b"")):
            self._ahead += piece
        return self._ahead[:n]

    def read(self, n: int) -> bytes:
        out = self.peek(min(n, 1 << 16))[:n]
        self._ahead = self._ahead[len(out) :]
        return out

    def progress(self) -> tuple[int, int | None]:
        return 0, None

    def close(self) -> None:
        pass


def pcap_of(frames: Iterator[bytes]) -> Iterator[bytes]:
    yield struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
    for frame in frames:
        yield struct.pack("<4I", 0, 0, len(frame), len(frame)) + frame


def peak_of(frames: Iterator[bytes], lenient: bool = False) -> tuple[int, CaptureFeed]:
    feed = CaptureFeed(Endless(pcap_of(frames)), Session(), FeedOptions(lenient=lenient, chunk_bytes=1 << 16))
    tracemalloc.start()
    for _ in feed:
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, feed


def test_memory_is_bounded_when_every_packet_leaves_a_gap(message: Callable[[int], bytes]) -> None:
    """FEED-8."""
    big = [message(1)] * 60
    frames = (ethernet(udp(mold_packet(b"S", 1 + n * 1000, big))) for n in range(4000))
    peak, feed = peak_of(frames)
    assert peak < 4 << 20, "of 5 MB of packets, the window holds 1 MiB"
    assert feed.anomalies.count("gap_messages") == 3999 * 940


def test_memory_is_bounded_when_every_packet_is_a_new_session(message: Callable[[int], bytes]) -> None:
    frames = (
        ethernet(udp(mold_packet(b"%d" % n, 1, [message(1)] * 60), dst=(bytes((239, 0, 0, 1)), n % 2)))
        for n in range(2000)
    )
    peak, feed = peak_of(frames)
    assert peak < 4 << 20
    assert feed.anomalies.count("session_changes") > 900


def test_memory_is_bounded_when_every_segment_is_a_new_connection() -> None:
    half = soup_packet("+", bytes(60_000))[:1400]

    def frames() -> Iterator[bytes]:
        for n in range(1000):
            server = bytes((10, 0, n >> 8, n & 255)), 1000
            yield ethernet(tcp(b"", server, CLIENT, 0, 0x12))
            yield ethernet(tcp(half, server, CLIENT, 1))
            yield ethernet(tcp(half, server, CLIENT, 100_000))

    feed = CaptureFeed(Endless(pcap_of(frames())), Session(), FeedOptions())
    tracemalloc.start()
    with pytest.raises(InputError):
        list(feed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < DIRECTIONS_MAX * 8192 + (4 << 20)


def test_memory_is_bounded_by_blocks_that_claim_gigabytes() -> None:
    """FEED-8."""

    def blocks() -> Iterator[bytes]:
        yield b"\n\r\r\n\x1c\0\0\0\x4d\x3c\x2b\x1a" + bytes(12) + b"\x1c\0\0\0"
        yield struct.pack("<II", 0xBAD, 0xFFFFFFFC)
        for _ in range(400):
            yield bytes(1 << 16)

    feed = CaptureFeed(Endless(blocks()), Session(), FeedOptions())
    tracemalloc.start()
    with pytest.raises(InputError, match="in 0 packets"):
        list(feed)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
    assert feed.anomalies.count("torn_tail") == 1


def test_a_day_file_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """FEED-8."""
    path = tmp_path / "day"
    path.write_bytes(b"\x00\x13D" + bytes(18) + random.Random(1).randbytes(1 << 25))
    tracemalloc.start()
    with open(path, "rb", buffering=0) as file:
        source = Source(file, "day")
        total = sum(len(chunk.data) for chunk in ItchFileFeed(source, Session(), FeedOptions()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == path.stat().st_size
    assert peak < 4 << 20


def test_a_damaged_list_of_members_of_a_zip(tmp_path: Path) -> None:
    """Offsets that are negative or beyond the file, empty names, cut records: read, or one line."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("x", bytes(range(256)) * 4)
    data, rng = archive.getvalue(), random.Random(5)
    directory = data.index(b"PK\x01\x02")
    path = tmp_path / "day.zip"
    refused = 0
    for _ in range(3_000):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 2, 4, 20))):
            damaged[rng.randrange(directory, len(data))] = rng.choice((0, 1, 0x80, 255, rng.randrange(256)))
        path.write_bytes(damaged)
        try:
            with open_source(path) as source:
                while source.read(1 << 16):
                    pass
        except InputError as error:
            refused += one_line(error)
    assert 0 < refused < 3_000
