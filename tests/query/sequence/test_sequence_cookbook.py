"""The cookbook prints what it says, and the reference finds the same, event by event."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trident_query.sequence.cookbook import main, recipes

PAGE = Path(__file__).parents[3] / "docs" / "cookbook.md"


def test_the_page_has_its_questions() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(re.findall(r"^\*\*\d+\. ", page, re.MULTILINE)) >= 15
    assert len(recipes(page)) >= 17


@pytest.mark.slow
def test_every_answer_is_the_references_own(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sqlglot")
    assert main([str(PAGE), "--reference"]) == 0, capsys.readouterr().out


@pytest.mark.slow
def test_the_page_s_tables_of_the_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sqlglot")
    pytest.importorskip("pyarrow")
    from trident_query.sequence.cookbook import output_of

    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    output_of(recipes(page)[0].words)
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code is not None
    names: dict[str, object] = {}
    exec(code[1], names)
    intervals = names["intervals"]
    assert isinstance(intervals, list)
    assert intervals
    assert all(began <= ended for _, began, ended, _ in intervals)
