"""Following a store: every event once, in order, when it is durable and not before; and an end in order."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trident_core.dtypes import Events
from trident_core.errors import StoreError
from trident_core.follow import STEPS_PER_S, follow
from trident_core.session import Instrument, Session
from trident_core.watching import Watch
from trident_store.lsm.engine import LsmStore
from trident_store.reference import ReferenceStore

Make = Callable[[int, int], Events]


def test_a_watch_tells_of_writes_and_sleeps_otherwise(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a")
    watch = Watch(tmp_path / "file")
    began, cpu = time.monotonic(), time.thread_time()
    assert not watch.wait(0.3)
    assert time.monotonic() - began >= 0.3
    assert time.thread_time() - cpu < 0.1
    (tmp_path / "file").write_text("ab")
    assert watch.wait(5)
    watch.close()
    watch.close()


def test_without_a_watch_of_the_kernel_it_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trident_core.watching._inotify", lambda paths: -1)
    (tmp_path / "file").write_text("a")
    watch = Watch(tmp_path / "file")
    assert not watch.native
    assert not watch.wait(0.05)
    (tmp_path / "file").write_text("abc")
    assert watch.wait(5)


@pytest.mark.parametrize("engine", [ReferenceStore, LsmStore])
def test_what_is_durable_comes_once_and_in_order(tmp_path: Path, make_events: Make, engine: type) -> None:
    path, session = tmp_path / "store", Session()
    writer = engine(path, "create", session, segment_bytes=1 << 16)
    writer.append(make_events(0, 500))
    writer.sync()
    writer.append(make_events(500, 500))  # not durable yet
    reader = engine(path, "read")
    steps = reader.follow()
    first = next(steps)
    assert first.seq == (1, 500)
    assert np.array_equal(np.concatenate(list(first.snapshot.scan(seq=first.seq))), make_events(0, 500))

    def write() -> None:
        for start in range(1_000, 6_000, 500):
            time.sleep(0.01)
            if start == 3_000:
                session.directory.put(Instrument(3, "LATE"))
            writer.append(make_events(start, 500))
            writer.sync()

    thread = threading.Thread(target=write)
    thread.start()
    seen, expected = [], 501
    for step in steps:
        assert step.seq[0] == expected
        expected = step.seq[1] + 1
        seen += [each.copy() for each in step.snapshot.scan(seq=step.seq)]
        if step.seq[1] > 3_000:
            assert step.snapshot.session.directory.symbol(3) == "LATE"
        if step.seq[1] == 6_000:
            break
    thread.join()
    assert np.array_equal(np.concatenate(seen), make_events(500, 5_500))
    steps.close()
    reader.close()
    writer.close()


def test_frequent_syncs_are_taken_together(tmp_path: Path, make_events: Make) -> None:
    path = tmp_path / "store"
    with ReferenceStore(path, "create", Session()) as writer, ReferenceStore(path, "read") as reader:
        over = threading.Event()

        def write() -> None:
            for start in range(300):
                writer.append(make_events(start, 1))
                writer.sync()
            over.set()

        thread = threading.Thread(target=write)
        began = time.monotonic()
        thread.start()
        steps = 0
        for step in follow(reader, path):
            steps += 1
            if step.seq[1] == 300:
                break
        seconds = time.monotonic() - began
        thread.join()
        assert steps <= seconds * STEPS_PER_S + 2


def test_stop_ends_it_and_a_folder_that_is_gone_is_an_error(
    tmp_path: Path, make_events: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trident_core.follow._STILL_THERE_S", 0.05)
    path = tmp_path / "store"
    with ReferenceStore(path, "create", Session()) as writer:
        writer.append(make_events(0, 10))
    with ReferenceStore(path, "read") as reader:
        stops = iter([False, True])
        assert [step.seq for step in follow(reader, path, stop=lambda: next(stops))] == [(1, 10)]
        steps = follow(reader, path, after=5)
        assert next(steps).seq == (6, 10)
        shutil.rmtree(path)
        with pytest.raises(StoreError):
            next(steps)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_the_command_follows_another_process_until_ctrl_c(
    tmp_path: Path, make_events: Make, number: signal.Signals
) -> None:
    path, session = tmp_path / "store", Session()
    session.directory.put(Instrument(1, "ONE"))
    writer = ReferenceStore(path, "create", session)
    writer.append(make_events(0, 50))
    writer.sync()
    command = [
        sys.executable, "-m", "trident_core.cli", "query", str(path), "--symbol", "^ONE$", "--follow",
        "--json",
    ]  # fmt: skip
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert process.stdout is not None
    rows = [json.loads(process.stdout.readline()) for _ in range(10)]
    writer.append(make_events(50, 50))
    writer.sync()
    rows += [json.loads(process.stdout.readline()) for _ in range(10)]
    assert [row["seq"] for row in rows] == list(range(1, 101, 5))
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == ""
    # Whether the step was over when Ctrl-C came is chance; that its last match was shown is not.
    assert re.search(r"20 events matched up to sequence number (96|100): A 20", err)
    assert "Traceback" not in err
    writer.close()
