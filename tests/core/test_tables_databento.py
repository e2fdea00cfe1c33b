"""Databento's names: each action by hand, and books rebuilt from A and C alone."""

from __future__ import annotations

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core import tables
from trident_core.decode import events_of
from trident_core.dtypes import EFFECT, EVENT, TOP, Outcome
from trident_core.session import Session
from trident_core.tables import databento as db
from trident_core.tables.ladder import Ladder
from trident_parser.reference import ReferenceParser
from trident_sim.spec import SimSpec
from trident_sim.stream import Day


class Applied:
    def __init__(self, events: np.ndarray, session: Session) -> None:
        self.events, self.session, self.book = events, session, ReferenceBook(session)
        self.tops, self.effects = np.zeros(len(events), TOP), np.zeros(len(events), EFFECT)
        self.book.apply(events, self.tops, self.effects)

    def all(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, Session]:
        return self.events, self.effects, self.tops, self.session


def story(*rows: dict[str, object]) -> Applied:
    events = np.zeros(len(rows), EVENT)
    for n, row in enumerate(rows):
        events[n]["seq"], events[n]["locate"] = n + 1, 3
        for name, value in row.items():
            events[n][name] = ord(value) if isinstance(value, str) else value
    return Applied(events, Session())


@pytest.fixture(scope="module")
def day() -> Applied:
    data = b"".join(part.tobytes() for part in Day(SimSpec(messages=4_000, symbols=10, seed=2)).frames())
    session = Session()
    return Applied(events_of(data, ReferenceParser(session)), session)


def rows(table: np.ndarray, *columns: str) -> list[tuple[object, ...]]:
    return [
        tuple(v.decode() if isinstance(v, bytes) else v for v in r) for r in table[list(columns)].tolist()
    ]


def test_mbo_by_hand():
    made = story(
        {"type": "A", "ref": 1, "side": "S", "price": 50_0000, "qty": 100},
        {"type": "E", "ref": 1, "qty": 30, "ref2": 9},
        {"type": "C", "ref": 1, "qty": 10, "price": 49_0000},
        {"type": "C", "ref": 1, "qty": 10, "price": 49_0000, "flags": 1},
        {"type": "U", "ref": 1, "ref2": 2, "price": 51_0000, "qty": 7},
        {"type": "X", "ref": 2, "qty": 3},
        {"type": "P", "side": "B", "price": 48_0000, "qty": 5},
        {"type": "D", "ref": 2},
        {"type": "E", "ref": 77, "qty": 1},
        {"type": "H"},
    )
    table = db.mbo(*made.all())
    unit = 10**9
    assert rows(table, "sequence", "action", "side", "price", "size", "order_id", "flags") == [
        (1, "A", "A", 50 * unit, 100, 1, 128),
        (2, "T", "B", 50 * unit, 30, 0, 0),
        (2, "F", "A", 50 * unit, 30, 1, 0),
        (2, "C", "A", 50 * unit, 30, 1, 128),
        (3, "T", "B", 49 * unit, 10, 0, 0),
        (3, "F", "A", 49 * unit, 10, 1, 0),
        (3, "C", "A", 50 * unit, 10, 1, 128),
        (4, "F", "A", 49 * unit, 10, 1, 0),
        (4, "C", "A", 50 * unit, 10, 1, 128),
        (5, "C", "A", 50 * unit, 50, 1, 0),
        (5, "A", "A", 51 * unit, 7, 2, 128),
        (6, "C", "A", 51 * unit, 3, 2, 128),
        (7, "T", "N", 48 * unit, 5, 0, 128),
        (8, "C", "A", 51 * unit, 4, 2, 128),
    ]
    assert set(table["instrument_id"]) == {3}
    assert rows(db.trades(*made.all()), "sequence", "side", "price", "size", "action") == [
        (2, "B", 50 * unit, 30, "T"), (3, "B", 49 * unit, 10, "T"), (7, "N", 48 * unit, 5, "T"),
    ]  # fmt: skip


def test_adds_and_cancels_alone_rebuild_the_book(day):
    live: dict[int, list[int]] = {}
    for action, side, price, size, ref, locate in rows(
        db.mbo(*day.all()), "action", "side", "price", "size", "order_id", "instrument_id"
    ):
        if action == "A":
            live[ref] = [locate, side, price, size]
        elif action == "C":
            live[ref][3] -= size
            assert live[ref][3] >= 0
            if not live[ref][3]:
                del live[ref]
        else:
            assert action in ("T", "F")
    orders = {}
    for locate in day.book.locates().tolist():
        for o in day.book.orders(locate):
            side = "B" if o["side"] == ord("B") else "A"
            orders[int(o["ref"])] = [locate, side, int(o["price"]) * 10**5, int(o["qty"])]
    assert live == orders
    assert live


def test_mbp_has_the_rows_of_bbo_and_depth(day):
    one = db.mbp_1(*day.all())
    native = tables.bbo(day.events, day.tops, day.session)
    assert (one["sequence"] == native["seq"]).all()
    assert (one["bid_sz_00"] == native["bid_sz"]).all()
    there = native["ask_ct"] > 0
    assert (one["ask_px_00"][there] == native["ask_px"][there] * 10**5).all()
    assert (one["ask_px_00"][~there] == db.UNDEF_PRICE).all()
    assert there.any()
    assert not there.all()
    depth = Ladder(day.session, 3).apply(day.events, day.effects, day.tops)
    three = db.mbp_n(depth, 3, *day.all())
    assert (three["sequence"] == depth["seq"]).all()
    assert (three["bid_ct_02"] == depth["bid_ct_02"]).all()
    adds = three[(three["action"] == b"A")]
    for side, name in ((b"B", "bid"), (b"A", "ask")):
        for level in range(3):
            at = adds[(adds["side"] == side) & (adds["depth"] == level)]
            assert len(at)
            assert (at["price"] == at[f"{name}_px_{level:02d}"]).all()


def test_every_action_has_a_cause(day):
    table = db.mbp_1(*day.all())
    kinds = day.events["type"][np.searchsorted(day.events["seq"], table["sequence"])]
    for action, types in ((b"A", "AF"), (b"C", "XDC"), (b"M", "U"), (b"T", "EC")):
        seen = {chr(k) for k in kinds[table["action"] == action]}
        assert seen
        assert seen <= set(types)
    assert not (day.effects["outcome"] > Outcome.APPLIED).any()
