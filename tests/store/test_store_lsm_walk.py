"""The kernels that pass over sound frames: they accept what the survey accepts, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest

from trident_core.session import Instrument, Session
from trident_store.crashcheck import make_events
from trident_store.crashmodel import CrashFileSystem
from trident_store.diskstates import Disk
from trident_store.lsm import crc_kernels, walk
from trident_store.lsm.engine import LsmStore
from trident_store.lsm.walk import Walker
from trident_store.survey import survey
from trident_store.tableset import TableCache

PATH = Path("/store")


@pytest.mark.parametrize("which", ["_by_tables", "crc32c_at"])
def test_the_crc_is_that_of_the_library(which: str) -> None:
    data = np.random.default_rng(1).integers(0, 256, 70_000, np.uint8)
    kernel: Any = getattr(crc_kernels, which)
    ones = np.uint64(0xFFFFFFFF) if which == "_by_tables" else np.uint64(0)
    for size in (0, 1, 7, 8, 9, 60, 64, 127, 128, 383, 384, 385, 1_000, 6_143, 6_144, 6_145, 65_536, 65_599):
        for start in (0, 3):
            part = data[start : start + size]
            for seed in (0, 0xDEADBEEF):
                got = kernel(np.uint64(part.ctypes.data), np.uint64(size), np.uint64(seed) ^ ones) ^ ones
                assert got == google_crc32c.extend(seed, part.tobytes())


def log(frame_events: int, **more: Any) -> Disk:
    """A log of several segments, symbols in between, syncs, two epochs, and a tail that no mark knows of."""
    files = CrashFileSystem(exists=False)
    session = Session()
    options: dict[str, Any] = {"frame_events": frame_events, "filesystem": files, "tables": False}
    options |= {"segment_bytes": 4_096, "sector_bytes": 512, "background": False} | more
    store = LsmStore(PATH, "create", session, **options)
    for first, count in ((0, 3), (3, 40), (43, 7), (50, 20)):
        session.directory.put(Instrument(first, f"S{first}"))
        store.append(make_events(first, count))
        if first % 2:
            store.sync()
    store.close()
    with LsmStore(PATH, "append", **options) as again:
        again.append(make_events(70, 9))
    left = LsmStore(PATH, "append", **options)
    left.append(make_events(79, 11))
    return {name: data for name, data in files.visible().items() if name != "lock"}


def both(disk: Disk) -> tuple[Any, Any]:
    """What the survey finds, by itself and with the kernels."""
    found = []
    for walker in (None, Walker):
        files = CrashFileSystem(disk)
        result = survey(files, PATH, payloads=True, cache=TableCache(files, PATH, walk=walker))
        found.append(
            (result.end, result.extents, result.tears, result.findings, result.instruments, result.bytes)
        )
    return found[0], found[1]


@pytest.mark.parametrize(("frame_events", "mark"), [(1, "trailing"), (4, "each")])
def test_with_any_byte_wrong_both_find_the_same(frame_events: int, mark: str) -> None:
    disk = log(frame_events, mark=mark)
    assert len(disk) > 3
    one, other = both(disk)
    assert one == other
    assert one[0].ordinal == 90
    for name, data in sorted(disk.items()):
        for at in range(0, len(data), 101):
            flipped = data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]
            one, other = both(disk | {name: flipped})
            assert one == other, f"{name} flipped at {at}"
        for at in range(0, len(data), 1_021):
            one, other = both(disk | {name: data[:at]})
            assert one == other, f"{name} cut to {at}"


def test_windows_end_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = log(4)
    expected = both(disk)[0]
    for size in (8, 64, 72, 320, 1_000, 4_096):
        monkeypatch.setattr(walk, "WINDOW_BYTES", size)
        assert both(disk)[1] == expected


def test_the_log_is_read_by_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the code behind them: a walk that accepts nothing would pass every other test here."""
    disk = log(4)
    passed = 0
    real = Walker.pass_over

    def counted(self: Walker, here: Any, stop: int, *rest: Any) -> Any:
        nonlocal passed
        there = real(self, here, stop, *rest)
        passed += there.ordinal - here.ordinal
        return there

    monkeypatch.setattr(Walker, "pass_over", counted)
    both(disk)
    assert passed >= 80  # behind the mark one frame is left to the survey
