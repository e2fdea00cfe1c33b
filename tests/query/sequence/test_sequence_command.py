"""`trident query` with --where, --match and --sql on a small store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.dtypes import EVENT
from trident_core.session import Instrument, Session
from trident_query.sequence.cookbook import output_of
from trident_store.reference import ReferenceStore


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Four orders of two symbols: two executed, one replaced, one left."""
    session = Session()
    session.directory.put(Instrument(1, "AAPL"))
    session.directory.put(Instrument(2, "MSFT"))
    rows = [  # type, ref, ref2, locate, qty, price, ms
        ("A", 1, 0, 1, 500, 100, 1), ("F", 2, 0, 2, 300, 50, 2), ("E", 1, 7, 1, 500, 0, 3),
        ("U", 2, 3, 2, 300, 51, 4), ("A", 4, 0, 1, 100, 101, 5), ("E", 3, 8, 2, 100, 0, 6),
        ("D", 3, 0, 2, 0, 0, 9), ("A", 5, 0, 1, 100, 99, 10),
    ]  # fmt: skip
    events = np.zeros(len(rows), EVENT)
    for place, (letter, ref, ref2, locate, qty, price, ms) in enumerate(rows):
        row = events[place]
        row["seq"], row["ts"], row["type"], row["ref"], row["ref2"] = (
            place + 1,
            ms * 10**6,
            ord(letter),
            ref,
            ref2,
        )
        row["locate"], row["qty"], row["price"] = locate, qty, price * 10_000
        row["side"] = ord("B") if letter in "AF" else 0
        row["aux"][:4] = list(b"GSCO") if letter == "F" else 0
    path = tmp_path / "store"
    made = ReferenceStore(path, "create", session)
    made.append(events)
    made.close()
    return path


def rows(store: Path, *words: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in output_of(["query", str(store), "--json", *words]).splitlines() if line
    ]


@pytest.mark.parametrize("engine", ["numba", "reference"])
def test_conditions_and_sequences_of_a_store(store: Path, engine: str) -> None:
    choose = ("--sequence", engine)
    assert [r["seq"] for r in rows(store, "--where", "price >= 100.5 or mpid = 'GSCO'", *choose)] == [2, 5]
    (match,) = rows(
        store, "--match", "F U E D", "--within", "8ms", "--measure", "left = F.shares - E.shares", *choose
    )
    assert (match["order"], match["symbol"], match["left"], match["labels"]) == (2, "MSFT", 200, "F U E D")
    assert (match["first_seq"], match["last_seq"], match["events"], match["ns"]) == (2, 7, 4, 7_000_000)
    assert rows(store, "--match", "F U E D", "--within", "6ms", *choose) == []
    (firm,) = rows(store, "--match", "F .* D", "--per", "mpid", *choose)
    assert firm["mpid"] == "GSCO"
    every = rows(store, "--match", "A {- E -}", "--all-rows", *choose)
    assert [(row["seq"], row["labels"]) for row in every] == [(1, "A")]
    text = output_of(["query", str(store), "--match", "A not E within 3ms", "--count", "--json", *choose])
    assert json.loads(text) == {"matches": 2, "per": "order"}


def test_a_saved_state_goes_on_behind_what_was_seen(store: Path, tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "state"))
    (first,) = rows(store, "--match", "A E", "--to", "00:00:00.003", *state)
    assert first["order"] == 1
    assert rows(store, "--match", "A E", *state) == []
    found = rows(store, "--match", "F U E", *(("--state", str(tmp_path / "other"))))
    assert [row["order"] for row in found] == [2]


def test_following_prints_matches_and_ends(store: Path) -> None:
    (alert,) = rows(store, "--match", "A E", "--follow", "--seconds", "0.2")
    assert (alert["order"], alert["first_seq"], alert["last_seq"]) == (1, 1, 3)


def test_sql_over_events(store: Path) -> None:
    pytest.importorskip("sqlglot")
    sql = """SELECT symbol, n FROM events MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY seq
        MEASURES count(*) AS n PATTERN (added filled)
        DEFINE added AS type IN ('A', 'F'), filled AS type = 'E')"""
    assert rows(store, "--sql", sql) == [{"symbol": "AAPL", "n": 2}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--where", "price >> 5"], "cannot start a value"),
        (["--define", "big: qty > 5"], "belong to --match"),
        (["--match", "A big"], "not defined"),
        (["--match", "A D", "--skip", "next"], "all rows of a partition"),
        (["--match", "A D", "--count", "--by", "firm"], "no 'firm' to group by"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_line(store: Path, words: list[str], said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        output_of(["query", str(store), *words])
