"""Named patterns in one scan against a plain filter; groups, bitmaps and selections."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.cli.query_sets import criteria_of
from trident_core.dtypes import EVENT, Events
from trident_core.errors import PatternError, UsageError
from trident_core.grouping import bucket_ns, count_by
from trident_core.search_set import Criterion, SetSearch, find_set
from trident_core.selection import parse_selection
from trident_core.session import Directory, Instrument, Session
from trident_query.reference import ReferenceQuery
from trident_query.sequence.engines import NumbaSequences, ReferenceSequences

SYMBOLS = {1: "A", 2: "AA", 5: "AAPL", 7: "MSFT", 300: "BRK.A", 4_000_000_000: "a long name " * 8}
MPIDS = [b"GSCO", b"NSDQ", b"UB  ", b"\0\0\0\0"]


class Memory:
    """A snapshot of an array, filtered as a store would; it notes what it was asked for."""

    def __init__(self, events: Events, session: Session) -> None:
        self.events, self.session = events, session
        self.count, self.last_seq = len(events), int(events["seq"][-1])
        self.asked: list[dict[str, Any]] = []

    def scan(self, *, seq: Any = (None, None), ts: Any = (None, None), locates: Any = None,
             types: bytes | None = None, batch: int = 65_536) -> Iterator[Events]:  # fmt: skip
        self.asked.append({"locates": locates, "types": types})
        keep = np.ones(len(self.events), bool)
        if locates is not None:
            keep &= np.isin(self.events["locate"], locates)
        if types is not None:
            keep &= np.isin(self.events["type"], np.frombuffer(types, np.uint8))
        for name, (low, high) in (("seq", seq), ("ts", ts)):
            keep &= self.events[name] >= (low or 0)
            keep &= self.events[name] <= (2**64 - 1 if high is None else high)
        kept = self.events[keep]
        for first in range(0, len(kept), batch):
            yield kept[first : first + batch]

    def get(self, ref: int) -> Events:
        raise NotImplementedError

    def close(self) -> None: ...


@pytest.fixture(scope="module")
def snapshot() -> Memory:
    random = np.random.default_rng(3)
    events = np.zeros(2_000, EVENT)
    events["seq"] = np.arange(1, 2_001) * 3
    events["ts"] = np.sort(random.integers(0, 5 * 10**9, 2_000))
    events["type"] = random.choice(np.frombuffer(b"AFLEXD", np.uint8), 2_000)
    events["locate"] = random.choice(np.array([0, *SYMBOLS], np.uint32), 2_000)
    events["ref"] = random.integers(0, 40, 2_000)
    events["aux"][:, :4] = np.frombuffer(b"".join(MPIDS), np.uint8).reshape(4, 4)[
        random.integers(0, 4, 2_000)
    ]
    return Memory(events, Session(directory=Directory(Instrument(k, v) for k, v in SYMBOLS.items())))


CRITERIA = {
    "a": Criterion(symbol="^A"),
    "gs": Criterion(mpid="^GS"),
    "adds": Criterion(types="[AF]"),
    "both": Criterion(symbol="^A+$", types="F", mpid="^$|Q$"),
    "long": Criterion(symbol="name a"),
}


def met(event: Any, criterion: Criterion) -> bool:
    """What a criterion means, one event at a time."""
    symbol, letter = SYMBOLS.get(int(event["locate"])), chr(event["type"])
    firm = event["aux"][:4].tobytes().decode().rstrip("\0 ")
    return (
        (criterion.symbol is None or (symbol is not None and bool(re.search(criterion.symbol, symbol))))
        and (criterion.types is None or bool(re.search(criterion.types, letter)))
        and (criterion.mpid is None or (letter in "FL" and bool(re.search(criterion.mpid, firm))))
    )


def wanted(snapshot: Memory, select: str) -> list[bool]:
    rows = [{name: met(e, c) for name, c in CRITERIA.items()} for e in snapshot.events]
    return [bool(eval(select, {}, row)) for row in rows]


def ask(snapshot: Memory, select: str, **options: Any) -> SetSearch:
    return find_set(snapshot, ReferenceQuery(), CRITERIA, select=select, **options)


SELECTIONS = [
    "a", "a or gs", "a and not gs", "not a", "(a or gs) and adds", "not (a or gs) and not adds",
    "both or long", "a and both", "not not gs",
]  # fmt: skip


@pytest.mark.parametrize("select", SELECTIONS)
def test_selections_are_what_python_makes_of_them(snapshot: Memory, select: str) -> None:
    chosen = np.array(wanted(snapshot, select))
    assert 0 < chosen.sum() < len(chosen)
    search = ask(snapshot, select, batch=97)
    assert np.concatenate(list(search))["seq"].tolist() == snapshot.events["seq"][chosen].tolist()
    assert search.count() == chosen.sum()
    assert np.unpackbits(search.bitmap(), bitorder="little")[: len(chosen)].tolist() == chosen.tolist()
    assert search.first()["seq"].tolist() == snapshot.events["seq"][chosen][:1].tolist()
    assert search.last()["seq"].tolist() == snapshot.events["seq"][chosen][-1:].tolist()
    for name, count in search.counts().items():
        each = [met(e, CRITERIA[name]) for e in snapshot.events[chosen]]
        assert count == sum(each), name


def test_masks_say_which_criteria_are_met(snapshot: Memory) -> None:
    for events, masks in ask(snapshot, "", batch=500).scan():
        for event, mask in zip(events, masks.tolist(), strict=True):
            assert mask == sum(met(event, c) << bit for bit, c in enumerate(CRITERIA.values()))
            assert mask


def test_the_scan_leaves_out_what_cannot_be_selected(snapshot: Memory) -> None:
    snapshot.asked.clear()
    find_set(snapshot, ReferenceQuery(), {"a": CRITERIA["a"], "m": Criterion("^M", types="E")}).count()
    assert snapshot.asked[0]["locates"].tolist() == [1, 2, 5, 7]
    assert snapshot.asked[0]["types"] is None
    ask(snapshot, "not a").count()
    assert snapshot.asked[1] == {"locates": None, "types": None}
    nothing = find_set(snapshot, ReferenceQuery(), {"x": Criterion("^nothing$")})
    assert (nothing.count(), len(nothing.first()), len(nothing.last()), len(snapshot.asked)) == (0, 0, 0, 2)
    told = ask(snapshot, "a").explain()
    assert (told["locates_possible"], told["locates_known"]) == (6, 6)
    assert told["matched_on_events"] == ["gs", "both"]


CONDITION = "(ref >= 11 or type = 'X') and ts < 00:00:04 and symbol != 'MSFT'"


def allowed(event: Any) -> bool:
    """What CONDITION means."""
    symbol = SYMBOLS.get(int(event["locate"]))
    late, known = int(event["ts"]) >= 4 * 10**9, symbol is not None and symbol != "MSFT"
    return (int(event["ref"]) >= 11 or chr(event["type"]) == "X") and not late and known


@pytest.mark.parametrize("select", SELECTIONS)
@pytest.mark.parametrize("among", [Criterion(), Criterion(symbol="^A"), Criterion(types="[FLX]", mpid="^.")])
def test_a_condition_and_patterns_for_all_events(snapshot: Memory, select: str, among: Criterion) -> None:
    where = ReferenceSequences().predicate(CONDITION, snapshot.session)
    search = ask(snapshot, select, where=where, among=among, batch=113)
    both = [chosen and allowed(e) and met(e, among)
            for e, chosen in zip(snapshot.events, wanted(snapshot, select), strict=True)]  # fmt: skip
    found = list(search.labelled())
    assert [e for events, _ in found for e in events["seq"].tolist()] == snapshot.events["seq"][both].tolist()
    assert search.count() == sum(both)
    assert np.unpackbits(search.bitmap(), bitorder="little")[: len(both)].tolist() == both
    for event, mask in ((e, m) for events, masks in found for e, m in zip(events, masks, strict=True)):
        assert search.names_of(int(mask)) == [name for name, c in CRITERIA.items() if met(event, c)]


def test_a_condition_narrows_the_scan_of_a_set(snapshot: Memory) -> None:
    snapshot.asked.clear()
    where = NumbaSequences().predicate("type in ('F', 'E') and symbol ~ '^A'", snapshot.session)
    search = find_set(snapshot, ReferenceQuery(), {"m": Criterion("A$", types="[EX]")}, where=where)
    assert search.count() > 0
    assert (snapshot.asked[0]["locates"].tolist(), snapshot.asked[0]["types"]) == ([1, 2], b"E")
    assert search.explain()["all_events"]["type_pushdown"]["types"] == "EF"
    never = NumbaSequences().predicate("type = 'A' and type = 'F'", snapshot.session)
    search = ask(snapshot, "not a", where=never)
    assert (search.count(), len(snapshot.asked), len(search.notes)) == (0, 1, 1)


def test_a_limit_cuts_events_and_nothing_else(snapshot: Memory) -> None:
    search = ask(snapshot, "a", limit=7, batch=5)
    assert sum(map(len, search)) == 7
    assert search.count() > 7


@pytest.mark.parametrize("by", ["symbol", "type", "order", "mpid", "1s", "500ms"])
def test_groups(snapshot: Memory, by: str) -> None:
    found = ask(snapshot, "a or gs").counts_by(by)
    chosen = snapshot.events[np.array(wanted(snapshot, "a or gs"))]
    counts: Counter[str] = Counter()
    for event in chosen:
        firm = event["aux"][:4].tobytes().decode().rstrip("\0 ") if chr(event["type"]) in "FL" else ""
        length = bucket_ns(by) or 1
        nanos = int(event["ts"]) // length * length
        clock = f"00:00:0{nanos // 10**9}.{nanos % 10**9:09d}"
        counts[
            {
                "symbol": SYMBOLS.get(int(event["locate"]), ""),
                "type": chr(event["type"]),
                "order": str(event["ref"]) if event["ref"] else "",
                "mpid": firm,
            }.get(by, clock)
        ] += 1
    assert found == dict(counts)
    if by in ("1s", "500ms"):
        assert list(found) == sorted(found)
    else:
        assert list(found.values()) == sorted(found.values(), reverse=True)


def test_groups_are_capped(snapshot: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trident_core.grouping.GROUPS_MAX", 10)
    with pytest.raises(UsageError, match="more than 10 groups"):
        count_by([snapshot.events], "order", snapshot.session)
    with pytest.raises(UsageError, match="no counts by 'price'"):
        count_by([], "price", snapshot.session)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("", "a name is missing at offset 0"), ("a and", "a name is missing at offset 5"),
        ("a b", "'b' is out of place at offset 2"), ("(a", "a parenthesis is not closed at offset 2"),
        ("a)", "out of place at offset 1"), ("a & b", "'&' is no word of a selection at offset 2"),
        ("c", "no criterion 'c' at offset 0"), ("not " * 200 + "a", "nested deeper than 100"),
        ("(" * 200, "nested deeper than 100"), ("a or " * 5000, "10,000"),
    ],
)  # fmt: skip
def test_wrong_selections_say_where(select: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parse_selection(select, ["a", "b"])


@given(st.recursive(st.sampled_from(["a", "b", "c"]), lambda part: st.one_of(
    st.tuples(part, st.sampled_from([" and ", " or "]), part).map(lambda p: f"({p[0]}{p[1]}{p[2]})"),
    part.map(lambda p: f"not {p}"), st.tuples(part, part).map(lambda p: f"{p[0]} or {p[1]} and {p[0]}"),
)))  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_any_selection(select: str) -> None:
    masks = np.arange(8, dtype=np.uint64)
    found = parse_selection(select, ["a", "b", "c"]).of(masks).tolist()
    assert found == [bool(eval(select, {}, {"a": m & 1, "b": m >> 1 & 1, "c": m >> 2 & 1})) for m in range(8)]


def test_wrong_criteria(snapshot: Memory) -> None:
    engine = ReferenceQuery()
    for criteria in (
        {},
        {f"c{n}": Criterion("a") for n in range(65)},
        {"not": Criterion("a")},
        {"1": Criterion()},
    ):
        with pytest.raises(UsageError):
            find_set(snapshot, engine, criteria)
    for options in ({"limit": -1}, {"batch": 0}):
        with pytest.raises(UsageError):
            find_set(snapshot, engine, {"a": Criterion("a")}, **options)  # type: ignore[arg-type]
    for criterion in (Criterion("("), Criterion(mpid="("), Criterion(types="(")):
        with pytest.raises(PatternError):
            find_set(snapshot, engine, {"a": criterion})


def test_criteria_of_the_command_line() -> None:
    found = criteria_of(["a=symbol:^A=:", "b=type:[AF]", "b=mpid:GS"], "i")
    assert found == {"a": Criterion("^A=:", flags="i"), "b": Criterion(types="[AF]", mpid="GS", flags="i")}
    for wrong in ("a", "a=b", "a=price:1", "symbol:x"):
        with pytest.raises(UsageError, match="NAME=FIELD:RE"):
            criteria_of([wrong], "")
    with pytest.raises(UsageError, match="two patterns"):
        criteria_of(["a=symbol:x", "a=symbol:y"], "")
