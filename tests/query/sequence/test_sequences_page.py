"""docs/sequences.md: its tables of refusals and nulls, and the reference's cost, are what it does."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trident_conformance import vectors
from trident_core.dtypes import EVENT
from trident_core.errors import PatternError
from trident_core.event_types import ATTRIBUTED, PRICED, SHARED
from trident_core.session import Session
from trident_query.sequence.engines import ReferenceSequences
from trident_query.sequence.native import TYPE_LETTERS
from trident_query.sequence.question import STEPS_MAX, SequenceError

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "sequences.md").read_text(encoding="utf-8")


def rows(title: str) -> list[tuple[list[str], list[str]]]:
    """Of the first table under a heading: what is in backquotes in the first cell, and the other cells."""
    section = re.split(r"\n#{2,3} ", PAGE.split(f"\n### {title}\n", 1)[1])[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [(re.findall("`([^`]*)`", first), rest) for first, *rest in cells]


@pytest.mark.parametrize("row", rows("Refused conditions"), ids=lambda row: "".join(row[0]) or "nothing")
def test_refused_conditions(row: tuple[list[str], list[str]]) -> None:
    """SEQUENCE-4."""
    with pytest.raises(PatternError) as caught:
        ReferenceSequences().predicate("".join(row[0]), Session())
    assert caught.value.position == int(row[1][0])


@pytest.mark.parametrize("row", rows("Refused row patterns"), ids=lambda row: " ".join(row[0]))
def test_refused_row_patterns(row: tuple[list[str], list[str]]) -> None:
    """SEQUENCE-5."""
    match, *define = row[0]
    with pytest.raises(PatternError) as caught:
        ReferenceSequences().search(match, Session(), define=define)
    assert caught.value.position == int(row[1][0])


def test_what_the_suite_wants_refused_is_on_the_page() -> None:
    """SEQUENCE-4, 5: a stranger's engine is asked for no offset that the tables do not have."""
    told = {("".join(texts), int(rest[0])) for texts, rest in rows("Refused conditions")}
    told |= {(" ".join(texts), int(rest[0])) for texts, rest in rows("Refused row patterns")}
    for vector in vectors.load("sequence_errors"):
        data = vector.data
        text = data["where"] if "where" in data else " ".join([data["match"], *data.get("define", [])])
        if "measures" not in data:
            assert (text, data["position"]) in told, vector.name


def test_which_types_have_what() -> None:
    """SEQUENCE-3."""
    told = {name: rest[0] for names, rest in rows("Null") for name in names}
    types = {"price": PRICED, "qty": SHARED, "shares": SHARED, "mpid": ATTRIBUTED}
    for name, letters in types.items():
        shown = re.sub(r"\([^)]*\)", "", re.split(r"\.|;", told[name])[0])
        assert sorted(re.findall(r"\b[A-Z]\b", shown)) == sorted(letters.decode()), name


def test_the_letters_of_types() -> None:
    found = re.search(r"a row of type A; of `(\w+)`", PAGE)
    assert found
    assert set(found[1]) == TYPE_LETTERS
    events = np.zeros(2, EVENT)
    events["seq"], events["type"] = [1, 2], list(b"AD")
    search = ReferenceSequences().search("A", Session(), define=["A: type = 'A'", "A: type = 'D'"], per="all")
    search.feed(events)
    assert search.finish()["first"].tolist() == [2]


def test_the_reference_stops_at_its_cap() -> None:
    """The page's example: what scans on from every start."""
    pattern = re.search(r"`([^`]*)` with `--per all` stops there", PAGE)
    assert pattern
    assert f"{STEPS_MAX:,} steps in one partition" in PAGE
    events = np.zeros(200, EVENT)
    events["seq"], events["type"] = np.arange(1, 201), ord("A")
    search = ReferenceSequences().search(pattern[1], Session(), per="all")
    search.question = replace(search.question, steps_max=20_000)
    search.feed(events)
    with pytest.raises(SequenceError, match="20,000 steps"):
        search.finish()
