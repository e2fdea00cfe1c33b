"""Every rule of the contract has an id and a case, and the page that lists both is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from trident_conformance import coverage, signatures
from trident_conformance.matrix import rules

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_whole_and_true(capsys: pytest.CaptureFixture[str]) -> None:
    status = coverage.main([str(ROOT / "docs"), "--tests", str(ROOT / "tests"), "--check"])
    assert status == 0, capsys.readouterr().err


def test_every_hook_and_method_is_documented_with_its_signature(capsys: pytest.CaptureFixture[str]) -> None:
    assert signatures.main([str(ROOT / "docs"), "--check"]) == 0, capsys.readouterr().err
    text = signatures.page()
    for name in ("trident_register_books", "parse_into(frames: Frames, out: Events)", "## SpanProgram"):
        assert name in text


def test_holes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "book.md").write_text(
        "# Book\n\nAn engine must be kind.\n\n- **BOOK-1** Something.\n- **BOOK-9999** Nobody tests this.\n"
    )
    assert coverage.main([str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "BOOK-9999: no case holds it" in told
    assert "BOOK-2: named by a case, but no such rule" in told
    assert "a must without an id: book.md: An engine must be kind." in told
    assert coverage.main([str(tmp_path), "--check"]) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("BOOK-2, 3 to 5: words", ["BOOK-2", "BOOK-3", "BOOK-4", "BOOK-5"]),
        ("BOOK-5 to BOOK-7, one vector", ["BOOK-5", "BOOK-6", "BOOK-7"]),
        ("FEED-1 and 3. UTF-8 is no rule", ["FEED-1", "FEED-3"]),
        ("", []),
    ],
)
def test_rules_in_a_docstring(text: str, found: list[str]) -> None:
    assert rules(text) == found
