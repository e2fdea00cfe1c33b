"""The vectors agree with their manifest and the reference engines, and leave no trap of their kinds out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from trident_conformance import regen, vectors
from trident_parser.itch50 import BY_LETTER


def test_regen_check(capsys: pytest.CaptureFixture[str]) -> None:
    status = regen.main(["--check"])
    assert status == 0, capsys.readouterr().err


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of vectors as a copy that may be changed."""
    for path in vectors.FOLDER.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(vectors, "FOLDER", tmp_path)
    monkeypatch.setattr(vectors, "MANIFEST", tmp_path / "MANIFEST.json")
    monkeypatch.setattr(regen, "MANIFEST", tmp_path / "MANIFEST.json")
    vectors.load.cache_clear()
    yield tmp_path
    vectors.load.cache_clear()


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("book_rules.json", "[1000000, 350, 2]", "[1000000, 351, 2]", "levels of 1 B"),
        ("book_state.json", '"HLUDP"', '"TLUDP"', "halt-keeps-applying"),
        ("parser_messages.json", '"qty": 37800', '"qty": 37801', "K-ipo-release"),
        ("parser_framing.json", "PARSER-6: an empty input", "PARSER-6: some input", "MANIFEST.json says"),
        ("query_match.json", '["AAPL", "AP", "XAPX"]', '["AAPL", "AP", "XAXP"]', "match of 'XAXP'"),
        ("query_errors.json", '"position": 5', '"position": 4', "error-offset-in-bytes"),
        ("query_spans.json", '"limit": 2', '"limit" : 2', "not laid out"),
    ],
)
def test_regen_check_notices(
    copied: Path, capsys: pytest.CaptureFixture[str], file: str, old: str, new: str, problem: str
) -> None:
    text = (copied / file).read_text()
    assert old in text
    (copied / file).write_text(text.replace(old, new))
    assert regen.main(["--check"]) == 1
    assert problem in capsys.readouterr().err


def test_regen_fills_in_what_is_derived(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Digests, frames made from rows, layout and manifest come back as they are in the repository."""
    for name, field in (("book_rules.json", "digest"), ("parser_messages.json", "frames")):
        data = json.loads((copied / name).read_text())
        for vector in data["vectors"]:
            del vector[field]
        (copied / name).write_text(json.dumps(data))
    (copied / "MANIFEST.json").unlink()
    assert regen.main([]) == 0, capsys.readouterr().err
    assert json.loads((copied / "book_rules.json").read_text())["vectors"][0]["digest"].startswith("765c2776")
    assert regen.main(["--check"]) == 0


def test_regen_never_corrects_an_expectation(copied: Path) -> None:
    path = copied / "book_rules.json"
    wrong = path.read_text().replace("[1000000, 350, 2]", "[1000000, 351, 2]")
    path.write_text(wrong)
    manifest = (copied / "MANIFEST.json").read_text()
    assert regen.main([]) == 1
    assert path.read_text() == wrong
    assert (copied / "MANIFEST.json").read_text() == manifest


def test_every_trap_of_parsers_and_books_has_a_vector() -> None:
    reasons = " ".join(v.data["reason"] for kind in ("book", "parser") for v in vectors.load(kind))
    named = {int(word.strip(",:;.")) for word in reasons.split() if word.strip(",:;.").isdigit()}
    assert {*range(1, 7), *range(8, 12), *range(13, 16), *range(18, 22)} <= named
    assert {7, 12, 16, 17} <= named


def test_every_message_type_has_a_vector_with_its_row() -> None:
    letters = {letter for v in vectors.load("parser_messages") for letter in v.data["rows"]}
    assert letters == set(BY_LETTER)


def test_names_are_unique() -> None:
    for kind in ("book", "parser", "query"):
        names = [v.name for v in vectors.load(kind)]
        assert len(names) == len(set(names))
    assert len(vectors.load("query")) >= 40
