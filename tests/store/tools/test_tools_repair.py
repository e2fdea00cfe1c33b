"""Repair: each thing that can be proven is put back byte for byte, and nothing else is touched."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from trident_core.errors import StoreError
from trident_store.crashcheck import PATH
from trident_store.crashmodel import CrashFileSystem, CrashPoint, Disk
from trident_store.lsm.layout import FOOTER_BYTES, Section
from trident_store.lsm.manifest import Entry
from trident_store.tools.flips import events_of, small_store
from trident_store.tools.repair import repair, tiling
from trident_store.tools.table_parts import TableParts

ID = bytes(range(16))


@pytest.fixture(scope="module")
def disk() -> Disk:
    return small_store()


def names(disk: Disk, kind: str) -> list[str]:
    return sorted(name for name in disk if name.endswith(f".{kind}"))


def section(disk: Disk, name: str, which: Section) -> tuple[int, int]:
    parts = TableParts(CrashFileSystem(dict(disk)), PATH, int(name[:8]), ID)
    row = parts.footer["sections"][which]
    return int(row["offset"]), int(row["nbytes"])


def spoiled(disk: Disk, name: str, offset: int, size: int = 1) -> Disk:
    data = bytearray(disk[name])
    for at in range(offset, offset + size):
        data[at] ^= 0xFF
    return dict(disk) | {name: bytes(data)}


@pytest.mark.parametrize("which", [s for s in Section if s not in (Section.BLOCKS, Section.SESSION)])
def test_an_index_is_made_anew_byte_for_byte(disk: Disk, which: Section) -> None:
    (name, *_) = names(disk, "tab")
    offset, size = section(disk, name, which)
    files = CrashFileSystem(spoiled(disk, name, offset, size))
    done = repair(files, PATH)
    assert done.after.ok
    assert [fix.file for fix in done.fixes] == [name]
    assert files.visible()[name] == disk[name]
    assert files.visible()[done.kept[0]] == spoiled(disk, name, offset, size)[name]


def test_a_footer_and_a_header_are_made_anew(disk: Disk) -> None:
    for name in names(disk, "tab"):
        for offset in (3, len(disk[name]) - FOOTER_BYTES + 40):
            files = CrashFileSystem(spoiled(disk, name, offset))
            assert repair(files, PATH).after.ok
            assert files.visible()[name] == disk[name]


def test_damaged_events_stay_damaged(disk: Disk) -> None:
    (name, *_) = names(disk, "tab")
    damaged = spoiled(disk, name, 100)
    files = CrashFileSystem(dict(damaged))
    done = repair(files, PATH)
    assert not done.after.ok
    assert done.fixes == []
    assert "cannot be made anew" in done.left[0].problem
    assert {k: v for k, v in files.visible().items() if k != "lock"} == damaged


@pytest.mark.parametrize("how", ["gone", "empty", "garbage"])
def test_a_lost_manifest_is_made_of_the_footers(disk: Disk, how: str) -> None:
    (name,) = names(disk, "man")
    damaged = dict(disk)
    del damaged[name]
    if how != "gone":
        damaged[name] = b"" if how == "empty" else b"\xa5" * len(disk[name])
    files = CrashFileSystem(damaged)
    done = repair(files, PATH)
    assert done.after.ok
    assert "tile" in done.fixes[0].proof
    assert events_of(files.visible()).tobytes() == events_of(disk).tobytes()


def test_a_lost_manifest_and_a_lost_table_are_not_papered_over(disk: Disk) -> None:
    for lost in names(disk, "tab"):
        damaged = {k: v for k, v in disk.items() if k != lost and not k.endswith(".man")}
        done = repair(CrashFileSystem(damaged), PATH)
        assert not done.after.ok
        assert done.fixes == []


def test_a_manifest_and_an_index_at_once(disk: Disk) -> None:
    (manifest,) = names(disk, "man")
    damaged = {k: v for k, v in disk.items() if k != manifest}
    for name in names(disk, "tab"):
        damaged = spoiled(damaged, name, section(disk, name, Section.BLOOM)[0])
    files = CrashFileSystem(damaged)
    done = repair(files, PATH)
    assert done.after.ok
    assert len(done.fixes) == 1 + len(names(disk, "tab"))
    assert events_of(files.visible()).tobytes() == events_of(disk).tobytes()


@pytest.mark.parametrize("byte", [0, 5, 9, 20, 33, 45, 50, 57, 60, 63])
def test_headers_of_the_log_are_restored(byte: int, disk_after: Callable[[str], Disk]) -> None:
    whole = disk_after("a9 s a7 s a5 s r a6 s")
    for name in names(whole, "seg"):
        data = whole[name]
        starts = [at for at in range(64, len(data), 64) if data[at : at + 4] == b"TFRM"]
        assert len(starts) > 2
        for at in (0, *starts):
            files = CrashFileSystem(spoiled(whole, name, at + byte))
            done = repair(files, PATH)
            assert done.after.ok, (name, at, done.after.findings)
            assert files.visible()[name] == data


def test_a_header_and_its_payload_cannot_be_restored(disk_after: Callable[[str], Disk]) -> None:
    whole = disk_after("a9 s a7 s")
    (name, *_) = names(whole, "seg")
    at = whole[name].index(b"TFRM", 1_000)
    damaged = spoiled(spoiled(whole, name, at + 9), name, at + 64 + 7)
    files = CrashFileSystem(damaged)
    assert not repair(files, PATH).after.ok


def test_without_a_mark_nothing_is_done(disk: Disk) -> None:
    damaged = {name: data for name, data in disk.items() if name != "durable"}
    files = CrashFileSystem(dict(damaged))
    done = repair(files, PATH)
    assert not done.after.ok
    assert done.fixes == []
    assert {k: v for k, v in files.visible().items() if k != "lock"} == damaged


def test_a_dry_run_changes_nothing(disk: Disk) -> None:
    (name,) = names(disk, "man")
    damaged = {k: v for k, v in disk.items() if k != name}
    files = CrashFileSystem(dict(damaged))
    done = repair(files, PATH, dry_run=True)
    assert [fix.file for fix in done.fixes] == ["00000001.man"]
    assert not done.after.ok
    assert files.visible() == damaged


def test_a_sound_store_and_no_store() -> None:
    whole = small_store("a5 s")
    files = CrashFileSystem(dict(whole))
    assert repair(files, PATH).fixes == []
    with pytest.raises(StoreError, match="is not a store"):
        repair(CrashFileSystem({"notes": b"x"}), PATH)


def test_tables_tile_the_most_events_and_larger_ones_count() -> None:
    def entry(table: int, level: int, first: int, count: int) -> Entry:
        return Entry(table, level, 1, 0, first, count, 1, 1, 1)

    small = [entry(1, 0, 0, 5), entry(2, 0, 5, 5), entry(4, 0, 10, 5)]
    large = entry(3, 1, 0, 10)
    assert tiling([*small, large]) == [large, small[2]]
    assert tiling(small[1:]) == []


def test_a_crash_during_repair_leaves_the_old_file_or_the_new_one(disk: Disk) -> None:
    """At every change that repair makes, in states that a power cut may leave: as before, or right."""
    (manifest,) = names(disk, "man")
    table = names(disk, "tab")[0]
    damaged = spoiled(disk, table, section(disk, table, Section.BLOOM)[0])
    del damaged[manifest]
    files = CrashFileSystem(dict(damaged))
    points: list[CrashPoint] = []
    files.on_change = lambda: points.append(files.crash_point())
    assert repair(files, PATH).after.ok
    assert len(points) > 6
    rng, seen, whole = random.Random(1), set(), events_of(disk).tobytes()
    for point in points:
        for state in point.states(6, rng):
            key = tuple(sorted(state.items()))
            if key in seen:
                continue
            seen.add(key)
            try:
                assert events_of(state).tobytes() == whole
            except StoreError:
                again = CrashFileSystem(dict(state))
                assert repair(again, PATH).after.ok
                assert events_of(again.visible()).tobytes() == whole
    assert len(seen) > 10
