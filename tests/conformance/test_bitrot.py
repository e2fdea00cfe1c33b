"""The bit-rot matrix: our engines stay clean in it, and it can tell one that does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trident_conformance.bitrot import KINDS, Child, images, main, matrix, trials
from trident_conformance.bitrot_peers import PEERS
from trident_conformance.damage import write_image
from trident_conformance.engines import select
from trident_core.contracts import Kind

HERE = Path(__file__).parent


def bitrot(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "trident_conformance", "bitrot", "--json", *arguments],
        capture_output=True, text=True, timeout=240,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def total(rows: list[dict[str, Any]], outcome: str) -> int:
    return sum(row[outcome] for row in rows)


def test_a_few_trials_of_each_kind() -> None:
    status, found = bitrot("--store", "reference", "--no-peers", "--trials", "4", "--seed", "5")
    assert status == 0, found
    assert [row["damage"] for row in found["rows"]] == list(KINDS)
    assert total(found["rows"], "silent") == total(found["rows"], "crash") == 0
    assert total(found["rows"], "right") and total(found["rows"], "refused")  # noqa: PT018


def test_a_wrong_store_is_told() -> None:
    """It believes damaged payloads."""
    status, found = bitrot("--store", "wrong_engines:ForgetsACrc", "--no-peers", "--trials", "6")
    assert status == 1
    guilty = [row for row in found["rows"] if row["silent"]]
    assert guilty
    assert guilty[0]["worst"]
    assert total(found["rows"], "refused")


def test_a_process_that_dies_is_an_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next trial has another process."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
    sound = images("reference", tmp_path)["closed"]
    short = {name: data[:-1] if name.endswith(".seg") else data for name, data in sound.items()}
    child = Child()
    try:
        for files, outcome in ((short, "crash"), (sound, "right")):
            folder = write_image(tmp_path / "image", files)
            assert child.judge("wrong_engines:DiesOfDamage", folder)[0] == outcome
    finally:
        child.stop()


@pytest.mark.slow
def test_a_plain_peer_is_told() -> None:
    """SQLite does not check pages: some of these flips give wrong records without a word."""
    status, found = bitrot("--store", "reference", "--peer", "SQLite", "--trials", "6")
    assert status == 0  # only our own count
    peer = [row for row in found["rows"] if row["subject"] == "SQLite"]
    assert total(peer, "silent") > 0


def test_the_trials_are_the_same_for_a_seed_and_change_something() -> None:
    files = {"a": bytes(range(256)) * 20, "zeros": bytes(100), "empty": b""}
    one, two = (list(trials("closed", files, 10, 3)) for _ in range(2))
    assert one == two
    assert all(trial.data != files[trial.file] for trial in one)
    assert {trial.kind for trial in one} == set(KINDS)
    every = [trial for trial in trials("closed", files, 0, 3) if trial.kind == "flip"]
    assert len(every) == sum(map(len, files.values()))


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--store", "nope"]) == 4
    assert "no store engine named 'nope'" in capsys.readouterr().err
    for words in (["--peer", "nope"], ["--trials", "0"], ["--what"]):
        with pytest.raises(SystemExit, match="2"):
            main(words)


@pytest.mark.slow
def test_no_silent_cell_in_any_engine_of_ours(tmp_path: Path) -> None:
    """TRIDENT_BITROT flips of each file (20), and a quarter as many sectors and cuts."""
    names = [engine.name for engine in select(Kind.STORE) if not engine.missing]
    per_file = int(os.environ.get("TRIDENT_BITROT", "20"))
    for row in matrix(names, per_file=per_file, seed=7, jobs=2, folder=tmp_path):
        assert not row.counts["silent"] + row.counts["crash"], row.worst


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PEERS))
def test_the_peers_in_the_same_harness(name: str, tmp_path: Path) -> None:
    """Each is refused somewhere: the harness does damage what it reads."""
    if not PEERS[name].installed:
        pytest.skip(f"{PEERS[name].module} is not installed")
    rows = matrix([name], per_file=40, seed=7, folder=tmp_path)
    assert sum(row.counts["refused"] + row.counts["prefix"] for row in rows)
    assert sum(row.counts["right"] + row.counts["refused"] + row.counts["prefix"] for row in rows)
