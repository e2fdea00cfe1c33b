"""`trident bench query`: every engine counts the same, and what is measured is what the patterns say."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from trident_core.benchmarks import PARTS
from trident_core.benchmarks import query_data as data
from trident_core.benchmarks.matrix import Contender, Matrix
from trident_core.benchmarks.query import bench_columns, bench_text
from trident_core.benchmarks.query_peers import COLUMN_PEERS, TEXT_PEERS
from trident_core.benchmarks.setting import Setting, SimulatedDay
from trident_core.cli.bench_matrix import render_matrix
from trident_core.contracts import Kind


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setenv("TRIDENT_LLVM_CACHE", str(tmp_path / "objects"))
    return Setting(SimulatedDay(tmp_path / "none", "", 1, 1), {Kind.QUERY: "llvm"}, 1, tmp_path)


def shown(made: Matrix) -> str:
    out = io.StringIO()
    render_matrix(Console(file=out, width=200), made)
    return out.getvalue()


def test_the_column_is_what_its_description_says() -> None:
    made = data.column(30_000)
    assert (made.values == made.distinct[made.codes]).all()
    assert len(set(made.distinct.tolist())) == data.SYMBOLS
    counts = [made.codes.tolist().count(code) for code in range(3)]
    assert counts[0] > 1.6 * counts[1] > 1.6 * counts[2] / 1.1 > 100
    assert (data.column(30_000).values == made.values).all(), "the same each time"


def test_each_pattern_occurs_in_the_text() -> None:
    made = data.text(1 << 20)
    assert len(made) == 1 << 20
    for pattern, flags in data.TEXT_PATTERNS.values():
        found = re.findall(pattern.encode(), made, re.I if flags else 0)
        assert 1 <= len(found) < 20, pattern


def test_columns(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trident_core.benchmarks.query._remember_memory", lambda *_: None)
    made = bench_columns(setting, 20_000)
    assert made.disagreements == []
    expected = {peer.name for peer in COLUMN_PEERS if not peer.missing()}
    ours = {"trident query llvm, raw bytes", "trident query llvm, through the dictionary"}
    assert set(made.rows) == expected | ours
    assert all(set(cells) == set(data.COLUMN_PATTERNS) for cells in made.rows.values())
    counts = {label: cell.count for label, cell in made.rows["trident query llvm, raw bytes"].items()}
    values = [value.rstrip() for value in data.column(20_000).values.tolist()]
    for label, pattern in data.COLUMN_PATTERNS.items():
        assert counts[label] == sum(bool(re.search(pattern.encode(), value)) for value in values) > 0
    table = shown(made)
    assert "all counts agree" in table
    assert "in the next process" in table
    cell = made.to_json()["contenders"]["trident query llvm, raw bytes"]["p1"]
    assert cell["cached_load_ms"] < cell["compile_ms"]


def test_halves_can_be_run_apart(setting: Setting) -> None:
    day = SimulatedDay(setting.day.path, "given", 20_000, 1)
    small = Setting(day, {Kind.QUERY: "reference"}, 1, setting.folder)
    (texts,) = PARTS["query-texts"](small)
    assert isinstance(texts, Matrix)
    assert texts.disagreements == []
    assert set(PARTS) == {"query-columns", "query-texts"}


def test_texts(setting: Setting) -> None:
    made = bench_text(setting, 1 << 20)
    assert made.disagreements == []
    assert set(made.rows) >= {"trident query llvm, ends", "trident query llvm, spans"}
    assert len(made.rows) + sum("left out" in note for note in made.notes) == 2 + len(TEXT_PEERS)
    assert "GB/s" in shown(made)


def test_a_count_that_differs_is_said() -> None:
    made = Matrix("t", "i", "values", 10, "ns", {"p": "x"})
    made.measure("p", {"a": Contender(lambda: 3, 10), "b": Contender(lambda: 4, 10)}, rounds=2)
    assert made.disagreements == ["b, p: 4 instead of 3"]
    assert made.to_json()["counts_agree"] is False
    assert "NOT THE SAME COUNT: b, p: 4 instead of 3" in shown(made)
