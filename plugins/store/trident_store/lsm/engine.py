"""The engine `lsm`. Its log is the reference's, file for file (docs/store-format.md)."""

from __future__ import annotations

import threading
from pathlib import Path

from trident_core.contracts import Verification
from trident_core.dtypes import Events
from trident_core.errors import StoreError
from trident_core.session import Session
from trident_store.filesystem import FileSystem
from trident_store.format import MAX_FRAME_EVENTS, SECTOR_BYTES
from trident_store.lsm.background import Background
from trident_store.lsm.commit import CommitClock, CommitPolicy
from trident_store.reference import SEGMENT_BYTES, ReferenceStore
from trident_store.snapshot import LogSnapshot


class LsmStore(ReferenceStore):
    """A store in a folder of segments. Contract: `trident_core.contracts.Store`.

    Options, besides the reference's: `commit` ("never", "always", "group", "interval"), `commit_events`,
    `commit_bytes`, `commit_seconds`: when to sync without being asked (`CommitPolicy`). `background`: False
    does in the caller's thread, when it appends, what a thread of the store's own would do.

    Raises what the reference raises; UsageError for a wrong option.
    """

    def __init__(
        self,
        path: Path | str,
        mode: str,
        session: Session | None = None,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        sector_bytes: int = SECTOR_BYTES,
        frame_events: int = MAX_FRAME_EVENTS,
        store_id: bytes | None = None,
        filesystem: FileSystem | None = None,
        commit: str = "never",
        commit_events: int = 4_096,
        commit_bytes: int = 1 << 20,
        commit_seconds: float = 1.0,
        background: bool = True,
    ) -> None:
        self._clock = CommitClock(CommitPolicy(commit, commit_events, commit_bytes, commit_seconds))
        self._lock = threading.RLock()  # of the writer's state; held while it writes
        self._background = Background("trident-lsm", self._step) if background else None
        super().__init__(
            path, mode, session,
            segment_bytes=segment_bytes, sector_bytes=sector_bytes, frame_events=frame_events,
            store_id=store_id, filesystem=filesystem,
        )  # fmt: skip

    def append(self, events: Events) -> int:
        """See `ReferenceStore.append`. Syncs when the commit policy says so: with "always", what is appended
        is durable when this returns."""
        with self._lock:
            last_seq = super().append(events)
            if self._clock.waiting(self._writer.end.ordinal - self._writer.durable.ordinal):
                self.sync()
            elif self._background is not None and self._clock.policy.timed:
                self._background.wake()
            return last_seq

    def sync(self) -> int:
        """See `ReferenceStore.sync`."""
        with self._lock:
            durable = super().sync()
            self._clock.waiting(0)
            return durable

    def snapshot(self) -> LogSnapshot:
        """See `ReferenceStore.snapshot`."""
        with self._lock:
            return super().snapshot()

    def verify(self) -> Verification:
        """See `ReferenceStore.verify`."""
        with self._lock:
            return super().verify()

    def stats(self) -> dict[str, int]:
        """See `ReferenceStore.stats`."""
        with self._lock:
            return super().stats()

    def close(self) -> None:
        """See `ReferenceStore.close`."""
        if self._background is not None:
            self._background.stop()
        with self._lock:
            super().close()

    def _step(self) -> float | None:
        """What the thread does: syncs in time. A failure shows at the next call of the store."""
        with self._lock:
            left = self._clock.seconds_left()
            if left == 0 and not self._closed:
                try:
                    self.sync()
                except StoreError:
                    return None
                return self._clock.seconds_left()
            return left
