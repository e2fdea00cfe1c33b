"""The reference store: CRC32C-framed groups of events appended to segments, in plain Python.

What it promises is in docs/contracts/store.md, its bytes are in docs/store-format.md.
"""

from __future__ import annotations

import errno
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from trident_core.contracts import Recovery, Verification
from trident_core.dtypes import Events
from trident_core.errors import StoreError, UsageError
from trident_core.follow import Step, follow
from trident_core.line.spill_recovery import check_version, merge_left
from trident_core.session import Session
from trident_store import crashoptions
from trident_store.checks import copy_of, require_same, where_else
from trident_store.filesystem import FileSystem, OsFileSystem
from trident_store.format import (
    MAX_FRAME_EVENTS,
    SECTOR_BYTES,
    Position,
    encode_json,
    segment_name,
    segment_number,
)
from trident_store.found import Survey
from trident_store.logfiles import LogFiles
from trident_store.mark import read_mark
from trident_store.recovery import require_finished
from trident_store.snapshot import LogSnapshot
from trident_store.survey import survey
from trident_store.tables import Table
from trident_store.tableset import TableCache
from trident_store.writer import LogWriter

SEGMENT_BYTES: Final = 64 << 20
SEGMENT_BYTES_MIN: Final = 1 << 10
SEGMENT_BYTES_MAX: Final = 1 << 40
_TRIES: Final = 16  # snapshots beside a writer that keeps moving the log into tables


class ReferenceStore:
    """A store in a folder of segments, behind tables if another engine made some. Contract:
    `trident_core.contracts.Store`.

    `segment_bytes`: a frame that would make a segment larger than this begins the next one (1 KiB to 1 TiB;
    a frame larger than that stands alone). `sector_bytes`: what a power cut may spoil as a whole, 512 to
    16,384; a synced log is padded to it. `frame_events`: events per frame, 1 to 4,096. `store_id`: 16 bytes
    that tell stores apart (create only; random when None). `filesystem`: for fault tests. A store is for one
    thread, its snapshots are for any.

    Raises UsageError for wrong arguments; StoreError when the store cannot be created, opened or locked, or
    has another format version; in mode "append" also DamagedStoreError. In mode "read" damage is raised by
    whatever would give out data: `session`, `snapshot`, a scan; `verify` and `stats` still work. A reader's
    `recovery` tells the torn tail that it leaves out (a crash's, or a frame being written).
    """

    _table: type[Table] = Table
    _walk: Callable[..., Any] | None = None
    _snapshot: type[LogSnapshot] = LogSnapshot
    crash_options = staticmethod(crashoptions.reference)

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
    ) -> None:
        if mode not in ("create", "append", "read"):
            raise UsageError(f"no such mode: {mode!r}", hint='"create", "append" or "read"')
        if not SEGMENT_BYTES_MIN <= segment_bytes <= SEGMENT_BYTES_MAX:
            raise UsageError(f"segment_bytes must be {SEGMENT_BYTES_MIN} to {SEGMENT_BYTES_MAX}")
        if not 1 <= frame_events <= MAX_FRAME_EVENTS:
            raise UsageError(f"frame_events must be 1 to {MAX_FRAME_EVENTS}, not {frame_events}")
        if sector_bytes not in (512, 1024, 2048, 4096, 8192, 16384):
            raise UsageError(f"sector_bytes must be a power of two from 512 to 16384, not {sector_bytes}")
        self.path = Path(path)
        self.mode = mode
        self.recovery = Recovery()
        self._files: FileSystem = filesystem or OsFileSystem()
        self._frame_events = frame_events
        self._closed = False
        self._cache = self._new_cache()
        self._log_files = LogFiles(self._files, self.path)
        self._tables: tuple[Table, ...] = ()  # a writer's
        self._log_start = Position()
        if mode == "read":
            self._view = self._survey()
            self.recovery = _recovery(self._view)
            if session is not None and self._view.session is not None:
                require_same(session, self._view.session)
            return
        self._writer = self._new_writer(segment_bytes, sector_bytes)
        try:
            if mode == "create":
                self._session = self._create(session, store_id)
            else:
                self._session = self._resume(session)
                self._merge_spill()
        except BaseException:
            self._writer.release()
            raise

    def _new_writer(self, segment_bytes: int, sector_bytes: int) -> LogWriter:
        return LogWriter(self._files, self.path, segment_bytes, sector_bytes)

    def _new_cache(self) -> TableCache:
        return TableCache(self._files, self.path, self._table, self._walk)

    def _create(self, session: Session | None, store_id: bytes | None) -> Session:
        if session is None:
            raise UsageError("a new store needs a session", hint="pass session=Session(...)")
        store_id = uuid.uuid4().bytes if store_id is None else store_id
        if len(store_id) != 16:
            raise UsageError(f"store_id must have 16 bytes, not {len(store_id)}")
        try:
            self._writer.create(store_id, encode_json(session.to_json() | {"directory": []}))
        except OSError as error:
            raise StoreError(
                f"cannot create the store {self.path}: {error.strerror or error}",
                hint="make room and try again"
                if error.errno in (errno.ENOSPC, errno.EDQUOT)
                else "does the folder above it exist, and may you write there?",
            ) from error
        self._writer.record(session.directory)
        self._writer.sync()
        self.recovery.segments = len(self._writer.extents)
        return session

    def _resume(self, session: Session | None) -> Session:
        try:
            # A format from the future is refused before the lock is touched.
            mark = read_mark(self._files, self.path)
            check_version(self._files, self.path)
            names = self._files.list_directory(self.path)
            if mark.at is None and all(segment_number(name) is None for name in names):
                hint = where_else(names, "it has no segment (00000000.seg) in it")
                raise StoreError(f"{self.path} is not a store", hint=hint)
            found = self._writer.resume(self._cache)
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(f"there is no store at {self.path}", hint="is the path right?") from None
        except OSError as error:
            raise StoreError(f"cannot open the store {self.path}: {error.strerror or error}") from error
        self.recovery = _recovery(found)
        self._tables, self._log_start = tuple(found.tables), found.manifest.log
        stored = _session_of(found, self.path)
        if session is None:
            return stored
        require_same(session, stored)
        for instrument in stored.directory:
            if session.directory.get(instrument.locate) is None:
                session.directory.put(instrument)
        return session

    def _merge_spill(self) -> None:
        """What a line that died had spilled goes into the store, as far as it continues it."""
        try:
            merged = merge_left(self, self._files, self.path)
        except OSError as error:
            raise StoreError(f"cannot merge the spill of {self.path}: {error.strerror or error}") from error
        self.recovery.spilled_events, self.recovery.spill_left_out = merged.events, merged.left_out
        self.recovery.events += merged.events

    # -- the contract --

    @property
    def session(self) -> Session:
        """The session. A writer's is the caller's own, whose directory may grow; a reader's is what the valid
        prefix held at opening or at the last `snapshot`. Raises DamagedStoreError in mode "read"."""
        return _session_of(self._view, self.path) if self.mode == "read" else self._session

    def append(self, events: Events) -> int:
        """See `trident_core.contracts.Store.append`. Up to `frame_events` events are one frame: after a crash
        a frame is there as a whole or not at all. `seq` starts at 1 or later.

        An append that was interrupted (KeyboardInterrupt) has taken place up to some frame; `stats` says how
        far. Raises UsageError, with nothing written; StoreError when the disk refuses: the store is then
        read-only, what was appended before may still be synced.
        """
        writer = self._require_writer()
        writer.require_writable()
        writer.settle()
        writer.check(events)
        writer.record(self._session.directory)
        for start in range(0, len(events), self._frame_events):
            part = events[start : start + self._frame_events]
            first, last = int(part["seq"][0]), int(part["seq"][-1])
            writer.append(part.view(np.uint8).data, len(part), first, last)
        return writer.end.last_seq

    def sync(self) -> int:
        """See `trident_core.contracts.Store.sync`. When it returns, the events and the mark that says so are
        durable. Raises StoreError when the disk refuses; then nothing more is ever called durable."""
        writer = self._require_writer()
        writer.sync()
        return writer.durable.last_seq

    def snapshot(self) -> LogSnapshot:
        """See `trident_core.contracts.Store.snapshot`. A reader's walks the frame headers of the whole store.
        Raises DamagedStoreError in mode "read"."""
        self._require_open()
        if self.mode == "read":
            return self._reader_snapshot()
        writer = self._writer
        writer.settle()
        session = copy_of(self._session, writer.recorded)
        try:
            log = self._log_files.part(writer.store_id, self._log_start, writer.extents, writer.end)
        except OSError as error:
            raise self._unreadable(error) from error
        return self._snapshot(self._tables, log, session)

    def _reader_snapshot(self) -> LogSnapshot:
        for tries_left in range(_TRIES - 1, -1, -1):
            try:
                held = self._log_files.hold()
                self._view = view = self._survey()
                session = copy_of(_session_of(view, self.path), view.instruments)
                log = self._log_files.part(view.store_id, view.manifest.log, view.extents, view.end)
            except FileNotFoundError as error:  # a writer has just put a table in its place
                if not tries_left:
                    raise self._unreadable(error) from error
            except OSError as error:
                raise self._unreadable(error) from error
            else:
                del held
                break
        return self._snapshot(view.tables, log, session)

    def _unreadable(self, error: OSError) -> StoreError:
        return StoreError(f"cannot read the store {self.path}: {error.strerror or error}")

    def follow(self, after: int = 0) -> Iterator[Step]:
        """Snapshots that advance, of a store opened for reading: see `trident_core.follow.follow`."""
        return follow(self, self.path, after=after)

    def verify(self) -> Verification:
        """See `trident_core.contracts.Store.verify`."""
        self._require_open()
        if self.mode != "read":
            self._writer.trim()
        found = survey(
            self._files, self.path, payloads=True, cache=TableCache(self._files, self.path, walk=self._walk)
        )
        return Verification(found.end.ordinal, found.end.last_seq, found.bytes, found.findings)

    def verify_watched(self, advance: Callable[[int, int], None]) -> Verification:
        """See `trident_core.contracts.WatchedStore`. Of a store opened for reading it also holds the indexes
        of tables against their events; each finding says where in the sequence it lies and what to do."""
        self._require_open()
        if self.mode != "read":
            return self.verify()
        from trident_store.tools.verify import verify  # kernels: only whoever asks waits for numba

        return verify(self._files, self.path, advance)

    def stats(self) -> dict[str, int]:
        """events, segments, tables, bytes (of both), last_seq, durable_events, durable_seq, epoch."""
        self._require_open()
        if self.mode == "read":
            end, extents, tables = self._view.end, tuple(self._view.extents), tuple(self._view.tables)
            durable = self._view.mark.at or Position()
        else:
            self._writer.settle()
            end, extents, durable = self._writer.end, self._writer.extents, self._writer.durable
            tables = self._tables
        return {
            "events": end.ordinal,
            "segments": len(extents),
            "tables": len(tables),
            "bytes": sum(extent.end for extent in extents) + sum(table.entry.nbytes for table in tables),
            "last_seq": end.last_seq,
            "durable_events": durable.ordinal,
            "durable_seq": durable.last_seq,
            "epoch": end.epoch,
        }

    def close(self) -> None:
        """Sync and release. Idempotent. After a failed sync it only releases: that failure was raised."""
        if self._closed:
            return
        self._closed = True
        if self.mode == "read":
            return
        try:
            if not self._writer.sync_failure:
                self._writer.finish()
        finally:
            self._writer.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- small things --

    def _survey(self) -> Survey:
        found = survey(self._files, self.path, payloads=False, cache=self._cache)
        require_finished(found, self.path)
        return found

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError(f"the store {self.path} is closed")

    def _require_writer(self) -> LogWriter:
        self._require_open()
        if self.mode == "read":
            raise UsageError(f"{self.path} is open for reading only", hint='open it with mode "append"')
        return self._writer


def _recovery(found: Survey) -> Recovery:
    name = segment_name(found.tears[0].number) if found.tears else ""
    return Recovery(found.end.ordinal, found.torn_bytes, name, len(found.extents))


def _session_of(view: Survey, path: Path) -> Session:
    view.raise_damage()
    if view.session is None:  # cannot be: a finished and sound store begins with its session
        raise StoreError(f"{path} has no session")
    return view.session
