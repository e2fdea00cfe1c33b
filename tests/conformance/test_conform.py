"""`trident conform`: what a failing case shows, known failures, pairs, and the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from trident_conformance import command, evidence, known, streams
from trident_conformance.engines import KINDS, LINE, lines_of, select
from trident_conformance.matrix import Case
from trident_conformance.spread import Spread
from trident_core.contracts import Kind
from trident_core.dtypes import EVENT, Events

HERE = Path(__file__).parent
PATHS = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
WRONG = "wrong_engines:KeepsPriority"
BRINGS_DOWN = "wrong_engines:BringsItsProcessDown"


def conform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trident_core.cli", "conform", *arguments],
        capture_output=True, text=True, cwd=folder, check=False, timeout=280,
        env={**os.environ, "PYTHONPATH": PATHS, "COLUMNS": "200"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    folder = tmp_path_factory.mktemp("conform")
    done = conform(folder, "--book", WRONG, "-k", "replace-same-price", "--report", "out.html")
    return done, folder / "out.html"


Failed = tuple[subprocess.CompletedProcess[str], Path]


def test_a_failure_shows_its_input_both_outputs_and_how_to_run_it_again(
    failed: Failed, tmp_path: Path
) -> None:
    done, _ = failed
    assert done.returncode == 5
    assert "(BOOK-9)" in done.stdout
    assert "the engine" in done.stdout
    assert "what it should be" in done.stdout
    assert "≠" in done.stdout
    assert "1000000 150" in done.stdout
    again = next(line for line in done.stdout.splitlines() if line.startswith("trident conform"))
    case = again.split("--case '")[1].split("'")[0]
    once_more = conform(tmp_path, "--book", WRONG, "--case", case, "--json")
    assert once_more.returncode == 5
    (failure,) = json.loads(once_more.stdout)["failures"]
    assert failure["id"] == case
    assert failure["rules"] == ["BOOK-9"]
    assert {"input", "orders of 1", "again"} <= set(failure)
    unknown = conform(tmp_path, "--book", WRONG, "--case", "test_book.py::nothing")
    assert (unknown.returncode, "no such case: test_book.py::nothing" in unknown.stderr) == (2, True)


def test_the_page_opens_without_a_server(failed: Failed) -> None:
    text = failed[1].read_text()

    class Checker(HTMLParser):
        depth: list[str] = []  # noqa: RUF012
        outside: list[str] = []  # noqa: RUF012

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.outside += [f"{name}={value}" for name, value in attrs if name in ("src", "href")]
            if tag not in ("meta", "br"):
                self.depth.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert tag in self.depth, tag
            while self.depth.pop() != tag:
                pass

    checker = Checker()
    checker.feed(text)
    assert checker.outside == []
    assert "url(" not in text
    assert text.count("<table>") == text.count('<div class="wide"><table>') > 1
    for wanted in (
        WRONG,
        "3 of 3 cases failed",
        "BOOK-9",
        "<th>core</th>",
        "what it should be",
        "<h2>Skipped</h2>",
    ):
        assert wanted in text


def test_known_failures(tmp_path: Path) -> None:
    path = tmp_path / "known.txt"
    options = ("--book", WRONG, "-k", "replace-same-price", "--known-failures", str(path))
    path.write_text("# a comment\n\ntest_book.py::TestVectors::*vector=replace-same-price]  # mends in May\n")
    done = conform(tmp_path, *options, "--json")
    assert done.returncode == 0, done.stdout
    (engine,) = json.loads(done.stdout)["engines"]
    assert (engine["suites"]["book"]["known"], engine["suites"]["book"]["failed"]) == (3, 0)
    path.write_text("test_book.py::TestVectors::*  # one that is mended passes: an error\n")
    done = conform(tmp_path, "--book", "reference", "-k", "replace-same-price", "--known-failures", str(path))
    assert done.returncode == 5


def test_lines_of_known_failures_that_are_no_use(tmp_path: Path) -> None:
    path = tmp_path / "known.txt"
    path.write_text("test_book.py::TestVectors::*vector=no-such-vector]  # gone\n")
    with pytest.raises(pytest.UsageError, match=r"no case is called so: line 1: test_book\.py::TestVectors"):
        known.mark([], path)
    path.write_text("\ntest_book.py::TestVectors::*\n")
    with pytest.raises(pytest.UsageError, match="line 2: no reason"):
        known.read(path)


def test_brackets_of_ids_are_meant_as_they_stand() -> None:
    line = known.Known("test_book.py::test[book=a-*]", "why", 1)
    assert line.matches("test_book.py::test[book=a-x]")
    assert not line.matches("test_book.py::testb")


def test_pairs_meet_every_engine_of_another_kind() -> None:
    engines = {kind: select(kind) for kind in KINDS}
    lines = lines_of(engines, pairs=True)
    for one in LINE:
        for other in LINE:
            for first in engines[one]:
                for second in engines[other]:
                    if one is not other:
                        assert any(line[one] == first and line[other] == second for line in lines)
    assert len(lines) == len({tuple(engine.label for engine in line.values()) for line in lines})
    assert len(lines_of(engines)) < len(lines)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--contract", "2.0"), "--contract 2.0: this suite knows 1.0 to"),
        (("--contract", "one"), "is not a version"),
        (("--book", "nonesuch"), "no book engine named 'nonesuch'"),
        (
            ("--feed", "itch-file", "--sample", "not-there", "-k", "foreign_bytes or what_a_chunk"),
            "not-there",
        ),
    ],
)
def test_wrong_options_are_one_line(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = conform(tmp_path, "--jobs", "1", *arguments)
    assert done.returncode in (2, 5)
    assert said in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_an_earlier_contract_is_accepted(tmp_path: Path) -> None:
    done = conform(tmp_path, "--contract", "1.0", "--book", "reference", "-k", "replace-same-price")
    assert done.returncode == 0


def test_the_smallest_part_that_fails_is_found() -> None:
    def check(events: Events) -> None:
        assert not (np.any(events["ref"] == 700) and np.any(events["ref"] == 20)), len(events)

    events = np.zeros(1_000, EVENT)
    events["ref"] = np.arange(1_000)
    with pytest.raises(AssertionError, match=r"^2"):
        streams.shrunk(check, events)


def test_tables_show_the_row_in_question() -> None:
    events = np.zeros(100, EVENT)
    events["ref"] = np.arange(100)
    text = evidence.table(events, mark=60)
    assert ">60" in text
    assert len(text.splitlines()) == evidence.ROWS + 2
    assert evidence.table(events[:0]) == "(no rows)"
    found, expected = evidence.both(events[:2], events[1:3])
    assert found.splitlines()[0].split() == expected.splitlines()[0].split() == ["ref"]


@pytest.mark.slow
def test_an_engine_that_brings_its_process_down_fails_those_cases_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Native code that crashes, a loop without an end: the rest of the suite runs, and it is said where."""
    monkeypatch.setenv("PYTHONPATH", PATHS)
    words = [*command.FIXED, "-q", "-k", "TestReadings", "--book", BRINGS_DOWN, *command.SUITES]
    ended: list[Case] = []
    spread = Spread(words, 1, lambda _, case: ended.append(case), limit=10)
    spread.run()
    assert (spread.status, spread.output) == (1, "")
    cases = {case.id.split("::")[-1].split("[")[0]: case for case in spread.matrix.cases.values()}
    assert len(ended) == len(cases) == 3
    assert cases["test_levels_to_any_depth"].outcome == "passed"
    crashed, hung = cases["test_wrong_questions"], cases["test_a_symbol_that_never_was"]
    assert (crashed.outcome, crashed.reason) == ("failed", "its process ended by signal SIGABRT")
    assert "in levels" in crashed.evidence["what the process said last"]
    assert "--case" in crashed.evidence["again"]
    assert (hung.outcome, "took longer than 10 s" in hung.reason) == ("failed", True)
    assert "in top" in hung.evidence["what the process said last"]


@pytest.mark.slow
def test_several_processes_tell_what_one_tells(tmp_path: Path) -> None:
    engines = ("--book", f"reference,{WRONG}", "-k", "replace or TestReadings", "--quick", "--json")
    one, two = (conform(tmp_path, *engines, "--jobs", jobs) for jobs in ("1", "2"))
    assert (one.returncode, two.returncode) == (5, 5)
    first, second = json.loads(one.stdout), json.loads(two.stdout)
    for answer in (first, second):
        del answer["seconds"]
        for engine in answer["engines"]:
            for cell in [*engine["suites"].values(), *engine["capabilities"].values()]:
                del cell["seconds"]
    assert second == first


def test_feeds_have_a_suite(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"hello")
    done = conform(tmp_path, "--feed", "soup-file", "--quick", "--json", "--sample", "a.txt")
    assert done.returncode == 0, done.stdout
    (engine,) = json.loads(done.stdout)["engines"]
    assert engine["kind"] == Kind.FEED
    assert engine["suites"]["feed"]["passed"] >= 20
