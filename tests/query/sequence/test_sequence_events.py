"""Sequences of events: the streaming engine against the reference, in pieces, its state saved between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_conformance.questions import flow
from trident_core.dtypes import EVENT, Events, Matched
from trident_core.errors import UsageError
from trident_core.session import Instrument, Session
from trident_query.sequence.engines import NumbaSequences, ReferenceSequences
from trident_query.sequence.question import SequenceError

QUESTIONS: list[dict[str, Any]] = [
    {"match": "A E+ D"},
    {"match": "(A|F) (U|E)* D", "within": "5ms"},
    {"match": "big (E|C|X)* D", "define": ["big: type in ('A','F') and shares>=200"], "per": "symbol"},
    {"match": "up up+", "define": ["up: price > prev(price)"], "per": "symbol"},
    {"match": "A not E within 4ms"},
    {"match": "F D?", "per": "mpid"},
    {"match": ". A* .{2}", "per": "all", "within": "3ms"},
    {"match": "A+ not D within 3ms", "per": "symbol"},
    {"match": "^ A E* $"},
    {"match": "x* D", "define": ["x: ts - prev(ts) <= 1ms and type != 'D'"], "per": "symbol"},
    {"match": "A (E E | X)?", "per": "all"},
    {"match": "A+ (.{2} D)?", "per": "symbol"},
]


@pytest.fixture(scope="module")
def session() -> Session:
    made = Session()
    for locate, symbol in enumerate(["AAPL", "MSFT", "A"], start=1):
        made.directory.put(Instrument(locate, symbol))
    return made


def shown(search: Any, found: Matched) -> list[tuple[Any, ...]]:
    return sorted(
        (
            search.value(int(m["key"])),
            int(m["first"]),
            int(m["last"]),
            int(m["last_ts"]) * int(m["rows"]),
            int(m["rows"]),
        )
        for m in found
    )


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q["match"])
def test_any_split_and_a_saved_state_give_what_the_reference_gives(
    question: dict[str, Any], session: Session, tmp_path: Path
) -> None:
    """SEQUENCE-10 to 18, 41."""
    rng, found_any = np.random.default_rng(7), 0
    for _ in range(4):
        events = flow(rng, 100)
        reference = ReferenceSequences().search(session=session, **question)
        reference.feed(events)
        wanted = shown(reference, reference.finish())
        search = NumbaSequences().search(session=session, **question)
        found, at = [], 0
        while at < len(events):
            end = at + int(rng.integers(1, 40))
            found.append(search.feed(events[at:end]))
            at = end
            if rng.random() < 0.4:
                search.save(tmp_path / "state")
                search = NumbaSequences().search(session=session, **question)
                search.load(tmp_path / "state")
        found.append(search.finish())
        assert shown(search, np.concatenate(found)) == wanted
        counting = NumbaSequences().search(session=session, count_only=True, **question)
        for part in (events[:33], events[33:]):
            counting.feed(part)
        counting.finish()
        assert counting.total == search.total == len(wanted)
        found_any += len(wanted)
    assert found_any or "price" in str(question) or question.get("within")


def test_the_keys_of_finished_orders_are_used_again(session: Session) -> None:
    """SEQUENCE-44."""
    search = NumbaSequences().search("A D", session)
    for batch in range(50):
        events = np.zeros(2_000, EVENT)
        events["seq"] = np.arange(2_000) + 1 + 2_000 * batch
        events["type"] = np.tile(list(b"AD"), 1_000)
        events["ref"] = np.repeat(np.arange(1_000) + 1 + 1_000 * batch, 2)
        assert len(search.feed(events)) == 1_000
    assert search.keys.key_count < 1 << 14, "100,000 orders must not need as many keys"
    assert search.total == 50_000


def test_a_state_of_another_question_and_a_damaged_one_are_refused(session: Session, tmp_path: Path) -> None:
    """SEQUENCE-42."""
    path = tmp_path / "state"
    search = NumbaSequences().search("A D", session)
    search.save(path)
    with pytest.raises(UsageError, match="another question"):
        NumbaSequences().search("A E", session).load(path)
    raw = bytearray(path.read_bytes())
    for cut in (0, 10, len(raw) // 2):
        path.write_bytes(raw[:cut])
        with pytest.raises(UsageError):
            search.load(path)
    with pytest.raises(UsageError, match="cannot read"):
        search.load(tmp_path / "none")


def test_hostile_events_stay_bounded(session: Session) -> None:
    """References that repeat, replaces by themselves and by 0, orders that were never added."""
    rng = np.random.default_rng(11)
    events = np.zeros(3_000, EVENT)
    events["seq"] = np.arange(3_000) + 1
    events["type"] = rng.choice(list(b"AFECXDUP"), 3_000)
    events["ref"] = rng.integers(0, 20, 3_000)
    events["ref2"] = rng.integers(0, 20, 3_000)
    events["qty"] = rng.choice(np.array([0, 1, 100, 2**64 - 1], np.uint64), 3_000)
    for question in QUESTIONS:
        search = NumbaSequences().search(session=session, **question)
        for at in range(0, 3_000, 700):
            search.feed(events[at : at + 700])
        search.finish()
        assert search.walk.pool[0, 0] == 0


def test_most_patterns_of_orders_need_one_cell_a_partition(session: Session) -> None:
    """What makes them fast must not be lost in silence."""
    events = flow(np.random.default_rng(3), 400)
    for match in ("A E+ D", "(A|F) (E|C|X)* D", "A .{2}", "E E", "A E*? (D|U)"):
        search = NumbaSequences().search(match, session)
        found = sum(len(search.feed(events[at : at + 90])) for at in range(0, 400, 90))
        assert found
        assert search.walk.cells is not None  # type: ignore[union-attr]


def firms_of(count: int) -> Events:
    """An add with an attribution of each of so many MPIDs, each followed by the order's delete."""
    events = np.zeros(2 * count, EVENT)
    events["seq"] = np.arange(2 * count) + 1
    events["ref"] = np.repeat(np.arange(count) + 1, 2)
    events["type"] = np.tile(list(b"FD"), count)
    texts = np.arange(count, dtype="<u4") * 7 + 1
    events["aux"][:, :4] = np.repeat(texts, 2).view(np.uint8).reshape(-1, 4)
    return events


def test_a_saved_state_carries_no_more_than_it_needs(session: Session, tmp_path: Path) -> None:
    """MPIDs are kept for partitions by MPID alone, in a table that grows with them."""
    for per in ("order", "mpid"):
        search = NumbaSequences().search("F D", session, per=per)
        assert len(search.feed(firms_of(100))) == 100
        search.save(tmp_path / per)
        assert (tmp_path / per).stat().st_size < 500_000


def test_many_firms_and_too_many(session: Session, tmp_path: Path) -> None:
    """SEQUENCE-22, 60. The table of MPIDs grows; each keeps its number, in a saved state too."""
    events = firms_of(65_537)
    search = NumbaSequences().search("F D", session, per="mpid")
    assert len(search.feed(events[:1_200])) == 600
    search.save(tmp_path / "state")
    search = NumbaSequences().search("F D", session, per="mpid")
    search.load(tmp_path / "state")
    found = search.feed(events[1_200:131_072])
    assert found["first"].tolist() == list(range(1_201, 131_072, 2))
    for match in (found[0], found[30_000], found[-1]):
        text = events["aux"][int(match["first"]) - 1].tobytes().rstrip(b"\0 ")
        assert search.value(int(match["key"])) == text.decode("utf-8", "surrogateescape")
    again = events[[0, 1]]
    again["seq"] += 200_000
    assert search.feed(again)["key"].tolist() == [0], "the first of all MPIDs has the first number"
    with pytest.raises(SequenceError, match="65,536 MPIDs"):
        search.feed(events[131_072:])
