"""Framing, state and directory of the reference parser: PARSER-1 to PARSER-16 of docs/contracts/parser.md."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core import Instrument, Session, Status
from trident_core.contracts import Encoder, ParseResult, TableParser
from trident_core.decode import events_of
from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_parser.reference import ReferenceParser


def octets(data: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(data, np.uint8)


def delete(reference: int, locate: int = 1) -> bytes:
    return bytes.fromhex("0013 44") + locate.to_bytes(2, "big") + bytes(8) + reference.to_bytes(8, "big")


def reg_sho(locate: int, stock: bytes) -> bytes:
    return bytes.fromhex("0014 59") + locate.to_bytes(2, "big") + bytes(8) + stock.ljust(8) + b"0"


def directory_message(locate: int, stock: bytes, authenticity: bytes = b"P") -> bytes:
    head = bytes.fromhex("0027 52") + locate.to_bytes(2, "big") + bytes(8) + stock.ljust(8)
    return head + b"QN\0\0\0dNCZ " + authenticity + b"NN1N\0\0\0\0N"


def parse(data: bytes, parser: ReferenceParser, room: int = 100) -> tuple[ParseResult, Events]:
    out = np.zeros(room, EVENT)
    result = parser.parse_into(octets(data), out)
    return result, out[: result.count]


def test_satisfies_the_optional_protocols() -> None:
    parser = ReferenceParser(Session())
    assert isinstance(parser, TableParser)
    assert isinstance(parser, Encoder)


def test_ok_when_every_byte_is_used() -> None:
    data = delete(1) + delete(2)
    result, events = parse(data, ReferenceParser(Session()))
    assert result == (len(data), 2, Status.OK)
    assert events["ref"].tolist() == [1, 2]


def test_no_bytes_are_ok() -> None:
    assert parse(b"", ReferenceParser(Session()))[0] == (0, 0, Status.OK)


def test_need_more_for_every_cut_of_the_second_message() -> None:
    data = delete(1) + delete(2)
    for size in range(len(delete(1)) + 1, len(data)):
        parser = ReferenceParser(Session())
        assert parse(data[:size], parser)[0] == (21, 1, Status.NEED_MORE)
        assert (parser.position, parser.next_seq) == (21, 2)


def test_out_full_only_while_bytes_are_left() -> None:
    data = delete(1) + delete(2)
    assert parse(data, ReferenceParser(Session()), room=2)[0] == (42, 2, Status.OK)
    assert parse(data, ReferenceParser(Session()), room=1)[0] == (21, 1, Status.OUT_FULL)
    assert parse(delete(1) + b"\0", ReferenceParser(Session()), room=1)[0].status is Status.OUT_FULL
    assert parse(delete(1) + b"\0\0", ReferenceParser(Session()), room=1)[0].status is Status.OUT_FULL


def test_nothing_is_written_past_count() -> None:
    out = np.frombuffer(b"\xa5" * 256, EVENT).copy()
    ReferenceParser(Session()).parse_into(octets(delete(1)), out)
    assert out[1:].tobytes() == b"\xa5" * 192


def test_zero_length_ends_a_strict_session() -> None:
    parser = ReferenceParser(Session())
    result, _ = parse(delete(1) + b"\0\0" + delete(2), parser)
    assert result == (23, 1, Status.END)
    assert (parser.position, parser.next_seq, int(parser.counts.sum())) == (23, 2, 1)


def test_unknown_type_and_wrong_length_are_skipped_and_counted() -> None:
    data = delete(1) + b"\0\x03Zxx" + b"\0\x04Dxxx" + b"\0\x01D" + b"\0\x01z" + delete(2)
    parser = ReferenceParser(Session())
    parser.position = 1000
    result, events = parse(data, parser)
    assert result == (len(data), 2, Status.OK)
    assert events["seq"].tolist() == [1, 6]
    assert parser.anomalies.to_json() == {
        "unknown_type": {"count": 2, "first_at": [1021, 1035]},
        "wrong_length": {"count": 2, "first_at": [1026, 1032]},
    }
    assert {chr(i): int(n) for i, n in enumerate(parser.counts) if n} == {"D": 4, "Z": 1, "z": 1}


def test_wrong_length_does_not_teach_the_directory() -> None:
    frame = bytearray(reg_sho(7, b"AAPL"))
    frame[1] = 21
    parser = ReferenceParser(Session())
    parse(bytes(frame) + b"\0", parser)
    assert parser.anomalies.count("wrong_length") == 1
    assert len(parser.session.directory) == 0


def test_longest_message_is_skipped_too() -> None:
    parser = ReferenceParser(Session())
    result, _ = parse(b"\xff\xff" + bytes(65_535) + delete(1), parser)
    assert result == (65_537 + 21, 1, Status.OK)
    assert parser.anomalies.count("unknown_type") == 1


def test_lenient_ignores_the_prefix_of_known_types() -> None:
    data = b"\0\0" + delete(1)[2:] + b"\xff\xff" + delete(2)[2:] + delete(3)
    parser = ReferenceParser(Session(), lenient=True)
    result, events = parse(data, parser)
    assert result == (len(data), 3, Status.OK)
    assert events["ref"].tolist() == [1, 2, 3]
    assert not parser.anomalies


def test_lenient_skips_unknown_types_by_their_prefix() -> None:
    parser = ReferenceParser(Session(), lenient=True)
    result, events = parse(b"\0\x03Zxx" + delete(1), parser)
    assert result == (26, 1, Status.OK)
    assert events["seq"].tolist() == [2]
    assert parser.anomalies["unknown_type"].positions == [0]


def test_lenient_cannot_frame_an_unknown_type_without_a_prefix() -> None:
    parser = ReferenceParser(Session(), lenient=True)
    result, _ = parse(delete(1) + b"\0\0Z" + delete(2), parser)
    assert result == (21, 1, Status.MALFORMED)
    assert (parser.position, parser.next_seq) == (21, 2)
    assert parse(b"\0\0Z", parser)[0] == (0, 0, Status.MALFORMED)


@pytest.mark.parametrize("size", [1, 2])
def test_lenient_needs_the_type(size: int) -> None:
    assert parse(b"\0\0"[:size], ReferenceParser(Session(), lenient=True))[0] == (0, 0, Status.NEED_MORE)


def test_caller_may_set_seq_and_position() -> None:
    parser = ReferenceParser(Session())
    parser.next_seq, parser.position = 5_000_000_000, 77
    _, events = parse(delete(1) + b"\0\x01?" + delete(2), parser)
    assert events["seq"].tolist() == [5_000_000_000, 5_000_000_002]
    assert parser.anomalies["unknown_type"].positions == [98]
    assert (parser.next_seq, parser.position) == (5_000_000_003, 77 + 45)


@pytest.mark.parametrize(
    "frames",
    [
        np.zeros(4, np.int8),
        np.zeros((2, 2), np.uint8),
        np.zeros(8, np.uint8)[::2],
        np.zeros(4, np.uint16),
        b"abcd",
        None,
    ],
)
def test_wrong_frames_are_refused(frames: Any) -> None:
    with pytest.raises(UsageError, match="frames"):
        ReferenceParser(Session()).parse_into(frames, np.zeros(1, EVENT))
    with pytest.raises(UsageError, match="frames"):
        ReferenceParser(Session()).parse_tables(frames)


def test_wrong_out_is_refused() -> None:
    read_only = np.zeros(1, EVENT)
    read_only.flags.writeable = False
    for out in (np.zeros(0, EVENT), np.zeros(4, EVENT)[::2], np.zeros(4, np.uint64), read_only):
        with pytest.raises(UsageError, match="parse_into needs"):
            ReferenceParser(Session()).parse_into(octets(delete(1)), out)


def test_any_stock_field_teaches_an_unknown_locate() -> None:
    parser = ReferenceParser(Session())
    parse(reg_sho(7, b"AAPL") + reg_sho(8, b"BRK.A\0") + reg_sho(9, b"") + reg_sho(0, b"MSFT"), parser)
    assert [(i.locate, i.symbol, dict(i.details)) for i in parser.session.directory] == [
        (7, "AAPL", {}),
        (8, "BRK.A", {}),
    ]


def test_r_replaces_what_others_taught_and_keeps_its_details() -> None:
    parser = ReferenceParser(Session())
    parse(reg_sho(7, b"ZXZZT") + directory_message(7, b"ZXZZT", b"T") + reg_sho(7, b"ZXZZT"), parser)
    instrument = parser.session.directory.get(7)
    assert instrument is not None
    assert instrument.is_test
    assert instrument.details["issue_sub_type"] == "Z"
    assert not parser.anomalies


def test_symbol_mismatch_is_counted_and_only_r_wins() -> None:
    parser = ReferenceParser(Session())
    data = directory_message(7, b"AAPL") + reg_sho(7, b"MSFT") + reg_sho(7, b"AAPL")
    _, events = parse(data, parser)
    assert len(events) == 3
    assert parser.session.directory.symbol(7) == "AAPL"
    parse(directory_message(7, b"MSFT") + reg_sho(7, b"MSFT") + reg_sho(7, b"AAPL"), parser)
    assert parser.session.directory.symbol(7) == "MSFT"
    assert parser.anomalies["symbol_mismatch"].count == 3
    assert parser.anomalies["symbol_mismatch"].positions == [41, 85, 85 + 41 + 22]


def test_directory_that_others_change_is_seen() -> None:
    parser = ReferenceParser(Session())
    parse(reg_sho(7, b"AAPL"), parser)
    parser.session.directory.put(Instrument(7, "MSFT", {"authenticity": "P"}))
    parse(reg_sho(7, b"AAPL"), parser)
    assert parser.anomalies.count("symbol_mismatch") == 1


def snapshot(parser: ReferenceParser) -> tuple[Any, ...]:
    return (
        parser.next_seq,
        parser.position,
        parser.counts.tolist(),
        parser.anomalies.to_json(),
        [(i.locate, i.symbol, dict(i.details)) for i in parser.session.directory],
    )


@settings(max_examples=150, deadline=None)
@given(data=st.data(), lenient=st.booleans(), room=st.integers(1, 5))
def test_any_split_and_any_room_give_the_same(
    any_frames: Callable[..., Any], data: st.DataObject, lenient: bool, room: int
) -> None:
    frames = data.draw(any_frames())
    whole = ReferenceParser(Session(), lenient=lenient)
    out = np.zeros(100, EVENT)
    end, count, status = whole.parse_into(octets(frames), out)
    cuts = sorted({0, len(frames), *data.draw(st.lists(st.integers(0, len(frames)), max_size=6))})

    parts = ReferenceParser(Session(), lenient=lenient)
    events = []
    last = Status.OK
    at = 0
    for _, cut in pairwise(cuts):
        while last not in (Status.END, Status.MALFORMED):
            result, some = parse(frames[at:cut], parts, room)
            at += result.consumed
            last = result.status
            events.append(some)
            if last is not Status.OUT_FULL:
                break
    assert at == end
    assert last == status or not frames
    assert np.array_equal(np.concatenate([out[:0], *events]), out[:count])
    assert snapshot(parts) == snapshot(whole)


@settings(max_examples=200, deadline=None)
@given(junk=st.binary(max_size=400), lenient=st.booleans())
def test_random_bytes_never_raise(junk: bytes, lenient: bool) -> None:
    parser = ReferenceParser(Session(), lenient=lenient)
    result, _ = parse(junk, parser)
    assert 0 <= result.consumed <= len(junk)
    assert parser.position == result.consumed
    assert int(parser.counts.sum()) == parser.next_seq - 1
    skipped = sum(parser.anomalies.count(name) for name in ("unknown_type", "wrong_length"))
    assert result.count + skipped == parser.next_seq - 1


@settings(max_examples=150, deadline=None)
@given(data=st.data(), lenient=st.booleans())
def test_flipped_bits_never_raise_and_nothing_is_lost(
    any_frames: Callable[..., Any], data: st.DataObject, lenient: bool
) -> None:
    frames = bytearray(data.draw(any_frames(stray=False)))
    for bit in data.draw(st.lists(st.integers(0, max(0, 8 * len(frames) - 1)), max_size=4)):
        if frames:
            frames[bit // 8] ^= 1 << bit % 8
    parser = ReferenceParser(Session(), lenient=lenient)
    events = events_of(frames, parser)
    skipped = sum(parser.anomalies.count(name) for name in ("unknown_type", "wrong_length"))
    assert len(events) + skipped == parser.next_seq - 1
    explained = sum(parser.anomalies.count(n) for n in ("torn_tail", "bytes_after_end", "malformed"))
    assert parser.position == len(frames) or explained


SHARED_FIELDS = {  # EVENT column -> the fields of the tables that it takes its value from
    "ref": ("order_reference_number", "original_order_reference_number"),
    "ref2": ("match_number", "new_order_reference_number", "imbalance_shares"),
    "price": (
        "price", "level_1", "ipo_price", "auction_collar_reference_price", "execution_price", "cross_price",
        "current_reference_price", "near_execution_price",
    ),
    "qty": (
        "shares", "executed_shares", "canceled_shares", "cross_shares", "paired_shares", "round_lot_size",
        "ipo_quotation_release_time", "auction_collar_extension",
    ),
    "side": ("buy_sell_indicator", "imbalance_direction"),
}  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(data=st.data(), lenient=st.booleans())
def test_tables_and_events_agree(any_frames: Callable[..., Any], data: st.DataObject, lenient: bool) -> None:
    frames = data.draw(any_frames())
    by_events, by_tables = (ReferenceParser(Session(), lenient=lenient) for _ in range(2))
    _, events = parse(frames, by_events)
    tables = by_tables.parse_tables(octets(frames))
    assert snapshot(by_tables) == snapshot(by_events)
    assert sorted(tables) == sorted({chr(t) for t in events["type"]})
    for letter, rows in tables.items():
        of_type = events[events["type"] == ord(letter)]
        assert np.array_equal(of_type["seq"], rows["seq"])
        assert np.array_equal(of_type["ts"], rows["timestamp"])
        assert np.array_equal(of_type["locate"], rows["stock_locate"])
        names = rows.dtype.names or ()
        for column, fields in SHARED_FIELDS.items():
            (name, *more) = [f for f in fields if f in names] or [""]
            assert not more
            if column == "side" and name:
                assert of_type["side"].tobytes() == rows[name].tobytes()
            else:
                expected = rows[name] if name else np.zeros(len(rows), np.uint64)
                assert of_type[column].astype(np.uint64).tolist() == expected.tolist()
