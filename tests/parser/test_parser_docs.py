"""docs/contracts/parser.md is held to the code: example, ids and column table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trident_parser.encode import EVENT_PLACES
from trident_parser.itch50 import BY_LETTER, LETTER, TEXT

PAGE = Path(__file__).resolve().parents[2] / "docs" / "contracts" / "parser.md"


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text()


def test_example_runs(page: str) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(compile(example, str(PAGE), "exec"), {})


def test_ids_are_numbered_in_order(page: str) -> None:
    ids = [int(n) for n in re.findall(r"^- \*\*PARSER-(\d+)\*\*", page, re.M)]
    assert ids == list(range(1, len(ids) + 1))


def test_column_table_says_what_the_encoder_does(page: str) -> None:
    columns = ("ref", "ref2", "price", "qty", "side", "flags")
    rows = re.findall(r"^\| (\w)( \+)? \|(.*)\|$", page, re.M)
    assert [letter for letter, _, _ in rows] == list(BY_LETTER)
    for letter, _, cells in rows:
        *values, aux = (cell.strip() for cell in cells.split("|"))
        places = EVENT_PLACES[letter]
        filled = {name for name, value in zip(columns, values, strict=True) if value}
        assert filled - ({"flags"} if letter == "V" else set()) == {
            p for p in places.values() if isinstance(p, str)
        }
        fields = {field.name: field for field in BY_LETTER[letter].fields}
        expected = {}
        for name, place in places.items():
            if isinstance(place, int):
                size = fields[name].size
                expected[place] = f"[{place}]" if size == 1 else f"[{place}:{place + size}]"
                assert fields[name].kind in (LETTER, TEXT) or "little-endian u32" in aux
        assert re.findall(r"\[[\d:]+\]", aux) == [expected[place] for place in sorted(expected)], letter


def test_fields_without_a_place_are_marked(page: str) -> None:
    marked = {letter for letter, plus, _ in re.findall(r"^\| (\w)( \+)? \|(.*)\|$", page, re.M) if plus}
    lacking = {
        letter
        for letter, message in BY_LETTER.items()
        if any(f.name != "stock" and f.name not in EVENT_PLACES[letter] for f in message.fields[4:])
    }
    assert marked == lacking
