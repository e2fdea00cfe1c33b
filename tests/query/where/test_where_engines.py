"""The register machine against the reference: every condition, on every event, through every door."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.search import find
from trident_core.session import Instrument, Session
from trident_query.reference import ReferenceQuery
from trident_query.where import program
from trident_query.where.plan import bounds
from trident_query.where.predicate import Predicate, SlowPredicate


def session() -> Session:
    made = Session()
    for locate, symbol in enumerate(["AAPL", "A", "MSFT", "B C"], start=1):
        made.directory.put(Instrument(locate, symbol))
    return made


SESSION = session()
INTS = st.integers(0, 2**64 - 1) | st.integers(0, 300)
TYPES = st.sampled_from(list(b"AFEDXUCPVLQIJKRSH\0\xff"))


@st.composite
def events(draw: st.DrawFn) -> Events:
    made = np.zeros(draw(st.integers(1, 12)), EVENT)
    for row in made:
        row["type"], row["side"] = draw(TYPES), draw(st.sampled_from(list(b"BS\0 ")))
        row["locate"] = draw(st.sampled_from([0, 1, 2, 3, 4, 5, 70_000]))
        row["flags"] = draw(st.sampled_from([0, 1, 2, 3]))
        row["price"] = draw(st.integers(-(2**63), 2**63 - 1) | st.integers(-30, 4_000_000))
        for name in ("seq", "ts", "ref", "ref2", "qty"):
            row[name] = draw(INTS)
        row["aux"] = list(
            draw(st.sampled_from([b"AB  CD  ", b"ABCD\0\0\0\0", b"\0" * 8, b"       A", b"\xffA \0  \0 "]))
        )
    return made


NUMBERS = st.sampled_from(
    [
        "qty",
        "shares",
        "seq",
        "ref",
        "ref2",
        "locate",
        "flags",
        "0",
        "1",
        "7.5",
        "-3",
        "299",
        "18446744073709551615",
        "99999999999999999999",
        "ref2 - 1",
        "qty * 3",
        "-flags",
        "locate % 3",
        "7 - 2",
    ]
)
PRICES = st.sampled_from(
    ["price", "100.25", "0", "-0.0001", "0.00001", "3.99999999", "price + 1", "price * 2", "-price"]
)
TIMES = st.sampled_from(["ts", "00:00", "ts - 1us", "300", "299ns", "09:30"])
SIGNS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
TEXTS = st.sampled_from(["type", "side", "symbol", "mpid", "aux"])
WORDS = {
    "type": ["A", "F", "x"], "side": ["B", "S"], "symbol": ["A", "AAPL", "Z"],
    "mpid": ["AB", "ABCD", "", "ABCDE"], "aux": ["AB  CD", "", "ABCD", "       A"],
}  # fmt: skip


@st.composite
def values_compared(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from([NUMBERS, PRICES, TIMES, None]))
    if kind is None:
        field = draw(TEXTS)
        word = draw(st.sampled_from(WORDS[field]))
        other = draw(st.sampled_from(WORDS[field]))
        return draw(
            st.sampled_from(
                [
                    f"{field} = '{word}'",
                    f"{field} != '{word}'",
                    f"{field} in ('{word}', '{other}')",
                    f"{field} ~ '^A'",
                    f"{field} !~ '[BS]'",
                    f"{field} is null",
                    f"{field} is not null",
                ]
            )
        )
    a, b, c = draw(kind), draw(kind), draw(kind)
    return draw(
        st.sampled_from(
            [f"{a} {draw(SIGNS)} {b}", f"{a} between {b} and {c}", f"{a} in ({b}, {c})", f"{a} is null"]
        )
    )


CONDITIONS = st.recursive(
    values_compared(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(CONDITIONS, events())
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
