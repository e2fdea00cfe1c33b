"""REPORTs -> EVENTs: the table of docs/matching.md row by row, and the circle through the wire (MATCH-80)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_conformance import drive, matching, orders
from trident_conformance.engines import Engine, reference, select
from trident_core.contracts import Kind, MarketRules, ReportFlag, ReportKind
from trident_core.dtypes import EVENT, Events
from trident_core.engines import make_matcher
from trident_core.errors import UsageError
from trident_core.orders import REPORT, Commands, Reports
from trident_core.publication import events_of
from trident_core.session import Instrument, Session

BOOKS = select(Kind.BOOK)
LAW = reference(Kind.BOOK)


def session() -> Session:
    made = Session()
    for locate in (1, 2):
        made.directory.put(Instrument(locate, f"SYM{locate}"))
    return made


def one(row: Any) -> dict[str, Any] | None:
    """What a row publishes, by the table; columns that are not 0."""
    flags, kind, code = int(row["flags"]), int(row["kind"]), bytes([row["code"]])
    shown, left = bool(flags & ReportFlag.DISPLAYED), bool(flags & ReportFlag.LEFT)
    in_place, rests = bool(flags & ReportFlag.IN_PLACE), bool(flags & ReportFlag.RESTS)
    apart = flags & (ReportFlag.SECOND | ReportFlag.CROSS)
    if kind in (ReportKind.BOOKED, ReportKind.REFRESHED) and shown:
        mpid = bytes(row["mpid"])
        letter = "F" if any(mpid) else "A"
        added = {column: row[column] for column in ("ref", "price", "qty", "side")}
        return added | {"type": letter, "aux": mpid}
    if kind == ReportKind.FILL and shown:
        event = {"type": "E", "ref": row["ref"], "ref2": row["ref2"], "qty": row["qty"]}
        return event | {"type": "C", "price": row["price"], "flags": 1} if apart else event
    if kind == ReportKind.FILL and not apart:
        return {"type": "P", "ref2": row["ref2"], "price": row["price"], "qty": row["qty"], "side": ord("B")}
    if kind == ReportKind.CANCELLED and shown or kind == ReportKind.REPLACED and in_place and shown:  # noqa: RUF021
        if left:
            return {"type": "D", "ref": row["ref"]}
        return {"type": "X", "ref": row["ref"], "qty": row["leaves2"]} if row["leaves2"] else None
    if kind == ReportKind.REPLACED and shown:
        if not rests:
            return {"type": "D", "ref": row["ref2"]}
        return {"type": "U", "ref": row["ref2"], "ref2": row["ref"], "price": row["price"], "qty": row["qty"]}
    if kind == ReportKind.CROSS:
        return {"type": "Q", "ref2": row["ref2"], "price": row["price"], "qty": row["qty"], "aux": code}
    if kind == ReportKind.INDICATIVE:
        near, price = int(row["leaves2"]), int(row["price"])
        aux = code + variation(near, price) + bytes(2) + near.to_bytes(4, "little")
        return {"type": "I", "ref2": row["leaves"], "price": price, "qty": row["qty"], "side": row["side"],
                "aux": aux}  # fmt: skip
    return {"type": "H", "aux": code + b"    "} if kind == ReportKind.STATE else None


def variation(near: int, price: int) -> bytes:
    """Less than 1 %: L; 1 to 9 %; A to 20, B to 30, C (the specification's table)."""
    if not near or not price:
        return b" "
    apart = abs(near - price) * 100 // price
    if apart >= 10:
        return b"A" if apart < 20 else b"B" if apart < 30 else b"C"
    return b"L123456789"[apart : apart + 1]


def by_the_law(reports: Reports) -> Events:
    found = []
    for row in reports:
        told = one(row)
        if told is None:
            continue
        event = np.zeros(1, EVENT)
        event["seq"], event["ts"], event["locate"] = len(found) + 1, row["ts"], row["locate"]
        event["type"] = ord(told.pop("type"))
        event["aux"] = np.frombuffer(told.pop("aux", b"").ljust(8, b"\0"), np.uint8)
        for column, value in told.items():
            event[column] = value
        found.append(event)
    return np.concatenate([np.zeros(0, EVENT), *found])


def reports_of(commands: Commands, rules: MarketRules | None = None) -> Reports:
    return matching.submit(make_matcher(LAW.spec, Session(), rules or MarketRules()), commands)


@settings(max_examples=40, deadline=None)
@given(rules=orders.markets(), commands=orders.streams(), cut=st.integers(0, 200))
def test_each_row_by_the_table_and_any_split(rules: MarketRules, commands: Commands, cut: int) -> None:
    reports = reports_of(commands, rules)
    wanted = by_the_law(reports)
    drive.same(events_of(reports), wanted, "events")
    first = events_of(reports[:cut])
    both = np.concatenate([first, events_of(reports[cut:], first_seq=len(first) + 1)])
    drive.same(both, wanted, "events in two parts")


@pytest.mark.parametrize("flavour", [*orders.FLAVOURS])
def test_busy_streams_by_the_table(flavour: str) -> None:
    reports = reports_of(orders.stream(11, 500, flavour))
    events = events_of(reports)
    assert len(events) > 100
    drive.same(events, by_the_law(reports), "events")


def test_every_type_is_published() -> None:
    letters = set()
    for flavour in orders.FLAVOURS:
        letters |= {chr(letter) for letter in events_of(reports_of(orders.stream(2, 600, flavour)))["type"]}
    assert letters == set("AFECPXDUQIH")


@pytest.mark.parametrize("book", BOOKS, ids=[engine.label for engine in BOOKS])
@pytest.mark.parametrize("flavour", [*orders.FLAVOURS])
def test_the_circle_through_the_wire(book: Engine, flavour: str) -> None:
    """Encoded as ITCH 5.0, parsed, applied by any book: the market's own digest, and no anomaly."""
    rules = MarketRules(first_ref=1_000)
    market, replayed = make_matcher(LAW.spec, session(), rules), book.make(session())
    parsers, seq = reference(Kind.PARSER), 1
    commands = orders.stream(13, 400, flavour)
    for start in range(0, len(commands), 50):
        events = events_of(matching.submit(market, commands[start : start + 50]), first_seq=seq)
        frames = parsers.make(session()).encode_events(events)
        parser, found = parsers.make(session()), np.zeros(len(events) + 1, EVENT)
        parser.next_seq = seq
        consumed, count, _ = parser.parse_into(frames, found)
        assert (consumed, count) == (len(frames), len(events))
        drive.same(found[:count], events, "parsed")
        replayed.apply(found[:count])
        seq += count
        assert replayed.digest() == market.digest()
    assert set(replayed.anomalies) <= (
        {"crossed"} if flavour in ("blocks", "auctions", "everything") else set()
    )


@pytest.mark.parametrize("near", [0, 100, 199, 200, 1099, 1100, 1999, 2000, 3000, 9000])
def test_price_variation(near: int) -> None:
    row = np.zeros(1, REPORT)
    row["kind"], row["leaves2"], row["price"] = ReportKind.INDICATIVE, 10_000 + near, 10_000
    assert bytes(events_of(row)["aux"][0][1:2]) == variation(10_000 + near, 10_000)


def test_what_is_no_reports() -> None:
    for wrong in (np.zeros(3, EVENT), np.zeros((2, 2), REPORT), [1, 2]):
        with pytest.raises(UsageError):
            events_of(wrong)  # type: ignore[arg-type]
