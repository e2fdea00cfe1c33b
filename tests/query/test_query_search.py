"""Searches: what is pushed down, what comes back, against a snapshot in memory and a plain filter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_core.errors import PatternError, UsageError
from trident_core.search import Search, find
from trident_core.session import Directory, Instrument, Session
from trident_query.reference import ReferenceQuery

SYMBOLS = {1: "A", 2: "AA", 5: "AAPL", 7: "MSFT", 9: "ZXZZT", 300: "BRK.A", 70_000: "a very long name " * 8}
TYPES = b"SRLAFEXDU"
MPIDS = [b"GSCO", b"NSDQ", b"UB  ", b"\0\0\0\0"]


class MemorySnapshot:
    """A snapshot of an array. It notes what it was asked for."""

    def __init__(self, events: Events, session: Session) -> None:
        self.events, self.session = events, session
        self.count = len(events)
        self.last_seq = int(events["seq"][-1]) if len(events) else 0
        self.asked: list[dict[str, Any]] = []
        self.scanned = 0

    def scan(
        self,
        *,
        seq: tuple[int | None, int | None] = (None, None),
        ts: tuple[int | None, int | None] = (None, None),
        locates: Sequence[int] | NDArray[Any] | None = None,
        types: bytes | None = None,
        batch: int = 65_536,
    ) -> Iterator[Events]:
        self.asked.append({"seq": seq, "ts": ts, "locates": locates, "types": types, "batch": batch})
        keep = np.ones(len(self.events), dtype=bool)
        for column, (low, high) in (("seq", seq), ("ts", ts)):
            if low is not None:
                keep &= self.events[column] >= low
            if high is not None:
                keep &= self.events[column] <= high
        if locates is not None:
            keep &= np.isin(self.events["locate"], np.asarray(locates))
        if types is not None:
            keep &= np.isin(self.events["type"], np.frombuffer(types, dtype=np.uint8))
        kept = self.events[keep]
        for first in range(0, len(kept), batch):
            self.scanned += 1
            yield kept[first : first + batch]

    def get(self, ref: int) -> Events:
        raise NotImplementedError

    def close(self) -> None: ...


@pytest.fixture
def snapshot() -> MemorySnapshot:
    random = np.random.default_rng(5)
    size = 3_000
    events = np.zeros(size, dtype=EVENT)
    events["seq"] = np.arange(1, size + 1) * 2
    events["ts"] = np.sort(random.integers(0, 10**9, size))
    events["type"] = np.frombuffer(TYPES, dtype=np.uint8)[random.integers(0, len(TYPES), size)]
    events["locate"] = np.array([0, *SYMBOLS, 8])[random.integers(0, len(SYMBOLS) + 2, size)]
    events["locate"][events["type"] == ord("S")] = 0
    marked = np.isin(events["type"], [ord("F"), ord("L")])
    attributions = np.frombuffer(b"".join(MPIDS), dtype=np.uint8).reshape(-1, 4)
    events["aux"][marked, :4] = attributions[random.integers(0, len(MPIDS), int(marked.sum()))]
    events["aux"][~marked, :4] = np.frombuffer(b"GSCO", dtype=np.uint8)  # other types' aux is no MPID
    directory = Directory(Instrument(locate, symbol) for locate, symbol in SYMBOLS.items())
    return MemorySnapshot(events, Session(directory=directory))


def seqs(search: Search) -> list[int]:
    return [int(seq) for events in search for seq in events["seq"]]


def plain(snapshot: MemorySnapshot, symbol: str | None, mpid: str | None, types: str | None) -> list[int]:
    """The same search, one event at a time, with Python's re."""
    found = []
    for event in snapshot.events:
        letter, name = chr(event["type"]), SYMBOLS.get(int(event["locate"]))
        participant = bytes(event["aux"][:4]).rstrip(b" \0").decode()
        if symbol is not None and (name is None or not re.search(symbol, name.rstrip())):
            continue
        if types is not None and not re.search(types, letter):
            continue
        if mpid is not None and (letter not in "FL" or not re.search(mpid, participant)):
            continue
        found.append(int(event["seq"]))
    return found


CRITERIA = [
    (None, None, None),
    ("^A", None, None),
    ("^AA", None, "[AF]"),
    (None, "^GS", None),
    (None, "^$", None),
    ("T$", "UB|NSDQ", "F"),
    ("name$", None, None),
    (r"\.", None, "[^A]"),
    ("", "", ""),
]


@pytest.mark.parametrize(("symbol", "mpid", "types"), CRITERIA)
def test_searches_find_what_a_plain_filter_finds(
    engine: ReferenceQuery,
    snapshot: MemorySnapshot,
    symbol: str | None,
    mpid: str | None,
    types: str | None,
) -> None:
    """QUERY-42, 43."""
    expected = plain(snapshot, symbol, mpid, types)
    assert len(expected) > 10
    for batch in (65_536, 7):
        search = find(snapshot, engine, symbol=symbol, mpid=mpid, types=types, batch=batch)
        assert seqs(search) == expected
        assert seqs(search) == expected, "a search can be scanned again"
        assert search.count() == len(expected)
        assert search.notes == []
        assert all(1 <= len(events) <= batch for events in search)


def test_patterns_are_pushed_down(engine: ReferenceQuery, snapshot: MemorySnapshot) -> None:
    """QUERY-40."""
    find(snapshot, engine, symbol="^AA", types="[AF]", seq=(4, 900), ts=(None, 10**8), batch=9).count()
    (asked,) = snapshot.asked
    assert asked["locates"].tolist() == [2, 5]
    assert asked["types"] == b"AF"
    assert (asked["seq"], asked["ts"], asked["batch"]) == ((4, 900), (None, 10**8), 9)


def test_without_criteria_nothing_is_filtered(engine: ReferenceQuery, snapshot: MemorySnapshot) -> None:
    assert find(snapshot, engine).count() == 3_000
    assert snapshot.asked[0]["locates"] is None
    assert snapshot.asked[0]["types"] is None


def test_an_mpid_narrows_the_types(engine: ReferenceQuery, snapshot: MemorySnapshot) -> None:
    """QUERY-41."""
    assert find(snapshot, engine, mpid="GS").types == b"FL"
    assert find(snapshot, engine, mpid="GS", types="[A-F]").types == b"F"


def test_flags_and_full_go_for_every_pattern(engine: ReferenceQuery, snapshot: MemorySnapshot) -> None:
    assert find(snapshot, engine, symbol="aa", flags="i").locates.tolist() == [2, 5]  # type: ignore[union-attr]
    search = find(snapshot, engine, symbol="aa", types="f", mpid="gsco", flags="i", full=True)
    assert search.locates is not None
    assert search.locates.tolist() == [2]
    assert search.types == b"F"
    assert seqs(search) == plain(snapshot, "^AA$", "^GSCO$", "F")


@pytest.mark.parametrize(
    ("criteria", "note"),
    [
        ({"symbol": "^Q"}, "none of the session's 7 symbols matches '^Q'"),
        ({"types": "AF"}, "write [AF]"),
        ({"types": "A", "mpid": "G"}, "only F and L"),
    ],
)
def test_a_search_that_cannot_find_anything_says_why_and_does_not_scan(
    engine: ReferenceQuery, snapshot: MemorySnapshot, criteria: dict[str, str], note: str
) -> None:
    """QUERY-45."""
    search = find(snapshot, engine, **criteria)  # type: ignore[arg-type]
    assert (search.count(), seqs(search), search.summary()) == (0, [], [])
    assert len(search.notes) == 1
    assert note in search.notes[0]
    assert snapshot.asked == []


def test_limit_cuts_iteration_and_not_the_counts(engine: ReferenceQuery, snapshot: MemorySnapshot) -> None:
    """QUERY-44."""
    everything = seqs(find(snapshot, engine, symbol="^A"))
    for limit in (1, 4, 5, 6, 10, len(everything), len(everything) + 5):
        search = find(snapshot, engine, symbol="^A", limit=limit, batch=5)
        snapshot.scanned = 0
        assert seqs(search) == everything[:limit]
        assert snapshot.scanned <= -(-min(limit, len(everything)) // 5), "no batch is read past the limit"
        assert search.count() == len(everything)


def test_summary_and_counts(engine: ReferenceQuery, snapshot: MemorySnapshot) -> None:
    search = find(snapshot, engine, types="[AFS]", batch=100)
    matching = snapshot.events[np.isin(snapshot.events["type"], list(b"AFS"))]
    pairs = Counter((int(event["locate"]), chr(event["type"])) for event in matching)
    summary = search.summary()
    assert {(group.locate, group.type): group.count for group in summary} == pairs
    assert [(group.locate, group.type) for group in summary] == sorted(pairs)
    assert {group.symbol for group in summary if group.locate in (0, 8)} == {""}
    by_type = search.counts_by("type")
    assert by_type == Counter(chr(letter) for letter in matching["type"])
    assert list(by_type.values()) == sorted(by_type.values(), reverse=True)
    by_symbol = search.counts_by("symbol")
    assert by_symbol["AAPL"] == int((matching["locate"] == 5).sum())
    assert sum(by_symbol.values()) == len(matching)
    with pytest.raises(UsageError, match="symbol"):
        search.counts_by("price")


@pytest.mark.parametrize(
    "wrong",
    [{"limit": -1}, {"batch": 0}, {"seq": (5, 4)}, {"ts": (10, 0)}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_misuse(engine: ReferenceQuery, snapshot: MemorySnapshot, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        find(snapshot, engine, **wrong)
    assert caught.value.hint


def test_a_bad_pattern_is_a_pattern_error(engine: ReferenceQuery, snapshot: MemorySnapshot) -> None:
    for name in ("symbol", "mpid", "types"):
        with pytest.raises(PatternError, match="look-ahead"):
            find(snapshot, engine, **{name: "A(?=B)"})  # type: ignore[arg-type]


def test_an_empty_store(engine: ReferenceQuery) -> None:
    empty = MemorySnapshot(np.zeros(0, dtype=EVENT), Session())
    search = find(empty, engine, symbol="A")
    assert (seqs(search), search.count()) == ([], 0)
    assert "0 symbols" in search.notes[0]
    assert find(empty, engine, mpid="A").count() == 0


LETTERS = st.sampled_from(["A", "F", "[^A]", ".", "", "^[AL]$", None])


@given(
    symbol=st.sampled_from([None, "A", "^AA", "[.]", "zz"]),
    mpid=st.sampled_from([None, "G", "^UB$", "^$"]),
    types=LETTERS,
    batch=st.integers(1, 4_000),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_criteria_are_anded(
    engine: ReferenceQuery,
    snapshot: MemorySnapshot,
    symbol: str | None,
    mpid: str | None,
    types: str | None,
    batch: int,
) -> None:
    search = find(snapshot, engine, symbol=symbol, mpid=mpid, types=types, batch=batch)
    assert seqs(search) == plain(snapshot, symbol, mpid, types)
