"""Simulated days obey the market's rules: judged by a naive checker, the reference engines and itch-book."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core.dtypes import EVENT, Events
from trident_parser.reference import ReferenceParser
from trident_sim.spec import ANOMALY_KINDS, SimSpec
from trident_sim.stream import Day, simulate_bytes, simulate_events

TYPES = set("SRHYLVWKJhAFECXDUPQBINO")

CLEAN = [
    SimSpec(messages=700, symbols=6, seed=5),
    SimSpec(messages=30_000, symbols=20),
    SimSpec(messages=40_000, symbols=300, seed=3),
    SimSpec(messages=60_000, symbols=8, seed=2**64 - 1),
]


def name_of(spec: SimSpec) -> str:
    return f"{spec.messages}x{spec.symbols}-{spec.seed}"


@pytest.mark.parametrize("spec", CLEAN, ids=name_of)
def test_the_day_obeys_every_rule(spec: SimSpec, naive_market: Any) -> None:
    day = Day(spec)
    for batch in day.batches():
        naive_market.apply(batch)
    assert not naive_market.wrong
    assert naive_market.peak == day.live_peak
    assert len(naive_market.orders) == day.live


EVERY_TYPE = [*CLEAN[1:], *(SimSpec(messages=5_000, symbols=100, seed=seed) for seed in range(20))]


@pytest.mark.parametrize("spec", EVERY_TYPE, ids=name_of)
def test_the_day_has_every_type_and_exactly_the_messages_asked_for(spec: SimSpec) -> None:
    events, _ = simulate_events(spec)
    assert {chr(letter) for letter in events["type"]} == TYPES
    assert events["seq"].tolist() == list(range(1, spec.messages + 1))


@pytest.mark.parametrize("spec", CLEAN[1:], ids=name_of)
def test_the_reference_book_finds_nothing(spec: SimSpec) -> None:
    day = Day(spec)
    book = ReferenceBook(day.session)
    for batch in day.batches():
        book.apply(batch)
    assert dict(book.anomalies) == {}
    assert book.validate() == []
    assert book.live_orders() == day.live


def test_executions_come_in_all_their_forms(naive_market: Any) -> None:
    naive_market.apply(simulate_events(SimSpec(messages=60_000, symbols=40))[0])
    assert naive_market.seen["C printable"] > 5
    assert naive_market.seen["C not printable"] > 5
    assert naive_market.seen["C at another price"] > 5


@pytest.mark.parametrize("kinds", [ANOMALY_KINDS, *((kind,) for kind in ANOMALY_KINDS)], ids="+".join)
def test_the_reference_book_finds_exactly_the_anomalies_made(kinds: tuple[str, ...]) -> None:
    day = Day(SimSpec(messages=15_000, symbols=30, seed=9, anomalies=0.03, anomaly_kinds=kinds))
    found: dict[str, list[int]] = {}
    book = ReferenceBook(day.session)
    for batch in day.batches():
        for k in range(len(batch)):  # one at a time: a book keeps the first few positions only
            before = {name: item.count for name, item in book.anomalies.items()}
            book.apply(batch[k : k + 1])
            for name, item in book.anomalies.items():
                if item.count != before.get(name, 0):
                    found.setdefault(name, []).append(int(batch["seq"][k]))
    made = {
        kind: day.anomalies[day.anomalies[:, 1] == number, 0].tolist()
        for number, kind in enumerate(ANOMALY_KINDS)
    }
    assert found == {kind: places for kind, places in made.items() if places}
    assert {kind: len(places) for kind, places in found.items()} == day.anomaly_counts()
    assert set(found) == set(kinds)
    assert 300 < len(day.anomalies) < 600
    assert book.live_orders() == day.live
    assert book.validate() == []


def test_the_bytes_parse_back_to_the_events() -> None:
    spec = SimSpec(messages=20_000, symbols=50, seed=4)
    data = np.frombuffer(b"".join(chunk.tobytes() for chunk in Day(spec).frames()), np.uint8)
    events, session = simulate_events(spec)
    parser = ReferenceParser(Day(spec).session)
    parsed = np.zeros(len(events), EVENT)
    result = parser.parse_into(data, parsed)
    assert (result.consumed, result.count) == (len(data), len(events))
    assert dict(parser.anomalies) == {}
    assert parsed.tobytes() == events.tobytes()
    assert parser.session.directory == session.directory


def test_itch_book_accepts_the_day(tmp_path: Path) -> None:
    itch_book = pytest.importorskip("itch_book")
    spec = SimSpec(messages=100_000, symbols=80, seed=6)
    day = Day(spec)
    path = tmp_path / "day.itch"
    path.write_bytes(b"".join(chunk.tobytes() for chunk in day.frames()))
    feed = itch_book.open(str(path), date=dt.date(2019, 12, 30), price_type="fixed")
    for _ in feed.batches(tables=("bbo", "trades")):
        pass
    stats = feed.stats
    assert stats["messages"] == spec.messages
    assert stats["live_orders"] == day.live
    assert stats["adds"] == day.counts[ord("A")] + day.counts[ord("F")]
    assert stats["last_event"] == "C"
    names = ("unknown", "malformed", "pending_bytes", "missing_ref", "dup_ref", "rejected", "clamped")
    assert {name: stats[name] for name in names} == dict.fromkeys(names, 0)
    assert stats["crossed_books"] == 0


def test_no_symbol_trades_while_it_is_halted_and_each_halt_ends_with_its_cross() -> None:
    day = Day(SimSpec(messages=150_000, symbols=40, seed=8))
    events = np.concatenate([batch.copy() for batch in day.batches()])
    world = day.world
    for locate in (*world.halts, *world.pauses, world.ipo, world.direct_listing):
        story = story_of(events, locate)
        assert "(" in story, f"locate {locate} is never halted"
        for halt in story.split("(")[1:]:
            inside = halt.split(")")[0]
            assert not set(inside) & set("ECP"), f"locate {locate} traded: {inside}"
            assert inside.endswith("Q"), f"locate {locate} resumed without a cross: {inside}"
            assert "I" in inside
    paused = story_of(events, world.pauses[0])
    assert "J" in paused.split("(")[1].split(")")[0]


def story_of(events: Events, locate: int) -> str:
    """The letters of a symbol's messages; a halt stands in brackets."""
    story, halted = [], False
    for row in events[events["locate"] == locate]:
        letter = chr(row["type"])
        if letter == "H":
            resumes = chr(row["aux"][0]) == "T"
            if halted and resumes:
                story.append(")")
            elif not halted and not resumes:
                story.append("(")
            halted = not resumes
        else:
            story.append(letter)
    return "".join(story)


def test_typed_fields_are_plausible() -> None:
    data = np.frombuffer(simulate_bytes(40_000, 60, 2), np.uint8)
    tables = ReferenceParser(Day(SimSpec(messages=40_000, symbols=60, seed=2)).session).parse_tables(data)
    assert set(tables) == TYPES
    levels = tables["V"][0]
    assert levels["level_1"] > levels["level_2"] > levels["level_3"] > 10**11  # 8 decimals: above 1,000
    directory = tables["R"]
    assert set(directory["stock"][directory["authenticity"] == b"T"].tolist()) == {b"ZXZZT   "}
    assert (directory["ipo_flag"] == b"Y").sum() == 1
    assert (directory["etp_flag"] == b"Y").sum() > 2
    assert np.all(directory["etp_leverage_factor"][directory["etp_flag"] == b"N"] == 0)
    assert directory["stock"].tolist() == sorted(directory["stock"].tolist())
    quoting = tables["K"]
    assert set(quoting["stock_locate"].tolist()) == {0}
    assert set(quoting["stock"].tolist()) == set(directory["stock"][directory["ipo_flag"] == b"Y"].tolist())
    assert 0 in quoting["ipo_quotation_release_time"]
    discovery = tables["O"]
    assert np.all(discovery["minimum_allowable_price"] < discovery["near_execution_price"])
    assert np.all(discovery["lower_price_range_collar"] < discovery["upper_price_range_collar"])
    imbalances = tables["I"]
    assert np.all(imbalances["far_price"] > 0)
    assert np.all((imbalances["imbalance_shares"] == 0) == (imbalances["imbalance_direction"] == b"N"))
    assert set(imbalances["cross_type"].tolist()) == {b"O", b"C", b"H"}
    collars = tables["J"]
    assert np.all(collars["lower_auction_collar_price"] < collars["auction_collar_reference_price"])
    assert np.all(collars["auction_collar_reference_price"] < collars["upper_auction_collar_price"])
    crosses = tables["Q"]
    assert set(crosses["cross_type"].tolist()) == {b"O", b"C", b"H", b"I"}
    assert np.all((crosses["cross_shares"] == 0) == (crosses["cross_price"] == 0))
    assert np.all(tables["P"]["order_reference_number"] == 0)
