"""SoupBinTCP in captures: TCP streams put together, logins, losses, reconnections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trident_feed.write import (
    ethernet,
    soup_login,
    soup_packet,
    tcp,
)  # fmt: skip

Read = Callable[..., Any]
Make = Callable[..., bytes]
Message = Callable[[int], bytes]
Build = Callable[..., bytes]


def good(message: Message, first: int, last: int) -> list[tuple[int, bytes]]:
    return [(number, message(number)) for number in range(first, last + 1)]


SERVER = bytes((192, 0, 2, 9)), 18_000
CLIENT = bytes((192, 0, 2, 7)), 40_000
ISN = 2**32 - 30  # so that numbers wrap early


def segments(stream: bytes, sizes: int = 25, *, isn: int = ISN, syn: bool = True) -> list[bytes]:
    """The stream in segments of `sizes` bytes, from server to client."""
    out = [ethernet(tcp(b"", SERVER, CLIENT, isn, 0x12))] if syn else []
    return out + [
        ethernet(tcp(stream[at : at + sizes], SERVER, CLIENT, isn + 1 + at))
        for at in range(0, len(stream), sizes)
    ]


def soup_stream(message: Message, first: int, last: int, *, login: bool = True) -> bytes:
    out = soup_login(b"SOUP", first) if login else b""
    for number in range(first, last + 1):
        out += soup_packet("S", message(number)) + (soup_packet("H") if number % 3 == 0 else b"")
    return out


@pytest.mark.parametrize("size", [1, 7, 22, 1000])
def test_soup_over_tcp(size: int, read: Read, capture: Build, message: Message) -> None:
    """FEED-36, 37."""
    stream = soup_stream(message, 11, 30) + soup_packet("U", b"x") + soup_packet("Z")
    request = ethernet(tcp(soup_packet("L", bytes(46)), CLIENT, SERVER, 1))
    reading = read(capture([request, *segments(stream, size)]))
    assert reading.numbered == good(message, 11, 30)
    assert not reading.anomalies
    assert reading.transport["SoupBinTCP login request"] == 1
    assert reading.transport["SoupBinTCP end of session"] == 1
    assert reading.transport["SoupBinTCP server heartbeat"] == 7


def test_tcp_segments_out_of_order_and_again(read: Read, capture: Build, message: Message) -> None:
    """FEED-36."""
    frames = segments(soup_stream(message, 1, 40))
    shuffled = [frame for pair in zip(frames[1::2], frames[0::2], strict=False) for frame in pair]
    if len(frames) % 2:
        shuffled.append(frames[-1])
    reading = read(capture([frames[0], *shuffled, *frames[3:9]]))
    assert reading.numbered == good(message, 1, 40)
    assert not reading.anomalies
    assert reading.transport["TCP bytes sent again"] == 6 * 25


def test_a_connection_joined_late_starts_at_a_packet(read: Read, capture: Build, message: Message) -> None:
    """FEED-36."""
    stream = soup_stream(message, 1, 20, login=False)
    frames = segments(stream, 22 * 2 + 3, syn=False)
    reading = read(capture(frames))
    assert reading.messages == [message(n) for n in range(1, 21)][-len(reading.messages) :]
    assert reading.numbers == list(range(1, len(reading.messages) + 1)), "no login, so numbers start at 1"
    assert len(reading.messages) >= 17


def test_lost_segments_are_counted_and_reading_resumes(read: Read, capture: Build, message: Message) -> None:
    """FEED-38."""
    stream = soup_stream(message, 1, 2) + b"".join(soup_packet("S", message(n)) for n in range(3, 41))
    head = len(soup_stream(message, 1, 2))
    frames = [*segments(stream[:head], head), *segments(stream[head:], 22, isn=ISN + head, syn=False)]
    del frames[12:15]
    reading = read(capture(frames))
    assert [m[-1] for m in reading.messages] == [*range(1, 13), *range(16, 41)]
    assert reading.anomalies == {"gap_bytes": 66}


def test_a_reconnection_continues_the_session(read: Read, capture: Build, message: Message) -> None:
    """FEED-26, 37."""
    again = (bytes((192, 0, 2, 7)), 40_001)
    second = soup_stream(message, 8, 20)
    frames = segments(soup_stream(message, 1, 10))
    frames.append(ethernet(tcp(b"", SERVER, CLIENT, 5, 0x04)))
    frames.append(ethernet(tcp(b"", SERVER, again, 100, 0x12)))
    frames.append(ethernet(tcp(second, SERVER, again, 101)))
    reading = read(capture(frames))
    assert reading.numbered == good(message, 1, 20)
    assert reading.anomalies == {"duplicate_messages": 3}


def test_other_tcp_traffic_is_foreign(read: Read, capture: Build, message: Message) -> None:
    """FEED-21."""
    web = bytes((198, 51, 100, 1)), 80
    page = [ethernet(tcp(b"HTTP/1.1 200 OK\r\n", web, CLIENT, 1000 * n, 0x18)) for n in range(5)]
    opened = ethernet(tcp(b"", web, CLIENT, 999, 0x12))
    ack = ethernet(tcp(b"", CLIENT, SERVER, 1, 0x10))
    frames = segments(soup_stream(message, 1, 10))
    reading = read(capture([page[0], ack, *frames[:3], opened, *page[1:], *frames[3:]]))
    assert reading.numbered == good(message, 1, 10)
    assert reading.anomalies["foreign_packet"] >= 2


def test_many_connections_are_bounded_and_the_feed_survives_them(
    read: Read, capture: Build, message: Message
) -> None:
    stream = segments(soup_stream(message, 1, 60))
    noise = [
        ethernet(tcp(b"x" * 9, (bytes((10, 0, n // 250, n % 250)), 1000), CLIENT, 7, 0x02))
        for n in range(600)
    ]
    frames = stream[:10] + noise[:300] + stream[10:20] + noise[300:] + stream[20:]
    reading = read(capture(frames))
    assert reading.numbered == good(message, 1, 60)


def test_bytes_after_the_end_of_the_session(read: Read, capture: Build, message: Message) -> None:
    """FEED-39."""
    stream = soup_stream(message, 1, 5) + soup_packet("Z")
    reading = read(capture(segments(stream + soup_packet("S", message(6)), 1000)))
    assert reading.numbered == good(message, 1, 5)
    assert reading.anomalies == {"bytes_after_end": 22}


def test_a_stream_that_ends_inside_a_packet(read: Read, capture: Build, message: Message) -> None:
    """FEED-39."""
    reading = read(capture(segments(soup_stream(message, 1, 5)[:-1], 1000)))
    assert reading.numbered == good(message, 1, 4)
    assert reading.anomalies == {"torn_tail": 1}


def test_a_login_without_a_number(read: Read, capture: Build, message: Message) -> None:
    """FEED-37."""
    broken = soup_packet("A", b"SOUP".rjust(10) + b"one".rjust(20))
    reading = read(capture(segments(broken + soup_packet("S", message(1)), 1000)))
    assert reading.numbered == good(message, 1, 1)
    assert reading.anomalies == {"foreign_packet": 1}
