"""The register machine against the reference: every condition, on every event, through every door."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from trident_conformance import questions
from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.search import find
from trident_core.session import Instrument, Session
from trident_query.reference import ReferenceQuery
from trident_query.where import program
from trident_query.where.plan import bounds
from trident_query.where.predicate import Predicate, SlowPredicate
from trident_query.where.symbols import NEAR_MAX

SESSION = questions.session()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(questions.conditions(), questions.wild_events())
def test_the_machine_equals_the_reference(text: str, rows: Events) -> None:
    """SEQUENCE-1 to 3, 6."""
    reference = SlowPredicate(text, SESSION).match(rows)
    predicate = Predicate(text, SESSION)
    try:
        answer = predicate.match(rows)
    except UsageError:  # arithmetic that does not fit 64 bits; a test of its own says so
        return
    assert answer.tolist() == reference.tolist()
    # The bounds may skip no event for which it is true.
    limits = bounds(predicate_tree(text), SESSION)
    for row, wanted in zip(rows, reference, strict=True):
        if wanted:
            assert limits.seq[0] <= int(row["seq"]) <= limits.seq[1]
            assert limits.ts[0] <= int(row["ts"]) <= limits.ts[1]
            assert int(row["type"]) in limits.types
            assert limits.locates is None or int(row["locate"]) in limits.locates


def predicate_tree(text: str):  # type: ignore[no-untyped-def]
    from trident_query.where.parse import parse_expression

    return parse_expression(text)


def test_rows_and_columns_and_any_stride_give_the_same() -> None:
    rows = np.zeros(1_500, EVENT)
    rows["type"], rows["qty"] = np.arange(1_500) % 90, np.arange(1_500)
    predicate = Predicate("type = 'A' and shares >= 700", SESSION)
    expected = predicate.match(rows)
    assert expected.sum() == ((rows["type"] == 65) & (rows["qty"] >= 700)).sum() > 0
    columns = {"type": np.ascontiguousarray(rows["type"]), "qty": np.ascontiguousarray(rows["qty"])}
    assert (predicate.machine.match(columns, len(rows)) == expected).all()
    assert (predicate.match(rows[::3]) == expected[::3]).all()
    rows.setflags(write=False)
    assert (predicate.match(rows) == expected).all()
    with pytest.raises(UsageError, match="column 'qty'"):
        predicate.machine.match({**columns, "qty": columns["qty"].astype(np.int32)}, len(rows))


def test_locates_of_any_size_take_no_more_room() -> None:
    """SEQUENCE-1. A locate is a u32; a table over all of them would be 4 GB."""
    session = Session()
    places = [1, NEAR_MAX - 1, NEAR_MAX, NEAR_MAX + 7, 4_000_000_000, 2**32 - 1]
    for locate, symbol in zip(places, ["A", "B", "AA", "", "AB", "C"], strict=True):
        session.directory.put(Instrument(locate, symbol))
    rows = np.zeros(12, EVENT)
    rows["locate"] = [*places, 0, 2, NEAR_MAX + 1, NEAR_MAX + 8, 3_999_999_999, 4_000_000_001]
    for text in ("symbol ~ '^A'", "symbol is null", "symbol != 'B'", "symbol in ('AA', 'C')"):
        predicate = Predicate(text, session)
        assert predicate.match(rows).tolist() == SlowPredicate(text, session).match(rows).tolist()
        assert predicate.match(rows).any()
        assert sum(table.nbytes for table in predicate.machine.code.locates) <= 3 * NEAR_MAX


def test_more_texts_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "REMEMBERED_MAX", 600)
    rows = np.zeros(5_000, EVENT)
    rows["aux"] = np.random.default_rng(3).integers(65, 75, (5_000, 8))
    predicate = Predicate("aux ~ 'ABC|J{2}'", SESSION)
    assert (predicate.match(rows) == SlowPredicate("aux ~ 'ABC|J{2}'", SESSION).match(rows)).all()


def test_arithmetic_that_does_not_fit_is_refused_not_wrong() -> None:
    rows = np.zeros(3, EVENT)
    rows["type"], rows["qty"][1] = 65, 2**63
    with pytest.raises(UsageError, match="event 1 of the batch"):
        Predicate("qty - 1 > 5", SESSION).match(rows)


class Snapshot:
    """A snapshot that keeps what it was asked for."""

    def __init__(self, rows: Events) -> None:
        self.rows, self.session, self.count, self.last_seq = rows, SESSION, len(rows), int(rows["seq"][-1])
        self.asked: dict[str, object] = {}

    def scan(self, **asked: object):  # type: ignore[no-untyped-def]
        self.asked = asked
        yield self.rows


def test_a_search_pushes_down_what_the_predicate_demands() -> None:
    """SEQUENCE-6."""
    rows = np.zeros(4, EVENT)
    rows["seq"], rows["type"], rows["locate"], rows["ts"] = [1, 2, 3, 4], list(b"AAFA"), 1, 40_000_000_000_000
    rows["qty"] = [5, 500, 500, 500]
    snapshot = Snapshot(rows)
    text = "type in ('A', 'F') and qty > 100 and ts >= 09:30 and seq < 4 and symbol ~ '^A'"
    search = find(snapshot, ReferenceQuery(), where=Predicate(text, SESSION), types="A")  # type: ignore[arg-type]
    assert [int(seq) for part in search for seq in part["seq"]] == [2, 3]
    assert snapshot.asked["types"] == b"A"
    assert snapshot.asked["seq"] == (None, 3)
    assert snapshot.asked["ts"] == (34_200_000_000_000, (1 << 64) - 1)
    assert list(snapshot.asked["locates"]) == [1, 2]  # type: ignore[call-overload]
    nothing = find(snapshot, ReferenceQuery(), where=Predicate("type = 'A' and type = 'F'", SESSION))  # type: ignore[arg-type]
    assert nothing.count() == 0
    assert "no event can satisfy" in nothing.notes[0]
