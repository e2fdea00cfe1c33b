"""Days by chance and simulated days against the PyPI package itch-book: the same bytes, the same tables.

Where the two differ by design (docs/contracts/book.md, "Differences from itch-book"), exactly the rows in
question are brought to one form before comparing, and a test of its own shows the difference.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core import tables
from trident_core.decode import events_of
from trident_core.dtypes import EFFECT, TOP
from trident_core.session import Directory, Instrument, Session
from trident_parser.encode import encode_events
from trident_parser.reference import ReferenceParser
from trident_sim.spec import SimSpec
from trident_sim.stream import Day

itch_book = pytest.importorskip("itch_book")

DATE = dt.date(2019, 12, 30)
ANOMALIES = {"unknown_ref", "duplicate_ref", "over_execution"}
Rows = list[dict[str, Any]]


def day_session() -> Session:
    return Session(date=DATE, directory=Directory(Instrument(n, f"SYM{n}") for n in range(1, 65)))


def theirs(path: Path, depth: int = 3) -> tuple[dict[str, Rows], dict[str, Any]]:
    """itch-book's tables as rows, MPIDs by name, and its counts."""
    feed = itch_book.open(str(path), date=DATE, price_type="fixed")
    found: dict[str, Rows] = {"bbo": [], "trades": [], "messages": [], "depth": []}
    for batch in feed.batches(tables=tuple(found), depth=depth):
        for name, rows in found.items():
            columns = getattr(batch, name)
            rows += [
                dict(zip(columns, row, strict=True))
                for row in zip(*(column.tolist() for column in columns.values()), strict=True)
            ]
    for row in found["messages"]:
        row["mpid"] = feed.mpids[row["mpid"]].encode()
    return found, feed.stats


def ours(
    events: np.ndarray, session: Session, depth: int = 3
) -> tuple[dict[str, Rows], ReferenceBook, np.ndarray]:
    book = ReferenceBook(session)
    tops, effects = np.zeros(len(events), TOP), np.zeros(len(events), EFFECT)
    book.apply(events, tops, effects)
    assert book.validate() == []
    made = {
        "bbo": tables.bbo(events, tops, session),
        "trades": tables.trades(events, effects, session, tops),
        "messages": tables.messages(events, effects, session, tops),
        "depth": tables.depth(ReferenceBook(session), events, depth),
    }
    rows = {
        name: [dict(zip(table.dtype.names or (), row, strict=True)) for row in table.tolist()]
        for name, table in made.items()
    }
    return rows, book, tops


def shown_at_next_event(rows: Rows, tops: np.ndarray, midnight: int) -> Rows:
    """Move the rows that no event of their symbol caused to the symbol's next event.

    Where a duplicate reference evicts another symbol's order, itch-book writes a row for that symbol at once.
    A TOP belongs to the event's symbol: we show the loss at the loser's next event.
    """
    moved: dict[tuple[int, int], dict[str, Any]] = {}
    own = {int(locate): tops[tops["locate"] == locate] for locate in np.unique(tops["locate"])}
    for row in rows:
        events = own[row["locate"]]
        at = int(np.searchsorted(events["seq"], row["seq"]))
        if at < len(events):
            seq, ts = (int(events[name][at]) for name in ("seq", "ts"))
            moved[seq, row["locate"]] = row | {"seq": seq, "ts_event": midnight + ts}
    return [row for _, row in sorted(moved.items())]


def without_repeats(rows: Rows, *ignored: str) -> Rows:
    """Rows that differ from the symbol's row before in more than time and the `ignored` columns."""
    last: dict[int, Any] = {}
    kept = []
    for row in rows:
        empty = all(v == 0 for k, v in row.items() if k not in ("ts_event", "seq", "locate"))
        values = tuple(v for k, v in row.items() if k not in ("ts_event", "seq", *ignored))
        if last.get(row["locate"]) != values and not (empty and row["locate"] not in last):
            kept.append(row)
        last[row["locate"]] = values
    return kept


def compare(path: Path, events: np.ndarray, session: Session) -> dict[str, int]:
    """Assert that itch-book's tables of the file are ours of the events; say what the day was like."""
    expected, stats = theirs(path)
    actual, book, tops = ours(events, session)
    assert actual["trades"] == expected["trades"]
    assert actual["messages"] == expected["messages"]
    midnight = session.midnight_ns()
    # itch-book's bbo looks at prices and sizes only; ours has a row where a count alone changed, too.
    ignored = ("bid_ct", "ask_ct")
    bbo = without_repeats(actual["bbo"], *ignored)
    moved = without_repeats(shown_at_next_event(expected["bbo"], tops, midnight), *ignored)
    assert bbo == moved
    own_seqs = set(zip(tops["seq"].tolist(), tops["locate"].tolist(), strict=True))
    foreign = sum((row["seq"], row["locate"]) not in own_seqs for row in expected["bbo"])
    if not foreign:
        assert moved == expected["bbo"]
    assert actual["depth"] == without_repeats(shown_at_next_event(expected["depth"], tops, midnight))
    for name, counter in (("unknown_ref", "missing_ref"), ("duplicate_ref", "dup_ref"),
                          ("over_execution", "clamped"), ("rejected_add", "rejected")):  # fmt: skip
        assert book.anomalies.count(name) == stats[counter], name
    assert book.live_orders() == stats["live_orders"]
    return {
        "least_rows": min(map(len, actual.values())),
        "count_only": len(actual["bbo"]) - len(bbo),
        "foreign": foreign,
        **{name: item.count for name, item in book.anomalies.items()},
    }


def compare_chance(path: Path, events: np.ndarray) -> dict[str, int]:
    session = day_session()
    path.write_bytes(encode_events(events, session).tobytes())
    return compare(path, events, session)


def compare_simulated(path: Path, spec: SimSpec) -> dict[str, int]:
    """The simulator's bytes to itch-book; our parser's events of them to our book."""
    path.write_bytes(b"".join(frames.tobytes() for frames in Day(spec).frames()))
    session = Session(date=DATE)
    events = events_of(path.read_bytes(), ReferenceParser(session))
    assert len(events) == spec.messages
    return compare(path, events, session)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("anomalies", [0.0, 0.1, 0.5])
def test_equal_tables(tmp_path, chance, seed, anomalies):
    events = chance(seed, 1500, anomalies=anomalies, foreign=False)
    seen = compare_chance(tmp_path / "day.bin", events)
    assert seen["foreign"] == 0
    assert seen["least_rows"] > 80
    if anomalies:
        assert all(seen[name] for name in ("unknown_ref", "duplicate_ref", "over_execution", "rejected_add"))
        assert seen["locate_mismatch"]
    else:
        assert seen["count_only"] == 0
        assert seen["over_execution"]


@pytest.mark.parametrize("seed", range(10, 14))
def test_equal_tables_with_evictions_across_symbols(tmp_path, chance, seed):
    events = chance(seed, 2500, anomalies=0.3, foreign=True)
    seen = compare_chance(tmp_path / "day.bin", events)
    assert seen["foreign"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 103))
def test_equal_tables_of_longer_days(tmp_path, chance, seed):
    events = chance(seed, 20_000, symbols=40, anomalies=0.05)
    compare_chance(tmp_path / "day.bin", events)


@pytest.mark.parametrize("seed", range(1, 5))
def test_equal_tables_of_simulated_days(tmp_path, seed):
    """A sound day has no anomaly; a disturbed one has exactly those that the simulator made."""
    sound = compare_simulated(
        tmp_path / "sound.bin", SimSpec(messages=3_000, symbols=12, seed=seed, date=DATE)
    )
    assert not sound.keys() & ANOMALIES
    spec = SimSpec(messages=4_000, symbols=12, seed=seed, date=DATE, anomalies=0.05)
    disturbed = compare_simulated(tmp_path / "disturbed.bin", spec)
    assert sum(disturbed[name] for name in ANOMALIES) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5, 8))
def test_equal_tables_of_longer_simulated_days(tmp_path, seed):
    spec = SimSpec(messages=40_000, symbols=60, seed=seed, date=DATE, anomalies=0.01)
    disturbed = compare_simulated(tmp_path / "day.bin", spec)
    assert sum(disturbed[name] for name in ANOMALIES) > 200


def tables_of(tmp_path: Path, events: np.ndarray) -> tuple[dict[str, Rows], dict[str, Rows], ReferenceBook]:
    session = day_session()
    path = tmp_path / "day.bin"
    path.write_bytes(encode_events(events, session).tobytes())
    actual, book, _ = ours(events, session)
    return actual, theirs(path)[0], book


def test_difference_a_side_that_is_neither(tmp_path, stream):
    """itch-book takes every side but B for a sell order; the specification has B and S only: rejected."""
    actual, expected, book = tables_of(tmp_path, stream().add(1, "X", 10, 5000).events())
    assert [row["ask_px"] for row in expected["bbo"]] == [5000]
    assert actual["bbo"] == []
    assert actual["messages"] == [expected["messages"][0] | {"remaining": 0}]
    assert book.anomalies.count("rejected_add") == 1


def test_difference_a_price_of_zero(tmp_path, stream):
    """itch-book rejects a price of 0; the specification does not, and a level's count tells it from none."""
    actual, expected, _ = tables_of(tmp_path, stream().add(1, "S", 10, 0).events())
    assert expected["bbo"] == []
    assert [(row["ask_px"], row["ask_ct"]) for row in actual["bbo"]] == [(0, 1)]


@pytest.mark.parametrize("ref", [0, 1 << 36, (1 << 64) - 1])
def test_difference_references_of_64_bits(tmp_path, stream, ref):
    """itch-book rejects reference 0 and those too great for its index; the specification has 64 bits."""
    actual, expected, _ = tables_of(tmp_path, stream().add(ref, "S", 10, 5000).events())
    assert expected["bbo"] == []
    assert len(actual["bbo"]) == 1


def test_difference_a_count_alone(tmp_path, stream):
    """Two orders of 50 become one of 100: our bbo has a row, for its count column would be wrong without."""
    day = stream().add(1, "B", 50, 5000).add(2, "B", 50, 5000).replace(1, 2, 100, 5000)
    actual, expected, _ = tables_of(tmp_path, day.events())
    assert [row["bid_ct"] for row in actual["bbo"]] == [1, 2, 1]
    assert actual["bbo"][:2] == expected["bbo"]
    assert actual["depth"] == expected["depth"]


def test_difference_an_eviction_across_symbols(tmp_path, stream):
    """itch-book shows the loser's new top at the event that evicted, we at the loser's next event."""
    day = stream().add(1, "B", 50, 5000, locate=1).add(1, "B", 50, 7000, locate=2).halt("T", locate=1)
    actual, expected, _ = tables_of(tmp_path, day.events())
    assert [(row["seq"], row["locate"], row["bid_px"]) for row in expected["bbo"]] == [
        (1, 1, 5000), (2, 1, 0), (2, 2, 7000)
    ]  # fmt: skip
    assert [(row["seq"], row["locate"], row["bid_px"]) for row in actual["bbo"]] == [
        (1, 1, 5000), (2, 2, 7000), (3, 1, 0)
    ]  # fmt: skip
