"""recover, stats, dump and compact: what they tell is what the files have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trident_core.errors import StoreError, UsageError
from trident_core.session import Session
from trident_store.crashcheck import PATH, make_events, read_all
from trident_store.crashmodel import CrashFileSystem, Disk
from trident_store.lsm.engine import LsmStore
from trident_store.reference import ReferenceStore
from trident_store.tools.compacting import compact
from trident_store.tools.dump import dump, events_at
from trident_store.tools.figures import figures
from trident_store.tools.flips import events_of, small_store
from trident_store.tools.opening import opening


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with tables and a log, as files."""
    made = tmp_path_factory.mktemp("store")
    for name, data in small_store().items():
        (made / name).write_bytes(data)
    return made


def test_opening_is_told_and_then_done(disk_after: Callable[[str], Disk]) -> None:
    disk = disk_after("a9 s a7")
    name = sorted(n for n in disk if n.endswith(".seg"))[-1]
    disk[name] = disk[name][:-70]
    before = dict(disk)
    files = CrashFileSystem(disk)
    told = opening(files, PATH)
    assert files.visible() == before
    assert told.refused == []
    assert any("torn tail" in step.what for step in told.steps)
    store = ReferenceStore(PATH, "append", filesystem=files)
    assert (store.recovery.events, store.recovery.torn_bytes) == (told.events, told.torn_bytes)


def test_a_damaged_store_would_be_refused(disk_after: Callable[[str], Disk]) -> None:
    disk = disk_after("a9 s")
    data = bytearray(disk["00000000.seg"])
    data[-600] ^= 1
    disk["00000000.seg"] = bytes(data)
    told = opening(CrashFileSystem(disk), PATH)
    assert told.refused
    assert told.steps == []


def test_what_an_interrupted_step_left_is_named() -> None:
    disk = small_store() | {"00000099.tab": b"half", "00000003.old": b"used", "notes": b"mine"}
    names = {step.file for step in opening(CrashFileSystem(disk), PATH).steps}
    assert {"00000099.tab", "00000003.old"} <= names
    assert "notes" not in names


def test_figures_are_those_of_the_files() -> None:
    disk = small_store()
    found = figures(CrashFileSystem(disk), PATH)
    tables = [len(data) for name, data in disk.items() if name.endswith(".tab")]
    assert found["events"] == len(events_of(disk))
    assert found["bytes"]["tables"] == sum(tables) == sum(level["bytes"] for level in found["levels"])
    assert found["bytes"]["on_disk"] == sum(map(len, disk.values()))
    assert found["events_in"]["log"] + found["events_in"]["tables"] == found["events"]
    assert found["amplification"]["write"] > 2
    assert 1 <= found["amplification"]["read_tables_per_lookup"] <= len(tables)
    assert found["bloom"]["asked"] > 1_000
    assert 0 <= found["bloom"]["rate"] < 0.2


def test_every_byte_of_a_file_is_in_its_dump(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        rows = list(dump(path))
        assert all(row["checks"] is not False for row in rows), path.name
        if path.suffix in (".seg", ".tab"):
            end = 0
            for row in rows:
                assert row["offset"] == end, (path.name, row)
                end += row["bytes"]
            assert end == path.stat().st_size
    assert [row["file"] for row in dump(folder)] == sorted(row["file"] for row in dump(folder))


def test_the_events_of_frames_and_blocks(folder: Path) -> None:
    table = next(path for path in sorted(folder.iterdir()) if path.suffix == ".tab")
    blocks = [row for row in dump(table, blocks=True) if row["what"].startswith("block ")]
    got = np.concatenate([events_at(table, row["offset"]) for row in blocks])
    whole = events_of({path.name: path.read_bytes() for path in folder.iterdir()})
    expected = whole[np.isin(whole["seq"], got["seq"])]
    assert got[np.argsort(got["seq"])].tobytes() == expected.tobytes()
    with pytest.raises(UsageError, match="no frame and no block"):
        events_at(table, 1)


def test_damage_shows_in_a_dump(folder: Path, tmp_path: Path) -> None:
    for path in sorted(folder.iterdir()):
        for at in range(0, path.stat().st_size, 509):
            data = bytearray(path.read_bytes())
            data[at] ^= 1
            (tmp_path / path.name).write_bytes(data)
            if path.name != "durable":
                (tmp_path / "durable").write_bytes((folder / "durable").read_bytes())
            rows = list(dump(tmp_path / path.name, blocks=True))
            if path.suffix in (".seg", ".man") or path.name == "durable":
                assert any(row["checks"] is False for row in rows), (path.name, at)


def test_what_is_no_file_of_a_store(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    files = [(tmp_path, UsageError), (tmp_path / "notes", UsageError), (tmp_path / "no.seg", StoreError)]
    for path, error in files:
        with pytest.raises(error):
            list(dump(path))


def test_compact_puts_the_log_into_tables(tmp_path: Path) -> None:
    path, told = tmp_path / "s", []
    with LsmStore(path, "create", Session(), segment_bytes=8_192, tables=False) as store:
        store.append(make_events(0, 900))
    done = compact(path, fanout=2, advance=lambda now, total: told.append((now, total)))
    assert (done.tables_before, done.segments_after) == (0, 1)
    assert done.tables_after >= 1
    assert done.flushed_bytes > 900 * 64
    assert read_all(ReferenceStore(path, "read")).tobytes() == make_events(0, 900).tobytes()
    assert all(now <= total for now, total in told)
    assert compact(path, fanout=2).flushed_bytes == 0


def test_files_of_another_engine_are_not_called_bad(tmp_path: Path) -> None:
    (tmp_path / "lmdb").mkdir()
    (tmp_path / "durable").write_bytes(bytes(8_192))
    for path in (tmp_path, tmp_path / "durable"):
        with pytest.raises(UsageError, match="engine lmdb") as caught:
            list(dump(path))
        assert "--store lmdb" in str(caught.value.hint)
