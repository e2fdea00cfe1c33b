"""`trident query` with --pattern beside every other option that chooses events, and on a growing store."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.dtypes import EVENT, Events
from trident_core.session import Instrument, Session
from trident_query.sequence.cookbook import output_of
from trident_store.reference import ReferenceStore

SET = ("--pattern", "a=symbol:^A", "--pattern", "gs=mpid:^GSCO$", "--pattern", "gone=type:[DX]")


def rows_of(first: int) -> Events:
    """Six events of three symbols, numbered from `first` on."""
    made = np.zeros(6, EVENT)
    made["seq"], made["ts"] = np.arange(first, first + 6), np.arange(first, first + 6) * 10**6
    made["type"], made["locate"] = list(b"AFEDFD"), [1, 2, 1, 2, 3, 3]
    made["ref"], made["qty"] = [1, 2, 1, 2, 3, 3], [100, 200, 50, 0, 300, 0]
    made["ref"] += 10 * first
    made["price"], made["side"] = 10_000, ord("B")
    made["aux"][[1, 4], :4] = list(b"GSCO")
    return made


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[ReferenceStore]:
    session = Session()
    for locate, symbol in ((1, "AAPL"), (2, "MSFT")):
        session.directory.put(Instrument(locate, symbol))
    with ReferenceStore(tmp_path / "store", "create", session) as made:
        made.append(rows_of(1))
        made.sync()
        yield made


def found(writer: ReferenceStore, *words: str) -> list[dict[str, Any]]:
    text = output_of(["query", str(writer.path), "--json", *SET, *words])
    return [json.loads(line) for line in text.splitlines() if line]


def test_each_record_has_the_names_of_its_patterns(writer: ReferenceStore) -> None:
    named = [(row["seq"], row["patterns"]) for row in found(writer)]
    assert named == [(1, ["a"]), (2, ["gs"]), (3, ["a"]), (4, ["gone"]), (5, ["gs"]), (6, ["gone"])]
    text = output_of(["query", str(writer.path), *SET, "--where", "shares >= 200"])
    assert [line.split()[-1] for line in text.splitlines() if " F " in line] == ["gs", "gs"]


@pytest.mark.parametrize(
    ("words", "seqs"),
    [
        (["--where", "shares >= 200"], [2, 5]),
        (["--where", "shares >= 200", "--select", "gs and not a", "--symbol", "MSFT"], [2]),
        (["--select", "not gone", "--symbol", "A|M"], [1, 2, 3]),
        (["--select", "gs", "--mpid", "^X"], []),
        (["--type", "[EF]", "--from", "00:00:00.003"], [3, 5]),
        (["--where", "ref = 12", "--limit", "1"], [2]),
    ],
)
def test_all_options_hold_together(writer: ReferenceStore, words: list[str], seqs: list[int]) -> None:
    assert [row["seq"] for row in found(writer, *words)] == seqs
    if "--limit" not in words:
        text = output_of(["query", str(writer.path), "--json", *SET, *words, "--count", "--by", "pattern"])
        assert sum(json.loads(text)["by_pattern"].values()) == len(seqs), "each of these meets one pattern"


def test_sequences_of_what_a_selection_leaves(writer: ReferenceStore) -> None:
    (match,) = found(writer, "--select", "gs or gone", "--match", "F D", "--symbol", "^M")
    assert (match["order"], match["first_seq"], match["last_seq"]) == (12, 2, 4)
    sql = """SELECT n FROM events MATCH_RECOGNIZE (PARTITION BY order_ref ORDER BY seq MEASURES count(*) AS n
             PATTERN (x+) DEFINE x AS type <> 'D')"""
    pytest.importorskip("sqlglot")
    assert found(writer, "--select", "gs or gone", "--sql", sql) == [{"n": 1}, {"n": 1}]


@pytest.mark.parametrize("counts", [False, True])
def test_alerts_as_they_come_with_names_and_a_condition(writer: ReferenceStore, counts: bool) -> None:
    """Events that come while the command runs, of a symbol that comes then, too."""

    def more() -> None:
        writer.session.directory.put(Instrument(3, "AZ"))
        for first in (7, 13):
            writer.append(rows_of(first))
            writer.sync()

    words = ["--where", "shares >= 100", "--select", "a or gs", "--follow", "--limit", "9"]
    timer = threading.Timer(0.3, more)
    timer.start()
    try:
        rows = found(writer, *words, *(["--count", "--by", "pattern"] if counts else []))
    finally:
        timer.join()
    if counts:
        # The symbol of the last event of each six is known from the seventh event on, at the latest.
        assert (rows[0]["count"], rows[0]["last_seq"]) == (9, 17)
        assert rows[0]["by_pattern"]["gs"] == 6
        assert rows[0]["by_pattern"]["a"] >= 5
        return
    assert [row["seq"] for row in rows] == [1, 2, 5, 7, 8, 11, 13, 14, 17]
    assert [row["patterns"] for row in rows[3:]] == [["a"], ["gs"], ["a", "gs"]] * 2
    assert {row["symbol"] for row in rows[3:]} == {"AAPL", "MSFT", "AZ"}


def test_lines_of_a_follower_end_with_the_names(writer: ReferenceStore) -> None:
    text = output_of(["query", str(writer.path), *SET, "--where", "shares > 50", "--follow", "--limit", "3"])
    assert [line.split("patterns ")[1] for line in text.splitlines()] == ["a", "gs", "gs"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--select", "a"], "--select chooses among named patterns"),
        ([*SET, "--select", "b"], "no criterion 'b'"),
        ([*SET, "--follow", "--count", "--by", "order"], "by pattern"),
        (["--follow", "--count", "--by", "pattern"], "with --pattern, by pattern"),
        ([*SET, "--where", "price >"], "offset"),
    ],
)
def test_what_cannot_be_asked(writer: ReferenceStore, words: list[str], said: str) -> None:
    with pytest.raises(RuntimeError, match=said):
        output_of(["query", str(writer.path), *words])
