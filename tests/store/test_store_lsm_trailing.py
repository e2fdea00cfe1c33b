"""A mark that trails and segments that are used again: no crash looks like damage, no damage like a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import trident_store.survey
from trident_core.errors import DamagedStoreError, UsageError
from trident_core.session import Session
from trident_store.crashcheck import PATH, explore, make_events, read_all
from trident_store.crashmodel import CrashFileSystem, Disk
from trident_store.format import TRAILING, is_spare
from trident_store.lsm.engine import LsmStore
from trident_store.mark import read_mark
from trident_store.reference import ReferenceStore
from trident_store.writer import LogWriter

#: many groups in one segment; rotations into used files; openings; interrupts at every step of a sync
SCRIPTS = [
    "a2 s a1 s a2 s a1 s a2 s",
    "a12 s a12 s a12 s a2 s a1 s a12 s",
    "a9 s a16 s r a3 s a1 s r a2 s",
    "a1 i3 a2 i1 a13 i2 a1 s a1 i4 a3 s i1 a1",
]


def test_promises_hold_after_any_crash(lsm_opener: Any) -> None:
    report = explore(lsm_opener, SCRIPTS[0], states_per_point=6, nested=3, seed=1)
    assert report.violations == []
    assert report.states > 200


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(("script", "often"), [(SCRIPTS[1], False), (SCRIPTS[2], True), (SCRIPTS[3], False)])
def test_promises_hold_after_any_crash_at_length(
    lsm_opener: Any, monkeypatch: pytest.MonkeyPatch, script: str, often: bool
) -> None:
    """`often`: every other mark or so is synced."""
    if often:
        monkeypatch.setattr(LogWriter, "TRAILING_BYTES", 1_024)
    report = explore(lsm_opener, script, states_per_point=4, nested=4, seed=2)
    assert report.violations == []
    assert report.states > 500


@pytest.mark.parametrize("engine", [LsmStore, ReferenceStore])
def test_either_engine_goes_on_with_used_segments(lsm_opener: Any, same: Any, engine: Any) -> None:
    files = CrashFileSystem(exists=False)
    store = lsm_opener("create", Session(), files)
    for first in range(0, 60, 6):
        store.append(make_events(first, 6))
        store.sync()
    disk = files.visible()  # killed
    last = max(name for name in disk if name.endswith(".seg"))
    end = read_mark(CrashFileSystem(disk), PATH).at
    assert end is not None
    assert any(disk[last][end.offset :]), "the last segment is not of a used file"
    assert any(is_spare(name) for name in disk)
    files = CrashFileSystem(disk)
    options: Any = {"segment_bytes": 2_048, "sector_bytes": 512, "frame_events": 2, "filesystem": files}
    with engine(PATH, "append", **options) as again:
        assert again.recovery.events == 60
        assert not any(is_spare(name) for name in files.visible())
        again.append(make_events(60, 40))
    for reader in (LsmStore, ReferenceStore):
        opened = reader(PATH, "read", filesystem=files)
        assert same(read_all(opened), make_events(0, 100))
        assert opened.verify().findings == []
    assert read_mark(files, PATH).minor & TRAILING


def _groups() -> tuple[Disk, Disk, list[int]]:
    """Four synced groups in one segment: the disk as a kill leaves it, the same with the mark that was
    durable before, and where the groups begin."""
    files = CrashFileSystem(exists=False)
    options: Any = {"sector_bytes": 512, "frame_events": 2, "tables": False, "background": False}
    store = LsmStore(PATH, "create", Session(), filesystem=files, **options)
    before = files.visible()["durable"]
    starts = []
    for first in range(0, 8, 2):
        starts.append(store._writer.end.offset)
        store.append(make_events(first, 2))
        store.sync()
    return files.visible(), files.visible() | {"durable": before}, starts


def _flip(disk: Disk, offset: int) -> Disk:
    content = bytearray(disk["00000000.seg"])
    content[offset] ^= 4
    return disk | {"00000000.seg": bytes(content)}


@pytest.mark.parametrize("engine", [LsmStore, ReferenceStore])
def test_damage_behind_a_mark_that_trails_is_told(engine: Any) -> None:
    """After a kill the mark is exact. After a power cut it trails: then a later group proves that the ones
    before it were durable, and only the last group cannot be told from one that was never acknowledged."""
    killed, cut, starts = _groups()
    end = len(killed["00000000.seg"])
    for offset in range(starts[0], end, 5):
        for disk, told in ((killed, True), (cut, offset < starts[3])):
            opened = engine(PATH, "read", filesystem=CrashFileSystem(_flip(disk, offset)))
            if told:
                with pytest.raises(DamagedStoreError):
                    read_all(opened)
                with pytest.raises(DamagedStoreError):
                    engine(PATH, "append", filesystem=CrashFileSystem(_flip(disk, offset)))
            else:
                again = engine(PATH, "append", filesystem=CrashFileSystem(_flip(disk, offset)))
                assert again.recovery.events >= 6
                assert again.recovery.torn_bytes >= end - offset - 64


def test_the_flips_find_settled_frames_that_nobody_looks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _, cut, starts = _groups()
    monkeypatch.setattr(trident_store.survey._Walk, "next_frame", lambda *args, **kwargs: None)
    assert len(read_all(LsmStore(PATH, "read", filesystem=CrashFileSystem(_flip(cut, starts[1] + 70))))) == 2


def test_a_reader_beside_a_writer_sees_a_whole_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the reading of a place that is still empty and the search behind it, two groups are written."""
    store = LsmStore(tmp_path / "s", "create", Session())
    store.append(make_events(0, 3))
    store.sync()
    reader = LsmStore(tmp_path / "s", "read")
    real = trident_store.survey._Walk.tearable
    late = []

    def tearable(self: Any, handle: int = -1, size: int = 0) -> bool:
        if handle >= 0 and not late:
            for first in (3, 6):
                store.append(make_events(first, 3))
                store.sync()
            late.append(size)
        return bool(real(self, handle, size))

    with open(tmp_path / "s" / "00000000.seg", "r+b") as file:  # as if zeros were written ahead
        file.truncate(1 << 20)
    monkeypatch.setattr(trident_store.survey._Walk, "tearable", tearable)
    assert reader.snapshot().count == 9
    assert late


def test_the_mark_follows_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LsmStore, "_mark_seconds", 0.02)
    with LsmStore(tmp_path / "s", "create", Session()) as store:
        store.append(make_events(0, 3))
        store.sync()
        assert store._writer.trails
        assert store._timer is not None
        for _ in range(500):
            if not store._writer.trails:
                break
            store._timer._wanted.wait(0.01)
        assert not store._writer.trails


def test_a_snapshot_keeps_its_segments_from_being_used_again(tmp_path: Path, same: Any) -> None:
    folder, options = tmp_path / "s", {"segment_bytes": 16_384, "background": False}
    with LsmStore(folder, "create", Session(), **options) as store:  # type: ignore[arg-type]
        store.append(make_events(0, 200))
        held = LsmStore(folder, "read").snapshot()
        for first in range(200, 2_000, 200):
            store.append(make_events(first, 200))
        used = {path.name for path in folder.iterdir()}
        assert any(is_spare(name) for name in used)
        assert same(list(held.scan()), make_events(0, 200))
    assert not any(is_spare(path.name) for path in folder.iterdir())


@pytest.mark.parametrize("wrong", [{"mark": "never"}, {"spare_segments": -1}, {"spare_segments": 65}])
def test_wrong_options_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        LsmStore(tmp_path / "s", "create", Session(), **wrong)


# -- planted faults: each takes one thing out of the protocol --


def _mark_before_data(patch: pytest.MonkeyPatch) -> None:
    def sync(self: LogWriter) -> None:
        self.settle()
        if self.end.place != self.durable.place:
            self._pad()
            self._set_mark(self.end, trailing=True)
            self._files.sync(self._log.handle)
            self._settled = self.end.place

    patch.setattr(LogWriter, "sync", sync)


def _both_slots_trail(patch: pytest.MonkeyPatch) -> None:
    real = LogWriter._set_mark

    def set_mark(self: LogWriter, end: Any, *, trailing: bool = False) -> None:
        real(self, end, trailing=trailing)
        if trailing:
            self._slot = 1 - self._slot

    patch.setattr(LogWriter, "_set_mark", set_mark)


def _settled_without_a_sync(patch: pytest.MonkeyPatch) -> None:
    real = LogWriter._write

    def write(self: LogWriter, frame: Any, *rest: Any) -> None:
        self._settled = (frame.segment, frame.offset)
        real(self, frame, *rest)

    patch.setattr(LogWriter, "_write", write)


def _a_used_file_gets_its_name_first(patch: pytest.MonkeyPatch) -> None:
    """The name is durable before the new header is."""
    sync, rename = CrashFileSystem.sync, CrashFileSystem.rename
    late: list[int] = []

    def sync_later(self: CrashFileSystem, handle: int) -> None:
        number = self._handles[handle]
        if any(is_spare(name) and at == number for name, at in self._names.items()):
            late.append(handle)
        else:
            sync(self, handle)

    def rename_first(self: CrashFileSystem, path: Path, to: Path) -> None:
        rename(self, path, to)
        self.sync_directory(path.parent)
        if late:
            sync(self, late.pop())

    patch.setattr(CrashFileSystem, "sync", sync_later)
    patch.setattr(CrashFileSystem, "rename", rename_first)


def _old_frames_are_taken_for_the_logs(patch: pytest.MonkeyPatch) -> None:
    real = trident_store.survey._Walk.__init__

    def init(self: Any, *args: Any) -> None:
        real(self, *args)
        self.trailing = False

    patch.setattr(trident_store.survey._Walk, "__init__", init)


USED = "a30 s a10"  # the shortest that makes a segment of a used file
MUTANTS = [
    (_mark_before_data, SCRIPTS[0], "looks like damage"),
    (_both_slots_trail, SCRIPTS[0], "looks like damage"),
    (_settled_without_a_sync, "a2 a2 a2 s a2 a2", "looks like damage"),
    (_a_used_file_gets_its_name_first, USED, ""),
    (_old_frames_are_taken_for_the_logs, USED, "looks like damage"),
]


@pytest.mark.parametrize(("mutant", "script", "words"), MUTANTS, ids=[each[0].__name__ for each in MUTANTS])
def test_the_model_catches(
    lsm_opener: Any, monkeypatch: pytest.MonkeyPatch, mutant: Any, script: str, words: str
) -> None:
    mutant(monkeypatch)
    report = explore(lsm_opener, script, states_per_point=8 if script is USED else 16, seed=1)
    assert any(words in each for each in report.violations), report.violations
