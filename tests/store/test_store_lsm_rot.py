"""Tables under bit rot: no flipped bit, cut, lost or swapped file gives wrong data."""

from __future__ import annotations

import os
from typing import Any

import pytest

from trident_core.dtypes import Events
from trident_core.errors import DamagedStoreError, StoreError
from trident_store import tables
from trident_store.crashcheck import PATH, make_events, read_all
from trident_store.crashmodel import CrashFileSystem, Disk
from trident_store.lsm.engine import LsmStore
from trident_store.reference import ReferenceStore

TINY = {"segment_bytes": 2_048, "sector_bytes": 512, "frame_events": 4}


def _outcome(engine: Any, disk: Disk, expected: Events) -> tuple[str, str]:
    """What a reader (in `verify` and in its data) and a writer say of a disk: "exact" or "refused"; anything
    else is an AssertionError."""
    sound = False
    try:
        reader = engine(PATH, "read", filesystem=CrashFileSystem(disk))
        sound = reader.verify().ok
        snapshot = reader.snapshot()
        for ref in range(3, 90, 7):
            named = (expected["ref"] == ref) | ((expected["ref2"] == ref) & (expected["type"] == ord("U")))
            assert snapshot.get(ref).tobytes() == expected[named].tobytes(), f"get({ref}) is wrong"
        assert read_all(reader).tobytes() == expected.tobytes(), "a scan is wrong"
        assert snapshot.session.directory.symbol(1) == "SYM1"
    except StoreError:
        assert not sound, "verify calls sound what cannot be read"
    reading = "exact" if sound else "refused"
    files = CrashFileSystem(disk)
    inline: dict[str, Any] = {"background": False, "tables": False} if engine is LsmStore else {}
    try:
        writer = engine(PATH, "append", filesystem=files, **TINY, **inline)
    except StoreError:
        assert {**files.visible(), "lock": b""} == {"lock": b"", **disk}, "a refused store was changed"
        return reading, "refused"
    assert writer.recovery.events == len(expected)
    assert read_all(writer).tobytes() == expected.tobytes(), "a writer's scan is wrong"
    return reading, "exact"


def _flips(engine: Any, disk: Disk, step: int, names: list[str] | None = None) -> dict[str, int]:
    """Flip a bit in every `step`th byte of all files (or these); how often both refused, by kind of file."""
    expected = make_events(0, 46)
    refused: dict[str, int] = {}
    for name in names or disk:
        content = disk[name]
        for offset in range(0, len(content), step):
            changed = bytearray(content)
            changed[offset] ^= 1 << (offset % 8)
            try:
                both = _outcome(engine, disk | {name: bytes(changed)}, expected)
            except AssertionError as error:
                raise AssertionError(f"{name} at {offset}: {error}") from None
            kind = name.rpartition(".")[2]
            refused[kind] = refused.get(kind, 0) + (both == ("refused", "refused"))
            if kind == "tab":
                assert both == ("refused", "refused"), f"{name} at {offset}: {both}"
    return refused


@pytest.fixture
def rotting(lsm_disk_after: Any) -> Disk:
    """Two levels of tables, a manifest of several records, a segment; all of it acknowledged."""
    disk: Disk = lsm_disk_after("a30 s a16 s")
    disk.pop("lock")
    assert len([name for name in disk if name.endswith(".tab")]) >= 2
    return disk


@pytest.mark.parametrize("engine", [LsmStore, ReferenceStore])
def test_no_flipped_bit_gives_wrong_data(engine: Any, rotting: Disk) -> None:
    refused = _flips(engine, rotting, step=67)
    assert refused["tab"] > 50
    assert refused["seg"] > 0


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("engine", [LsmStore, ReferenceStore])
def test_no_flipped_bit_in_many_bytes_gives_wrong_data(engine: Any, rotting: Disk) -> None:
    """Every 29th byte; with TRIDENT_EVERY_BYTE set each one, which takes some ten minutes."""
    _flips(engine, rotting, step=1 if os.environ.get("TRIDENT_EVERY_BYTE") else 29)


@pytest.mark.parametrize("engine", [LsmStore, ReferenceStore])
def test_files_that_are_cut_lost_or_swapped_are_told(engine: Any, rotting: Disk, lsm_disk_after: Any) -> None:
    expected = make_events(0, 46)
    other = lsm_disk_after("a30 s a16 s r")
    for name, content in rotting.items():
        changes: list[bytes | None] = [
            None,
            b"",
            content[: len(content) // 2],
            content[:-1],
            content + bytes(64),
        ]
        changes += [each for each in rotting.values() if each != content]
        if name in other and other[name] != content:
            changes.append(other[name])
        for change in changes:
            disk = {key: value for key, value in rotting.items() if key != name}
            if change is not None:
                disk[name] = change
            both = _outcome(engine, disk, expected)
            if name.endswith(".tab"):
                assert both == ("refused", "refused")


@pytest.mark.parametrize("check", ["check_column", "check_window", "check_page"])
def test_the_flips_catch_a_crc_that_is_not_checked(
    rotting: Disk, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    monkeypatch.setattr(tables.Table, check, lambda self, *args: None)
    tables_only = {name: content for name, content in rotting.items() if name.endswith(".tab")}
    with pytest.raises((AssertionError, IndexError)):
        _flips(ReferenceStore, rotting, step=31, names=list(tables_only))


def test_damage_in_a_table_is_told_by_file_offset_and_events(rotting: Disk) -> None:
    name = min(name for name in rotting if name.endswith(".tab"))
    changed = bytearray(rotting[name])
    changed[64 + 8] ^= 1
    files = CrashFileSystem(rotting | {name: bytes(changed)})
    reader = LsmStore(PATH, "read", filesystem=files)
    told = rf"block 0 does not check: {name} at offset \d+, events \d+ to \d+"
    with pytest.raises(DamagedStoreError, match=told):
        read_all(reader)
    (finding,) = [each for each in reader.verify().findings if each.severity == "error"]
    assert finding.file == name
    assert 64 <= finding.offset < 64 + 4 * 64
    assert finding.last is not None
    assert 0 < finding.last - finding.first < 30


# -- readers beside a writer --


def test_a_damaged_column_is_refused_and_the_others_are_not(rotting: Disk) -> None:
    name = min(name for name in rotting if name.endswith(".tab"))
    changed = bytearray(rotting[name])
    changed[64 + 4 * 8 + 1] ^= 1  # ts of the first block
    snapshot = LsmStore(PATH, "read", filesystem=CrashFileSystem(rotting | {name: bytes(changed)})).snapshot()
    assert sum(part.size for part in snapshot.column("price")) == 46
    with pytest.raises(DamagedStoreError, match="column ts of block 0"):
        list(snapshot.column("ts"))
