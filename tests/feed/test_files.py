"""The feeds of files: what they recognise, pass through and refuse."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from trident_core.contracts import FeedOptions
from trident_core.errors import InputError, UsageError
from trident_core.session import Session
from trident_core.source import Source, open_source
from trident_feed.capture import CaptureFeed
from trident_feed.files import ItchFileFeed, SoupFileFeed
from trident_feed.write import soup_login, soup_packet

FEEDS = (CaptureFeed, ItchFileFeed, SoupFileFeed)
OLD = "S010203-v41"


def scores(head: bytes, name: str = "x") -> list[int]:
    return [feed.detect(head, name) for feed in FEEDS]


def framed(*messages: bytes) -> bytes:
    return b"".join(len(message).to_bytes(2, "big") + message for message in messages)


# --- Recognising --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\0",
        b"\0\0",
        bytes(65_536),
        b"34200.017459617,5,0,1,2238200,-1\n34200.1,1,11885113,21,2238100,1\n" * 50,
        b"#!/usr/bin/env python3\nprint('hello')\n" * 50,
        b'{"u":400900217,"s":"BNBUSDT"}\n' * 50,
        b"DBN\x01" + bytes(100),
        b"\x7fELF" + bytes(100),
        b"\x00\x01A\x00\x01B\x00\x01C",
    ],
)
def test_foreign_bytes_are_nobodys(head: bytes) -> None:
    """FEED-9."""
    assert scores(head) == [0, 0, 0]


def test_random_bytes_are_nobodys() -> None:
    """FEED-9."""
    for seed in range(200):
        assert scores(random.Random(seed).randbytes(2000)) == [0, 0, 0]


def test_other_peoples_files_are_nobodys(shared: Callable[..., Path]) -> None:
    files = [
        shared("data", "databento_dbn", "dbn_rs", "test_data.mbo.dbn"),
        shared("data", "cross_2019-01-30_findli", "01302019-Q.csv"),
        shared("data", "spec", "itch50_fields.json"),
        *sorted(shared("data", "tracebook_v1").glob("*.jsonl")),
        *sorted(shared("data", "databento_dbn", "XNAS.ITCH").glob("*.zst")),
    ]
    for path in files:
        with open_source(path) as source:
            assert scores(source.peek(1 << 16), source.name) == [0, 0, 0], path


def test_itch_is_recognised_by_its_frames(message: Callable[[int], bytes]) -> None:
    one = framed(message(1))
    assert scores(one)[1] >= 50
    assert scores(one[:5])[1] > 0, "a file that is torn in its first message"
    assert scores(one * 3)[1] >= 90
    assert scores(framed(b"?" * 19) + one * 5)[1] >= 80, "a future type among the first"
    assert scores(one * 3)[0] == scores(one * 3)[2] == 0


def test_soup_is_recognised_by_what_it_carries(message: Callable[[int], bytes]) -> None:
    login = soup_login(b"S1", 1)
    data = soup_packet("S", message(1))
    assert scores(login + data * 2 + soup_packet("H"))[2] >= 90
    assert scores(data)[2] >= 50
    assert scores(login)[2] > 0
    assert scores(soup_packet("S", b"of another protocol"))[2] == 0
    assert scores(login + soup_packet("S", b"of another protocol"))[2] == 0
    assert scores(soup_packet("H") * 5)[2] == 0, "heartbeats alone could be anything"
    assert scores(login + data)[:2] == [0, 0]


# --- Day files ----------------------------------------------------------------------------------------------


def test_every_container_gives_the_same_messages(
    shared: Callable[..., Path], read: Callable[..., Any], split: Callable[[bytes], list[bytes]]
) -> None:
    """FEED-10."""
    plain = shared("data", "itch50_runk", "locate-13-10k.bin").read_bytes()
    expected = split(plain)
    assert len(expected) == 10_000
    half = len(plain) // 2 + 1
    for packed in (
        plain,
        gzip.compress(plain),
        gzip.compress(plain[:half]) + gzip.compress(plain[half:]) + bytes(512),
        zstandard.ZstdCompressor().compress(plain),
        bz2.compress(plain),
        lzma.compress(plain, preset=1),
    ):
        source = Source(io.BytesIO(packed), "day")
        assert scores(source.peek(1 << 16)) == [0, 95, 0]
        reading = read(source, ItchFileFeed)
        assert reading.messages == expected
        assert reading.numbers == list(range(1, 10_001))
        assert not reading.anomalies


@pytest.mark.parametrize("chunk", [1, 2, 19, 4096])
def test_chunks_have_the_size_asked_for(
    chunk: int, read: Callable[..., Any], message: Callable[[int], bytes]
) -> None:
    """FEED-5, 16."""
    data = framed(*(message(n) for n in range(50)))
    reading = read(data, ItchFileFeed, chunk=chunk)
    assert reading.messages == [message(n) for n in range(50)]
    assert max(reading.chunk_sizes) <= chunk
    assert sum(reading.chunk_sizes) == len(data)


def test_offsets_count_decompressed_bytes(message: Callable[[int], bytes]) -> None:
    """FEED-4."""
    data = framed(*(message(n) for n in range(50)))
    source = Source(io.BytesIO(gzip.compress(data)), "day.gz")
    at = 0
    for chunk in ItchFileFeed(source, Session(), FeedOptions(chunk_bytes=77)):
        assert (chunk.offset, chunk.seq) == (at, None)
        assert chunk.data.tobytes() == data[at : at + len(chunk.data)]
        at += len(chunk.data)
    assert at == len(data)


def test_a_torn_tail_is_passed_on_for_the_parser_to_count(
    shared: Callable[..., Path], read: Callable[..., Any]
) -> None:
    """FEED-16."""
    plain = shared("data", "itch50_heads", "huckzou_partialData.bin").read_bytes()
    reading = read(plain, ItchFileFeed)
    assert Counter(message[:1] for message in reading.messages) == {b"S": 1, b"R": 7, b"H": 4, b"Y": 4}
    assert sum(reading.chunk_sizes) == len(plain) == sum(len(m) + 2 for m in reading.messages) + 3


def test_zero_prefixes_need_the_lenient_mode(shared: Callable[..., Path], read: Callable[..., Any]) -> None:
    """FEED-17."""
    path = shared("data", "ritch", "ex20101224.TEST_ITCH_50.gz")
    with open_source(path) as source:
        assert scores(source.peek(1 << 16))[1] >= 80
        with pytest.raises(InputError, match=r"length prefix 0.*--lenient"):
            read(source, ItchFileFeed)
    plain = gzip.decompress(path.read_bytes())
    chunks = list(
        ItchFileFeed(
            Source(io.BytesIO(plain), "ritch"), Session(), FeedOptions(lenient=True, chunk_bytes=999)
        )
    )
    assert b"".join(chunk.data.tobytes() for chunk in chunks) == plain


def test_itch_before_5_is_recognised_by_its_bytes(read: Callable[..., Any]) -> None:
    """FEED-18."""
    old = framed(b"T" + bytes(4), b"S" + bytes(4) + b"O", b"T" + bytes(4), b"A" + bytes(29))
    assert scores(old)[1] >= 50
    with pytest.raises(InputError, match=r"ITCH 4\.1, whose messages differ"):
        read(old, ItchFileFeed)


def test_itch_before_5_is_recognised_by_its_name(read: Callable[..., Any]) -> None:
    """FEED-18."""
    assert scores(b"no bytes that anyone knows", OLD) == [0, 1, 0]
    assert scores(b"", OLD) == [0, 0, 0]
    with pytest.raises(InputError, match=r"ITCH 4\.1"):
        read(Source(io.BytesIO(b"no bytes that anyone knows"), OLD), ItchFileFeed)


def test_a_name_does_not_overrule_the_bytes(
    read: Callable[..., Any], message: Callable[[int], bytes]
) -> None:
    """FEED-9, 18."""
    data = framed(message(1), message(2))
    assert read(Source(io.BytesIO(data), OLD), ItchFileFeed).messages == [message(1), message(2)]


def test_a_feed_that_was_forced_passes_anything_on(read: Callable[..., Any]) -> None:
    reading = read(b"\x00\x03abc\x00\x01", ItchFileFeed)
    assert reading.messages == [b"abc"]


@pytest.mark.parametrize("feed", FEEDS)
def test_chunk_bytes_must_be_positive(feed: type, read: Callable[..., Any]) -> None:
    """FEED-5."""
    with pytest.raises(UsageError, match="chunk_bytes"):
        read(b"x", feed, chunk=0)


@pytest.mark.parametrize("feed", FEEDS)
def test_nothing_is_read_before_iteration(feed: Any) -> None:
    """FEED-1."""

    class Untouchable:
        name, path = "x", None

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was used before iteration")

    feed(Untouchable(), Session(), FeedOptions())


# --- SoupBinTCP files ---------------------------------------------------------------------------------------


def stream(message: Callable[[int], bytes], first: int = 5, last: int = 9) -> bytes:
    return (
        soup_packet("+", b"hello")
        + soup_login(b"S1", first)
        + soup_packet("H")
        + b"".join(soup_packet("S", message(n)) for n in range(first, last + 1))
        + soup_packet("U", b"not in the sequence")
        + soup_packet("Z")
    )


@pytest.mark.parametrize("chunk", [1, 30, 1 << 20])
def test_a_soup_stream_is_numbered_from_its_login(
    chunk: int, read: Callable[..., Any], message: Callable[[int], bytes]
) -> None:
    """FEED-3, 37."""
    reading = read(stream(message), SoupFileFeed, chunk=chunk)
    assert reading.numbered == [(n, message(n)) for n in range(5, 10)]
    assert not reading.anomalies
    assert reading.transport == {
        "SoupBinTCP debug": 1,
        "SoupBinTCP login accepted": 1,
        "SoupBinTCP server heartbeat": 1,
        "SoupBinTCP sequenced data": 5,
        "SoupBinTCP unsequenced data": 1,
        "SoupBinTCP end of session": 1,
    }


def test_without_a_login_numbers_start_at_1(
    read: Callable[..., Any], message: Callable[[int], bytes]
) -> None:
    """FEED-37."""
    data = soup_packet("S", message(1)) + soup_packet("S", message(2))
    assert read(data, SoupFileFeed).numbered == [(1, message(1)), (2, message(2))]


def test_a_second_login_of_the_session_gives_messages_once(
    read: Callable[..., Any], message: Callable[[int], bytes]
) -> None:
    again = soup_login(b"S1", 8) + b"".join(soup_packet("S", message(n)) for n in range(8, 12))
    reading = read(stream(message)[:-3] + again, SoupFileFeed)
    assert reading.numbered == [(n, message(n)) for n in range(5, 12)]
    assert reading.anomalies == {"duplicate_messages": 2}


def test_a_message_of_no_bytes_takes_a_number(
    read: Callable[..., Any], message: Callable[[int], bytes]
) -> None:
    """FEED-33."""
    data = soup_packet("S", message(1)) + soup_packet("S") + soup_packet("S", message(3))
    reading = read(data, SoupFileFeed)
    assert reading.numbered == [(1, message(1)), (3, message(3))]
    assert reading.anomalies == {"empty_message": 1}


def test_a_cut_soup_stream(read: Callable[..., Any], message: Callable[[int], bytes]) -> None:
    """FEED-39."""
    data = stream(message)[:-3]
    whole = len(data) - 22
    reading = read(data[: whole - 1], SoupFileFeed)
    assert reading.numbers == [5, 6, 7, 8]
    assert reading.anomalies == {"torn_tail": 1}


def test_soup_that_cannot_be_framed_ends_the_reading(
    read: Callable[..., Any], message: Callable[[int], bytes]
) -> None:
    """FEED-39."""
    good = soup_packet("S", message(1))
    for bad in (b"\x00\x01?", b"\x00\x00S", b"\x00\x05H1234"):
        reading = read(good + bad + good * 3, SoupFileFeed)
        assert reading.numbers == [1]
        assert reading.anomalies == {"malformed": 1}


def test_bytes_after_the_end_of_a_soup_session(
    read: Callable[..., Any], message: Callable[[int], bytes]
) -> None:
    """FEED-39."""
    reading = read(stream(message) + soup_packet("S", message(10)), SoupFileFeed)
    assert reading.numbers[-1] == 9
    assert reading.anomalies == {"bytes_after_end": 22}


def test_a_soup_stream_of_another_protocol(read: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match=r"no ITCH 5\.0 message in a SoupBinTCP stream"):
        read(soup_packet("S", b"A OUCH message") * 3, SoupFileFeed)
