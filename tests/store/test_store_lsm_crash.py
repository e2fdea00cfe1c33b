"""Tables under the crash model: flush, manifest, compaction and the upgrade; broken protocols are caught."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trident_core.errors import StoreError
from trident_core.session import Session
from trident_store import recovery
from trident_store.crashcheck import explore, make_events
from trident_store.crashmodel import CrashFileSystem
from trident_store.lsm import maintenance, manifest
from trident_store.lsm.engine import LsmStore
from trident_store.lsm.maintenance import Maintenance
from trident_store.lsm.manifest import ManifestWriter
from trident_store.writer import LogWriter

#: a flush inside an append, flushes after syncs, compactions of two levels, openings with work left to do,
#: and interrupts at several steps
SCRIPTS = [
    "a2 s a30 s a3 s r a1 s a2",
    "a20 s a20 s a20 s a20 r a3",
    "a1 i3 a2 i1 a30 i2 a1 s a1 i4 a13 s i1 a1",
    "a60 s a2",
]


@pytest.mark.parametrize("script", SCRIPTS[:1])
def test_promises_hold_after_any_crash(lsm_opener: Any, script: str) -> None:
    report = explore(lsm_opener, script, states_per_point=4, nested=2, seed=1)
    assert report.violations == []
    assert report.points > 200
    assert report.states > 600


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("script", SCRIPTS)
def test_promises_hold_after_any_crash_at_length(lsm_opener: Any, script: str) -> None:
    report = explore(lsm_opener, script, states_per_point=8, nested=4, seed=2)
    assert report.violations == []
    assert report.states > 1_200


@pytest.fixture
def eager_opener(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store that writes zeros ahead after a kibibyte."""
    monkeypatch.setattr(LogWriter, "EAGER_BYTES", 1_024)
    monkeypatch.setattr(LsmStore, "_ahead_bytes", 1_536)

    def opener(mode: str, session: Session | None, files: CrashFileSystem) -> LsmStore:
        options: dict[str, Any] = {"segment_bytes": 6_144, "sector_bytes": 512, "frame_events": 2}
        return LsmStore("/store", mode, session, filesystem=files, background=False, fanout=2, **options)

    return opener


AHEAD = "a6 s a2 s a3 s a1 s a9 s a3 s a2 s a30 s a2 s r a2 s a1 s a8"


def test_zeros_written_ahead_are_no_danger(eager_opener: Any) -> None:
    sizes = set()
    files = CrashFileSystem(exists=False)
    store = eager_opener("create", Session(), files)
    for first in range(0, 40, 2):
        store.append(make_events(first, 2))
        store.sync()
        log = store.stats()["bytes"]
        sizes.add(sum(len(data) for name, data in files.visible().items() if name.endswith(".seg")) > log)
    assert sizes == {True, False}, "no zeros were written ahead, or always"
    assert store.verify().findings == []
    store.close()
    report = explore(eager_opener, AHEAD, states_per_point=4, nested=2, seed=3)
    assert report.violations == []
    assert report.states > 500


# -- planted faults: each takes one thing out of the protocol --


@contextlib.contextmanager
def _deaf(files: Any, call: str) -> Iterator[None]:
    """The file system ignores a call."""
    real = getattr(files, call)
    setattr(files, call, lambda *args: None)
    try:
        yield
    finally:
        setattr(files, call, real)


def _without(patch: pytest.MonkeyPatch, owner: Any, name: str, call: str) -> None:
    """A function whose first argument is, or has, the file system, with one of its calls left out."""
    real = getattr(owner, name)

    def wrapped(first: Any, *args: Any, **kwargs: Any) -> Any:
        with _deaf(first if hasattr(first, call) else first._files, call):
            return real(first, *args, **kwargs)

    patch.setattr(owner, name, wrapped)


def _table_not_synced(patch: pytest.MonkeyPatch) -> None:
    _without(patch, maintenance, "write_table", "sync")


def _table_s_name_not_synced(patch: pytest.MonkeyPatch) -> None:
    _without(patch, maintenance, "write_table", "sync_directory")


def _manifest_not_synced(patch: pytest.MonkeyPatch) -> None:
    _without(patch, ManifestWriter, "publish", "sync")


def _manifest_s_name_not_synced(patch: pytest.MonkeyPatch) -> None:
    _without(patch, ManifestWriter, "_replace", "sync_directory")


def _records_share_a_sector(patch: pytest.MonkeyPatch) -> None:
    real = manifest.encode_record
    patch.setattr(
        manifest, "encode_record", lambda store_id, state, epoch, sector: real(store_id, state, epoch, 64)
    )


def _old_manifest_removed_first(patch: pytest.MonkeyPatch) -> None:
    real = ManifestWriter._replace

    def replace(self: ManifestWriter, entries: Any, log: Any) -> Any:
        for number in manifest.manifest_numbers(self._files.list_directory(self._folder)):
            self._files.remove(self._folder / manifest.manifest_name(number))
        self._files.sync_directory(self._folder)
        return real(self, entries, log)

    patch.setattr(ManifestWriter, "_replace", replace)


def _removed_before_the_manifest_says_so(patch: pytest.MonkeyPatch) -> None:
    """Segments of a flush and inputs of a compaction go first."""
    publish, remove = Maintenance._publish, CrashFileSystem.remove

    def early(self: Maintenance, tables: Any, log: Any) -> None:
        files: Any = self._files
        sealed, old, _ = self._home.state()
        kept = {table.name for table in tables}
        for name in [table.name for table in old if table.name not in kept]:
            files.remove(self._folder / name)
        for extent in sealed:
            if extent.number < log.segment:
                files.remove(self._folder / maintenance.segment_name(extent.number))
        files.sync_directory(self._folder)
        publish(self, tables, log)

    def remove_once(self: CrashFileSystem, path: Path) -> None:
        if path.name in self.visible():
            remove(self, path)

    patch.setattr(CrashFileSystem, "remove", remove_once)
    patch.setattr(Maintenance, "_publish", early)


def _marks_not_upgraded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LsmStore, "_upgrade", lambda self: setattr(self._writer, "minor", 0))


def _upgraded_without_a_manifest(patch: pytest.MonkeyPatch) -> None:
    publish = Maintenance._publish

    def late(self: Maintenance, tables: Any, log: Any) -> None:
        if self._writer.minor == 0:
            self._home.upgrade()
        publish(self, tables, log)

    patch.setattr(Maintenance, "_publish", late)


def _unsealed_events_flushed(patch: pytest.MonkeyPatch) -> None:
    """A table of events that the log has not made durable: the log behind it is not synced."""
    begin = LogWriter._rotate

    def rotate(self: LogWriter) -> None:
        files: Any = self._files
        with _deaf(files, "sync"):
            begin(self)

    patch.setattr(LogWriter, "_rotate", rotate)


def _readers_tidy_up(patch: pytest.MonkeyPatch) -> None:
    real = LsmStore._survey

    def survey(self: LsmStore) -> Any:
        found = real(self)
        recovery.remove_leftovers(self._files, self.path, found.manifest)
        return found

    patch.setattr(LsmStore, "_survey", survey)


def _oldest_record_in_force(patch: pytest.MonkeyPatch) -> None:
    real = manifest.np.flatnonzero
    patch.setattr(manifest, "np", _Reversed(manifest.np, real))


class _Reversed:
    """numpy, but `flatnonzero` from the end."""

    def __init__(self, numpy: Any, real: Any) -> None:
        self._numpy, self._real = numpy, real

    def flatnonzero(self, values: Any) -> Any:
        return self._real(values)[::-1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numpy, name)


FLUSHES, REOPENED = "a30 s a16 s", "a30 s r a30"
MUTANTS = [
    (_table_not_synced, FLUSHES),
    (_table_s_name_not_synced, FLUSHES),
    (_manifest_not_synced, FLUSHES),
    (_manifest_s_name_not_synced, FLUSHES),
    pytest.param(_records_share_a_sector, FLUSHES, marks=pytest.mark.slow),
    pytest.param(_old_manifest_removed_first, REOPENED, marks=pytest.mark.slow),
    (_removed_before_the_manifest_says_so, FLUSHES),
    (_marks_not_upgraded, FLUSHES),
    (_upgraded_without_a_manifest, FLUSHES),
    (_unsealed_events_flushed, FLUSHES),
    (_readers_tidy_up, FLUSHES),
    (_oldest_record_in_force, FLUSHES),
]


@pytest.mark.parametrize(("mutant", "script"), MUTANTS)
def test_the_model_catches(
    lsm_opener: Any, monkeypatch: pytest.MonkeyPatch, mutant: Any, script: str
) -> None:
    mutant(monkeypatch)
    report = explore(lsm_opener, script, states_per_point=12, seed=1)
    assert report.violations
    assert not any("the run itself failed" in each for each in report.violations), report.violations


def test_a_table_that_cannot_be_finished_leaves_nothing_behind(lsm_opener: Any) -> None:
    files = CrashFileSystem(exists=False)
    store = lsm_opener("create", Session(), files)
    written = 0

    def full(call: str) -> None:
        nonlocal written
        if call == "write" and any(name.endswith(".tab") for name in files.visible()):
            written += 1
            if written == 3:
                raise OSError(28, "No space left on device")

    files.before = full
    store.append(make_events(0, 40))
    assert "No space left" in store.maintenance_failure
    assert not any(name.endswith((".tab", ".man")) for name in files.visible())
    with pytest.raises(StoreError, match="No space left"):
        store.flush()
    store.append(make_events(40, 40))
    files.before = lambda call: None
    store.close()
    again = lsm_opener("append", None, files)
    assert again.stats()["events"] == 80
    assert again.stats()["tables"] > 0
