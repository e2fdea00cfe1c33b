"""A disk that refuses, a key that interrupts, a process that is killed, while tables are made."""

from __future__ import annotations

import errno
import random
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import google_crc32c
import pytest

from trident_core.errors import StoreError
from trident_core.session import Session
from trident_store.crashcheck import make_events, read_all
from trident_store.crashmodel import CrashFileSystem
from trident_store.lsm.engine import LsmStore
from trident_store.reference import ReferenceStore


def failing(nth: int, error: BaseException) -> Any:
    """A hook that raises at its nth call."""
    left = nth

    def before(call: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise error

    return before


def no_hook(*_: object) -> None:
    pass


def append_in_parts(store: Any, firsts: range) -> None:
    for first in firsts:
        store.append(make_events(first, firsts.step))


def play(store: Any) -> int:
    """Appends, syncs and flushes of 45 events; how many were acknowledged."""
    for first in range(0, 45, 15):
        store.append(make_events(first, 15))
        store.sync()
    return 45


@pytest.mark.parametrize("part", range(3))
def test_every_call_may_fail(lsm_opener: Any, same: Any, part: int) -> None:
    """EIO at each call in turn: the log goes on or says so, and nothing that was acknowledged is lost."""
    failures = 0
    for nth in range(60 + part, 900, 3):
        files, acked, store = CrashFileSystem(exists=False), 0, None
        files.before = failing(nth, OSError(errno.EIO, "Input/output error"))
        try:
            store = lsm_opener("create", Session(), files)
            acked = play(store)
        except StoreError:
            failures += 1
        files.before = no_hook
        if store is None:
            continue
        told = store.maintenance_failure
        failures += bool(told)
        store.close()
        again = lsm_opener("append", None, files)
        got = read_all(again)
        assert len(got) >= acked
        assert same(got, make_events(0, len(got)))
        if not told:
            again.append(make_events(len(got), 20))
            again.flush()
            assert same(read_all(again), make_events(0, len(got) + 20))
        if acked and not told:
            assert failures > 30
            return
    pytest.fail("the run never ended")


@pytest.mark.parametrize("part", range(3))
def test_an_interrupt_at_any_change_leaves_a_valid_store(lsm_opener: Any, same: Any, part: int) -> None:
    """Ctrl-C behind each change to the disk; the store is used on, flushed and closed."""
    for nth in range(1 + part, 900, 3):
        files = CrashFileSystem(exists=False)
        store = lsm_opener("create", Session(), files)
        hook = failing(nth, KeyboardInterrupt())
        files.on_change = lambda hook=hook: hook("")
        interrupted = False
        try:
            play(store)
        except KeyboardInterrupt:
            interrupted = True
        files.on_change = no_hook
        events = store.stats()["events"]
        assert same(read_all(store), make_events(0, events))
        store.append(make_events(events, 15))
        for disk in files.crash_point().states(4, random.Random(nth)):
            left = read_all(lsm_opener("read", None, CrashFileSystem(disk)))
            assert len(left) >= store.stats()["durable_events"]
            assert same(left, make_events(0, len(left)))
        store.flush()
        store.close()
        again = lsm_opener("append", None, files)
        assert same(read_all(again), make_events(0, events + 15))
        assert (again.verify().findings, again.recovery.torn_bytes) == ([], 0)
        if not interrupted:
            assert nth > 100
            return
    pytest.fail("the run never ended")


def test_a_full_disk_stops_tables_first_and_says_so(lsm_opener: Any, same: Any) -> None:
    files = CrashFileSystem(exists=False)
    store = lsm_opener("create", Session(), files)
    room = 9_000

    def full(call: str) -> None:
        if call == "write" and sum(map(len, files.visible().values())) > room + 8_192:
            raise OSError(errno.ENOSPC, "No space left on device")

    files.before = full
    with pytest.raises(StoreError, match="No space left on device"):
        append_in_parts(store, range(0, 4_000, 10))
    files.before = no_hook
    events = store.stats()["events"]
    assert same(read_all(store), make_events(0, events))
    with pytest.raises(StoreError, match="read-only"):
        store.append(make_events(events, 1))
    store.sync()
    store.close()
    with lsm_opener("append", None, files) as again:
        assert again.recovery.events == events
        again.flush()
        assert again.verify().findings == []


def test_a_folder_that_goes_away_is_one_clear_line(tmp_path: Path) -> None:
    store = LsmStore(tmp_path / "s", "create", Session(), segment_bytes=1 << 16)
    store.append(make_events(0, 500))
    store.flush()
    shutil.rmtree(tmp_path / "s")
    with pytest.raises(StoreError, match="No such file or directory"):
        append_in_parts(store, range(500, 5_000, 500))


def test_one_writer_of_either_engine(tmp_path: Path) -> None:
    with LsmStore(tmp_path / "s", "create", Session()) as store:
        store.append(make_events(0, 10))
        for engine in (LsmStore, ReferenceStore):
            with pytest.raises(StoreError, match="being written by process"):
                engine(tmp_path / "s", "append")


@pytest.mark.parametrize("kind", ["man", "tab"])
def test_a_manifest_or_a_table_from_the_future_is_refused_and_not_touched(
    lsm_disk_after: Any, kind: str
) -> None:
    """STORE-25."""
    disk = lsm_disk_after("a30 s")
    name = min(name for name in disk if name.endswith(kind))
    body = disk[name][:10] + struct.pack("<H", 4) + disk[name][12:60]
    disk[name] = body + struct.pack("<I", google_crc32c.value(body)) + disk[name][64:]
    for engine in (LsmStore, ReferenceStore):
        files = CrashFileSystem(disk)
        with pytest.raises(StoreError, match=r"format is 1.4, newer"):
            engine("/store", "append", filesystem=files)
        assert files.visible() == disk
        with pytest.raises(StoreError, match=r"format is 1.4, newer"):
            engine("/store", "read", filesystem=files).snapshot()


WRITER = """
import sys
from pathlib import Path
from trident_core.session import Session
from trident_store.crashcheck import make_events
from trident_store.lsm.engine import LsmStore
path = Path(sys.argv[1])
mode = "append" if path.exists() else "create"
store = LsmStore(path, mode, Session(), segment_bytes=1 << 16, frame_events=100, fanout=2)
for turn in range(3_000):  # some seconds at most, should nobody kill it
    events = store.stats()["events"]
    store.append(make_events(events, 250))
    if turn % 2 == 0:
        store.sync()
        print(events + 250, flush=True)
"""


@pytest.mark.parametrize("rounds", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_after_kill_9_everything_acknowledged_is_there(tmp_path: Path, same: Any, rounds: int) -> None:
    """With flushes and compactions under way; either engine finds the same."""
    path, rng, acked = tmp_path / "s", random.Random(rounds), 0
    for turn in range(rounds):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            try:
                lines = [writer.stdout.readline() for _ in range(3)]
                assert lines[0], "the writer did not start"
                reader = LsmStore(path, "read").snapshot()  # while it writes
                assert same(reader.scan(), make_events(0, reader.count))
                time.sleep(rng.uniform(0.1, 0.7))
            finally:
                writer.kill()
            acked = int([*(line.strip() for line in lines), *writer.stdout.read().split("\n")[:-1]][-1])
        engine = (LsmStore, ReferenceStore)[turn % 2]
        got = read_all(engine(path, "read"))
        assert len(got) >= acked
        assert same(got, make_events(0, len(got)))
    with LsmStore(path, "append") as store:
        assert store.recovery.events == len(got)
        store.flush()  # kernels that had to be compiled may have kept the killed ones from it
        assert store.stats()["tables"] > 0
        assert same(read_all(store), make_events(0, len(got)))
        assert store.verify().ok
