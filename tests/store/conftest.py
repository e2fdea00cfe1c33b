"""What the store tests share: a small in-memory store, and the ways to open it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trident_core.dtypes import Events
from trident_core.session import Session
from trident_store.crashcheck import PATH, Run
from trident_store.crashmodel import CrashFileSystem, Disk
from trident_store.lsm.engine import LsmStore
from trident_store.lsm.layout import Shape
from trident_store.reference import ReferenceStore


def _open(mode: str, session: Session | None, files: CrashFileSystem) -> ReferenceStore:
    """Tiny segments, sectors and frames, so that a short run has all that a long one has."""
    return ReferenceStore(
        PATH,
        mode,
        session,
        segment_bytes=2_048,
        sector_bytes=512,
        frame_events=2,
        store_id=bytes(range(16)) if mode == "create" else None,
        filesystem=files,
    )


@pytest.fixture
def opener() -> Callable[[str, Session | None, CrashFileSystem], ReferenceStore]:
    return _open


@pytest.fixture
def disk_after() -> Callable[[str], Disk]:
    """`disk_after("a3 s a2")`: the files of a store after a script, with no crash and no close."""

    def play(script: str) -> Disk:
        files = CrashFileSystem(exists=False)
        run = Run(_open, files)
        run.create()
        run.play(script)
        return files.visible()

    return play


@pytest.fixture
def same() -> Callable[[Any, Events], bool]:
    """Are these events (an array or an iterable of arrays) exactly those, in every byte?"""

    def compare(got: Any, expected: Events) -> bool:
        parts = [got] if isinstance(got, np.ndarray) else list(got)
        return b"".join(part.tobytes() for part in parts) == expected.tobytes()

    return compare


def _open_lsm(mode: str, session: Session | None, files: CrashFileSystem) -> LsmStore:
    """The same for the engine lsm, with tiny tables; everything happens in the caller's thread."""
    return LsmStore(
        PATH,
        mode,
        session,
        segment_bytes=2_048,
        sector_bytes=512,
        frame_events=2,
        store_id=bytes(range(16)) if mode == "create" else None,
        filesystem=files,
        fanout=2,
        shape=Shape(block_events=4, window_events=8, page_refs=3),
        background=False,
    )


@pytest.fixture
def lsm_opener() -> Callable[[str, Session | None, CrashFileSystem], LsmStore]:
    return _open_lsm


@pytest.fixture
def lsm_disk_after() -> Callable[[str], Disk]:
    """As `disk_after`, of the engine lsm."""

    def play(script: str) -> Disk:
        files = CrashFileSystem(exists=False)
        run = Run(_open_lsm, files)
        run.create()
        run.play(script)
        return files.visible()

    return play
