"""A disk that refuses one call, whichever: one line is said, nothing that was acknowledged is lost, and no
wrong answer is given, also when the power fails then. And readers beside a writer."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trident_conformance import streams
from trident_conformance.crash.trials import beside, refuse
from trident_conformance.engines import select
from trident_core.contracts import Kind
from trident_core.errors import StoreError

CALLS = {
    "write": errno.ENOSPC,
    "sync": errno.EIO,
    "sync_directory": errno.EIO,
    "open": errno.ENOSPC,
    "truncate": errno.EIO,
    "remove": errno.EIO,
    "rename": errno.EIO,
    "list_directory": errno.EIO,
    "read_into": errno.EIO,
    "map": errno.EIO,
    "short": 0,
}
SCRIPT = "a3 s a2 s a9 s a2 s"
WITH_TABLES = "a16 s a16 s a3 s f a4 s r a5 s"


def engine(name: str) -> Any:
    return select(Kind.STORE, [name])[0]


def append_in_parts(store: Any, events: Any) -> None:
    for start in range(0, len(events), 50):
        store.append(events[start : start + 50])


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_refused(call: str) -> None:
    """STORE-10, 14, 15, 22."""
    trial = refuse(call, SCRIPT, error=CALLS[call], per_point=3, most=25)
    assert trial(engine("reference")) is None


@pytest.mark.parametrize("call", [pytest.param(call, marks=pytest.mark.slow) for call in CALLS])
def test_a_call_is_refused_while_tables_are_made(call: str) -> None:
    """STORE-10, 14, 15, 22, with flushes, compactions and an opening."""
    trial = refuse(call, WITH_TABLES, error=CALLS[call], per_point=2, most=14)
    assert trial(engine("lsm")) is None


@pytest.mark.parametrize("call", ["sync", "list_directory"])
def test_a_refused_call_before_an_opening(call: str) -> None:
    """A manifest whose sync failed is not what the cache shows; a folder not to be listed is one line."""
    trial = refuse(call, "a16 s a16 s a3 s r a5 s", error=errno.EIO, per_point=2, most=18)
    assert trial(engine("lsm")) is None


@pytest.mark.parametrize("name", ["reference", "lsm"])
def test_snapshots_beside_a_writer_never_change(name: str) -> None:
    """STORE-30."""
    assert beside("a16 s a16 s a9 s r a16 s a16 s")(engine(name)) is None


@pytest.mark.parametrize("name", ["reference", "lsm"])
def test_a_folder_that_goes_away_is_one_line_and_says_where(name: str, tmp_path: Path) -> None:
    day = streams.day(1, 4_000)
    store = engine(name).make(tmp_path / "s", "create", streams.session(), segment_bytes=1 << 14)
    store.append(day[:50])
    shutil.rmtree(tmp_path / "s")
    with pytest.raises(StoreError, match="No such file or directory") as caught:
        append_in_parts(store, day[50:])
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "s") in str(caught.value)


@pytest.mark.parametrize("name", ["reference", "lsm"])
def test_a_file_system_that_is_read_only(name: str, tmp_path: Path) -> None:
    """STORE-34: readers read; a writer is told in one line, and nothing changes."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    place = tmp_path / "m"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(place)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting is not permitted here")
    try:
        day = streams.day(1, 300)
        with engine(name).make(place / "s", "create", streams.session()) as store:
            store.append(day)
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        with pytest.raises(StoreError, match="Read-only file system") as caught:
            engine(name).make(place / "s", "append")
        assert "\n" not in str(caught.value)
        with pytest.raises(StoreError, match="Read-only file system"):
            engine(name).make(place / "t", "create", streams.session())
        reader = engine(name).make(place / "s", "read")
        assert reader.verify().findings == []
        assert b"".join(events.tobytes() for events in reader.snapshot().scan()) == day.tobytes()
        reader.close()
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)
