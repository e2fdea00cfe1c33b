"""The driver between feed and parser: any chunking, sequence numbers, left-overs, bounded memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core import Chunk, ParseResult, Session, Status
from trident_core.decode import MESSAGE_BYTES_MAX, decode, events_of
from trident_core.dtypes import EVENT, Events, Frames
from trident_core.errors import InputError, PluginError, UsageError
from trident_core.stats import Anomalies
from trident_parser.reference import ReferenceParser


def delete(reference: int) -> bytes:
    return bytes.fromhex("0013 44 0001") + bytes(8) + reference.to_bytes(8, "big")


def chunk(data: bytes, offset: int = 0, seq: int | None = None) -> Chunk:
    return Chunk(np.frombuffer(data, np.uint8), seq, offset)


def run(chunks: list[Chunk], parser: ReferenceParser, batch: int = 65_536) -> Events:
    batches = [events.copy() for events in decode(chunks, parser, batch=batch)]
    assert all(1 <= len(events) <= batch for events in batches)
    return np.concatenate([np.zeros(0, EVENT), *batches])


def snapshot(parser: ReferenceParser) -> tuple[Any, ...]:
    return parser.next_seq, parser.counts.tolist(), parser.anomalies.to_json(), list(parser.session.directory)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), lenient=st.booleans(), batch=st.integers(1, 9), start=st.integers(0, 2**40))
def test_any_chunking_gives_the_same(
    any_frames: Callable[..., Any], data: st.DataObject, lenient: bool, batch: int, start: int
) -> None:
    frames = data.draw(any_frames())
    frames += data.draw(st.sampled_from([b"", b"\0", b"\0\0", b"\0\x13D", b"\0\0\0\0xyz"]))
    whole, parts, bytewise = (ReferenceParser(Session(), lenient=lenient) for _ in range(3))
    whole.position = start
    expected = events_of(frames, whole)
    cuts = sorted({0, len(frames), *data.draw(st.lists(st.integers(0, len(frames)), max_size=8))})
    chunks = [chunk(frames[a:b], start + a) for a, b in pairwise(cuts)]
    assert np.array_equal(run(chunks, parts, batch), expected)
    assert snapshot(parts) == snapshot(whole)

    single = [chunk(frames[at : at + 1], start + at) for at in range(len(frames))]
    assert np.array_equal(run(single, bytewise, batch), expected)
    assert snapshot(bytewise) == snapshot(whole)
    if frames:
        assert bytewise.position == parts.position == whole.position


def test_single_bytes_of_a_real_file(shared: Callable[..., Path]) -> None:
    frames = shared("data", "itch50_runk", "locate-13-10k.bin").read_bytes()[:60_000]
    whole, parts = ReferenceParser(Session()), ReferenceParser(Session())
    expected = events_of(frames, whole)
    events = run([chunk(frames[at : at + 1], at) for at in range(len(frames))], parts)
    assert np.array_equal(events, expected)
    assert snapshot(parts) == snapshot(whole)


def test_batches_are_full_and_share_one_buffer() -> None:
    frames = b"".join(map(delete, range(1, 11)))
    batches = decode(
        [chunk(frames[:50]), chunk(frames[50:], 50)], ReferenceParser(Session()), batch=4, linger_s=60
    )
    first = next(batches)
    seen = [(len(first), first["ref"].tolist())]
    for events in batches:
        assert np.shares_memory(events, first)
        seen.append((len(events), events["ref"].tolist()))
    assert seen == [(4, [1, 2, 3, 4]), (4, [5, 6, 7, 8]), (2, [9, 10])]


def test_a_slow_feed_releases_what_there_is() -> None:
    chunks = [chunk(delete(n), 21 * n) for n in range(3)]
    assert [len(e) for e in decode(chunks, ReferenceParser(Session()), linger_s=0)] == [1, 1, 1]


def test_on_chunk_is_called_after_each() -> None:
    seen = []
    chunks = [chunk(delete(1)), chunk(b""), chunk(delete(2), 21)]
    list(decode(chunks, ReferenceParser(Session()), on_chunk=lambda each: seen.append(each.offset)))
    assert seen == [0, 0, 21]


def test_sequence_numbers_and_offsets_come_from_the_chunks() -> None:
    parser = ReferenceParser(Session())
    chunks = [
        chunk(delete(1) + b"\0\x01?", offset=100, seq=50),
        chunk(delete(2) + b"\0\x01?", offset=300),
        chunk(b"", offset=400, seq=70),
        chunk(delete(3) + b"\0\x01?", offset=500),
    ]
    assert run(chunks, parser)["seq"].tolist() == [50, 52, 70]
    assert parser.next_seq == 72
    assert parser.anomalies["unknown_type"].positions == [121, 321, 521]


def test_offsets_follow_the_chunk_after_a_cut_message() -> None:
    """In a capture the two halves of a message are not adjacent in the source."""
    frame = delete(2)
    parser = ReferenceParser(Session())
    run([chunk(delete(1) + frame[:9], 1000), chunk(frame[9:], 2000), chunk(b"\0\x01?", 3000)], parser)
    assert parser.anomalies["unknown_type"].positions == [3000]
    run([chunk(frame[:9], 1000), chunk(frame[9:] + delete(4) * 9 + b"\0\x01?", 2000)], parser)
    assert parser.anomalies["unknown_type"].positions == [3000, 2000 + 12 + 9 * 21]


def test_torn_tail_at_the_end() -> None:
    """PARSER-25."""
    parser = ReferenceParser(Session())
    assert len(run([chunk(delete(1) + delete(2)[:-1], 10)], parser)) == 1
    assert parser.anomalies.to_json() == {"torn_tail": {"count": 1, "first_at": [31]}}


def test_torn_tail_before_a_chunk_with_a_sequence_number() -> None:
    """PARSER-25."""
    parser = ReferenceParser(Session())
    events = run([chunk(delete(1) + delete(2)[:5], 10, seq=1), chunk(delete(3), 90, seq=9)], parser)
    assert [(int(e["seq"]), int(e["ref"])) for e in events] == [(1, 1), (9, 3)]
    assert parser.anomalies.to_json() == {"torn_tail": {"count": 1, "first_at": [31]}}


@pytest.mark.parametrize("cut", range(8))
def test_bytes_after_the_end(cut: int) -> None:
    """PARSER-26."""
    parser = ReferenceParser(Session())
    data = delete(1) + b"\0\0" + b"abcdef"
    at = 20 + cut
    assert len(run([chunk(data[:at], 5), chunk(data[at:], 5 + at, seq=None)], parser)) == 1
    assert parser.anomalies.to_json() == {"bytes_after_end": {"count": 6, "first_at": [28]}}
    assert parser.next_seq == 2


def test_an_end_mark_at_the_very_end_is_no_anomaly() -> None:
    parser = ReferenceParser(Session())
    assert len(run([chunk(delete(1) + b"\0"), chunk(b"\0", 22)], parser)) == 1
    assert not parser.anomalies


@pytest.mark.parametrize("cut", range(4))
def test_malformed_stops_reading(cut: int) -> None:
    """PARSER-27."""
    parser = ReferenceParser(Session(), lenient=True)
    data = delete(1) + b"\0\0Z" + delete(2)
    at = 20 + cut

    def chunks() -> Iterator[Chunk]:
        yield chunk(data[:at], 5)
        yield chunk(data[at:], 5 + at)
        raise AssertionError("reading went on")

    assert sum(map(len, decode(chunks(), parser))) == 1
    assert parser.anomalies.to_json() == {"malformed": {"count": 1, "first_at": [26]}}


def test_events_before_an_error_of_the_feed_come_first() -> None:
    def broken() -> Iterator[Chunk]:
        yield chunk(delete(1))
        raise InputError("the disk is gone")

    batches = decode(broken(), ReferenceParser(Session()))
    assert next(batches)["ref"].tolist() == [1]
    with pytest.raises(InputError, match="the disk is gone"):
        next(batches)


class FakeParser:
    """Answers always the same."""

    def __init__(self, status: Status) -> None:
        self.status = status
        self.session = Session()
        self.anomalies = Anomalies()
        self.counts = np.zeros(256, np.uint64)
        self.next_seq, self.position, self.bytes_seen, self.calls = 1, 0, 0, 0

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        self.calls += 1
        self.bytes_seen += len(frames)
        return ParseResult(0, 0, self.status)


def test_a_parser_without_progress_is_an_error() -> None:
    with pytest.raises(PluginError, match="no progress at offset 7"):
        list(decode([chunk(b"abc", 7)], FakeParser(Status.OUT_FULL)))


def test_an_endless_message_is_malformed_in_bounded_memory() -> None:
    parser = FakeParser(Status.NEED_MORE)
    part = bytes(100_000)
    read = []

    def endless() -> Iterator[Chunk]:
        for n in range(1000):
            read.append(n)
            yield chunk(part, n * len(part))

    assert list(decode(endless(), parser, batch=1)) == []
    assert parser.anomalies.to_json() == {"malformed": {"count": 1, "first_at": [0]}}
    assert len(read) == MESSAGE_BYTES_MAX // len(part) + 1


def test_the_longest_message_in_single_bytes() -> None:
    frames = b"\xff\xff?" + bytes(65_534) + delete(1)
    parser = ReferenceParser(Session())
    events = run([chunk(frames[at : at + 1], at) for at in range(len(frames))], parser)
    assert events["seq"].tolist() == [2]
    assert parser.anomalies["unknown_type"].positions == [0]


def test_a_cut_message_is_offered_in_doubling_steps() -> None:
    parser = FakeParser(Status.NEED_MORE)
    assert list(decode([chunk(b"x"), chunk(bytes(500_000), 1)], parser, batch=1)) == []
    assert parser.calls < 20
    assert parser.bytes_seen < 3 * 500_000


def test_memory_does_not_grow_with_the_input() -> None:
    data = delete(1) * 1000

    def chunks(n: int) -> Iterator[Chunk]:
        for k in range(n):
            yield chunk(data[:-5] if k % 2 else data, k * len(data), seq=1)

    def peak(n: int) -> int:
        tracemalloc.start()
        for _ in decode(chunks(n), ReferenceParser(Session()), batch=500):
            pass
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(1)
    assert peak(12) < peak(3) * 1.5 + 20_000


def test_events_of_accepts_any_bytes_and_continues() -> None:
    parser = ReferenceParser(Session())
    for data in (delete(1), bytearray(delete(2)), memoryview(delete(3)), np.frombuffer(delete(4), np.uint8)):
        events_of(data, parser)
    assert (parser.next_seq, parser.position) == (5, 84)
    assert len(events_of(b"", parser)) == 0
    assert events_of(b"\0\x01?", parser).dtype == EVENT
    assert parser.anomalies["unknown_type"].positions == [84]


def test_batch_must_hold_an_event() -> None:
    with pytest.raises(UsageError, match="at least one event"):
        next(decode([], ReferenceParser(Session()), batch=0))


@pytest.mark.parametrize("seq", [-1, 0, (1 << 63) + 1, (1 << 64) - 2, 1 << 64])
def test_a_number_that_64_bits_could_not_go_on_from_is_the_feeds_fault(seq: int) -> None:
    """Else the numbers would wrap around to small ones, and the store would be blamed."""
    frames = np.frombuffer(b"\0\x0cS" + bytes(10) + b"O", np.uint8)
    with pytest.raises(PluginError, match=f"numbers a message {seq} .at offset 7"):
        list(decode([Chunk(frames, seq, 7)], ReferenceParser(Session())))
    (events,) = decode([Chunk(frames, 1 << 63, 7)], ReferenceParser(Session()))
    assert events["seq"].tolist() == [1 << 63]
