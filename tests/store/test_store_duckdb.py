"""The engine duckdb: its files, and logs that a crash left half written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("duckdb")

from trident_core.dtypes import EVENT, Events
from trident_core.errors import DamagedStoreError
from trident_core.session import Session
from trident_store.blocks import duckdb as engine
from trident_store.blocks.duckdb import DuckStore


def numbered(first: int, count: int) -> Events:
    events = np.zeros(count, EVENT)
    events["seq"] = np.arange(first, first + count)
    events["price"] = events["seq"] * np.uint64(7)
    return events


def scanned(snapshot: Any, **filters: Any) -> Events:
    return np.concatenate([np.empty(0, EVENT), *snapshot.scan(**filters)])


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "FILE_BLOCKS", 4)


@pytest.mark.usefixtures("small_files")
def test_full_files_are_left_behind(tmp_path: Path) -> None:
    """A snapshot from every file, while the writer goes on and after it."""
    store = DuckStore(tmp_path / "s", "create", Session())
    snapshots = []
    for at in range(1, 110, 10):
        store.append(numbered(at, 10))
        store.sync()
        snapshots.append(store.snapshot())
    assert sorted(p.name for p in (tmp_path / "s" / "duckdb").iterdir() if p.suffix == ".duckdb") == [
        f"{n:08d}.duckdb" for n in range(3)
    ]
    reader = DuckStore(tmp_path / "s", "read")
    assert scanned(reader.snapshot(), seq=(35, 44)).tobytes() == numbered(35, 10).tobytes()
    for i, snapshot in enumerate(snapshots):
        assert scanned(snapshot).tobytes() == numbered(1, 10 * i + 10).tobytes()
    store.close()
    assert scanned(snapshots[-1]).tobytes() == numbered(1, 110).tobytes()
    assert not [p for p in (tmp_path / "s" / "duckdb").iterdir() if p.suffix != ".duckdb"]
    reader.close()


@pytest.mark.usefixtures("small_files")
def test_a_commit_over_several_files(tmp_path: Path) -> None:
    store = DuckStore(tmp_path / "s", "create", Session(), commit_blocks=7)
    store.append(numbered(1, 4_096 * 20 + 5))
    store.close()
    again = DuckStore(tmp_path / "s", "append")
    assert scanned(again.snapshot()).tobytes() == numbered(1, 4_096 * 20 + 5).tobytes()
    again.close()


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A store as a kill left it: two synced commits in the log, and a third that was never acknowledged."""
    store = DuckStore(tmp_path / "s", "create", Session())
    store.append(numbered(1, 50))
    store.sync()
    store.append(numbered(51, 50))
    store.sync()
    shutil.copyfile(tmp_path / "s" / "durable", tmp_path / "durable")
    store.append(numbered(101, 50))
    store.sync()
    shutil.copytree(tmp_path / "s", tmp_path / "killed")
    shutil.copyfile(tmp_path / "durable", tmp_path / "killed" / "durable")
    store.close()
    return tmp_path / "killed"


def test_a_torn_log_is_cut_and_told(killed: Path) -> None:
    """Where DuckDB itself refuses: the last commit's bytes are zeros, as a power cut leaves them."""
    log = killed / "duckdb" / "00000000.duckdb.wal"
    whole = log.read_bytes()
    outcomes = set()
    for kept in range(len(whole) - 1_500, len(whole) + 1, 250):
        log.write_bytes(whole[:kept] + bytes(len(whole) - kept))
        reader = DuckStore(killed, "read")
        found = scanned(reader.snapshot())
        assert len(found) in (100, 150)
        assert found.tobytes() == numbered(1, len(found)).tobytes()
        assert reader.verify().ok
        outcomes.add((len(found), reader.recovery.torn_bytes > 0))
        reader.close()
    assert (100, True) in outcomes
    log.write_bytes(whole[:-600] + bytes(600))
    size = os.path.getsize(log)
    store = DuckStore(killed, "append")
    assert (store.recovery.events, store.recovery.torn_file) == (100, "duckdb/00000000.duckdb.wal")
    assert 0 < store.recovery.torn_bytes < size
    store.append(numbered(101, 30))
    store.close()
    reader = DuckStore(killed, "read")
    assert scanned(reader.snapshot()).tobytes() == numbered(1, 130).tobytes()
    reader.close()


def test_what_was_acknowledged_is_no_torn_log(killed: Path) -> None:
    log = killed / "duckdb" / "00000000.duckdb.wal"
    whole = log.read_bytes()
    log.write_bytes(whole[:1_000] + bytes(512) + whole[1_512:])
    for mode in ("append", "read"):
        with pytest.raises(DamagedStoreError):
            DuckStore(killed, mode).snapshot()
