"""Stores that are wrong in one way each. The crash laboratory has those that write in a wrong way."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from trident_core.contracts import Verification
from trident_core.dtypes import Events
from trident_core.session import Session
from trident_store.filesystem import OsFileSystem
from trident_store.logfiles import LogPart
from trident_store.reference import ReferenceStore
from trident_store.snapshot import LogSnapshot


class RightStore(ReferenceStore):
    """A store without a mistake."""


class _Unchecked(LogPart):
    def payload(self, frame: Any, file: Any) -> Any:
        raw = os.pread(file.handle, frame.payload_bytes, frame.offset + 64)
        return np.frombuffer(raw, np.uint8).copy()


class ForgetsACrc(ReferenceStore):
    """Checks the headers of frames, not what they hold."""

    def snapshot(self) -> LogSnapshot:
        made = super().snapshot()
        made._log = _Unchecked(*made._log)
        return made


class _Growing:
    def __init__(self, store: ReferenceStore, first: LogSnapshot) -> None:
        self._store, self._first = store, first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._first, name)

    def scan(self, **filters: Any) -> Iterator[Events]:
        now = self._first if self._store._closed else ReferenceStore.snapshot(self._store)
        return now.scan(**filters)


class ShowsWhatCameLater(ReferenceStore):
    """A snapshot that is only a window."""

    def snapshot(self) -> Any:
        return _Growing(self, super().snapshot())


class _NoLock(OsFileSystem):
    def lock(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT)


class DiesOfDamage(ReferenceStore):
    """A library that ends the process where it should raise."""

    def __init__(self, path: Path, mode: str, session: Session | None = None, **options: Any) -> None:
        if mode == "read" and (path / "00000000.seg").stat().st_size % 4096:
            os.abort()
        super().__init__(path, mode, session, **options)


class LetsTwoWrite(ReferenceStore):
    """Takes no lock."""

    def __init__(self, path: Path, mode: str, session: Session | None = None, **options: Any) -> None:
        super().__init__(path, mode, session, filesystem=_NoLock(), **options)


class LosesTheLateSymbols(ReferenceStore):
    """Writes the directory once."""

    def __init__(self, path: Path, mode: str, session: Session | None = None, **options: Any) -> None:
        super().__init__(path, mode, copy.deepcopy(session), **options)


class FindsEverythingWell(ReferenceStore):
    """Verifies without looking."""

    def verify(self) -> Verification:
        return Verification(events=self.stats()["events"], last_seq=self.stats()["last_seq"])


class TakesAnyOrder(ReferenceStore):
    """Appends what does not grow, renumbered."""

    def append(self, events: Events) -> int:
        last = self.stats()["last_seq"]
        if isinstance(events, np.ndarray) and len(events) and int(events["seq"][0]) <= last:
            events = events.copy()
            events["seq"] = last + 1 + np.arange(len(events))
        return super().append(events)


class _HalfALife:
    def __init__(self, snapshot: LogSnapshot) -> None:
        self._snapshot = snapshot

    def __getattr__(self, name: str) -> Any:
        return getattr(self._snapshot, name)

    def get(self, ref: int) -> Events:
        events = self._snapshot.get(ref)
        return events[events["ref"] == ref]


class ForgetsWhereAnOrderCameFrom(ReferenceStore):
    """Finds an order by `ref`, not as the new one of a replace."""

    def snapshot(self) -> Any:
        return _HalfALife(super().snapshot())
