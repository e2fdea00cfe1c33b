"""The encoder: identity with the parser for events and rows, and refusal of what the wire cannot hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core import Instrument, Session
from trident_core.decode import events_of
from trident_core.dtypes import EVENT, EventFlag, Events
from trident_core.errors import UsageError
from trident_parser.encode import EVENT_PLACES, encode_events, encode_rows, pad_texts
from trident_parser.itch50 import BY_LETTER, LENGTHS, LETTER, MESSAGES, TABLE_DTYPES, TEXT
from trident_parser.reference import ReferenceParser

LETTERS = "".join(BY_LETTER)


def session() -> Session:
    made = Session()
    for locate, symbol in ((1, "AAPL"), (2, "BRK.A"), (65_535, "ABCDEFGH"), (4, "\xe9")):
        made.directory.put(Instrument(locate, symbol))
    return made


def event(letter: str, **columns: Any) -> Events:
    one = np.zeros(1, EVENT)
    one["type"] = ord(letter)
    if letter == "V":
        one["flags"] = EventFlag.PRICE_8DP
    for name, value in columns.items():
        one[name] = value
    return one


@st.composite
def random_event(draw: st.DrawFn, letter: str) -> Events:
    """An event of one type with every column that the type uses drawn from all that its field can hold."""
    made = event(
        letter, ts=draw(st.integers(0, 2**48 - 1)), locate=draw(st.sampled_from([0, 1, 2, 4, 65_535]))
    )
    places = EVENT_PLACES[letter]
    for field in BY_LETTER[letter].fields:
        place = places.get(field.name)
        if isinstance(place, int):
            made["aux"][0, place : place + field.size] = list(
                draw(st.binary(min_size=field.size, max_size=field.size))
            )
        elif place == "flags":
            made["flags"] = draw(st.sampled_from([0, int(EventFlag.NON_PRINTABLE)]))
        elif place is not None:
            value = draw(st.integers(0, 2 ** (8 * field.size) - 1))
            made[place].view(f"u{made[place].itemsize}")[:] = value
    return made


@pytest.mark.parametrize("letter", LETTERS)
def test_every_place_is_a_field_and_no_two_overlap(letter: str) -> None:
    fields = {field.name: field for field in BY_LETTER[letter].fields}
    assert set(EVENT_PLACES[letter]) <= set(fields)
    taken: list[str | int] = []
    for name, place in EVENT_PLACES[letter].items():
        if isinstance(place, int):
            taken += range(place, place + fields[name].size)
            assert place + fields[name].size <= 8
        else:
            taken.append(place)
    assert len(taken) == len(set(taken))


@settings(max_examples=30, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("letter", LETTERS)
def test_parse_of_encode_is_identity_for_each_type(letter: str, data: st.DataObject) -> None:
    made = data.draw(random_event(letter))
    frames = encode_events(made, session())
    assert len(frames) == int(LENGTHS[ord(letter)]) + 2
    parser = ReferenceParser(session())
    again = events_of(frames, parser)
    made["seq"] = 1
    assert again.tobytes() == made.tobytes()
    assert not parser.anomalies


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_parse_of_encode_is_identity_for_mixtures(data: st.DataObject) -> None:
    letters = data.draw(st.lists(st.sampled_from(LETTERS), max_size=30))
    made = np.concatenate([np.zeros(0, EVENT), *[data.draw(random_event(letter)) for letter in letters]])
    made["seq"] = np.arange(1, len(made) + 1)
    parser = ReferenceParser(session())
    frames = parser.encode_events(made)
    assert frames.dtype == np.uint8
    assert np.array_equal(events_of(frames, parser), made)
    backwards = parser.encode_events(made[::-1])  # a view that is not contiguous
    parser.next_seq = 1
    again = events_of(backwards, parser)
    again["seq"] = made["seq"][::-1]
    assert np.array_equal(again, made[::-1])


@settings(max_examples=60, deadline=None)
@given(data=st.data(), letter=st.sampled_from(LETTERS), n=st.integers(0, 4))
def test_rows_of_any_bytes_survive(data: st.DataObject, letter: str, n: int) -> None:
    """NULs in texts, trailing ones too, and every number: the wire's bytes come back exactly."""
    length = int(LENGTHS[ord(letter)])
    bodies = [data.draw(st.binary(min_size=length - 1, max_size=length - 1)) for _ in range(n)]
    frames = b"".join(length.to_bytes(2, "big") + letter.encode() + body for body in bodies)
    rows = ReferenceParser(Session()).parse_tables(np.frombuffer(frames, np.uint8))
    assert len(rows) == (n > 0)
    if n:
        assert encode_rows(letter, rows[letter]).tobytes() == frames
        again = ReferenceParser(Session()).parse_tables(encode_rows(letter, rows[letter]))
        assert again[letter].tobytes() == rows[letter].tobytes()


def test_more_than_one_block_keeps_the_order() -> None:
    n = 100_001
    rng = np.random.default_rng(7)
    made = np.zeros(n, EVENT)
    made["seq"] = np.arange(1, n + 1)
    made["type"] = rng.choice(np.frombuffer(b"ADB", np.uint8), n)
    made["locate"] = 1
    adds = made["type"] == ord("A")
    made["qty"][adds] = rng.integers(1, 1000, n)[adds]
    made["ref"][made["type"] != ord("B")] = 9
    frames = encode_events(made, session())
    assert np.array_equal(events_of(frames, ReferenceParser(session())), made)


def test_nothing_encodes_to_nothing() -> None:
    assert len(encode_events(np.zeros(0, EVENT), Session())) == 0
    for letter in LETTERS:
        assert len(encode_rows(letter, np.zeros(0, TABLE_DTYPES[letter]))) == 0


def test_fields_that_event_lacks_are_zero_or_blank() -> None:
    frames = encode_events(event("R", locate=1, qty=100, aux=list(b"QNCZ PNN")), session())
    (row,) = ReferenceParser(session()).parse_tables(frames)["R"]
    assert row["stock"] == b"AAPL    "
    assert row["round_lots_only"] == row["luld_reference_price_tier"] == row["inverse_indicator"] == b" "
    assert (row["tracking_number"], row["etp_leverage_factor"]) == (0, 0)
    (row,) = ReferenceParser(session()).parse_tables(encode_events(event("K"), session()))["K"]
    assert row["stock"] == b" " * 8
    assert row["ipo_quotation_release_qualifier"].tobytes() == b"\0"  # aux holds the letter: 0 is a value


REFUSALS = [
    (event("?"), "type"),
    (event("A", locate=1, qty=2**32), "qty"),
    (event("A", locate=1, price=-1), "price"),
    (event("A", locate=1, price=2**32), "price"),
    (event("Q", locate=1, price=2**32), "price"),
    (event("A", locate=3), "locate"),
    (event("A", locate=65_536), "locate"),
    (event("D", locate=65_536), "locate"),
    (event("D", ts=2**48), "ts"),
    (event("D", ref2=1), "ref2"),
    (event("D", price=1), "price"),
    (event("D", qty=1), "qty"),
    (event("E", side=ord("B")), "side"),
    (event("B", ref=1), "ref"),
    (event("A", locate=1, flags=1), "flags"),
    (event("C", flags=2), "flags"),
    (event("V", flags=0), "flags"),
    (event("A", locate=1, aux=list(b"NITE\0\0\0\0")), "aux"),
    (event("F", locate=1, aux=list(b"\0\0\0\0X\0\0\0")), "aux"),
    (event("I", locate=1, aux=[0, 0, 1, 0, 0, 0, 0, 0]), "aux"),
]


@pytest.mark.parametrize(("bad", "column"), REFUSALS, ids=range(len(REFUSALS)))
def test_refuses_what_the_wire_cannot_hold(bad: Events, column: str) -> None:
    made = np.concatenate([event("D", ref=1), event("X", ref=1), bad, event("D", ref=1)])
    with pytest.raises(UsageError, match=rf"event 2: column '{column}'"):
        encode_events(made, session())


def test_limits_are_met_exactly() -> None:
    made = event(
        "A", locate=65_535, ts=2**48 - 1, qty=2**32 - 1, price=2**32 - 1, ref=2**64 - 1, side=255, seq=1
    )
    again = events_of(encode_events(made, session()), ReferenceParser(session()))
    assert np.array_equal(again, made)


@pytest.mark.parametrize("symbol", ["TOOLONGXX", "\u20ac"])
def test_refuses_symbols_that_do_not_fit(symbol: str) -> None:
    made = Session()
    made.directory.put(Instrument(7, symbol))
    with pytest.raises(UsageError, match="event 0: column 'locate' is 7") as caught:
        encode_events(event("Y", locate=7), made)
    assert "directory" in caught.value.hint


def test_types_without_a_stock_need_no_symbol() -> None:
    assert len(encode_events(event("D", locate=9, ref=1), Session())) == 21


def test_wrong_arrays_are_refused() -> None:
    with pytest.raises(UsageError, match="EVENT"):
        encode_events(np.zeros(3, np.uint64), Session())
    with pytest.raises(UsageError, match="EVENT"):
        encode_events(np.zeros((2, 2), EVENT), Session())
    with pytest.raises(UsageError, match="no type 'Z'"):
        encode_rows("Z", np.zeros(1, TABLE_DTYPES["A"]))
    with pytest.raises(UsageError, match="rows of A need"):
        encode_rows("A", np.zeros(1, TABLE_DTYPES["F"]))
    late = np.zeros(3, TABLE_DTYPES["D"])
    late["timestamp"][1] = 2**48
    with pytest.raises(UsageError, match="row 1: column 'timestamp'"):
        encode_rows("D", late)


def test_pad_texts_pads_rows_made_by_hand() -> None:
    rows = np.zeros(2, TABLE_DTYPES["L"])
    rows["stock"] = [b"AAPL", b""]
    rows["mpid"] = [b"NITE", b"X"]
    rows["market_maker_mode"] = b"N"
    assert pad_texts("L", rows) is rows
    assert rows["stock"].tolist() == [b"AAPL    ", b"        "]
    assert rows["mpid"].tolist() == [b"NITE", b"X   "]
    assert rows["market_maker_mode"].tolist() == [b"N", b"N"]
    assert rows["market_participant_state"].tolist() == [b" ", b" "]


def test_letters_and_texts_have_their_wire_size_in_the_tables() -> None:
    for message in MESSAGES:
        for field in message.fields[1:]:
            if field.kind in (LETTER, TEXT):
                assert TABLE_DTYPES[message.letter][field.name] == np.dtype(f"S{field.size}")
