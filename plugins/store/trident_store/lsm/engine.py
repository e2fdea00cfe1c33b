"""The engine `lsm`: the reference's log, and tables that take its place (docs/store-format.md)."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Final, cast

from trident_core.contracts import Pressure, Verification
from trident_core.dtypes import Events
from trident_core.errors import StoreError, UsageError
from trident_core.session import Session
from trident_store import crashoptions
from trident_store.filesystem import FileSystem
from trident_store.format import MAX_FRAME_EVENTS, SECTOR_BYTES, TABLES, Position
from trident_store.found import Extent
from trident_store.lsm.background import Background
from trident_store.lsm.commit import CommitClock, CommitPolicy
from trident_store.lsm.layout import Shape
from trident_store.lsm.log_writer import LsmLogWriter
from trident_store.lsm.maintenance import Home, Maintenance, Settings
from trident_store.lsm.snapshot import LsmSnapshot
from trident_store.lsm.table_reader import LsmTable
from trident_store.lsm.walk import Walker
from trident_store.lsm.warm import exercise
from trident_store.reference import SEGMENT_BYTES, ReferenceStore
from trident_store.tables import Table

MARKS: Final = ("trailing", "each")


class LsmStore(ReferenceStore):
    """A store in a folder of tables and segments. Contract: `trident_core.contracts.Store`.

    Options, besides the reference's: `commit` ("never", "always", "group", "interval"), `commit_events`,
    `commit_bytes`, `commit_seconds`: when to sync without being asked (`CommitPolicy`). `tables`: whether
    sealed segments become tables; `fanout`, `table_events`, `compaction_bytes_per_s`, `shape`,
    `checkpoint_events`: how (`Settings`). `mark`: "trailing" saves one of two syncs, "each" does not
    (docs/store-format.md says what it buys); `spare_segments`: up to so many files of segments that tables
    took the place of are kept, to be written over, which is faster than growing a file. `background`: False
    does in the caller's thread, at the end of `append`, what a thread of the store's own would do.

    Raises what the reference raises; UsageError for a wrong option.
    """

    _table = LsmTable
    _walk = Walker
    _snapshot = LsmSnapshot
    crash_options = staticmethod(crashoptions.lsm)
    _ahead_bytes = 4 << 20  # zeros written ahead of the log while syncs come often
    _mark_seconds = 1.0  # a mark that trails is durable after so long

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
        tables: bool = True,
        fanout: int = 8,
        table_events: int = 1 << 23,
        compaction_bytes_per_s: int = 0,
        shape: Shape | None = None,
        checkpoint_events: int = 1 << 19,
        mark: str = "trailing",
        spare_segments: int = 2,
        background: bool = True,
    ) -> None:
        if mark not in MARKS:
            raise UsageError(f"no such way to keep the mark: {mark!r}", hint=", ".join(MARKS))
        if not 0 <= spare_segments <= 64:
            raise UsageError(f"spare_segments must be 0 to 64, not {spare_segments}")
        self._mark, self._spare_segments = mark, spare_segments
        self._clock = CommitClock(CommitPolicy(commit, commit_events, commit_bytes, commit_seconds))
        settings = Settings(
            segment_bytes, fanout, table_events, compaction_bytes_per_s, shape or Shape(), checkpoint_events
        )
        settings.check()
        self._lock = threading.RLock()  # of the writer's state; held while it writes
        self._maintenance: Maintenance | None = None
        self._shed = Pressure.NORMAL
        self._mark_due: float | None = None  # when the mark, which trails, is to be synced
        self._timer = Background("trident-lsm-commit", self._commit_in_time) if background else None
        self._worker = Background("trident-lsm-tables", self._work) if background else None
        super().__init__(
            path, mode, session,
            segment_bytes=segment_bytes, sector_bytes=sector_bytes, frame_events=frame_events,
            store_id=store_id, filesystem=filesystem,
        )  # fmt: skip
        if tables and mode != "read":
            home = Home(self._state, self._upgrade, self._install)
            try:
                self._maintenance = Maintenance(
                    self._files, self.path, self._writer, self._session, self._cache, self._log_files, home,
                    settings,
                )  # fmt: skip
            except OSError as error:
                self._writer.release()
                raise self._unreadable(error) from error
            self._maintain()

    # -- the contract --

    def append(self, events: Events) -> int:
        """See `ReferenceStore.append`. Syncs when the commit policy says so: with "always", what is appended
        is durable when this returns. Never waits for tables, unless `background` is False."""
        with self._lock:
            last_seq = super().append(events)
            due = self._clock.waiting(self._writer.end.ordinal - self._writer.durable.ordinal)
            if due and not (self._shed and self._clock.policy.timed):
                self.sync()
            elif self._timer is not None and self._clock.policy.timed:
                self._timer.wake()
            sealed = len(self._writer.extents) > 1
        if sealed:
            self._maintain()
        return last_seq

    def sync(self) -> int:
        """See `ReferenceStore.sync`."""
        with self._lock:
            durable = super().sync()
            self._clock.waiting(0)
            if self._mark_due is None and self._timer is not None and self._writer.trails:
                self._mark_due = time.monotonic() + self._mark_seconds
                self._timer.wake()
            return durable

    def snapshot(self) -> LsmSnapshot:
        """See `ReferenceStore.snapshot`. Of a reader: the headers of the log behind the tables are walked."""
        with self._lock:
            return cast(LsmSnapshot, super().snapshot())

    def verify(self) -> Verification:
        """See `ReferenceStore.verify`."""
        with self._lock:
            return super().verify()

    def stats(self) -> dict[str, int]:
        """As of `ReferenceStore.stats`; a writer's also: flushed_bytes and compacted_bytes, written to tables
        since it was opened; maintenance_failed, 1 when no more are made (see `maintenance_failure`)."""
        with self._lock:
            figures = super().stats()
        if self._maintenance is not None:
            figures["flushed_bytes"] = self._maintenance.flushed_bytes
            figures["compacted_bytes"] = self._maintenance.compacted_bytes
            figures["maintenance_failed"] = int(bool(self._maintenance.failure))
        return figures

    def shed(self, level: Pressure) -> None:
        """See `trident_core.contracts.Sheddable`. From SHED_SYNC on the policies "group" and "interval"
        make no sync; from SHED_INDEX on no flush or compaction begins, and a compaction under way waits."""
        self._shed = level
        if self._worker is not None and self._maintenance is not None and level < Pressure.SHED_INDEX:
            self._worker.wake()
        if self._timer is not None and not level and self._clock.policy.timed:
            self._timer.wake()

    def close(self) -> None:
        """See `ReferenceStore.close`. A flush under way is finished; a compaction ends where it is, and the
        next opening goes on with it."""
        if self._maintenance is not None:
            self._maintenance.stopping = True
        for thread in (self._timer, self._worker):
            if thread is not None:
                thread.stop()
        with self._lock:
            if self._maintenance is not None:
                self._maintenance.close()
            super().close()

    @staticmethod
    def warm_up() -> None:
        """Compile, or load from the cache, all kernels. Of the class: there need be no store yet."""
        exercise()

    # -- tables --

    @property
    def maintenance_failure(self) -> str:
        """Why no more tables are made; empty when nothing is amiss. The log goes on without them."""
        return self._maintenance.failure if self._maintenance is not None else ""

    def flush(self) -> None:
        """Put everything that was appended into tables, in this thread. Raises StoreError when the disk
        refuses, UsageError for a store opened for reading or without tables."""
        maintenance = self._require_tables()
        with self._lock:
            self._writer.begin_segment()
        while maintenance.step(compact=False):
            pass
        self._raise_failure()

    def compact(self) -> None:
        """Merge tables until no level has enough of them, in this thread. Raises as `flush` does."""
        maintenance = self._require_tables()
        while maintenance.step_or_wait():
            pass
        self._raise_failure()

    def _require_tables(self) -> Maintenance:
        self._require_writer()
        if self._maintenance is None:
            raise UsageError("this store was opened with tables=False")
        return self._maintenance

    def _raise_failure(self) -> None:
        if self.maintenance_failure:
            raise StoreError(
                f"{self.path}: no more tables are made: {self.maintenance_failure}",
                hint="the log has everything; see to the disk and open the store again",
            )

    def _maintain(self) -> None:
        if self._maintenance is None:
            return
        if self._worker is not None:
            self._worker.wake()
        else:
            while self._shed < Pressure.SHED_INDEX and self._maintenance.step_or_wait():
                pass

    # -- what the threads do; a failure shows at the next call of the store --

    def _commit_in_time(self) -> float | None:
        with self._lock:
            if self._shed or self._closed:
                return None  # `shed` wakes this thread again
            try:
                if self._clock.seconds_left() == 0:
                    self.sync()
                if self._mark_due is not None and self._mark_due <= time.monotonic():
                    self._mark_due = None
                    self._writer.sync_mark()
            except StoreError:
                return None
            waits = [self._clock.seconds_left()]
            if self._mark_due is not None:
                waits.append(max(self._mark_due - time.monotonic(), 0.0))
            return min((wait for wait in waits if wait is not None), default=None)

    def _new_writer(self, segment_bytes: int, sector_bytes: int) -> LsmLogWriter:
        return LsmLogWriter(
            self._files, self.path, segment_bytes, sector_bytes,
            ahead_bytes=self._ahead_bytes, trailing=self._mark == "trailing", spares=self._spare_segments,
        )  # fmt: skip

    def _work(self) -> float | None:
        if self._shed >= Pressure.SHED_INDEX:
            return None  # `shed` wakes this thread again
        if self._maintenance is None:
            return None
        return 0.0 if self._maintenance.step() else self._maintenance.pause

    # -- what maintenance needs --

    def _state(self) -> tuple[tuple[Extent, ...], tuple[Table, ...], Position]:
        with self._lock:
            return self._writer.extents[:-1], self._tables, self._log_start

    def _upgrade(self) -> None:
        with self._lock:
            self._writer.upgrade(TABLES)

    def _install(self, tables: tuple[Table, ...], log: Position) -> None:
        with self._lock:
            self._tables, self._log_start = tables, log
            self._writer.drop_sealed(log.segment)
