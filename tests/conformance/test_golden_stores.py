"""Golden stores of every format version: read, written, verified; and what is done with later versions."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import numpy as np
import pytest

from trident_conformance.golden import EVENTS, FOLDER, WRITERS, copy, files_of, golden_events, write
from trident_core.contracts import Kind, Store
from trident_core.dtypes import EVENT
from trident_core.errors import StoreError
from trident_core.plugins import registry
from trident_store.filesystem import OsFileSystem
from trident_store.format import VERSION, minor_of
from trident_store.lsm.engine import LsmStore
from trident_store.tools.backup import backup
from trident_store.tools.opening import opening
from trident_store.tools.repair import repair
from trident_store.tools.salvage import Wreck
from trident_store.tools.verify import verify

VERSIONS = sorted(WRITERS)


def opened(folder: Path, engine: str, mode: str = "read") -> Store:
    store: Store = registry().select(Kind.STORE, engine).make(folder, mode)
    return store


def all_of(store: Store) -> bytes:
    return np.concatenate([np.zeros(0, EVENT), *store.snapshot().scan()]).tobytes()


def test_there_is_one_for_each_version() -> None:
    assert {each.name for each in FOLDER.iterdir()} == set(VERSIONS)
    newest = VERSIONS[-1].partition("-")[0]
    assert newest == f"{VERSION[0]}.{VERSION[1]}", "a new format version needs a golden store"
    for version in VERSIONS:
        mark = (FOLDER / version / "durable").read_bytes()
        assert (
            minor_of(mark[:64])
            == minor_of(mark[4_096:4_160])
            == int(version.partition("-")[0].partition(".")[2])
        )


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_read_and_verified(version: str) -> None:
    kept = files_of(FOLDER / version)
    for engine in ("reference", "lsm"):
        store = opened(FOLDER / version, engine)
        assert all_of(store) == golden_events(0, EVENTS).tobytes()
        assert store.session.directory.symbols() == ["AAPL", "BRK.A", "GOOG"]
        assert len(store.snapshot().get(3)) > 0
        store.close()
    report = verify(OsFileSystem(), FOLDER / version, lambda done, total: None)
    assert (report.findings, report.events) == ([], EVENTS)
    assert files_of(FOLDER / version) == kept


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_written_byte_for_byte(version: str, tmp_path: Path) -> None:
    assert write(version, tmp_path / "s") == files_of(FOLDER / version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("engine", ["reference", "lsm"])
def test_it_is_gone_on_with(version: str, engine: str, tmp_path: Path) -> None:
    folder = copy(version, tmp_path / "s")
    with opened(folder, engine, "append") as store:  # type: ignore[attr-defined]
        store.append(golden_events(EVENTS, 9))
    assert all_of(opened(folder, "reference")) == golden_events(0, EVENTS + 9).tobytes()
    assert verify(OsFileSystem(), folder, lambda done, total: None).ok


def later(folder: Path, name: str, major: int, minor: int) -> None:
    """Say another version in the header of a file (of the mark: in both slots), with a right CRC."""
    data = bytearray((folder / name).read_bytes())
    for at in (0, 4_096) if name == "durable" else (0,):
        data[at + 8 : at + 12] = struct.pack("<HH", major, minor)
        data[at + 60 : at + 64] = struct.pack("<I", google_crc32c.value(bytes(data[at : at + 60])))
    (folder / name).write_bytes(data)


OPEN: dict[str, Callable[[Path], object]] = {
    "append": lambda folder: opened(folder, "lsm", "append"),
    "read": lambda folder: opened(folder, "reference").snapshot(),
    "verify": lambda folder: verify(OsFileSystem(), folder, lambda done, total: None),
    "recover": lambda folder: opening(OsFileSystem(), folder),
    "repair": lambda folder: repair(OsFileSystem(), folder),
    "salvage": lambda folder: Wreck(OsFileSystem(), folder),
    "backup": lambda folder: backup(folder, folder.parent / "b"),
}


@pytest.mark.parametrize(("major", "minor"), [(VERSION[0], VERSION[1] + 1), (VERSION[0] + 1, 0), (0, 9)])
@pytest.mark.parametrize("how", sorted(OPEN))
def test_another_version_is_refused_before_anything_is_written(
    how: str, major: int, minor: int, tmp_path: Path
) -> None:
    folder = copy(VERSIONS[-1], tmp_path / "s")
    later(folder, "durable", major, minor)
    before = files_of(folder)
    with pytest.raises(StoreError, match=rf"format is {major}\.{minor}"):
        OPEN[how](folder)
    assert files_of(folder) == before


@pytest.mark.parametrize("kind", ["seg", "tab", "man"])
@pytest.mark.parametrize("how", ["append", "read", "verify"])
def test_a_file_of_another_version_among_them_is_refused(how: str, kind: str, tmp_path: Path) -> None:
    folder = copy(VERSIONS[-1], tmp_path / "s")
    name = next(each.name for each in sorted(folder.iterdir()) if each.suffix == f".{kind}")
    later(folder, name, VERSION[0], VERSION[1] + 1)
    before = files_of(folder)
    with pytest.raises(StoreError):
        OPEN[how](folder)
    assert files_of(folder) == before


def test_the_compaction_that_was_left_is_gone_on_with(tmp_path: Path) -> None:
    folder = copy("1.3-job", tmp_path / "s")
    (job,) = folder.glob("*.job")
    begun = job.with_suffix(".tab").read_bytes()
    with LsmStore(folder, "append", background=False) as store:
        assert store.maintenance_failure == ""
    assert not list(folder.glob("*.job"))
    made = job.with_suffix(".tab").read_bytes()
    assert len(begun) < len(made)
    assert made.startswith(begun[:64]), "it was begun anew"
    assert all_of(opened(folder, "reference")) == golden_events(0, EVENTS).tobytes()
