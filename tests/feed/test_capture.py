"""The capture feed on real captures, and every rule of MoldUDP64 on made ones."""

from __future__ import annotations

import datetime as dt
import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trident_core.contracts import FeedOptions
from trident_core.errors import InputError, UsageError
from trident_core.session import Session
from trident_core.source import open_source
from trident_feed.capture import CaptureFeed
from trident_feed.follow import LINES_MAX
from trident_feed.itch import is_itch
from trident_feed.numbering import HELD_RUNS_MAX
from trident_feed.write import (
    ethernet,
    ip,
    mold_datagrams,
    mold_packet,
    pcapng,
    udp,
    write_pcap,
)  # fmt: skip

Read = Callable[..., Any]
Make = Callable[..., bytes]
Message = Callable[[int], bytes]
Build = Callable[..., bytes]

GROUP_A = bytes((233, 252, 0, 1)), 26_400
GROUP_B = bytes((233, 252, 0, 2)), 26_400
T0 = 1_700_000_000_000_000_000


def good(message: Message, first: int, last: int) -> list[tuple[int, bytes]]:
    return [(number, message(number)) for number in range(first, last + 1)]


# --- Real captures ------------------------------------------------------------------------------------------

REAL_SEQUENCES = {
    "AddOrderNoMpidAttributionMessage": [14_757_721],
    "MarketParticipantPositionMessage": [17_861_990],
    "Multiple.Packets": [14_764_496, *range(19_009_117, 19_009_155)],
    "NetOrderImbalanceIndicatorMessage": [14_757_919],
    "OrderDeleteMessage": [14_757_722],
    "OrderExecutedMessage": [14_757_745],
    "OrderReplaceMessage": [14_757_701],
    "StockTradingActionMessage": [34_147_961],
}


def test_real_totalview_captures(shared: Callable[..., Path], read: Read) -> None:
    """FEED-25, 28."""
    folder = shared("data", "pcap", "Nasdaq.Equities.TotalView.Itch.v5.0")
    types: Counter[str] = Counter()
    for path in sorted(folder.glob("*.pcap")):
        with open_source(path) as source:
            reading = read(source)
        assert reading.numbers == REAL_SEQUENCES[path.stem]
        assert all(is_itch(message) for message in reading.messages)
        assert reading.session.date == dt.date(2023, 8, 22)
        jump = 19_009_117 - 14_764_497
        assert reading.anomalies == ({"gap_messages": jump} if path.stem == "Multiple.Packets" else {})
        types.update(chr(message[0]) for message in reading.messages)
    assert types == {"A": 37, "D": 2, "F": 2, "L": 1, "I": 1, "E": 1, "U": 1, "H": 1}


def test_real_captures_with_zeroed_headers(shared: Callable[..., Path], read: Read) -> None:
    """FEED-34."""
    folder = shared("data", "pcap", "Nasdaq.Equities.TotalView.Itch.v5.0.20230822")
    types: Counter[str] = Counter()
    for path in sorted(folder.glob("*.pcap")):
        with open_source(path) as source, pytest.raises(InputError, match="--lenient"):
            read(source)
        with open_source(path) as source:
            reading = read(source, lenient=True)
        assert reading.numbers == list(range(1, len(reading.messages) + 1))
        assert all(is_itch(message) for message in reading.messages)
        assert not reading.anomalies
        types.update(chr(message[0]) for message in reading.messages)
    assert types == {**dict.fromkeys("AFQJLIPXDECUYH", 5), "S": 1}


def test_real_captures_of_ouch_end_in_one_line(shared: Callable[..., Path], read: Read) -> None:
    """FEED-24."""
    carried = {}
    for path in sorted(shared("data", "pcap", "Nasdaq.Nsm.Ouch.v5.0").glob("*.pcap")):
        with open_source(path) as source:
            feed = CaptureFeed(source, Session(), FeedOptions())
            if path.stem == "ServerHeartbeatPacket":
                assert list(feed) == []
            else:
                with pytest.raises(InputError, match=r"no ITCH 5\.0 message in 1 packet ") as caught:
                    list(feed)
                assert "\n" not in str(caught.value)
                assert caught.value.hint
            carried[path.stem] = dict(feed.transport)
    assert carried == {
        "CancelOrderMessage": {"SoupBinTCP unsequenced data": 1},
        "CanceledMessage": {"SoupBinTCP sequenced data": 1},
        "ClientHeartbeatPacket": {"SoupBinTCP client heartbeat": 1},
        "EnterOrderMessage": {"SoupBinTCP unsequenced data": 1},
        "OrderAcceptedMessage": {"SoupBinTCP sequenced data": 1},
        "ServerHeartbeatPacket": {"SoupBinTCP server heartbeat": 1},
    }


def test_a_compressed_capture(shared: Callable[..., Path], read: Read, tmp_path: Path) -> None:
    plain = shared("data", "pcap", "Nasdaq.Equities.TotalView.Itch.v5.0", "Multiple.Packets.pcap")
    packed = tmp_path / "capture.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    with open_source(plain) as one, open_source(packed) as other:
        assert read(one).numbered == read(other).numbered


def test_real_messages_through_our_own_captures(
    shared: Callable[..., Path], read: Read, split: Callable[[bytes], list[bytes]], tmp_path: Path
) -> None:
    framed = shared("data", "itch50_runk", "locate-13-10k.bin").read_bytes()
    path = tmp_path / "made.pcap"
    packets = write_pcap(path, framed, first=1001, start_ns=T0)
    with open_source(path) as source:
        reading = read(source)
    assert reading.messages == split(framed)
    assert reading.numbers == list(range(1001, 11_001))
    assert reading.transport == {"MoldUDP64 messages": 10_000, "MoldUDP64 end of session": 1}
    assert 200 < packets < 300
    assert reading.session.date == dt.date(2023, 11, 14)
    with pytest.raises(UsageError, match="is cut"):
        write_pcap(path, framed[:-1])


# --- MoldUDP64 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 50, 100, 1 << 20])
def test_any_chunking_gives_the_same(
    chunk: int, read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-5, 6."""
    frames = [mold(1, 5), mold(6, 6), mold(9, 12), mold(7, 8), mold(20, 22)]
    reading = read(capture(frames), chunk=chunk)
    assert reading.numbered == good(message, 1, 12) + good(message, 20, 22)
    assert reading.anomalies == {"gap_messages": 7}
    assert all(size <= max(chunk, 21) for size in reading.chunk_sizes)
    if chunk == 1 << 20:
        assert reading.chunk_sizes == [12 * 21, 3 * 21], "runs of numbers are joined"


def test_duplicates_are_used_once(read: Read, mold: Make, capture: Build, message: Message) -> None:
    """FEED-29."""
    reading = read(capture([mold(1, 5), mold(1, 5), mold(4, 7), mold(3, 4)]))
    assert reading.numbered == good(message, 1, 7)
    assert reading.anomalies == {"duplicate_messages": 9}


def test_two_lines_of_one_session_are_merged(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-26."""
    a = [mold(n, n + 1, dst=GROUP_A) for n in range(1, 41, 2)]
    b = [mold(n, n + 1, dst=GROUP_B) for n in range(1, 41, 2)]
    del a[3:5], b[7], b[15:]
    frames = [frame for pair in zip(a, b, strict=False) for frame in pair] + a[len(b) :]
    reading = read(capture(frames))
    assert reading.numbered == good(message, 1, 40)
    assert "gap_messages" not in reading.anomalies


def test_late_packets_fill_their_gap_within_the_window(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-30."""
    in_time = [mold(1, 1), *(mold(n, n) for n in range(3, 3 + HELD_RUNS_MAX)), mold(2, 2)]
    reading = read(capture(in_time))
    assert reading.numbered == good(message, 1, 2 + HELD_RUNS_MAX)
    assert not reading.anomalies
    late = [mold(1, 1), *(mold(n, n) for n in range(3, 4 + HELD_RUNS_MAX)), mold(2, 2)]
    reading = read(capture(late))
    assert reading.numbered == [(1, message(1)), *good(message, 3, 3 + HELD_RUNS_MAX)]
    assert reading.anomalies == {"gap_messages": 1, "late_messages": 1}


def test_what_came_before_the_first_packet_is_no_gap(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-31."""
    reading = read(capture([mold(500, 501), mold(499, 500), mold(502, 502)]))
    assert reading.numbered == good(message, 500, 502)
    assert reading.anomalies == {"late_messages": 1, "duplicate_messages": 1}


def test_heartbeats_and_the_end_of_the_session(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-32."""
    quiet, end = mold(6, 5), mold(6, 5, count=0xFFFF)
    reading = read(capture([mold(1, 0), mold(1, 5), quiet, quiet, end, end]))
    assert reading.numbered == good(message, 1, 5)
    assert reading.transport == {
        "MoldUDP64 heartbeat": 3,
        "MoldUDP64 end of session": 2,
        "MoldUDP64 messages": 5,
    }
    assert not reading.anomalies


@pytest.mark.parametrize("count", [0, 0xFFFF])
def test_a_heartbeat_tells_what_is_missing_at_the_end(
    count: int, read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-32."""
    reading = read(capture([mold(1, 5), mold(11, 10, count=count)]))
    assert reading.numbered == good(message, 1, 5)
    assert reading.anomalies == {"gap_messages": 5}
    filled = read(capture([mold(1, 5), mold(11, 10, count=count), mold(6, 10)]))
    assert filled.numbered == good(message, 1, 10)
    assert not filled.anomalies


def test_a_capture_of_heartbeats_alone_is_empty_not_wrong(read: Read, mold: Make, capture: Build) -> None:
    """FEED-24."""
    assert read(capture([mold(1, 0), mold(1, 0, count=0xFFFF)])).numbered == []


def test_a_wrong_sequence_number_does_not_spoil_what_follows(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-30."""
    far = 1 << 61
    reading = read(capture([mold(1, 2), mold(3, 3, number=far), mold(3, 9)]))
    assert reading.numbered == [*good(message, 1, 9), (far, message(3))]
    assert reading.anomalies == {"gap_messages": far - 10}
    beyond = read(capture([mold(1, 2), mold(3, 3, number=1 << 62), mold(3, 9)]))
    assert beyond.numbered == good(message, 1, 9)
    assert beyond.anomalies == {"foreign_packet": 1}


def test_a_new_session_on_the_line_goes_on_counting(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-27."""
    new = {"session": b"LATER"}
    frames = [mold(1, 5), mold(8, 9), mold(1, 3, **new), mold(6, 7), mold(5, 6, **new)]
    reading = read(capture(frames))
    assert reading.numbers == [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 14, 15]
    assert reading.messages[-5:] == [message(n) for n in (1, 2, 3, 5, 6)]
    assert reading.anomalies == {"session_changes": 1, "gap_messages": 3, "late_messages": 2}


def test_a_session_on_another_line_is_another_stream(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-26."""
    other = {"session": b"OTHER", "dst": GROUP_B}
    reading = read(capture([mold(1, 2), mold(1, 9, **other), mold(3, 4), mold(10, 12, **other)]))
    assert reading.numbered == good(message, 1, 4)
    assert reading.anomalies == {"other_stream": 12}


def test_one_port_can_be_chosen(read: Read, mold: Make, capture: Build, message: Message) -> None:
    """FEED-23."""
    there = {"session": b"OTHER", "dst": (GROUP_B[0], 5555)}
    data = capture([mold(1, 2), mold(101, 109, **there), mold(3, 4)])
    assert read(data, port=5555).numbered == good(message, 101, 109)
    reading = read(data, port=26_400)
    assert reading.numbered == good(message, 1, 4)
    assert reading.transport["packet of another port"] == 1
    with pytest.raises(InputError, match="does port 9 carry the feed"):
        read(data, port=9)


def test_lines_are_bounded(read: Read, mold: Make, capture: Build, message: Message) -> None:
    """FEED-8."""
    frames = [mold(n, n, dst=(GROUP_A[0], 1000 + n)) for n in range(1, LINES_MAX + 3)]
    reading = read(capture(frames))
    assert reading.numbered == good(message, 1, LINES_MAX)
    assert reading.anomalies == {"other_stream": 2}


def test_the_first_stream_of_another_protocol_is_not_followed(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-25."""
    other = ethernet(udp(mold_packet(b"OTHER", 1, [b"quote", b"quote"]), dst=GROUP_B))
    reading = read(capture([other, mold(1, 2), other, mold(3, 3)]))
    assert reading.numbered == good(message, 1, 3)
    assert reading.anomalies == {"other_stream": 4}


def test_messages_of_no_bytes_take_a_number(read: Read, capture: Build, message: Message) -> None:
    """FEED-33."""
    parts = [b"", message(2), b"", b"", message(5), b""]
    frame = ethernet(udp(mold_packet(b"S", 1, parts)))
    again = ethernet(udp(mold_packet(b"S", 4, [*parts[3:], message(7)])))
    for chunk in (1, 1 << 20):
        reading = read(capture([frame, again]), chunk=chunk)
        assert reading.numbered == [(2, message(2)), (5, message(5)), (7, message(7))]
        assert reading.anomalies == {"empty_message": 4, "duplicate_messages": 3}


def test_zeroed_headers_among_numbered_packets(
    read: Read, mold: Make, capture: Build, message: Message
) -> None:
    """FEED-34."""
    data = capture([mold(1, 2), mold(3, 4, number=0), mold(5, 5)])
    reading = read(data)
    assert reading.numbers == [1, 2, 5]
    assert reading.anomalies == {"unnumbered_messages": 2, "gap_messages": 2}
    assert read(data, lenient=True).numbered == good(message, 1, 5)


def test_udp_that_is_not_mold_is_foreign(read: Read, mold: Make, capture: Build, message: Message) -> None:
    """FEED-21, 28."""
    packet = mold_packet(b"SESSION", 3, [message(3)])
    foreign = [
        b"short", packet[:-1], packet + b"!", mold_packet(b"\x01\x02", 3, [message(3)]),
        mold_packet(b"SESSION", 3, [message(3)], 0), mold_packet(b"SESSION", 3, [message(3)], 0xFFFF),
        mold_packet(b"SESSION", 3, [message(3)], 2),
    ]  # fmt: skip
    reading = read(capture([mold(1, 2), *(ethernet(udp(each)) for each in foreign), mold(3, 3)]))
    assert reading.numbered == good(message, 1, 3)
    assert reading.anomalies == {"foreign_packet": len(foreign)}
    assert reading.transport["UDP that is not MoldUDP64"] == len(foreign)


def test_a_capture_without_the_feed_is_one_line(read: Read, capture: Build) -> None:
    """FEED-24."""
    ping = ethernet(ip(1, b"ping....", GROUP_A[0], GROUP_B[0]))
    with pytest.raises(InputError, match=r"no ITCH 5\.0 message in 3 packets .IP protocol 1: 3") as caught:
        read(capture([ping] * 3))
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="in 0 packets"):
        read(capture([]))
    with pytest.raises(InputError, match="not a pcap or pcapng"):
        read(b"something else")


def test_the_users_date_is_kept(mold: Make, capture: Build, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(capture([mold(1, 2)]))
    session = Session(date=dt.date(2001, 2, 3))
    with open_source(path) as source:
        assert len(list(CaptureFeed(source, session, FeedOptions()))) == 1
    assert session.date == dt.date(2001, 2, 3)


def test_a_clock_that_was_not_set_gives_no_date(read: Read, mold: Make) -> None:
    for ts in (0, 1000):
        assert read(b"".join(pcapng([(ts, mold(1, 2))]))).session.date is None


def test_mold_datagrams_respect_the_mtu(message: Message) -> None:
    sizes = [len(each) for each in mold_datagrams((message(n) for n in range(10)), mtu=100)]
    assert sizes == [20 + 3 * 21] * 3 + [20 + 21, 20]
    assert len(list(mold_datagrams([message(1), message(2)], mtu=1))) == 3
