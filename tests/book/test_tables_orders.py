"""Order lives: by hand, against a dict of lives, and by the law of conservation."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.dtypes import Outcome
from trident_core.session import Session
from trident_core.tables.lives import OrderLives

START = 34_200 * 10**9
DATE = dt.date(2020, 7, 1)


def lives(day, cuts: list[int] | None = None, session: Session | None = None) -> np.ndarray:
    followed = OrderLives(session or Session())
    edges = [0, *sorted(cut % len(day.events) for cut in cuts or []), len(day.events)]
    parts = [followed.apply(day.events[a:b], day.effects[a:b], day.tops[a:b]) for a, b in pairwise(edges)]
    assert followed.live() == day.book.live_orders()
    return np.concatenate([*parts, followed.finish()])


def row(table: np.ndarray, ref: int) -> dict[str, object]:
    (found,) = table[table["order_id"] == ref]
    return dict(zip(table.dtype.names, found.tolist(), strict=True))


def test_a_life_by_hand(stream, applied):
    day = applied(
        stream().add(1, "B", 100, 5000).add(2, "B", 50, 5000, mpid="NITE").execute(1, 30).cancel(1, 20)
        .add(3, "B", 10, 5000).execute_at(2, 50, 5100, printable=False).replace(1, 4, 70, 5000).delete(4)
    )  # fmt: skip
    table = lives(day, session=Session(date=DATE))
    midnight = Session(date=DATE).midnight_ns()
    assert table["order_id"].tolist() == [2, 1, 4, 3]
    first = row(table, 1)
    assert first["ts_event"] == midnight + START
    assert (first["added"], first["filled"], first["cancelled"], first["replaced"]) == (100, 30, 20, 50)
    assert (first["fate"], first["replaced_by"], first["replaced_from"], first["origin"]) == (b"R", 4, 0, 1)
    assert (first["fills"], first["first_fill_ts"]) == (1, midnight + START + 2000)
    assert (first["end_seq"], first["end_ts"], first["lifetime_ns"]) == (7, midnight + START + 6000, 6000)
    second = row(table, 2)
    assert (second["queue_position"], second["queue_ahead"], second["mpid"]) == (1, 100, b"NITE")
    assert (second["fate"], second["filled"], second["side"]) == (b"F", 50, b"B")
    third = row(table, 3)
    assert (third["queue_position"], third["queue_ahead"]) == (2, 100)  # 50 of the first, 50 of the second
    assert (third["fate"], third["remaining"], third["end_ts"], third["end_seq"]) == (b"L", 10, 0, 0)
    last = row(table, 4)
    assert (last["queue_position"], last["queue_ahead"], last["origin"]) == (1, 10, 1)
    assert (last["fate"], last["cancelled"], last["replaced_from"]) == (b"C", 70, 1)


def test_anomalies_by_hand(stream, applied):
    day = applied(
        stream().add(1, "B", 100, 5000).add(1, "S", 40, 6000, locate=2).execute(1, 90, locate=2)
        .execute(77, 1).add(5, "B", 10, 5000).replace(5, 6, 0, 5000).add(7, "X", 5, 5).cancel(9, 1)
    )  # fmt: skip
    table = lives(day)
    assert table["order_id"].tolist() == [1, 1, 5]
    evicted, over, rejected = table
    assert (evicted["fate"], evicted["remaining"], evicted["locate"]) == (b"E", 100, 1)
    assert (over["fate"], over["filled"], over["locate"], over["queue_ahead"]) == (b"F", 40, 2, 0)
    assert (rejected["fate"], rejected["replaced"], rejected["replaced_by"]) == (b"R", 10, 0)


def naive(day) -> list[tuple[int, ...]]:
    """(order, entry seq, added, filled, cancelled, replaced, remaining, fate, ahead, position) of each."""
    live: dict[int, dict[str, int]] = {}
    done: list[tuple[int, ...]] = []

    def end(ref: int, fate: str) -> None:
        o = live.pop(ref)
        if fate == "C":
            o["cancelled"] += o["left"]
        replaced = o["left"] if fate == "R" else 0
        remaining = o["left"] if fate in "EL" else 0
        figures = (o["added"], o["filled"], o["cancelled"], replaced, remaining)
        done.append((ref, o["seq"], *figures, ord(fate), o["ahead"], o["position"]))

    for e, f, t in zip(day.events, day.effects, day.tops, strict=True):
        kind, outcome, ref, new = chr(e["type"]), f["outcome"], int(e["ref"]), int(e["ref2"])
        enters = kind in "AFU" and outcome in (Outcome.APPLIED, Outcome.DUPLICATE_REF)
        if kind in "ECX" and ref in live and outcome != Outcome.UNKNOWN_REF:
            live[ref]["left"] -= int(f["qty"])
            live[ref]["cancelled" if kind == "X" else "filled"] += int(f["qty"])
            if live[ref]["left"] == 0:
                end(ref, "C" if kind == "X" else "F")
        elif kind == "D" and ref in live:
            end(ref, "C")
        elif kind == "U" and ref in live:
            end(ref, "R")
            if new in live:
                end(new, "E")
        if enters:
            ref = new if kind == "U" else ref
            if ref in live:
                end(ref, "E")
            place = (int(t["locate"]), int(f["side"]), int(e["price"]))
            before = [o for o in live.values() if o["place"] == place]
            live[ref] = {
                "seq": int(e["seq"]), "added": int(e["qty"]), "left": int(e["qty"]), "filled": 0,
                "cancelled": 0, "place": place, "ahead": sum(o["left"] for o in before),
                "position": len(before),
            }  # fmt: skip
    for ref in list(live):
        end(ref, "L")
    return done


@pytest.mark.parametrize(("seed", "anomalies"), [(1, 0.0), (2, 0.2), (3, 0.6)])
def test_equal_to_a_dict_of_lives(chance, applied, seed, anomalies):
    day = applied(chance(seed, 3_000, anomalies=anomalies))
    table = lives(day)
    columns = (
        "order_id", "seq", "added", "filled", "cancelled", "replaced", "remaining", "fate", "queue_ahead",
        "queue_position",
    )  # fmt: skip
    rows = [tuple(ord(v) if isinstance(v, bytes) else v for v in r) for r in table[list(columns)].tolist()]
    assert rows == naive(day)
    assert len(rows) > 700
    parts = table["filled"] + table["cancelled"] + table["replaced"] + table["remaining"]
    assert (table["added"] == parts).all()
    adds = np.isin(day.events["type"], list(b"AFU"))
    applied_adds = adds & np.isin(day.effects["outcome"], [Outcome.APPLIED, Outcome.DUPLICATE_REF])
    assert len(table) == np.count_nonzero(applied_adds)


def test_chains_lead_to_their_origin(chance, applied):
    table = lives(applied(chance(5, 2_000, anomalies=0.0)))
    by_id = {int(r["order_id"]): r for r in table}
    replaced = [r for r in table if r["replaced_from"]]
    assert len(replaced) > 50
    for r in replaced:
        before = by_id[int(r["replaced_from"])]
        assert before["replaced_by"] == r["order_id"]
        assert before["origin"] == r["origin"]
        assert before["end_seq"] == r["seq"]


@pytest.fixture(scope="module")
def sample(chance, applied):
    return applied(chance(11, 500, anomalies=0.4))


@given(st.lists(st.integers(0, 10_000), max_size=8))
@settings(deadline=None, max_examples=40)
def test_any_split_gives_the_same_lives(sample, cuts):
    np.testing.assert_array_equal(lives(sample, cuts), lives(sample))


def test_memory_is_that_of_live_orders(stream, applied):
    """Ten thousand orders one after the other use the slots of a few."""
    day = stream()
    for ref in range(1, 5001):
        day.add(ref, "B", 10, 5000 + ref % 7).delete(ref)
    made = applied(day)
    followed = OrderLives(Session())
    for start in range(0, len(made.events), 100):
        part = slice(start, start + 100)
        assert len(followed.apply(made.events[part], made.effects[part], made.tops[part])) == 50
    assert len(followed._lives) <= 200
    assert len(followed._keys) == 1 << 12
