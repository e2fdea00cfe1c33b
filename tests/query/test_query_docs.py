"""docs/dialect.md is normative, so its examples, refusals, flags and caps are run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from trident_core.errors import PatternError
from trident_query.ast import POSIX, At, Node
from trident_query.parse import DEPTH_MAX, FLAGS, PATTERN_BYTES_MAX, REPEAT_MAX, STATES_MAX
from trident_query.reference import ReferenceQuery

DIALECT = (Path(__file__).resolve().parents[2] / "docs" / "dialect.md").read_text(encoding="utf-8")


def rows(title: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its two head lines."""
    section = DIALECT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    return [[cell.strip().strip("`").replace("\\|", "|") for cell in row] for row in cells]


@pytest.mark.parametrize("row", rows("Examples"), ids=lambda row: row[0])
def test_examples(engine: ReferenceQuery, row: list[str]) -> None:
    pattern, flags, text, spans = row
    found = engine.compile(pattern, flags=flags).spans(text.encode())
    assert " ".join(f"{start}-{end}" for start, end in found) == spans


@pytest.mark.parametrize("row", rows("Refused"), ids=lambda row: row[0])
def test_refused(engine: ReferenceQuery, row: list[str]) -> None:
    with pytest.raises(PatternError):
        engine.compile(row[0])


def test_tables_are_read() -> None:
    assert len(rows("Examples")) >= 11
    assert len(rows("Refused")) >= 50


def test_flags_and_classes() -> None:
    assert "".join(row[0] for row in rows("Flags")) == FLAGS
    assert all(name in DIALECT for name in POSIX)


def test_caps() -> None:
    assert PATTERN_BYTES_MAX == 1 << 20
    caps = [row[1] for row in rows("Caps")]
    assert caps == [f"{REPEAT_MAX:,}", f"{STATES_MAX:,}", str(DEPTH_MAX), "1 MiB of UTF-8"]


def test_the_front_ends_page(engine: ReferenceQuery) -> None:
    """docs/contracts/query.md: the nodes are those of the tree; its engine for words runs, and hands over."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "contracts" / "query.md").read_text()
    nodes = re.findall(r"^\| `(\w+)\(.*\)` \|", page.split("## The shared front end")[1], re.MULTILINE)
    assert nodes == [node.__name__ for node in get_args(Node)]
    assert all(f"`{member.name}`" in page or f"At.{member.name}" in page for member in At)
    names: dict[str, Any] = {}
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(example, names)
    words = names["Words"]()
    column = np.array([b"AAPL", b"A", b"MSFT  ", b""], "S8")
    engines = {"AAP": "words", "": "reference", "T": "words", "^A": "reference", "(?i)t": "reference"}
    for pattern, at_work in engines.items():
        program = words.compile(pattern)
        assert program.explain()["engine"] == at_work, pattern
        assert program.match(column).tolist() == engine.compile(pattern).match(column).tolist(), pattern
    with pytest.raises(PatternError):
        words.compile("a)")
