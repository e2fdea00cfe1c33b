"""MBO records to EVENTs: by hand, and against a plain resolver on streams of chance."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core.contracts import Status
from trident_core.decode import decode
from trident_core.dtypes import EVENT, EventFlag
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_parser.databento import DatabentoParser

UNDEF_PRICE, UNDEF_SIZE = (1 << 63) - 1, (1 << 32) - 1
END = bytes([4, 0xFE]) + bytes(14)


def record(
    action: str, ref: int = 0, side: str = "B", price: int = 100, size: int = 1, *, ts: int = 1,
    instrument: int = 7, publisher: int = 2, flags: int = 0, sequence: int = 0, rtype: int = 0xA0,
    extra: int = 0,
) -> bytes:  # fmt: skip
    """A record as DBN lays it out; `extra` words behind it, as live files have."""
    return struct.pack(
        "<BBHIQQqIBBccQiI", 14 + extra, rtype, publisher, instrument, ts, ref, price, size, flags, 0,
        action.encode(), side.encode(), ts + 5, 4, sequence,
    ) + bytes(4 * extra)  # fmt: skip


def parse(data: bytes, *, out: int = 1000, step: int = 1 << 20, session: Session | None = None):  # type: ignore[no-untyped-def]
    """(events, parser) of records, given in chunks of `step` bytes to an array of `out` events."""
    from trident_core.contracts import Chunk

    parser = DatabentoParser(session or Session(protocol="dbn-mbo", price_decimals=9))
    data += END
    chunks = [
        Chunk(np.frombuffer(data[at : at + step], np.uint8), None, at) for at in range(0, len(data), step)
    ]
    parts = [events.copy() for events in decode(chunks, parser, batch=out)]
    return (np.concatenate(parts) if parts else np.zeros(0, EVENT)), parser


def shown(events: Any) -> list[tuple[Any, ...]]:
    """(letter, ref, ref2, side, price, qty) of each; a non-printable C as c."""
    silent = events["flags"] & EventFlag.NON_PRINTABLE
    kinds = [chr(k).lower() if s else chr(k) for k, s in zip(events["type"], silent, strict=True)]
    sides = [chr(s) if s else "" for s in events["side"]]
    columns = [events[name].tolist() for name in ("ref", "ref2", "price", "qty")]
    return [(k, r, r2, s, p, q) for k, s, r, r2, p, q in zip(kinds, sides, *columns, strict=True)]


# --- by hand ------------------------------------------------------------------------------------------------


def test_every_column_of_an_add():
    session = Session(protocol="dbn-mbo", price_decimals=9)
    data = record(
        "A", 1 << 63, "A", -5, 9, ts=77, instrument=1 << 31, publisher=300, flags=130, sequence=1 << 31
    )
    events, parser = parse(data, session=session)
    (row,) = events
    assert (row["seq"], row["ts"], row["ref"], row["ref2"], row["price"], row["qty"]) == (
        1,
        77,
        1 << 63,
        0,
        -5,
        9,
    )
    assert (row["locate"], chr(row["type"]), chr(row["side"]), row["flags"]) == (1 << 31, "A", "S", 0)
    assert struct.unpack("<IHBB", row["aux"].tobytes()) == (1 << 31, 300, 130, 0)
    assert {chr(k): int(n) for k, n in enumerate(parser.counts) if n} == {"A": 1}
    assert not parser.anomalies


def test_an_execution_of_nasdaqs_is_one_event():
    """T, F, C of one order: printable, at the fill's price. Without the T: not printable."""
    data = (
        record("A", 1, size=10)
        + record("T", 0, "A", 101, 4, ts=2, sequence=5) + record("F", 1, "B", 101, 4, ts=2, sequence=5)
        + record("C", 1, "B", 100, 4, ts=2, sequence=5, flags=128)
        + record("F", 1, "B", 99, 6, ts=3) + record("C", 1, "B", 100, 6, ts=3)
    )  # fmt: skip
    events, parser = parse(data)
    assert shown(events)[1:] == [("C", 1, 0, "B", 101, 4), ("c", 1, 0, "B", 99, 6)]
    assert not parser.anomalies


def test_a_trade_with_several_orders_stays_a_print_of_its_own():
    data = (
        record("A", 1, "A", size=3) + record("A", 2, "A", size=4)
        + record("T", 9, "B", 100, 5, ts=2)
        + record("F", 1, "A", size=3, ts=2) + record("F", 2, "A", size=2, ts=2)
        + record("C", 1, "A", size=3, ts=2) + record("M", 2, "A", size=2, ts=2)
    )  # fmt: skip
    events, _ = parse(data)
    assert shown(events)[2:] == [
        ("P", 9, 0, "S", 100, 5),  # the side of what rested: the other one
        ("c", 1, 0, "S", 100, 3),
        ("c", 2, 2, "S", 100, 2),
    ]


def test_a_trade_without_a_fill_and_one_at_the_end():
    events, _ = parse(record("T", 0, "N", 5, 6) + record("A", 1) + record("T", 0, "A", 7, 8))
    assert shown(events) == [("P", 0, 0, "", 5, 6), ("A", 1, 0, "B", 100, 1), ("P", 0, 0, "B", 7, 8)]


def test_a_trade_with_an_order_that_is_not_known_still_prints():
    data = record("T", 0, "A", 7, 8) + record("F", 1, "B", 7, 8) + record("C", 1, "B", 7, 8)
    events, _ = parse(data)
    assert shown(events) == [("P", 0, 0, "B", 7, 8), ("c", 1, 0, "B", 7, 8)]


def test_modifies():
    start = record("A", 1, price=100, size=10)
    for price, size, expected in [
        (100, 7, ("X", 1, 1, "B", 100, 3)),  # fewer: it keeps its place
        (100, 12, ("U", 1, 1, "B", 100, 12)),
        (101, 10, ("U", 1, 1, "B", 101, 10)),
        (101, 4, ("U", 1, 1, "B", 101, 4)),
        (100, 0, ("X", 1, 1, "B", 100, 10)),
    ]:
        events, parser = parse(start + record("M", 1, "B", price, size))
        assert shown(events)[1:] == [expected]
        assert not parser.anomalies
    events, parser = parse(start + record("M", 1, "B", 100, 10))
    assert (len(events), parser.anomalies.count("unchanged")) == (1, 1)
    events, parser = parse(record("M", 1, "A", 100, 10))
    assert shown(events) == [("A", 1, 0, "S", 100, 10)]
    assert parser.anomalies.count("modified_unknown") == 1


def test_a_clear_is_a_deletion_of_each_order_of_the_instrument():
    data = b"".join(record("A", ref, instrument=ref % 2, size=5) for ref in (9, 4, 1, 8, 3))
    data += record("C", 3, instrument=1, size=5) + record("R", 0, "N", UNDEF_PRICE, 0, instrument=1, ts=50)
    data += record("A", 1, instrument=1)
    for out in (1, 2, 3, 100):
        events, parser = parse(data, out=out)
        assert shown(events)[6:] == [("D", 1, 0, "", 0, 0), ("D", 9, 0, "", 0, 0), ("A", 1, 0, "B", 100, 1)]
        assert events["ts"][6:8].tolist() == [50, 50]
        assert events["seq"].tolist() == list(range(1, 10))
        book = ReferenceBook(parser.session)
        book.apply(events)
        assert not book.anomalies
        assert book.live_orders() == 3


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (record("A", 1, rtype=0x13), "other_record"),
        (bytes([4, 0x12]) + bytes(14), "other_record"),
        (record("A", 1, flags=64), "not_an_order"),
        (record("C", 1, flags=16), "not_an_order"),
        (record("A", 1, price=UNDEF_PRICE), "undefined_value"),
        (record("M", 1, size=UNDEF_SIZE), "undefined_value"),
        (record("T", 1, price=UNDEF_PRICE), "undefined_value"),
        (record("N", 1), "no_action"),
        (record("?", 1), "unknown_type"),
    ],
)
def test_what_makes_no_event_is_counted_at_its_place(data: bytes, name: str):
    before = record("A", 5)
    events, parser = parse(before + data + before.replace(b"\x05", b"\x06", 1))
    assert [chr(k) for k in events["type"]] == ["A", "A"]
    assert parser.anomalies[name].positions == [len(before)]
    assert set(parser.anomalies) == {name}


def test_what_is_counted_and_kept():
    session = Session(protocol="dbn-mbo", price_decimals=9, tz="UTC")
    import datetime as dt

    session.date = dt.date(2024, 5, 8)
    midnight, day = session.midnight_ns(), 24 * 3600 * 10**9
    data = (
        record("A", 1, ts=midnight - 3) + record("A", 2, ts=midnight + day)
        + record("A", 3, ts=midnight, flags=4)
        + record("F", 3, size=9, ts=midnight) + record("C", 3, ts=midnight + 1)
        + record("A", 4, ts=midnight, publisher=8)
    )  # fmt: skip
    events, parser = parse(data, session=session)
    assert events["ts"].tolist() == [0, day, 0, 1]
    assert int(events["ref2"][0]) == midnight - 3
    assert {name: item.count for name, item in parser.anomalies.items()} == {
        "before_session": 1, "after_session": 1, "maybe_bad_book": 1, "fill_apart": 1, "other_stream": 1,
    }  # fmt: skip


def test_bytes_that_cannot_be_framed_and_arrays_that_are_none():
    good = record("A", 1)
    events, parser = parse(good + bytes(8))
    assert (len(events), parser.anomalies["malformed"].positions) == (1, [len(good)])
    out = np.zeros(3, EVENT)
    result = parser.parse_into(np.frombuffer(good[:30], np.uint8), out)
    assert result == (0, 0, Status.NEED_MORE)
    for frames, array in [
        (np.zeros(4, np.int8), out),
        (np.zeros(4, np.uint8), out[:0]),
        (np.zeros(4, np.uint8), out[::2]),
    ]:
        with pytest.raises(UsageError):
            parser.parse_into(frames, array)


# --- against a plain resolver -------------------------------------------------------------------------------


def plainly(records: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What the page says, one rule after the other, with dictionaries."""
    made: list[tuple[Any, ...]] = []
    orders: dict[int, list[int]] = {}  # ref -> instrument, size, price
    fills: dict[int, list[Any]] = {}  # ref -> shares, price, time, printed, aggressor
    waiting: dict[str, Any] | None = None

    def takes(r: dict[str, Any], gone: int, ref2: int) -> None:
        shares, price, ts, printed, aggressor = fills.pop(r["ref"], (0, 0, 0, False, 0))
        if shares == gone and ts == r["ts"] and shares:
            made.append(("C" if printed else "c", r["ref"], ref2 or aggressor, r["letter"], price, gone))
        else:
            made.append(("X", r["ref"], ref2, r["letter"], r["price"], gone))
        if r["ref"] in orders:
            orders[r["ref"]][1] -= gone
            if orders[r["ref"]][1] <= 0:
                del orders[r["ref"]]

    def prints(t: dict[str, Any]) -> None:
        made.append(("P", t["ref"], 0, {"B": "S", "S": "B"}.get(t["letter"], ""), t["price"], t["size"]))

    for r in records:
        r["letter"] = {"B": "B", "A": "S"}.get(r["side"], "")
        aggressor = 0
        printed = False
        if waiting is not None:
            same = all(r[n] == waiting[n] for n in ("instrument", "sequence", "size", "ts", "price"))
            if r["action"] == "F" and same and r["ref"] in orders:
                printed, aggressor = True, waiting["ref"]
            else:
                prints(waiting)
            waiting = None
        ref, price, size = r["ref"], r["price"], r["size"]
        if r["action"] == "T":
            waiting = r
        elif r["action"] == "F":
            old = fills.get(ref)
            if old and old[2] == r["ts"] and old[0]:
                fills[ref] = [old[0] + size, price, r["ts"], False, aggressor]
            else:
                fills[ref] = [size, price, r["ts"], printed, aggressor]
        elif r["action"] == "C":
            takes(r, size, 0)
        elif r["action"] == "R":
            for gone in sorted(n for n, o in orders.items() if o[0] == r["instrument"]):
                del orders[gone]
                fills.pop(gone, None)
                made.append(("D", gone, 0, "", 0, 0))
        elif r["action"] == "M" and ref in orders and orders[ref][2] == price and orders[ref][1] >= size:
            if orders[ref][1] > size:
                takes(r, orders[ref][1] - size, ref)
        else:
            letter, ref2 = ("U", ref) if r["action"] == "M" and ref in orders else ("A", 0)
            fills.pop(ref, None)
            orders[ref] = [r["instrument"], size, price]
            made.append((letter, ref, ref2, r["letter"], price, size))
    if waiting is not None:
        prints(waiting)
    return made


@pytest.mark.parametrize("seed", range(6))
def test_streams_of_chance_are_resolved_alike_and_in_any_split(seed: int):
    rng = np.random.default_rng(seed)
    records: list[dict[str, Any]] = []
    for n in range(3_000):
        action = "R" if n % 100 == 99 else "AAAACCMMTFF"[rng.integers(11)]
        last = records[-1] if records else None
        r = {
            "action": action, "ref": int(rng.integers(1, 60)),
            "side": "BAN"[rng.integers(3 if action == "T" else 2)], "price": int(rng.integers(1, 4)),
            "size": int(rng.integers(1, 5)), "ts": n // 8, "instrument": int(rng.integers(2)),
            "sequence": n // 8,
        }  # fmt: skip
        if last and last["action"] in "TF" and action != "R" and rng.random() < 0.6:  # what belongs together
            r |= {name: last[name] for name in ("price", "size", "ts", "instrument", "sequence")}
            r["action"] = "F" if last["action"] == "T" else "C"
            r["ref"] = last["ref"] if last["action"] == "F" else r["ref"]
        if r["action"] == "A":
            r["ref"] += int(rng.integers(0, 3)) * 60
        records.append(r)
    data = b"".join(record(**r) for r in records)
    expected = plainly(records)
    events, parser = parse(data)
    assert shown(events) == expected
    kinds = Counter(row[0] for row in expected)
    assert {"A", "X", "C", "c", "U", "P", "D"} <= set(kinds)
    counted = parser.anomalies.to_json()
    for step, out in ((57, 3), (1_000, 1), (56, 1_000)):
        again, other = parse(data, step=step, out=out)
        assert again.tobytes() == events.tobytes()
        assert other.anomalies.to_json() == counted
        assert other.counts.tolist() == parser.counts.tolist()
