"""`trident run` when things go wrong: one clear line, and a store that is valid and can be gone on with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trident_core.decode import events_of
from trident_core.filesystem import OsFileSystem
from trident_core.line.spill import Spill
from trident_core.session import Session
from trident_parser.reference import ReferenceParser
from trident_store.blocks.lmdb import LmdbStore
from trident_store.format import crc32c
from trident_store.reference import ReferenceStore

Run = Callable[..., "subprocess.CompletedProcess[str]"]
COMMAND = [sys.executable, "-m", "trident_core.cli"]
SLOW = pytest.mark.slow
STAGES = pytest.mark.parametrize("stages", ["threads", pytest.param("processes", marks=SLOW)])


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated day of 60,000 messages, not compressed."""
    from trident_core.cli.simulated import simulate_day

    path = tmp_path_factory.mktemp("raw") / "simulated-2019-12-30.itch50"
    simulate_day(path, messages=60_000, symbols=20)
    return path


def one_line_error(done: subprocess.CompletedProcess[str], code: int) -> str:
    assert done.returncode == code, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("compiling")]
    assert [line.partition(":")[0] for line in lines] == ["error", "hint"], done.stderr
    return lines[0]


def check_store(law: np.ndarray) -> int:
    """The store is valid, and holds a prefix of the day; how many events."""
    with ReferenceStore("store", "read") as store:
        assert store.verify().ok
        events = np.concatenate([law[:0], *(each.copy() for each in store.snapshot().scan())])
    assert np.array_equal(events, law[: len(events)])
    return len(events)


@pytest.fixture(scope="module")
def law(raw: Path) -> np.ndarray:
    """The day's events, by the parser alone."""
    return events_of(np.fromfile(raw, np.uint8), ReferenceParser(Session()))


@STAGES
def test_a_live_run_under_stalls_drops_nothing_and_says_what_it_did(
    trident: Run, raw: Path, law: np.ndarray, stages: str
) -> None:
    done = trident(
        "run", raw, "store", "--live", "--stages", stages, "--ring", "65536", "--json",
        "--inject", "ring-stall=200ms@1", "--inject", "fsync-stall=77ms@2+",
    )  # fmt: skip
    stats = json.loads(done.stdout)
    line = stats["line"]
    assert (stats["stored"], stats["durable_seq"], line["dropped"]) == (60_000, 60_000, 0)
    assert (line["mode"], line["stages"]) == ("live", stages)
    assert [rung["level"] for rung in line["ladder"]] == ["Normal", "ShedSync", "ShedIndex", "RawSpill"]
    assert all(rung["entered"] == rung["returned"] for rung in line["ladder"])
    assert {each["fault"]: each["fired"] > 0 for each in line["injected"]} == {
        "ring-stall=200ms@1": True, "fsync-stall=77ms@2+": True,
    }  # fmt: skip
    assert check_store(law) == 60_000


def test_the_census_is_printed_for_people_too(trident: Run, raw: Path) -> None:
    done = trident("run", raw, "store", "--live", "--pin", "0,4000", "--inject", "slow-write=1ms@5")
    assert "RawSpill" in done.stdout
    assert "dropped 0, waits" in done.stdout
    assert "injected slow-write=1ms@5: struck 1 times" in done.stdout
    assert "not pinned to processor 4000" in done.stderr


def test_files_wait_and_standard_input_is_live(trident: Run, day: Path) -> None:
    def mode(*words: object, **more: object) -> str:
        return str(json.loads(trident("run", *words, "--json", **more).stdout)["line"]["mode"])

    assert mode(day, "a") == "backpressure"
    assert mode("-", "b", stdin=day.read_bytes()) == "live"
    assert mode("-", "c", "--backpressure", stdin=day.read_bytes()) == "backpressure"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--inject", "fsync-stal@3s"], "no fault 'fsync-stal'"),
        (["--inject", "fsync-stall=77ms@later"], "'later' is no time, call or size"),
        (["--pin", "one"], "not one or two processors"),
        (["--ring", "1000"], "not a power of two"),
    ],
)
def test_wrong_options_are_one_line_and_make_nothing(
    trident: Run, day: Path, options: list[str], words: str
) -> None:
    assert words in one_line_error(trident("run", day, "store", *options), 2)
    assert not Path("store").exists()


@STAGES
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("enospc@1MiB", "No space left on device"),
        pytest.param("fsync-error=EIO@9", "Input/output error", marks=SLOW),
        pytest.param("write-error=EROFS@12+", "Read-only file system", marks=SLOW),
    ],
)
def test_a_disk_that_refuses_is_one_line_and_a_valid_store(
    trident: Run, raw: Path, law: np.ndarray, stages: str, fault: str, words: str
) -> None:
    done = trident("run", raw, "store", "--stages", stages, "--live", "--inject", fault)
    assert words in one_line_error(done, 4)
    check_store(law)
    resumed = trident("run", raw, "store", "--resume", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert check_store(law) == 60_000


@SLOW
@pytest.mark.parametrize("stages", ["threads", "processes"])
def test_a_second_writer_is_told_who_the_first_is(trident: Run, day: Path, stages: str) -> None:
    assert trident("run", day, "store").returncode == 0
    with ReferenceStore("store", "append"):
        done = trident("run", day, "store", "--resume", "--stages", stages)
        assert f"is being written by process {os.getpid()}" in one_line_error(done, 4)


@SLOW
@pytest.mark.parametrize("stages", ["threads", "processes"])
def test_a_store_of_the_future_is_refused(trident: Run, day: Path, stages: str) -> None:
    assert trident("run", day, "store").returncode == 0
    mark = Path("store/durable")
    data = bytearray(mark.read_bytes())
    for slot in (0, 4_096):
        data[slot + 8] = 9
        data[slot + 60 : slot + 64] = crc32c(bytes(data[slot : slot + 60])).to_bytes(4, "little")
    mark.write_bytes(data)
    assert "the store's format is 9" in one_line_error(
        trident("run", day, "store", "--resume", "--stages", stages), 4
    )


def begin(raw: Path, *options: str) -> subprocess.Popen[bytes]:
    """A live run whose store's thread stalls, so that it is well under way, and spilling, for seconds."""
    command = [
        *COMMAND, "run", str(raw), "store", "--live", "--ring", "4096", "--json",
        "--inject", "ring-stall=150ms@1+", *options,
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_spill() -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and not list(Path("store").glob("*.spill")):
        time.sleep(0.01)
    assert list(Path("store").glob("*.spill"))


@STAGES
def test_kill_while_spilling_loses_nothing_acknowledged(
    trident: Run, raw: Path, law: np.ndarray, stages: str
) -> None:
    process = begin(raw, "--stages", stages)
    wait_for_spill()
    process.kill()
    process.communicate(timeout=60)
    if stages == "threads":
        with ReferenceStore("store", "read") as store:
            acknowledged = store.stats()["durable_seq"]
        assert check_store(law) >= acknowledged
        assert list(Path("store").glob("*.spill"))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # the store's own process may still be at it
        done = trident("run", raw, "store", "--resume", "--json")
        if "is being written" not in done.stderr:
            break
        time.sleep(0.2)
    assert done.returncode == 0, done.stderr
    assert not list(Path("store").glob("*.spill"))
    assert check_store(law) == 60_000


@pytest.mark.parametrize(
    ("stages", "number"),
    [
        ("threads", signal.SIGTERM),
        pytest.param("threads", signal.SIGINT, marks=SLOW),
        ("processes", signal.SIGINT),
        pytest.param("processes", signal.SIGTERM, marks=SLOW),
    ],
)
def test_a_signal_while_spilling_ends_in_order(
    raw: Path, law: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stages: str,
    number: signal.Signals,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    process = begin(raw, "--stages", stages)
    wait_for_spill()
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode in (0, 130), err
    assert b"Traceback" not in err
    stats = json.loads(out)
    assert stats["stored"] == stats["durable_seq"] == stats["events"]
    assert not list(Path("store").glob("*.spill"))
    assert check_store(law) == stats["stored"]


def test_the_folder_deleted_under_the_line(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    process = begin(raw)
    wait_for_spill()
    shutil.rmtree("store", ignore_errors=True)
    shutil.rmtree("store", ignore_errors=True)
    _, err = process.communicate(timeout=120)
    assert b"Traceback" not in err
    assert b"a bug in" not in err


@SLOW
def test_a_left_spill_is_merged_by_resume_whatever_the_engine(trident: Run, raw: Path) -> None:
    assert trident("run", raw, "store", "--store", "lmdb").returncode == 0
    with LmdbStore("store", "append") as store:
        events = np.concatenate([each.copy() for each in store.snapshot().scan()])
    short, session = Path("short"), Session.from_json(store.session.to_json())
    with LmdbStore(short, "create", session) as store:
        store.append(events[:50_000])
    spill = Spill(OsFileSystem(), short, session)
    spill.put(events[50_000:55_000], events[49_999:50_000])
    spill.close()
    resumed = json.loads(trident("run", raw, "short", "--resume", "--store", "lmdb", "--json").stdout)
    assert resumed["stored"] == 5_000


@SLOW
def test_bench_line_prints_ratios_laps_and_the_ladder_of_every_run(trident: Run) -> None:
    words = ("bench", "line", "--messages", "20000", "--symbols", "50", "--rounds", "1")
    [found] = json.loads(trident(*words, "--json").stdout)
    assert found["events"] == 20_000
    assert next(iter(found["runs"])) == "book alone"
    assert len(found["runs"]) == 6
    for name, run in found["runs"].items():
        assert run["batch_us"]["count"] == -(-20_000 // found["batch"])
        assert run["batch_us"]["p50"] <= run["batch_us"]["p99_9"] <= run["batch_us"]["max"]
        assert run["dropped"] == 0
        assert (run["durable_seq"] == 20_000) is (name != "book alone")
        assert bool(run["line"].get("ladder")) is ("live" in name)
    stalled = found["runs"]["live, fsync +77 ms"]["line"]["injected"]
    assert stalled[0]["fired"] > 0
    table = trident(*words).stdout
    for name in (*found["runs"], "RawSpill", "book fed", "p99.9"):
        assert name in table
