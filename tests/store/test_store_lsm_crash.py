"""Tables under the crash model: flush, manifest, compaction and the upgrade."""

from __future__ import annotations

from typing import Any

import pytest

from trident_core.errors import StoreError
from trident_core.session import Session
from trident_store.crashcheck import explore, make_events
from trident_store.crashmodel import CrashFileSystem
from trident_store.lsm.engine import LsmStore
from trident_store.lsm.log_writer import LsmLogWriter
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
@pytest.mark.parametrize("script", SCRIPTS[1:])
def test_promises_hold_after_any_crash_at_length(lsm_opener: Any, script: str) -> None:
    """More of them: `python -m trident_conformance crash --store lsm --states 100000`."""
    report = explore(lsm_opener, script, states_per_point=3, nested=2, seed=2)
    assert report.violations == []
    assert report.states > 200


@pytest.fixture
def eager_opener(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store that writes zeros ahead after a kibibyte, and padding with frames while syncs follow."""
    monkeypatch.setattr(LogWriter, "EAGER_BYTES", 1_024)
    monkeypatch.setattr(LogWriter, "AHEAD_FROM", 1_024)
    monkeypatch.setattr(LsmLogWriter, "PADDED_BYTES", 64)
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
