"""The first run says that it compiles; after `trident warm` none does."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trident_core.cli.names import COMMANDS

Run = Callable[..., "subprocess.CompletedProcess[str]"]

#: The day is large enough for every pool to grow: growing has kernels of its own.
COMMAND_LINES = """
simulate day.itch50.gz --messages 300000 --symbols 60
info day.itch50.gz
info day.itch50.gz --parser reference --json
facts day.itch50.gz
simulate agents.itch --agents --messages 3000 --symbols 2 --minutes 10
replay day.itch50.gz --symbols ZXZZT
run day.itch50.gz store
convert day.itch50.gz tables --date 2019-12-30
convert day.itch50.gz all --date 2019-12-30 --tables all --depth 10 --bars 1m,10000shares
convert day.itch50.gz names --date 2019-12-30 --naming databento --tables mbo,mbp-1,mbp-10,trades,ohlcv-1m
convert day.itch50.gz lobster --date 2019-12-30 --format lobster --symbols ZXZZT --depth 5
convert day.itch50.gz threads --date 2019-12-30 --tables all --depth 10 --threads 2
replay day.itch50.gz --threads 3
query store --symbol ^[A-M] --count
query store --mpid ^[A-Z]{4}$ --limit 5
verify store --deep
export store part.csv --symbols ZXZZT
export store part.itch
demo --messages 5000 --symbols 10
bench all --messages 20000 --symbols 20 --rounds 1
plugins
new-plugin book mine
conform --book numba --quick -k replace
doctor
warm
"""


#: Warms, and writes which files of compiled code that loaded or made. It is enough to look at those: a kernel
#: found in the cache is one that would be compiled without it.
WARM = """
import json, sys
found = set()
def note(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".nbc") and arguments[1] == "r":
        found.add(str(arguments[0]))
    elif event == "os.rename" and str(arguments[1]).endswith(".nbc"):
        found.add(str(arguments[1]))
sys.addaudithook(note)
from trident_core.cli.main import main
sys.argv = ["trident", "warm", "--processes", "1", "--json"]
try:
    main()
finally:
    with open("kernels.json", "w") as file:
        json.dump(sorted(found), file)
"""


def kernels(cache: Path) -> set[str]:
    return {str(path.relative_to(cache)) for path in cache.rglob("*.nb?")}


def warmed(folder: Path) -> Path:
    """A cache as `trident warm` leaves an empty one: of the tests' cache, what it loads or adds there."""
    source = Path(os.environ.get("NUMBA_CACHE_DIR") or folder / "source")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(source)}
    command = [sys.executable, "-c", WARM]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cache = folder / "cache"
    for name in json.loads((folder / "kernels.json").read_text()):
        path = cache / Path(name).relative_to(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(name, path)
        index = Path(name.rpartition(".")[0].rpartition(".")[0] + ".nbi")
        shutil.copy(index, path.parent)
    return cache


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_after_warm_no_command_compiles(trident: Run, tmp_path: Path) -> None:
    cache = warmed(tmp_path)
    env = {"NUMBA_CACHE_DIR": str(cache)}
    before = kernels(cache)
    assert len([name for name in before if name.endswith(".nbc")]) > 100
    lines = [line.split() for line in COMMAND_LINES.strip().splitlines()]
    assert {words[0] for words in lines} == {*COMMANDS, "simulate", "facts"}
    for words in lines:
        done = trident(*words, env=env, timeout=600)
        assert done.returncode == 0, (words, done.stderr)
        assert "compiling" not in done.stderr, words
        assert kernels(cache) == before, words
    assert "all were in the cache" in done.stdout


@pytest.mark.slow
def test_a_first_run_shows_what_it_waits_for(trident: Run, day: Path, tmp_path: Path) -> None:
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "trident_core.cli", "info", str(day)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, env=os.environ | env | {"COLUMNS": "160"}
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            shown += data
    os.close(ours)
    assert process.returncode == 0
    assert b"compiling kernels, once: trident_parser, 0 of about" in shown
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "another")}
    piped = trident("info", day, env=env)
    assert piped.stderr == "compiling kernels, once; `trident warm` compiles all\n"
    assert trident("info", day, env=env).stderr == ""
