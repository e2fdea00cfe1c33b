"""LOBSTER lines: every type by hand, every kind of bad line, any split."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.contracts import Chunk, Parser, Status, TradingState
from trident_core.decode import decode, events_of
from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_parser.lobster import LINE_BYTES_MAX, LobsterParser

SECOND = 1_000_000_000
B, S = ord("B"), ord("S")


def parse(data: bytes) -> tuple[Events, LobsterParser]:
    parser = LobsterParser(Session())
    return events_of(data, parser), parser


@pytest.mark.parametrize(
    ("line", "letter", "columns"),
    [
        (b"34200.1,1,11885113,21,2238100,1", "A", {"ref": 11885113, "qty": 21, "price": 2238100, "side": B}),
        (b"34200.1,2,16,50,2238100,-1", "X", {"ref": 16, "qty": 50, "price": 2238100, "side": S}),
        (b"34200.1,3,16,100,2238100,-1", "D", {"ref": 16, "qty": 100, "price": 2238100, "side": S}),
        (b"34200.1,4,16,4,5794000,1", "E", {"ref": 16, "qty": 4, "price": 5794000, "side": B}),
        (b"34200.1,5,0,1,2238200,-1", "P", {"qty": 1, "price": 2238200, "side": S}),
        (b"34200.1,6,-1,1200,2238200,-1", "Q", {"qty": 1200, "price": 2238200, "side": S, "aux": b"O"}),
        (b"57600.1,6,-2,1200,2238200,1", "Q", {"qty": 1200, "price": 2238200, "side": B, "aux": b"C"}),
        (b"40000.1,6,-3,1200,2238200,1", "Q", {"qty": 1200, "price": 2238200, "side": B}),
        (b"36023,7,0,0,-1,-1", "H", {"aux": bytes([TradingState.HALTED])}),
        (b"36323,7,0,0,0,-1", "H", {"aux": bytes([TradingState.QUOTATION])}),
        (b"36723,7,0,0,1,-1", "H", {"aux": bytes([TradingState.TRADING])}),
    ],
)  # fmt: skip
def test_each_type(line: bytes, letter: str, columns: dict[str, Any]) -> None:
    events, parser = parse(line + b"\n")
    expected = np.zeros(1, EVENT)
    expected["seq"], expected["locate"], expected["type"] = 1, 1, ord(letter)
    expected["ts"] = events["ts"]  # test_time
    for name, value in columns.items():
        expected[name] = list(value.ljust(8, b"\0")) if name == "aux" else value
    assert events.tobytes() == expected.tobytes()
    assert parser.counts.nonzero()[0].tolist() == [ord(letter)]
    assert not parser.anomalies


@pytest.mark.parametrize(
    ("text", "ts"),
    [
        ("34200.017459617", 34200 * SECOND + 17_459_617),
        ("34200.18960767", 34200 * SECOND + 189_607_670),
        ("34200.000000001", 34200 * SECOND + 1),
        ("36023", 36023 * SECOND),
        ("0.5", SECOND // 2),
        ("43002.632812672004", 43002 * SECOND + 632_812_672),  # AMZN, 5 levels, line 67,823
        ("34200.1234567894999", 34200 * SECOND + 123_456_789),
        ("34200.1234567895", 34200 * SECOND + 123_456_790),
        ("34200.9999999996", 34201 * SECOND),
        ("99999.999999999", 99999 * SECOND + 999_999_999),
    ],
)
def test_time_is_exact_to_the_nanosecond(text: str, ts: int) -> None:
    events, _ = parse(f"{text},1,1,1,1,1\n".encode())
    assert events["ts"].tolist() == [ts]


def test_widest_numbers() -> None:
    events, parser = parse(b"34200.1,1,18446744073709551615,999999999999999999,-999999999999999999,1\n")
    assert not parser.anomalies
    row = events[0]
    assert (row["ref"], row["qty"], row["price"]) == (2**64 - 1, 10**18 - 1, -(10**18) + 1)


GOOD = b"34200.1,1,7,100,2238100,1\n"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\r",
        b" ",
        b"Time,Type,OrderID,Size,Price,Direction",
        b"34200.1,1,7,100,2238100",
        b"34200.1,1,7,100,2238100,1,0",
        b"34200.1,1,7,100,2238100,2",
        b"34200.1,1,7,100,2238100,0",
        b"34200.1,0,7,100,2238100,1",
        b"34200.1,8,7,100,2238100,1",
        b"34200.1,1,0,100,2238100,1",  # an order without a reference
        b"34200.1,1,-1,100,2238100,1",
        b"34200.1,5,-1,100,2238100,1",
        b"34200.1,1,18446744073709551616,100,2238100,1",
        b"34200.1,1,7,-100,2238100,1",
        b"34200.1,1,7,1e2,2238100,1",
        b"34200.1,1,7,100,223.81,1",
        b"34200.1,1,7,1000000000000000000,2238100,1",
        b"34200.,1,7,100,2238100,1",
        b"-34200.1,1,7,100,2238100,1",
        b"134200.1,1,7,100,2238100,1",
        b"3.42e4,1,7,100,2238100,1",
        b" 34200.1,1,7,100,2238100,1",
        "٣4200.1,1,7,100,2238100,1".encode(),  # a digit, but not an ASCII one
        b"36023,7,0,0,2,-1",
        b"34200.1,1,7,100,2238100,1" + b" " * 200,
        b"\0" * 1000,
    ],
)
def test_bad_lines_are_counted_where_they_begin_and_skipped(line: bytes) -> None:
    events, parser = parse(GOOD + line + b"\n" + GOOD)
    assert events["seq"].tolist() == [1, 3]
    assert parser.anomalies.to_json() == {"bad_line": {"count": 1, "first_at": [len(GOOD)]}}
    assert parser.counts[ord("?")] == 1
    assert parser.counts[ord("A")] == 2
    assert parser.next_seq == 4


@pytest.mark.parametrize("extra", [0, 1])
def test_the_longest_line(extra: int) -> None:
    """128 bytes with the newline are looked at, 129 are not; either way one line."""
    line = GOOD[:-1].rjust(LINE_BYTES_MAX - 1 + extra, b"0") + b"\n"
    assert len(line) == LINE_BYTES_MAX + extra
    events, parser = parse(line + GOOD)
    assert events["seq"].tolist() == [2]
    assert parser.anomalies["bad_line"].positions == [0]


def test_crlf_lines() -> None:
    events, parser = parse(GOOD.replace(b"\n", b"\r\n") * 2)
    assert len(events) == 2
    assert not parser.anomalies


def line() -> st.SearchStrategy[bytes]:
    number = st.integers(-2, 10**6).map(lambda n: str(n).encode())
    good = st.tuples(
        st.sampled_from([b"34200.017459617", b"36023", b"43002.632812672004"]),
        st.sampled_from(b"12345678").map(lambda digit: bytes([digit])),
        number, number, number, st.sampled_from([b"1", b"-1", b"0"]),
    ).map(b",".join)  # fmt: skip
    return st.one_of(good, st.binary(max_size=40), st.integers(100, 400).map(lambda n: b"7" * n))


def state(parser: Parser) -> tuple[Any, ...]:
    return parser.next_seq, parser.counts.tolist(), parser.anomalies.to_json()


@settings(max_examples=150, deadline=None)
@given(data=st.data(), batch=st.integers(1, 5), torn=st.booleans())
def test_any_split_gives_the_same(data: st.DataObject, batch: int, torn: bool) -> None:
    text = b"\n".join(data.draw(st.lists(line(), max_size=12))) + (b"" if torn else b"\n")
    frames = np.frombuffer(text, np.uint8)
    whole, parts, bytewise = (LobsterParser(Session()) for _ in range(3))
    expected = events_of(text, whole)
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=8))})
    for parser, ends in ((parts, cuts), (bytewise, range(len(text) + 1))):
        chunks = [Chunk(frames[a:b], None, a) for a, b in pairwise(ends)]
        found = [events.copy() for events in decode(chunks, parser, batch=batch)]
        assert np.concatenate([np.zeros(0, EVENT), *found]).tobytes() == expected.tobytes()
        assert state(parser) == state(whole)


def test_a_line_without_end_takes_no_memory() -> None:
    parser = LobsterParser(Session())
    piece = np.full(1 << 16, ord("1"), np.uint8)
    tracemalloc.start()
    try:
        chunks = (Chunk(piece, None, n << 16) for n in range(64))
        assert list(decode(chunks, parser, batch=16)) == []
        assert tracemalloc.get_traced_memory()[1] < 1 << 18
    finally:
        tracemalloc.stop()
    assert parser.anomalies.to_json() == {"bad_line": {"count": 1, "first_at": [0]}}


def test_statuses() -> None:
    parser, out = LobsterParser(Session()), np.zeros(2, EVENT)
    three = np.frombuffer(GOOD * 3, np.uint8)
    assert parser.parse_into(three, out) == (2 * len(GOOD), 2, Status.OUT_FULL)
    assert parser.parse_into(three[2 * len(GOOD) :], out) == (len(GOOD), 1, Status.OK)
    assert parser.parse_into(three[:-1], out[:1]) == (len(GOOD), 1, Status.OUT_FULL)
    assert parser.parse_into(three[: len(GOOD) - 1], out) == (0, 0, Status.NEED_MORE)
    assert parser.parse_into(three[:0], out) == (0, 0, Status.OK)
    assert (parser.next_seq, parser.position) == (5, 4 * len(GOOD))


def test_the_caller_may_set_number_and_position() -> None:
    parser = LobsterParser(Session(), lenient=True)
    parser.next_seq, parser.position = 1_000, 5_000
    events = events_of(GOOD + b"bad\n", parser)
    assert events["seq"].tolist() == [1_000]
    assert parser.anomalies["bad_line"].positions == [5_000 + len(GOOD)]


@pytest.mark.parametrize(
    ("frames", "out"),
    [
        (np.zeros(8, np.int8), np.zeros(1, EVENT)),
        (np.zeros(8, np.uint8)[::2], np.zeros(1, EVENT)),
        (np.zeros(8, np.uint8), np.zeros(0, EVENT)),
        (np.zeros(8, np.uint8), np.zeros(4, EVENT)[::2]),
        (np.zeros(8, np.uint8), np.zeros(8, np.uint64)),
    ],
)
def test_wrong_arrays_are_refused(frames: Any, out: Any) -> None:
    with pytest.raises(UsageError):
        LobsterParser(Session()).parse_into(frames, out)
