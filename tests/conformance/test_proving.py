"""Random examples: the same in each run, met again by the printed command, and small; what differs is in
sight; engines that promise what they have not."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from trident_conformance import command, evidence, page, plugin, promises
from trident_conformance.engines import Engine
from trident_conformance.matrix import Case, Matrix
from trident_conformance.proving import Prover, by_rows
from trident_core.contracts import EngineSpec, Kind
from trident_core.dtypes import EVENT, Events

HERE = Path(__file__).parent


def conform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "trident_core.cli", "conform", *arguments],
        capture_output=True, text=True, cwd=folder, check=False, timeout=280,
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"},
    )  # fmt: skip


# --- random examples


def drawn(prover: Prover) -> list[int]:
    found: list[int] = []

    def check(x: int) -> None:
        found.append(x)

    prover(check, x=st.integers(0, 1 << 40))
    return found


def test_examples_are_the_same_in_each_run_and_others_with_a_seed() -> None:
    for prover in (Prover(quick=True), Prover(examples=30), Prover(examples=30, seed=1)):
        assert drawn(prover) == drawn(prover)
    assert (
        drawn(Prover(examples=30, seed=1)) != drawn(Prover(examples=30, seed=2)) != drawn(Prover(examples=30))
    )


def test_a_property_says_how_many_examples_it_is_worth() -> None:
    def count(prover: Prover, examples: int | None) -> int:
        ran: list[int] = []
        prover(lambda x: ran.append(x), examples=examples, x=st.integers())
        return len(ran)

    assert count(Prover(), 150) == 150
    assert count(Prover(quick=True), 150) == 12
    assert count(Prover(examples=70), 150) == 70


def odd(x: int, y: str) -> None:
    assert x < 123_456 or "q" not in y, (x, y)


@pytest.mark.parametrize("quick", [False, True])
def test_the_example_that_failed_is_met_again_whatever_else_is_drawn(quick: bool) -> None:
    """With other options, another seed and one example only: the example is named, not drawn."""
    how: dict[str, Any] = {"x": st.integers(0, 1 << 30), "y": st.text("pq")}
    evidence.forget()
    with pytest.raises(AssertionError) as failed:
        Prover(examples=500, quick=quick)(odd, **how)
    example = evidence.example()
    assert example is not None
    assert "reproduce_failure" not in "".join(failed.value.__notes__)
    evidence.forget()
    with pytest.raises(AssertionError) as again:
        Prover(examples=1, seed=77, example=example)(odd, **how)
    assert str(again.value) == str(failed.value)
    assert evidence.example() == example
    drawn: list[int] = []
    Prover(examples=9, example=example)(lambda x, y: drawn.append(x), **how)
    assert len(drawn) == 10  # once it passes, the others are next
    assert evidence.example() is None


@pytest.mark.parametrize("example", ["1.0:AEEA", "AEEA", "x:y:z", "6.1:é"])
def test_what_is_no_example_is_said(example: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="--example"):
        Prover(example=example)(odd, x=st.integers(), y=st.text())


@pytest.mark.parametrize("error", [AssertionError, KeyError])
def test_rows_are_left_out_while_it_fails(error: type[Exception]) -> None:
    seen: list[int] = []

    def rows(events: Events) -> None:
        seen[:] = events["ref"].tolist()
        if {7, 20} <= set(seen):
            raise error(len(seen))

    def check(seed: int) -> None:
        events = np.zeros(40, EVENT)
        events["ref"] = np.arange(40)
        by_rows(rows, events)

    evidence.forget()
    with pytest.raises(error, match="2"):
        Prover(quick=True)(check, seed=st.integers())
    assert seen == [7, 20]
    assert evidence.example()


def test_the_printed_command_meets_a_random_failure_again(tmp_path: Path) -> None:
    wrong = "wrong_engines:KeepsOrdersThatAreFilled"
    case = f"test_sequence.py::TestMatches::test_wild_events[sequence={wrong}]"
    first = conform(
        tmp_path, "--sequence", wrong, "--case", case, "--examples", "40", "--seed", "3", "--quick", "--json"
    )
    (failure,) = json.loads(first.stdout)["failures"]
    assert "deselected" not in first.stderr
    words = shlex.split(failure["again"])
    assert words[:2] == ["trident", "conform"]
    assert {"--examples", "--seed", "--quick", "--case", "--example"} <= set(words)
    assert len(failure["input"].split("events:")[1].splitlines()) < 12  # of 60 rows
    (again,) = json.loads(conform(tmp_path, *words[2:], "--json").stdout)["failures"]
    assert again["input"] == failure["input"]
    assert again["again"] == failure["again"]


# --- what is shown


def test_the_first_difference_is_in_sight() -> None:
    long = list(range(1_000, 1_400))
    found, expected, where = evidence.apart(long, [*long[:300], 7, *long[301:]])
    assert where == "the first difference is item 300 of 400"
    marked = [line for line in found.splitlines() if line.startswith(">")]
    assert marked == [">300  1300"]
    assert ">300  7" in expected.splitlines()
    assert "10 of 11" in evidence.apart([*"x" * 10], [*"x" * 11])[2] or len(repr([*"x" * 11])) < 120
    shorter = evidence.apart(long[:350], long)
    assert (shorter[2], ">350  1350" in shorter[1]) == ("the first difference is item 350; 350 of 400", True)


def test_long_lines_are_shown_around_their_first_difference() -> None:
    one, other = "a" * 300 + "X" + "b" * 300, "a" * 300 + "Y" + "b" * 300
    *texts, where = evidence.apart(one.encode(), other.encode())
    assert where == "the first difference is at character 302"
    assert ["X" in texts[0], "Y" in texts[1]] == [True, True]
    assert max(map(len, texts)) < 140
    line = evidence.side_by_side(f"same\n{one}", f"same\n{other}").splitlines()[2]
    assert line.startswith("≠ [260]…")
    assert ("X" in line, "Y" in line) == (True, True)
    blanks = evidence.side_by_side("a b", "a  b").splitlines()[1]
    assert blanks.startswith("≠")


def test_of_long_mappings_only_what_differs_is_shown() -> None:
    one = {f"name{i}": "x" * 100 for i in range(100)}
    found, expected, where = evidence.apart(one, {**one, "name7": "y", "more": 1})
    assert where == "of 'name7', 'more'"
    assert "name7: 'y'" in expected
    assert "name8" not in found + expected
    assert "(99 more are the same)" in found


def test_rows_that_are_missing_are_in_sight() -> None:
    events = np.zeros(200, EVENT)
    events["ref"] = np.arange(200)
    found, expected = evidence.both(np.delete(events, 150), events)
    assert ">150" in found
    assert ">150" in expected


def test_what_is_asked_next_does_not_show_options_of_what_was_asked_before() -> None:
    evidence.asked(match="A", within="1s")
    evidence.asked(match="B", per="all")
    assert evidence.inputs() == "match:\n  'B'\nper:\n  'all'"


def test_show_says_how_many_failures_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    matrix = Matrix()
    for n in range(9):
        case = Case(f"test_x.py::t{n}", [("book", "mine")], "book", outcome="failed", reason="why", again="c")
        matrix.cases[case.id] = case
    matrix.notes["book", "mine"] = ["is odd"]
    for text, shown in ((None, 5), ("2", 2), ("all", 9), ("0", 0)):
        count = command._shown(text)
        assert count is not None
        command._print(matrix, None, 1.0, 1, count)
        out = capsys.readouterr().out
        assert out.count("\nwhy\n") == shown
        left = f"{9 - shown} failures not shown above: --show all"
        assert (left in out) == (shown < 9)
        assert "note: book mine: is odd" in out
    assert "<b>mine</b>: is odd" in page.render(matrix, command="c", seconds=1.0)
    assert command._shown("some") is None
    assert command.run(["--show", "-1"]) == pytest.ExitCode.USAGE_ERROR
    assert "--show -1: a number, or all" in capsys.readouterr().err


# --- engines that cannot be what they say


class Bare:
    """A query engine without anything that is optional."""

    def compile(self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False) -> Any:
        return SimpleNamespace(pattern=pattern, match=None)


def bare(kind: Kind, factory: str, *capabilities: str) -> Engine:
    return Engine(EngineSpec(kind, "mine", factory, "", capabilities=frozenset(capabilities)))


@pytest.mark.parametrize(
    ("capability", "words"),
    [
        ("spans", "declares spans, but its program has no spans()"),
        ("ends", "declares ends, but its program has no ends()"),
        ("sets", "declares sets, but it has no compile_set()"),
        ("first", "declares first, but its compile() takes no first="),
    ],
)
def test_a_capability_without_its_method_is_one_sentence(
    capability: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = SimpleNamespace(Bare=Bare)
    monkeypatch.setitem(sys.modules, "bare_query", module)
    assert promises.lacking(bare(Kind.QUERY, "bare_query:Bare", capability), capability) == words
    reference = Engine(EngineSpec(Kind.QUERY, "r", "trident_query.reference:ReferenceQuery", ""))
    assert promises.lacking(reference, capability) == ""
    assert promises.lacking(bare(Kind.QUERY, "no_such_module:Bare", capability), capability) == ""


def test_an_engine_that_cannot_be_loaded_fails_once() -> None:
    """One that was not asked for by name: the first case says why, the others that it has been said."""
    engine = bare(Kind.BOOK, "no_such_module:Book")
    item: Any = SimpleNamespace(
        callspec=SimpleNamespace(params={"book_engine": engine}),
        config=SimpleNamespace(stash=pytest.Stash()),
        iter_markers=lambda name: [],
    )
    with pytest.raises(pytest.fail.Exception, match=r"the engine cannot be loaded: .*No module named"):
        plugin.pytest_runtest_setup(item)
    with pytest.raises(pytest.skip.Exception, match="book=mine cannot be loaded: see its failure"):
        plugin.pytest_runtest_setup(item)


def test_an_engine_asked_for_that_cannot_be_loaded_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import trident_core.gone\n")
    done = conform(tmp_path, "--query", "mine:Query", "--jobs", "2")
    assert done.returncode == 2
    (said,) = [line for line in (done.stdout + done.stderr).splitlines() if "cannot be loaded" in line]
    assert "the engine cannot be loaded: query engine 'mine:Query'" in said
    assert "trident_core.gone would be a module of Trident itself: its installation is not whole" in said
