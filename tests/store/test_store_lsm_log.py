"""The log of the engine lsm: the reference's, file for file; and when it syncs by itself."""

from __future__ import annotations

import errno
import functools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.errors import StoreError, UsageError
from trident_core.session import Instrument, Session
from trident_store.crashcheck import make_events, read_all
from trident_store.crashmodel import CrashFileSystem
from trident_store.filesystem import OsFileSystem
from trident_store.lsm.engine import LsmStore
from trident_store.reference import ReferenceStore
from trident_store.writer import LogWriter

STORE_ID = bytes(range(16))


def files_of(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name != "lock"}


def play(store: Any, pick: np.random.Generator, events: int) -> None:
    """A random walk of appends, syncs and new symbols; the same for the same generator."""
    done = store.recovery.events
    end = done + events
    while done < end:
        count = int(pick.choice([0, 1, 3, 40, 700, 5_000]))
        if pick.random() < 0.2:
            store.session.directory.put(Instrument(int(pick.integers(1, 60)), f"S{done}", {"lot": count}))
        store.append(make_events(done, count))
        done += count
        if pick.random() < 0.3:
            store.sync()


@pytest.mark.parametrize(
    "options",
    [{}, {"segment_bytes": 10_000, "sector_bytes": 512, "frame_events": 7}, {"segment_bytes": 300_000}],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_files_are_the_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], seed: int
) -> None:
    """With tables off, whatever is done gives the same bytes as the reference, over two openings."""
    folders = []
    monkeypatch.setattr(LogWriter, "AHEAD_FROM", 4_096)
    monkeypatch.setattr(LogWriter, "EAGER_BYTES", 4_096)  # zeros are written ahead, and gone in the end
    factories: list[Any] = [
        ReferenceStore,
        functools.partial(LsmStore, tables=False, mark="each", spare_segments=0),
    ]
    for i, factory in enumerate(factories):
        folder = tmp_path / str(i)
        folders.append(folder)
        pick = np.random.default_rng(seed)
        with factory(folder, "create", Session(), store_id=STORE_ID, **options) as store:
            play(store, pick, 6_000)
        with factory(folder, "append", **options) as store:
            play(store, pick, 3_000)
    assert files_of(folders[0]) == files_of(folders[1])


def durable(store: LsmStore) -> int:
    return store.stats()["durable_events"]


def test_never_syncs_by_itself(tmp_path: Path) -> None:
    with LsmStore(tmp_path / "s", "create", Session()) as store:
        store.append(make_events(0, 50_000))
        assert durable(store) == 0
        store.sync()
        assert durable(store) == 50_000


def test_always_syncs_before_the_append_returns(tmp_path: Path) -> None:
    with LsmStore(tmp_path / "s", "create", Session(), commit="always") as store:
        for first in range(0, 30, 10):
            store.append(make_events(first, 10))
            assert durable(store) == first + 10


@pytest.mark.parametrize(("limits", "size"), [({"commit_events": 100}, 100), ({"commit_bytes": 6_400}, 100)])
def test_a_group_syncs_when_it_is_full(tmp_path: Path, limits: dict[str, int], size: int) -> None:
    options = {"commit_seconds": 1_000.0, **limits}
    with LsmStore(tmp_path / "s", "create", Session(), commit="group", **options) as store:
        store.append(make_events(0, size - 1))
        assert durable(store) == 0
        store.append(make_events(size - 1, 1))
        assert durable(store) == size
        store.append(make_events(size, 20))
        assert durable(store) == size


@pytest.mark.parametrize("policy", ["group", "interval"])
def test_time_passes_while_nothing_is_appended(tmp_path: Path, policy: str) -> None:
    with LsmStore(tmp_path / "s", "create", Session(), commit=policy, commit_seconds=0.05) as store:
        store.append(make_events(0, 7))
        deadline = time.monotonic() + 20
        while durable(store) == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert durable(store) == 7


def test_without_a_thread_time_is_looked_at_when_appending() -> None:
    files = CrashFileSystem(exists=False)
    store = LsmStore(
        "/store",
        "create",
        Session(),
        filesystem=files,
        commit="interval",
        commit_seconds=0.02,
        background=False,
    )
    store.append(make_events(0, 3))
    time.sleep(0.03)
    assert durable(store) == 0
    store.append(make_events(3, 1))
    assert durable(store) == 4


def test_a_sync_that_fails_in_the_thread_is_told_by_the_next_append(tmp_path: Path, same: Any) -> None:
    class Disk(OsFileSystem):
        broken = False

        def sync(self, handle: int) -> None:
            if self.broken:
                raise OSError(errno.EIO, "Input/output error")
            super().sync(handle)

    files = Disk()
    store = LsmStore(
        tmp_path / "s", "create", Session(), filesystem=files, commit="interval", commit_seconds=0.01
    )
    store.append(make_events(0, 5))
    store.sync()
    files.broken = True
    store.append(make_events(5, 5))

    def append_for_a_while() -> None:
        for _ in range(2_000):
            store.append(make_events(10, 0))
            time.sleep(0.01)

    with pytest.raises(StoreError, match="Input/output error"):
        append_for_a_while()
    assert durable(store) == 5
    files.broken = False
    with pytest.raises(StoreError, match="read-only"):
        store.sync()
    store.close()
    assert same(read_all(LsmStore(tmp_path / "s", "read"))[:5], make_events(0, 5))


@pytest.mark.parametrize(
    "wrong", [{"commit": "sometimes"}, {"commit_events": 0}, {"commit_bytes": 0}, {"commit_seconds": 0}]
)
def test_wrong_policies_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        LsmStore(tmp_path / "s", "create", Session(), **wrong)
    assert not (tmp_path / "s").exists()
