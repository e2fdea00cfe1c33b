"""The crash laboratory by its commands: what passes, what is found and met again, what is skipped and why."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trident_conformance.crash import foreign, power
from trident_conformance.crash.cases import FIXED, case_of, modelled, opener_of
from trident_conformance.crash.kill import model, real
from trident_conformance.crash.lab import replay, run_case
from trident_conformance.crash.progress import Progress
from trident_conformance.engines import select
from trident_core.contracts import Kind
from trident_core.errors import UsageError
from trident_store.crashcheck import played

HERE = Path(__file__).parent


def engine(name: str) -> Any:
    return select(Kind.STORE, [name])[0]


def crash(*arguments: str) -> tuple[int, Any, str]:
    done = subprocess.run(
        [sys.executable, "-m", "trident_conformance", "crash", *arguments],
        capture_output=True, text=True, timeout=240, cwd=HERE,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else None, done.stderr


def test_the_command_counts_what_it_tried() -> None:
    status, found, said = crash("--store", "reference", "--states", "300", "--per-point", "6", "--json")
    assert status == 0, said
    (row,) = found["rows"]
    assert row["states"] >= 300
    assert row["points"] > 50
    assert 0 < row["distinct"] <= row["states"]
    assert row["states_per_s"] > 0
    assert row["violations"] == []


def test_a_wrong_store_is_told_and_its_state_met_again() -> None:
    """STORE-10, 17: it calls durable what it has only written."""
    wrong = "wrong_stores:AcknowledgesTooEarly+filesystem"
    status, found, said = crash("--store", wrong, "--states", "2000", "--json")
    assert status == 1, said
    first = found["rows"][0]["violations"][0]
    assert "acknowledged" in first["problem"]
    command = shlex.split(first["replay"])
    assert command[:4] == ["python", "-m", "trident_conformance", "crash"]
    again, told, said = crash(*command[4:], "--json")
    assert again == 1, said
    assert told["problem"] == first["problem"]
    assert told["files"]


@pytest.mark.parametrize("name", ["reference", "lsm"])
def test_a_case_is_the_same_each_time(name: str) -> None:
    seed = len(FIXED) + 4
    assert case_of(engine(name), seed) == case_of(engine(name), seed)
    reports = [run_case(engine(name), case_of(engine(name), seed), 2) for _ in range(2)]
    assert reports[0].violations == []
    assert (reports[0].points, reports[0].states, reports[0].distinct) == (
        reports[1].points, reports[1].states, reports[1].distinct,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["reference", "lsm"])
def test_no_script_of_a_seed_s_own_fails_by_itself(name: str) -> None:
    """As the one did that asked a store opened without tables for a flush."""
    for seed in range(len(FIXED), 60):
        case = case_of(engine(name), seed)
        assert played(opener_of(engine(name), case), case.script, case.key)[1] == ""


@pytest.mark.parametrize("text", ["", "7", "7:", "7:a.b", "7:1", "x:1.2", "3:999999.0"])
def test_what_is_no_state_is_said(text: str) -> None:
    with pytest.raises(UsageError):
        replay(engine("reference"), text)


def test_a_state_that_keeps_every_promise() -> None:
    found = replay(engine("reference"), "3:30.1")
    assert found.problem == ""
    assert found.case.script == FIXED[3]
    assert {"00000000.seg", "durable"} <= set(found.disk)


def test_wrong_usage_is_one_line() -> None:
    status, _, said = crash("--store", "nobody")
    assert status == 4
    assert "error: " in said
    assert "Traceback" not in said
    status, _, said = crash("--replay", "1:2.3")
    assert status != 0
    assert "Traceback" not in said
    assert crash("--states", "0")[0] == 2


def test_progress_says_rate_and_end() -> None:
    from rich.console import Console

    progress = Progress(Console(), "lsm", 1_000)
    progress._began -= 2.0
    progress._done = 500
    line = progress.line(progress._began + 2.0)
    assert line == "lsm: 500 of 1,000 states, 250/s, 2 s left"


# -- recovery equivalence --


@pytest.mark.parametrize("name", ["reference", "lsm"])
def test_the_recovered_book_is_the_live_one(name: str) -> None:
    """STORE-10, 11, 12, 16. TRIDENT_KILL_POINTS: how many (the command's default is 1,000)."""
    row = model(engine(name), int(os.environ.get("TRIDENT_KILL_POINTS", "40")), 3)
    assert row.violations == []
    assert row.points >= 40
    assert row.acknowledged > 30
    assert row.digests == 2 * row.points


def test_a_store_that_loses_what_it_acknowledged_fails_the_kill_points() -> None:
    row = model(engine("wrong_stores:AcknowledgesTooEarly+filesystem"), 60, 3)
    assert any("acknowledged" in each for each in row.violations)


@pytest.fixture(autouse=True)
def _wrong_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


@pytest.mark.slow
def test_real_kills_of_trident_run(tmp_path: Path) -> None:
    """STORE-10, 11, 16. TRIDENT_REAL_KILLS: how many."""
    row = real(engine("lsm"), int(os.environ.get("TRIDENT_REAL_KILLS", "4")), 2, tmp_path)
    assert row.violations == []
    assert row.points >= 4
    assert row.most > 0


# -- what the machine may not allow --


def skipped_without_fuse() -> None:
    if reason := foreign.unavailable():
        pytest.skip(reason)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reference", "rocksdb"])
def test_a_store_on_a_fuse_mount(name: str) -> None:
    skipped_without_fuse()
    if engine(name).missing:
        pytest.skip(f"{name} is not installed")
    report = foreign.run_case(engine(name), 0, 2)
    assert report.violations == []
    assert report.points > 20
    assert report.distinct > 20


@pytest.mark.slow
def test_fuse_finds_a_store_that_acknowledges_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    skipped_without_fuse()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
    report = foreign.run_case(engine("wrong_stores:AcknowledgesTooEarly"), 0, 2)
    assert any("acknowledged" in each.problem for each in report.violations)


def test_engines_without_a_file_system_object_need_fuse(monkeypatch: pytest.MonkeyPatch) -> None:
    assert modelled(engine("lsm"))
    assert not modelled(engine("rocksdb"))
    monkeypatch.setattr(foreign.importlib.util, "find_spec", lambda name: None)
    assert "pip install mfusepy" in foreign.unavailable()


@pytest.mark.slow
@pytest.mark.parametrize("trial", ["strace", "cut", "full"])
def test_failures_of_a_real_system(trial: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ("EIO from fdatasync", "ENOSPC from pwrite64", "SIGKILL at fdatasync")
    monkeypatch.setattr(power, "INJECTIONS", {name: power.INJECTIONS[name] for name in few})
    for row in power.run(engine("lsm"), [trial], 1, 4):
        if row.skipped:
            pytest.skip(row.skipped)
        assert row.violations == []
        assert row.runs == 1
        assert row.found >= row.acknowledged


def test_a_trial_that_cannot_be_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power.shutil, "which", lambda name: None)
    monkeypatch.setattr(power.os, "geteuid", lambda: 1000)
    rows = list(power.run(engine("reference"), ["strace", "cut", "full"], 1, 1))
    assert [row.runs for row in rows] == [0, 0, 0]
    assert "strace is not installed" in rows[0].skipped
    assert all("needs root" in row.skipped for row in rows[1:])
