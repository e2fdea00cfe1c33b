"""The crash model: every promise, in every state a power cut may leave; broken protocols are caught by it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import trident_store.logfiles
import trident_store.mark
import trident_store.recovery
import trident_store.survey
import trident_store.writer
from trident_store.crashcheck import explore
from trident_store.crashmodel import CrashFileSystem
from trident_store.mark import read_mark
from trident_store.writer import LogWriter

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
    report = explore(opener, script, states_per_point=64, nested=60, seed=2)
    assert report.violations == []
    assert report.states > 2_000


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


# -- planted faults: each takes one thing out of the protocol --


class _Equal(int):
    """A checksum that is always right."""

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


def _no_folder_sync_after_rotation(patch: pytest.MonkeyPatch) -> None:
    real = CrashFileSystem.sync_directory

    def sync_directory(self: CrashFileSystem, path: Any) -> None:
        if "00000001.seg" not in self.visible():
            real(self, path)

    patch.setattr(CrashFileSystem, "sync_directory", sync_directory)


def _payload_crc_unchecked(patch: pytest.MonkeyPatch) -> None:
    for module in (trident_store.survey, trident_store.logfiles):
        patch.setattr(module, "crc32c", lambda data, seed=0: _Equal())
        patch.setattr(module, "seq_problem", lambda frame, events: "")


def _acknowledge_without_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogWriter, "sync", LogWriter.settle)


def _mark_before_data(patch: pytest.MonkeyPatch) -> None:
    def sync(self: LogWriter) -> None:
        self.settle()
        if self.end.place != self.durable.place:
            self._pad()
            self._set_mark(self.end)
            self._files.sync(self._log.handle)

    patch.setattr(LogWriter, "sync", sync)


def _rotation_without_sync(patch: pytest.MonkeyPatch) -> None:
    def rotate(self: LogWriter) -> None:
        self._pad()
        end = self._log.end
        self._log = self._new_segment(end.segment + 1, end, self.extents)

    patch.setattr(LogWriter, "_rotate", rotate)


def _no_padding(patch: pytest.MonkeyPatch) -> None:
    for module in (trident_store.writer, trident_store.recovery):
        patch.setattr(module, "pad_frame", lambda here, sector_bytes: None)


def _both_marks_in_one_sector(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(trident_store.mark, "MARK_SLOT_BYTES", 64)


def _cut_not_synced(patch: pytest.MonkeyPatch) -> None:
    cut, sync, skip = CrashFileSystem.truncate, CrashFileSystem.sync, set()

    def truncate(self: CrashFileSystem, handle: int, size: int) -> None:
        cut(self, handle, size)
        skip.add(handle)

    def sync_but_once(self: CrashFileSystem, handle: int) -> None:
        if handle in skip:
            skip.discard(handle)
        else:
            sync(self, handle)

    patch.setattr(CrashFileSystem, "truncate", truncate)
    patch.setattr(CrashFileSystem, "sync", sync_but_once)


def test_the_model_catches_a_cut_that_is_not_synced(
    opener: Any, disk_after: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = _torn_in_the_middle(disk_after)
    _cut_not_synced(monkeypatch)
    report = explore(opener, "a2 s", states_per_point=64, resume=start)
    assert any("looks like damage" in each for each in report.violations)


def _append_while_a_slot_is_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        LogWriter, "_mark_open", property(lambda self: False, lambda self, value: None), raising=False
    )


def _torn_tail_left_in_place(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CrashFileSystem, "truncate", lambda self, handle, size: None)


def _recovered_tail_not_synced(patch: pytest.MonkeyPatch) -> None:
    real = trident_store.recovery.recover

    def recover(files: CrashFileSystem, *rest: Any) -> Any:
        sync, opened = files.sync, files.open

        def only_marks(handle: int) -> None:
            if handle in marks:
                sync(handle)

        def watched(path: Any, **how: Any) -> int:
            handle = opened(path, **how)
            if path.name == "durable":
                marks.add(handle)
            return handle

        marks: set[int] = set()
        files.sync, files.open = only_marks, watched  # type: ignore[method-assign]
        try:
            return real(files, *rest)
        finally:
            files.sync, files.open = sync, opened  # type: ignore[method-assign]

    patch.setattr(trident_store.writer, "recover", recover)


MUTANTS = [
    (_no_folder_sync_after_rotation, "is known to reach"),
    (_payload_crc_unchecked, "wrong data"),
    (_acknowledge_without_sync, "acknowledged"),
    (_mark_before_data, "looks like damage"),
    (_rotation_without_sync, "looks like damage"),
    (_no_padding, ""),
    (_both_marks_in_one_sector, ""),
    (_torn_tail_left_in_place, ""),
    (_append_while_a_slot_is_open, "looks like damage"),
    (_recovered_tail_not_synced, "during recovery"),
]


@pytest.mark.parametrize(("mutant", "words"), MUTANTS, ids=[each[0].__name__ for each in MUTANTS])
def test_the_model_catches(opener: Any, monkeypatch: pytest.MonkeyPatch, mutant: Any, words: str) -> None:
    mutant(monkeypatch)
    nested = 60 if words == "during recovery" else 0
    script = SCRIPTS[3] if mutant is _append_while_a_slot_is_open else SCRIPTS[0]
    report = explore(opener, script, states_per_point=16, nested=nested, seed=1)
    assert report.violations
    assert any(words in each for each in report.violations), report.violations
