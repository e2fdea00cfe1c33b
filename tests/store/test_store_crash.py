"""The crash model: every promise, in every state a power cut may leave."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from trident_store.crashcheck import explore
from trident_store.crashmodel import CrashFileSystem
from trident_store.mark import read_mark

FOLDER = Path("/store")

#: several syncs, syncs of nothing, a rotation inside one append, one right after a sync, a reopening
#: and syncs that are interrupted at each of their steps
SCRIPTS = [
    "a2 a1 s a3 s a16 a3 s r a1 s a2",
    "a1 s s a1 s r r a1 s a13 s a2 a1",
    "a30 s a2",
    "a1 i3 a2 i1 a1 i2 a1 s a1 i4 a3 s i1 a1",
]


@pytest.mark.parametrize("script", [SCRIPTS[0], SCRIPTS[3]])
def test_promises_hold_after_any_crash(opener: Any, script: str) -> None:
    report = explore(opener, script, states_per_point=8, nested=4, seed=1)
    assert report.violations == []
    assert report.points > 60
    assert report.states > 250


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_promises_hold_after_any_crash_at_length(opener: Any, script: str) -> None:
    report = explore(opener, script, states_per_point=16, nested=12, seed=2)
    assert report.violations == []
    assert report.states > 600


def _torn_in_the_middle(disk_after: Any) -> Any:
    """One event acknowledged, six more not, in frames of 128 bytes; half of their first sector is noise."""
    disk = disk_after("a1 s a1 a1 a1 a1 a1 a1")
    mark = read_mark(CrashFileSystem(disk), FOLDER).at
    assert mark is not None
    content = bytearray(disk["00000000.seg"])
    assert content[mark.offset + 512 :].startswith(b"TFRM")
    content[mark.offset + 256 : mark.offset + 512] = b"\xa5" * 256
    return disk | {"00000000.seg": bytes(content)}, 1, 7


def test_a_crash_during_recovery_brings_nothing_back(opener: Any, disk_after: Any) -> None:
    report = explore(opener, "a2 s", states_per_point=64, resume=_torn_in_the_middle(disk_after))
    assert report.violations == []
    assert report.states > 100


# -- the model itself --


def test_a_state_is_any_mix_of_old_new_and_garbled_sectors() -> None:
    files = CrashFileSystem({"a": b"o" * 1024})
    handle = files.open(FOLDER / "a", write=True)
    files.write(handle, b"n" * 1024, 0)
    states = {disk["a"] for disk in files.crash_point().states(1_000, random.Random(0))}
    assert len(states) == 16  # old, new, half and noise for each of two sectors
    assert b"o" * 512 + b"n" * 512 in states
    files.sync(handle)
    assert [disk["a"] for disk in files.crash_point().states(1_000, random.Random(0))] == [b"n" * 1024]


def test_a_name_may_be_lost_until_its_folder_is_synced() -> None:
    files = CrashFileSystem({})
    handle = files.open(FOLDER / "a", write=True, create=True)
    files.write(handle, b"x", 0)
    files.sync(handle)
    states = list(files.crash_point().states(1_000, random.Random(0)))
    assert sorted(states, key=len) == [{}, {"a": b"x"}]
    files.sync_directory(FOLDER)
    assert list(files.crash_point().states(1_000, random.Random(0))) == [{"a": b"x"}]


def test_after_a_failed_sync_the_next_one_lies() -> None:
    files = CrashFileSystem({"a": b"old"})
    handle = files.open(FOLDER / "a", write=True)
    files.write(handle, b"new", 0)

    def fail(call: str) -> None:
        raise OSError(5, "Input/output error")

    files.before = fail
    with pytest.raises(OSError, match="Input/output"):
        files.sync(handle)
    files.before = lambda call: None
    files.sync(handle)
    assert files.visible()["a"] == b"new"
    assert list(files.crash_point().states(1_000, random.Random(0))) == [{"a": b"old"}]
    files.forget(handle)
    assert files.visible()["a"] == b"old"


def test_each_create_unlink_and_rename_happens_or_not() -> None:
    files = CrashFileSystem({"a": b"1", "b": b"2"})
    files.rename(FOLDER / "a", FOLDER / "b")
    states = list(files.crash_point().states(100, random.Random(0)))
    assert states == [{"a": b"1", "b": b"2"}, {"b": b"1"}]
    files.remove(FOLDER / "b")
    states = list(files.crash_point().states(100, random.Random(0)))
    assert sorted(states, key=len) == [{}, {"b": b"1"}, *[{"a": b"1", "b": b"2"}] * 2]
    files.sync_directory(FOLDER)
    assert list(files.crash_point().states(100, random.Random(0))) == [{}]


def test_a_name_that_came_and_went_may_come_back() -> None:
    files = CrashFileSystem({})
    files.close(files.open(FOLDER / "a", write=True, create=True))
    files.remove(FOLDER / "a")
    assert {"a": b""} in files.crash_point().states(100, random.Random(0))


def test_a_store_s_own_folder_may_be_lost() -> None:
    files = CrashFileSystem(exists=False)
    files.make_directory(FOLDER)
    files.close(files.open(FOLDER / "a", write=True, create=True))
    files.sync_directory(FOLDER)
    assert list(files.crash_point().states(100, random.Random(0))) == [{}, {"a": b""}]
    files.sync_directory(FOLDER.parent)
    assert list(files.crash_point().states(100, random.Random(0))) == [{"a": b""}]


def test_a_state_has_a_number_and_small_points_have_all_of_theirs() -> None:
    files = CrashFileSystem({"a": b"o" * 1024})
    handle = files.open(FOLDER / "a", write=True)
    files.write(handle, b"n" * 1024, 0)
    point = files.crash_point()
    assert point.count == 16
    everything = [point.state(number, "key")["a"] for number in range(2, 18)]
    assert len(set(everything)) == 16
    assert [point.state(number, "key")["a"] for number in range(2, 18)] == everything
    assert [point.state(number, "other")["a"] for number in range(2, 18)] != everything
    assert (point.state(0, "key")["a"], point.state(1, "key")["a"]) == (b"o" * 1024, b"n" * 1024)


def test_what_a_crash_took_is_not_taken_for_what_came_after(opener: Any) -> None:
    """Events of another life have other prices."""
    report = explore(opener, "a3 s a4 x a4 s x a1 s", states_per_point=12, seed=5)
    assert report.violations == []
    assert report.states > 150
