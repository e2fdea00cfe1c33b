"""A disk that refuses, a key that interrupts, a process that is killed."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.errors import StoreError
from trident_core.session import Session
from trident_store.crashcheck import PATH, make_events, read_all
from trident_store.crashmodel import CrashFileSystem
from trident_store.filesystem import OsFileSystem
from trident_store.reference import ReferenceStore


def failing(call_name: str, nth: int, error: BaseException) -> Any:
    """A `before` hook that raises at the nth call of that name ("": of any)."""
    left = nth

    def before(call: str) -> None:
        nonlocal left
        if call_name in ("", call):
            left -= 1
            if left == 0:
                raise error

    return before


# -- the disk refuses --


def test_a_full_disk_makes_the_store_read_only_and_loses_nothing(opener: Any, same: Any) -> None:
    files = CrashFileSystem(exists=False)
    store = opener("create", Session(), files)
    store.append(make_events(0, 3))
    files.before = failing("write", 2, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(StoreError, match=r"No space left .* 5 events") as caught:
        store.append(make_events(3, 5))
    assert "read-only" in caught.value.hint
    files.before = lambda call: None
    with pytest.raises(StoreError, match="read-only"):
        store.append(make_events(5, 1))
    assert same(read_all(store), make_events(0, 5))
    assert store.sync() == make_events(4, 1)["seq"][0]  # what went in before is still made durable
    store.close()
    assert same(read_all(opener("append", None, files)), make_events(0, 5))


def test_short_writes_are_gone_on_with_or_cut_off(opener: Any, same: Any) -> None:
    class ShortWrites(CrashFileSystem):
        def write(self, handle: int, data: Any, offset: int) -> int:
            return super().write(handle, data[:50], offset)

    files = ShortWrites(exists=False)
    store = opener("create", Session(), files)
    store.append(make_events(0, 30))
    store.close()
    store = opener("append", None, files)
    assert same(read_all(store), make_events(0, 30))
    store.append(make_events(30, 8))
    store.sync()
    files.before = failing("write", 3, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(StoreError):
        store.append(make_events(38, 2))
    files.before = lambda call: None
    store.close()
    again = opener("append", None, files)
    # Closing synced what came before, and cut off what the failed write had left: see LogWriter.sync.
    assert (again.recovery.events, again.recovery.torn_bytes) == (38, 0)
    assert again.recovery.torn_file == ""


def test_after_a_failed_sync_nothing_is_called_durable_any_more(opener: Any, same: Any) -> None:
    files = CrashFileSystem(exists=False)
    store = opener("create", Session(), files)
    store.append(make_events(0, 4))
    store.sync()
    store.append(make_events(4, 4))
    files.before = failing("sync", 1, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(StoreError, match="Input/output error"):
        store.sync()
    calls: list[str] = []
    files.before = calls.append
    for call in (store.sync, lambda: store.append(make_events(8, 1))):
        with pytest.raises(StoreError, match="read-only"):
            call()
    store.close()
    assert not {"sync", "write"} & set(calls), "a sync that failed was tried again"
    # The cache still shows what the disk never got. A new writer must not build on it.
    again = opener("append", None, files)
    assert again.recovery.events == 4
    again.append(make_events(4, 2))
    again.close()
    for disk in files.crash_point().states(100, random.Random(0)):
        assert same(read_all(opener("read", None, CrashFileSystem(disk))), make_events(0, 6))


def test_every_call_may_fail(opener: Any, same: Any) -> None:
    """EIO at each call of a run with rotations, in turn: a StoreError, then a store with all acknowledged."""
    for nth in range(1, 400):
        files, acked = CrashFileSystem(exists=False), -1
        files.before = failing("", nth, OSError(errno.EIO, "Input/output error"))
        failed = False
        store = None
        try:
            store = opener("create", Session(), files)
            acked = 0
            for first in range(0, 30, 6):
                store.append(make_events(first, 6))
                store.sync()
                acked = first + 6
        except StoreError:
            failed = True
        files.before = lambda call: None
        if store is not None:
            store.close()
        if acked < 0:
            continue
        got = read_all(opener("append", None, files))
        assert len(got) >= acked
        assert same(got, make_events(0, len(got)))
        if not failed:
            assert nth > 60
            return
    pytest.fail("the run never ended")


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="needs a limit on file sizes")
def test_a_real_file_system_that_refuses(tmp_path: Path, same: Any) -> None:
    """The kernel's own short write and error: a file-size limit that falls into the middle of a frame."""
    store = ReferenceStore(tmp_path / "s", "create", Session(), segment_bytes=1 << 20)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        store.append(make_events(0, 1_200))
        with pytest.raises(StoreError, match="File too large"):
            store.append(make_events(1_200, 1_200))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)
    events = 1_200
    assert store.stats()["events"] == events
    store.close()
    with ReferenceStore(tmp_path / "s", "append") as again:
        assert same(read_all(again), make_events(0, events))


# -- an interrupt --


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interrupt_at_any_call_leaves_a_valid_store(opener: Any, same: Any, moment: str) -> None:
    """Ctrl-C before or after each file-system call of appends, syncs and rotations; then close."""
    for nth in range(1, 400):
        files = CrashFileSystem(exists=False)
        store = opener("create", Session(), files)
        hook = failing("", nth, KeyboardInterrupt())
        if moment == "before":
            files.before = hook
        else:
            files.on_change = lambda hook=hook: hook("")
        done = 0
        interrupted = False
        try:
            for first in range(0, 30, 6):
                store.append(make_events(first, 6))
                done = first + 6
                store.sync()
        except KeyboardInterrupt:
            interrupted = True
        files.before, files.on_change = lambda call: None, lambda: None
        stats = store.stats()
        assert done <= stats["events"] <= done + 6
        assert same(read_all(store), make_events(0, stats["events"]))
        if nth % 2:
            store.append(make_events(stats["events"], 3))
        whole = store.stats()["events"]
        store.close()
        again = opener("append", None, files)
        assert same(read_all(again), make_events(0, whole))
        assert (again.verify().findings, again.recovery.torn_bytes) == ([], 0)
        if not interrupted:
            assert nth > 40
            return
    pytest.fail("the run never ended")


def test_interrupts_by_a_real_signal(tmp_path: Path, same: Any) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGVTALRM, interrupt)
    rng = random.Random(5)
    try:
        store = ReferenceStore(tmp_path / "s", "create", Session(), segment_bytes=1 << 20, frame_events=64)
        for _ in range(15):
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_VIRTUAL, rng.uniform(0.001, 0.02))
                while store.stats()["events"] < 200_000:
                    store.append(make_events(store.stats()["events"], 500))
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        whole = store.stats()["events"]
        store.close()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)
    with ReferenceStore(tmp_path / "s", "append") as again:
        assert again.verify().findings == []
        assert same(read_all(again), make_events(0, whole))
        assert whole > 500


# -- a kill --

WRITER = """
import sys, time
from pathlib import Path
from trident_core.session import Session
from trident_store.crashcheck import make_events
from trident_store.reference import ReferenceStore
path = Path(sys.argv[1])
mode = "append" if path.exists() else "create"
store = ReferenceStore(path, mode, Session(), segment_bytes=1 << 16, frame_events=100)
for turn in range(2_000):  # some seconds at most, should nobody kill it
    events = store.stats()["events"]
    store.append(make_events(events, 250))
    if turn % 2 == 0:
        store.sync()
        print(events + 250, flush=True)
        time.sleep(0.001)  # readers of the whole store keep pace
"""


@pytest.mark.parametrize("rounds", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_after_kill_9_everything_acknowledged_is_there(tmp_path: Path, same: Any, rounds: int) -> None:
    path, rng, acked = tmp_path / "s", random.Random(rounds), 0
    for _ in range(rounds):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            try:
                first = writer.stdout.readline()
                assert first, "the writer did not start"
                with pytest.raises(StoreError, match=f"process {writer.pid}"):
                    ReferenceStore(path, "append")
                reader = ReferenceStore(path, "read").snapshot()  # while it writes
                assert same(reader.scan(), make_events(0, reader.count))
                time.sleep(rng.uniform(0, 0.1))
            finally:
                writer.kill()
            acked = int([first, *writer.stdout.read().split("\n")[:-1]][-1])
        got = read_all(ReferenceStore(path, "read"))
        assert len(got) >= acked
        assert same(got, make_events(0, len(got)))
    with ReferenceStore(path, "append") as store:
        assert store.recovery.events == len(got)
        assert store.stats()["epoch"] == rounds + 1
        assert store.verify().ok


def test_a_torn_tail_on_a_real_file_system(tmp_path: Path, same: Any) -> None:
    path = tmp_path / "s"
    with ReferenceStore(path, "create", Session(), frame_events=10) as store:
        store.append(make_events(0, 95))
    with (path / "00000000.seg").open("ab") as file:
        file.write(make_events(0, 3).tobytes()[:-50])
    reader = ReferenceStore(path, "read")
    assert (reader.recovery.torn_bytes, reader.recovery.torn_file) == (142, "00000000.seg")
    assert same(read_all(reader), make_events(0, 95))
    assert [finding.severity for finding in reader.verify().findings] == ["note"]
    with ReferenceStore(path, "append") as store:
        assert (store.recovery.torn_bytes, store.recovery.events) == (142, 95)
        assert store.verify().findings == []


def test_the_real_file_system_reads_past_short_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, at: real(fd, [buffers[0][:3]], at))
    (tmp_path / "f").write_bytes(b"0123456789")
    files = OsFileSystem()
    handle = files.open(tmp_path / "f")
    buffer = np.zeros(12, np.uint8)
    assert files.read_into(handle, buffer, 2) == 8
    assert buffer.tobytes() == b"23456789" + bytes(4)
    files.close(handle)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")], ids=["key", "disk"]
)
def test_creation_that_fails_can_be_tried_again(opener: Any, error: BaseException) -> None:
    """Whichever call fails: a valid empty store is there, or nothing is in the way of another try."""
    again = 0
    for nth in range(1, 60):
        files = CrashFileSystem(exists=False)
        files.before = failing("", nth, error)
        try:
            opener("create", Session(), files)
        except (KeyboardInterrupt, StoreError):
            files.before = lambda call: None
            names = files.list_directory(PATH) if files.exists else []
            if "durable" not in names:
                assert names == []
                again += 1
                opener("create", Session(), files).close()
            assert len(read_all(opener("append", None, files))) == 0
        else:
            assert again > 5
            return
    pytest.fail("creation never ended")


def test_creation_that_a_kill_ended_says_so(opener: Any) -> None:
    """Without the time to remove what was left, the next opening tells what happened."""
    refusals: list[str] = []
    for nth in range(1, 60):
        files = CrashFileSystem(exists=False)
        calls = 0

        def dies(call: str, nth: int = nth) -> None:
            nonlocal calls
            calls += 1
            if calls >= nth:  # nothing works from here on
                raise OSError(errno.EIO, "killed")

        files.before = dies
        try:
            opener("create", Session(), files)
        except StoreError:
            files.before = lambda call: None
            if not files.exists:
                continue
            try:
                assert len(read_all(opener("append", None, files))) == 0
            except StoreError as refusal:
                refusals.append(str(refusal))
        else:
            assert len(refusals) > 5
            assert all("never finished" in each or "is not a store" in each for each in refusals)
            return
    pytest.fail("creation never ended")
