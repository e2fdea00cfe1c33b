"""Backups: consistent beside a writer, incremental, checked, resumed; restore: a sound store or none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from trident_core import digests
from trident_core.contracts import Kind
from trident_core.errors import DamagedStoreError, StoreError, UsageError
from trident_core.plugins import registry
from trident_core.session import Instrument, Session
from trident_store.crashcheck import make_events, read_all
from trident_store.lsm.engine import LsmStore
from trident_store.lsm.layout import Shape
from trident_store.reference import ReferenceStore
from trident_store.tools import backup as module
from trident_store.tools.backup import LIST, backup, copies, read_list, restore
from trident_store.tools.contract_copy import copy_store, next_copy

SMALL = {
    "segment_bytes": 8_192,
    "frame_events": 8,
    "fanout": 2,
    "shape": Shape(8, 16, 8),
    "background": False,
}


def writer(path: Path, mode: str = "create") -> LsmStore:
    return LsmStore(path, mode, Session() if mode == "create" else None, **SMALL)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with writer(tmp_path / "store") as made:
        made.append(make_events(0, 300))
        made.session.directory.put(Instrument(7, "SYM7"))
        made.append(make_events(300, 50))
    return tmp_path / "store"


def events(path: Path) -> bytes:
    return read_all(ReferenceStore(path, "read")).tobytes()


def test_a_copy_is_a_store_and_the_next_one_costs_what_is_new(store: Path, tmp_path: Path) -> None:
    first = backup(store, tmp_path / "b")
    assert (first.events, first.path.name) == (350, "00000001")
    assert events(first.path) == events(store)
    assert first.linked == 0
    again = backup(store, tmp_path / "b")
    assert again.copied == 0
    with writer(store, "append") as made:
        made.append(make_events(350, 20))
    third = backup(store, tmp_path / "b")
    assert third.events == 370
    assert 0 < third.copied < first.copied
    assert events(third.path) == make_events(0, 370).tobytes()
    assert events(first.path) == make_events(0, 350).tobytes()
    assert [each.name for each in copies(tmp_path / "b")] == ["00000001", "00000002", "00000003"]
    with writer(third.path, "append") as made:  # a copy can be gone on with, and spoils no other
        made.append(make_events(370, 200))
    assert events(first.path) == make_events(0, 350).tobytes()
    assert ReferenceStore(first.path, "read").verify().findings == []


def test_while_a_writer_is_writing(tmp_path: Path) -> None:
    with LsmStore(tmp_path / "s", "create", Session(), **(SMALL | {"background": True})) as made:  # type: ignore[arg-type]
        for i in range(12):
            made.append(make_events(i * 100, 100))
            made.sync()
            made.append(make_events(i * 100 + 100, 3)[:0])
            copy = backup(tmp_path / "s", tmp_path / "b")
            assert copy.events == (i + 1) * 100
            assert events(copy.path) == make_events(0, copy.events).tobytes()


def test_an_unfinished_one_is_taken_up_again(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left = module.copy_file, 2

    def failing(*arguments: object) -> int:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(28, "No space left on device")
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "copy_file", failing)
    with pytest.raises(StoreError, match="No space left"):
        backup(store, tmp_path / "b")
    assert copies(tmp_path / "b") == []
    with pytest.raises(StoreError, match="No space left"):
        backup(store, tmp_path / "b")
    monkeypatch.setattr(module, "copy_file", real)
    done = backup(store, tmp_path / "b")
    assert done.kept > 0
    assert os.listdir(tmp_path / "b") == ["00000001"]
    assert events(done.path) == events(store)


def test_a_damaged_store_is_not_backed_up(store: Path, tmp_path: Path) -> None:
    good = backup(store, tmp_path / "b")
    table = next(each for each in sorted(store.iterdir()) if each.suffix == ".tab")
    data = bytearray(table.read_bytes())
    data[100] ^= 1
    table.write_bytes(data)
    shutil.rmtree(good.path)
    with pytest.raises(DamagedStoreError, match="not backed up"):
        backup(store, tmp_path / "b")
    assert copies(tmp_path / "b") == []


def test_rot_in_an_earlier_copy_is_not_handed_on(store: Path, tmp_path: Path) -> None:
    first = backup(store, tmp_path / "b")
    for each in first.files:
        data = bytearray((first.path / each.name).read_bytes())
        data[len(data) // 2] ^= 4
        (first.path / each.name).write_bytes(data)
    second = backup(store, tmp_path / "b")
    assert second.linked == 0
    assert events(second.path) == events(store)


def test_restore_checks_before_it_says_done(store: Path, tmp_path: Path) -> None:
    records = [digests.DigestRecord(count, 19, "00" * 32, 1) for count in (10, 999)]
    digests.write_digests(store, records)
    copy = backup(store, tmp_path / "b")
    listed, report = restore(copy.path, tmp_path / "new")
    assert report.ok
    assert listed.events == 350
    assert events(tmp_path / "new") == events(store)
    assert [each.events for each in digests.read_digests(tmp_path / "new")[0]] == [10]
    with writer(tmp_path / "new", "append") as made:
        made.append(make_events(350, 9))
    with pytest.raises(UsageError, match="exists already"):
        restore(copy.path, tmp_path / "new")
    for each in (*copy.files, None):
        shutil.copytree(copy.path, tmp_path / "rotten")
        path = tmp_path / "rotten" / (each.name if each else LIST)
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.write_bytes(data)
        with pytest.raises(StoreError):
            restore(tmp_path / "rotten", tmp_path / "never")
        assert not (tmp_path / "never").exists()
        shutil.rmtree(tmp_path / "rotten")


def test_a_file_that_is_missing_and_one_that_was_begun(store: Path, tmp_path: Path) -> None:
    copy = backup(store, tmp_path / "b")
    name = copy.files[0].name
    (tmp_path / "new.partial").mkdir()
    (tmp_path / "new.partial" / name).write_bytes(b"half")
    (tmp_path / "new.partial" / "junk").write_bytes(b"x")
    restore(copy.path, tmp_path / "new")
    assert events(tmp_path / "new") == events(store)
    (copy.path / name).unlink()
    with pytest.raises(StoreError, match="lacks"):
        restore(copy.path, tmp_path / "other")


def test_what_else_may_be_there(store: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    with pytest.raises(UsageError, match="holds no backups"):
        backup(store, tmp_path / "full")
    backup(store, tmp_path / "b")
    with writer(tmp_path / "second") as made:
        made.append(make_events(0, 9))
    with pytest.raises(UsageError, match="another store"):
        backup(tmp_path / "second", tmp_path / "b")
    with pytest.raises(StoreError, match="no store"):
        backup(tmp_path / "nowhere", tmp_path / "c")
    with pytest.raises(StoreError, match="not the list of a backup"):
        read_list(tmp_path / "full")


def test_a_store_of_any_engine_is_copied_through_the_contract(store: Path, tmp_path: Path) -> None:
    spec = registry().select(Kind.STORE, "reference").spec
    path = next_copy(tmp_path / "b")
    assert copy_store(spec, store, path) == (350, 699)
    assert events(path) == events(store)
    assert next_copy(tmp_path / "b").name == "00000002"
