"""Every message type, written byte by byte from the specification, with the value of every field.

No real V, W, K, B, O or h message is to be had, so these are all there is for them. The hex has one group per
field, in the order of the specification's tables; nothing here is derived from the code under test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from trident_core import Session
from trident_core.decode import events_of
from trident_parser.reference import ReferenceParser

NINE_THIRTY = 34_200_000_000_001  # 1f1aced9f001

# locate 258, tracking 772, timestamp 9:30:00.000000001
HEADER = "0102 0304 1f1aced9f001"
AAPL = "4141504c20202020"


@dataclass
class Case:
    """`body` follows the type and the header; `event` and `row` name what is not 0 there."""

    letter: str
    length: int
    body: str
    event: dict[str, Any]
    row: dict[str, Any]
    aux: bytes = field(default=bytes(8))
    header: str = HEADER
    locate: int = 258

    @property
    def frame(self) -> bytes:
        message = bytes([ord(self.letter)]) + bytes.fromhex(self.header) + bytes.fromhex(self.body)
        return self.length.to_bytes(2, "big") + message


ADD_BODY = f"00000000 3b9aca01 42 00000064 {AAPL} 0012d687"
ADD_EVENT = {"ref": 1_000_000_001, "side": ord("B"), "qty": 100, "price": 1_234_567}
ADD_ROW = {
    "order_reference_number": 1_000_000_001,
    "buy_sell_indicator": b"B",
    "shares": 100,
    "stock": b"AAPL    ",
    "price": 1_234_567,
}

CASES = [
    Case(
        "S", 12, "51", {}, {"event_code": b"Q"}, aux=b"Q" + bytes(7),
        header="0000 0304 1f1aced9f001", locate=0,
    ),
    Case(
        "R", 39, f"{AAPL} 51 4e 00000064 59 43 5a20 50 4e 4e 31 4e 00000003 4e",
        {"qty": 100},
        {
            "stock": b"AAPL    ", "market_category": b"Q", "financial_status_indicator": b"N",
            "round_lot_size": 100, "round_lots_only": b"Y", "issue_classification": b"C",
            "issue_sub_type": b"Z ", "authenticity": b"P", "short_sale_threshold_indicator": b"N",
            "ipo_flag": b"N", "luld_reference_price_tier": b"1", "etp_flag": b"N",
            "etp_leverage_factor": 3, "inverse_indicator": b"N",
        },
        aux=b"QNCZ PNN",
    ),
    Case(
        "H", 25, f"{AAPL} 48 20 54312020", {},
        {"stock": b"AAPL    ", "trading_state": b"H", "reserved": b" ", "reason_code": b"T1  "},
        aux=b"HT1  \0\0\0",
    ),
    Case("Y", 20, f"{AAPL} 31", {}, {"stock": b"AAPL    ", "reg_sho_action": b"1"}, aux=b"1" + bytes(7)),
    Case(
        "L", 26, f"4e495445 {AAPL} 59 4e 41", {},
        {
            "mpid": b"NITE", "stock": b"AAPL    ", "primary_market_maker": b"Y",
            "market_maker_mode": b"N", "market_participant_state": b"A",
        },
        aux=b"NITEYNA\0",
    ),
    Case(  # 3000.12345678, 2900.50000000, 2500.00000001: 8 decimals, 8 bytes each
        "V", 35, "00000045da21194e 000000438853c480 0000003a35294401",
        {"price": 300_012_345_678, "flags": 2},
        {"level_1": 300_012_345_678, "level_2": 290_050_000_000, "level_3": 250_000_000_001},
        header="0000 0304 1f1aced9f001", locate=0,
    ),
    Case(
        "W", 12, "32", {}, {"breached_level": b"2"}, aux=b"2" + bytes(7),
        header="0000 0304 1f1aced9f001", locate=0,
    ),
    Case(  # released at 10:00:00 = 36,000 s; K's locate is always 0
        "K", 28, f"{AAPL} 00008ca0 41 0012d687",
        {"price": 1_234_567, "qty": 36_000},
        {
            "stock": b"AAPL    ", "ipo_quotation_release_time": 36_000,
            "ipo_quotation_release_qualifier": b"A", "ipo_price": 1_234_567,
        },
        aux=b"A" + bytes(7), header="0000 0304 1f1aced9f001", locate=0,
    ),
    Case(
        "J", 35, f"{AAPL} 0012d687 0030d978 00000001 00000002",
        {"price": 1_234_567, "qty": 2},
        {
            "stock": b"AAPL    ", "auction_collar_reference_price": 1_234_567,
            "upper_auction_collar_price": 3_201_400, "lower_auction_collar_price": 1,
            "auction_collar_extension": 2,
        },
        aux=bytes.fromhex("78d93000 01000000"),
    ),
    Case(
        "h", 21, f"{AAPL} 58 54", {},
        {"stock": b"AAPL    ", "market_code": b"X", "operational_halt_action": b"T"},
        aux=b"XT" + bytes(6),
    ),
    Case("A", 36, ADD_BODY, ADD_EVENT, ADD_ROW),
    Case(
        "F", 40, f"{ADD_BODY} 4e495445", ADD_EVENT, {**ADD_ROW, "attribution": b"NITE"},
        aux=b"NITE\0\0\0\0",
    ),
    Case(
        "E", 31, "00000000 3b9aca01 00000032 00000000 773593ff",
        {"ref": 1_000_000_001, "qty": 50, "ref2": 1_999_999_999},
        {"order_reference_number": 1_000_000_001, "executed_shares": 50, "match_number": 1_999_999_999},
    ),
    Case(
        "C", 36, "00000000 3b9aca01 00000032 00000000 773593ff 4e 0012d687",
        {"ref": 1_000_000_001, "qty": 50, "ref2": 1_999_999_999, "price": 1_234_567, "flags": 1},
        {
            "order_reference_number": 1_000_000_001, "executed_shares": 50,
            "match_number": 1_999_999_999, "printable": b"N", "execution_price": 1_234_567,
        },
    ),
    Case(
        "C", 36, "00000000 3b9aca01 00000032 00000000 773593ff 59 0012d687",
        {"ref": 1_000_000_001, "qty": 50, "ref2": 1_999_999_999, "price": 1_234_567},
        {
            "order_reference_number": 1_000_000_001, "executed_shares": 50,
            "match_number": 1_999_999_999, "printable": b"Y", "execution_price": 1_234_567,
        },
    ),
    Case(
        "X", 23, "00000000 3b9aca01 00000032",
        {"ref": 1_000_000_001, "qty": 50},
        {"order_reference_number": 1_000_000_001, "canceled_shares": 50},
    ),
    Case(
        "D", 19, "ffffffff fffffffe", {"ref": 2**64 - 2}, {"order_reference_number": 2**64 - 2},
    ),
    Case(
        "U", 35, "00000000 3b9aca01 00000000 773593ff 00000032 0030d978",
        {"ref": 1_000_000_001, "ref2": 1_999_999_999, "qty": 50, "price": 3_201_400},
        {
            "original_order_reference_number": 1_000_000_001,
            "new_order_reference_number": 1_999_999_999, "shares": 50, "price": 3_201_400,
        },
    ),
    Case(
        "P", 44, f"00000000 00000000 42 ffffffff {AAPL} 773593ff 00000000 00000007",
        {"side": ord("B"), "qty": 2**32 - 1, "price": 1_999_999_999, "ref2": 7},
        {
            "buy_sell_indicator": b"B", "shares": 2**32 - 1, "stock": b"AAPL    ",
            "price": 1_999_999_999, "match_number": 7,
        },
    ),
    Case(  # 5,500,000,000 shares: more than 4 bytes hold
        "Q", 40, f"00000001 47d35700 {AAPL} 0030d978 00000000 773593ff 43",
        {"qty": 5_500_000_000, "price": 3_201_400, "ref2": 1_999_999_999},
        {
            "cross_shares": 5_500_000_000, "stock": b"AAPL    ", "cross_price": 3_201_400,
            "match_number": 1_999_999_999, "cross_type": b"C",
        },
        aux=b"C" + bytes(7),
    ),
    Case("B", 19, "00000000 773593ff", {"ref2": 1_999_999_999}, {"match_number": 1_999_999_999}),
    Case(
        "I", 50,
        f"00000001 47d35700 00000000 3b9aca01 53 {AAPL} 00000009 0030d978 0012d687 4f 4c",
        {"qty": 5_500_000_000, "ref2": 1_000_000_001, "side": ord("S"), "price": 1_234_567},
        {
            "paired_shares": 5_500_000_000, "imbalance_shares": 1_000_000_001,
            "imbalance_direction": b"S", "stock": b"AAPL    ", "far_price": 9, "near_price": 3_201_400,
            "current_reference_price": 1_234_567, "cross_type": b"O", "price_variation_indicator": b"L",
        },
        aux=b"OL\0\0" + bytes.fromhex("78d93000"),
    ),
    Case("N", 20, f"{AAPL} 41", {}, {"stock": b"AAPL    ", "interest_flag": b"A"}, aux=b"A" + bytes(7)),
    Case(  # near execution at 10:00:00 = 36,000,000,000,000 ns in 8 bytes
        "O", 48,
        f"{AAPL} 59 00000001 00000002 0012d687 000020bde7364000 00000003 0030d978",
        {"price": 1_234_567},
        {
            "stock": b"AAPL    ", "open_eligibility_status": b"Y", "minimum_allowable_price": 1,
            "maximum_allowable_price": 2, "near_execution_price": 1_234_567,
            "near_execution_time": 36_000_000_000_000, "lower_price_range_collar": 3,
            "upper_price_range_collar": 3_201_400,
        },
        aux=b"Y\0\0\0" + bytes.fromhex("01000000"),
    ),
]  # fmt: skip

IDS = [f"{case.letter}-{index}" for index, case in enumerate(CASES)]


def test_every_type_has_a_case() -> None:
    assert {case.letter for case in CASES} == set("SRHYLVWKJhAFECXDUPQBINO")


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_event_has_every_column(case: Case) -> None:
    parser = ReferenceParser(Session())
    (event,) = events_of(case.frame, parser)
    expected = {"seq": 1, "ts": NINE_THIRTY, "locate": case.locate, "type": ord(case.letter), **case.event}
    for column in ("seq", "ts", "ref", "ref2", "price", "qty", "locate", "type", "side", "flags"):
        assert int(event[column]) == expected.get(column, 0), column
    assert event["aux"].tobytes() == case.aux
    assert not parser.anomalies
    assert parser.position == len(case.frame) == case.length + 2


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_row_has_every_field(case: Case) -> None:
    parser = ReferenceParser(Session())
    tables = parser.parse_tables(np.frombuffer(case.frame, np.uint8))
    assert list(tables) == [case.letter]
    (row,) = tables[case.letter]
    expected = {
        "seq": 1,
        "stock_locate": case.locate,
        "tracking_number": 772,
        "timestamp": NINE_THIRTY,
        **case.row,
    }
    names = tables[case.letter].dtype.names
    assert names is not None
    assert set(expected) <= set(names)
    for name in names:
        value = row[name]
        assert (value if isinstance(value, bytes) else int(value)) == expected.get(name, 0), name


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_row_encodes_to_the_same_bytes(case: Case) -> None:
    parser = ReferenceParser(Session())
    rows = parser.parse_tables(np.frombuffer(case.frame, np.uint8))[case.letter]
    assert parser.encode_rows(case.letter, rows).tobytes() == case.frame


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_lenient_reads_the_same_behind_a_prefix_of_zero(case: Case) -> None:
    strict = events_of(case.frame, ReferenceParser(Session()))
    lenient = events_of(b"\0\0" + case.frame[2:], ReferenceParser(Session(), lenient=True))
    assert np.array_equal(strict, lenient)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_cut_anywhere_it_waits_for_more(case: Case) -> None:
    for lenient in (False, True):
        for size in range(1, len(case.frame)):
            parser = ReferenceParser(Session(), lenient=lenient)
            assert len(events_of(case.frame[:size], parser)) == 0
            assert parser.anomalies.count("torn_tail") == 1
            assert parser.next_seq == 1
            assert not parser.counts.any()
            assert len(parser.session.directory) == 0


def test_directory_entry_of_r() -> None:
    parser = ReferenceParser(Session())
    events_of(next(case.frame for case in CASES if case.letter == "R"), parser)
    (instrument,) = parser.session.directory
    assert (instrument.locate, instrument.symbol) == (258, "AAPL")
    assert instrument.details == {
        "market_category": "Q",
        "financial_status_indicator": "N",
        "round_lot_size": 100,
        "round_lots_only": "Y",
        "issue_classification": "C",
        "issue_sub_type": "Z",
        "authenticity": "P",
        "short_sale_threshold_indicator": "N",
        "ipo_flag": "N",
        "luld_reference_price_tier": "1",
        "etp_flag": "N",
        "etp_leverage_factor": 3,
        "inverse_indicator": "N",
    }
    assert not instrument.is_test


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_locate_zero_teaches_nothing(case: Case) -> None:
    frame = bytearray(case.frame)
    frame[3:5] = b"\0\0"
    parser = ReferenceParser(Session())
    assert len(events_of(frame, parser)) == 1
    assert len(parser.session.directory) == 0


def test_v_level_beyond_i64_keeps_its_bits() -> None:
    frame = bytes.fromhex("0023 56 0000 0000 000000000001 ffffffffffffffff 0000000000000002 0000000000000001")
    parser = ReferenceParser(Session())
    events = events_of(frame, parser)
    assert int(events["price"][0]) == -1
    rows = ReferenceParser(Session()).parse_tables(np.frombuffer(frame, np.uint8))["V"]
    assert int(rows["level_1"][0]) == 2**64 - 1
    again = events_of(parser.encode_events(events), ReferenceParser(Session()))
    assert np.array_equal(again, events)
