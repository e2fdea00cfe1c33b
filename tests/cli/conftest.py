"""Running `trident` as a user does: a process in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def trident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`trident("info", path)` runs the command in an empty folder, 80 columns wide; its result."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("TRIDENT_") and name != "TRIDENT_SHARED":
            monkeypatch.delenv(name)

    def run(
        *args: object, stdin: bytes | None = None, env: dict[str, str] | None = None, timeout: float = 180
    ):  # type: ignore[no-untyped-def]
        done = subprocess.run(
            [sys.executable, "-m", "trident_core.cli", *map(str, args)],
            input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True, timeout=timeout, env={**os.environ, "COLUMNS": "80", **(env or {})},
        )  # fmt: skip
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


@pytest.fixture(scope="session")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small simulated day, compressed."""
    from trident_core.cli.simulated import simulate_day

    path = tmp_path_factory.mktemp("day") / "simulated-2019-12-30.itch50.gz"
    simulate_day(path, messages=6_000, symbols=12)
    return path
