"""The store on someone else's engine: the contract over blocks.

What it promises is in docs/contracts/store.md, what it is in docs/store-engines.md.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final

from trident_core.contracts import Recovery, Verification
from trident_core.dtypes import Events
from trident_core.errors import StoreError, UsageError
from trident_core.follow import Step, follow
from trident_core.line.spill_recovery import check_version, merge_left
from trident_core.session import Session
from trident_store.blocks.engine import Engine, Source
from trident_store.blocks.format import End
from trident_store.blocks.log import BlockLog
from trident_store.blocks.snapshot import BlockSnapshot
from trident_store.blocks.survey import Survey, open_view, require_store, still_as, survey
from trident_store.checks import check_events, copy_of, require_same
from trident_store.filesystem import FileSystem, OsFileSystem

COMMIT_BLOCKS: Final = 64
COMMIT_BLOCKS_MAX: Final = 1_024


class BlockStore:
    """A store whose blocks an engine keeps. Contract: `trident_core.contracts.Store`.

    Subclasses say which engine. `commit_blocks`: how many full blocks (4,096 events, 256 KiB) wait in memory
    before they are committed without being asked, 1 to 1,024. `store_id`: 16 bytes that tell stores apart
    (create only; random when None). A store is for one thread, its snapshots are for any.

    Raises UsageError for wrong arguments; StoreError when the store cannot be created, opened or locked, or
    has another format version; in mode "append" also DamagedStoreError. In mode "read" damage is raised by
    whatever would give out data: `session`, `snapshot`, a scan; `verify` and `stats` still work.

    An engine that refuses a commit may have made it or not: StoreError, and then the store is read-only, and
    nothing more of it is ever called durable.
    """

    engine: ClassVar[Engine]

    def __init__(
        self,
        path: Path | str,
        mode: str,
        session: Session | None = None,
        *,
        commit_blocks: int = COMMIT_BLOCKS,
        store_id: bytes | None = None,
        filesystem: FileSystem | None = None,
    ) -> None:
        if mode not in ("create", "append", "read"):
            raise UsageError(f"no such mode: {mode!r}", hint='"create", "append" or "read"')
        if not 1 <= commit_blocks <= COMMIT_BLOCKS_MAX:
            raise UsageError(f"commit_blocks must be 1 to {COMMIT_BLOCKS_MAX}, not {commit_blocks}")
        if store_id is not None and len(store_id) != 16:
            raise UsageError(f"store_id must have 16 bytes, not {len(store_id)}")
        self.path = Path(path)
        self.mode = mode
        self.recovery = Recovery()
        self._files: FileSystem = filesystem or OsFileSystem()
        self._closed = False
        if mode == "read":
            self._look()
            self.recovery = _recovery(self._seen)
            if session is not None and self._seen.session is not None and not self._seen.damaged:
                require_same(session, self._seen.session)
            return
        self._log = BlockLog(self._files, self.engine, self.path, commit_blocks)
        try:
            self._session = self._create(session, store_id) if mode == "create" else self._resume(session)
            if mode == "append":
                self._merge_spill()
        except BaseException:
            self._log.release()
            raise

    def _create(self, session: Session | None, store_id: bytes | None) -> Session:
        if session is None:
            raise UsageError("a new store needs a session", hint="pass session=Session(...)")
        try:
            self._log.create(session, store_id)
        except OSError as error:
            raise StoreError(
                f"cannot create the store {self.path}: {error.strerror or error}",
                hint="make room and try again"
                if error.errno in (errno.ENOSPC, errno.EDQUOT)
                else "does the folder above it exist, and may you write there?",
            ) from error
        self.recovery.segments = self._log.state.end.blocks
        return session

    def _resume(self, session: Session | None) -> Session:
        require_store(self._files, self.engine, self.path)  # before the lock is touched
        try:
            check_version(self._files, self.path)
            self._log.lock()
        except OSError as error:
            raise StoreError(f"cannot open the store {self.path}: {error.strerror or error}") from error
        found = survey(self._files, self.engine, self.path, everything=True)
        found.close()
        stored = found.require_session(self.path)
        if session is not None:
            require_same(session, stored)
        self._log.resume(found)
        self.recovery = _recovery(found)
        if session is None:
            return stored
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
        """The session. A writer's is the caller's own, whose directory may grow; a reader's is what the store
        held at opening or at the last `snapshot`. Raises DamagedStoreError in mode "read"."""
        return self._seen.require_session(self.path) if self.mode == "read" else self._session

    def append(self, events: Events) -> int:
        """See `trident_core.contracts.Store.append`. `seq` starts at 1 or later. Events wait in memory until
        `sync`, `close` or a full commit.

        An append that was interrupted (KeyboardInterrupt) has taken place up to some event; `stats` says how
        far. Raises UsageError, with nothing written; StoreError when the engine refuses.
        """
        log = self._require_writer()
        log.require_writable()
        check_events(events, log.state.last_seq)
        log.record(self._session.directory)
        log.append(events)
        return log.state.last_seq

    def sync(self) -> int:
        """See `trident_core.contracts.Store.sync`. Raises StoreError when the engine refuses."""
        log = self._require_writer()
        log.sync()
        return log.durable.last_seq

    def snapshot(self) -> BlockSnapshot:
        """See `trident_core.contracts.Store.snapshot`. A reader's opens the engine's files again.
        Raises DamagedStoreError in mode "read"."""
        self._require_open()
        name = self.engine.name
        if self.mode == "read":
            if self._seen.damaged or not still_as(self._seen, self._files, self.path):
                self._look()
            found = self._seen
            session = copy_of(found.require_session(self.path), found.instruments)
            return BlockSnapshot(name, self._source, found.store_id, session, found.end)
        log, state = self._log, self._log.state
        session = copy_of(self._session, log.recorded)
        tail = log.waiting()
        return BlockSnapshot(name, log.source, log.store_id, session, state.end, state.pending, tail)

    def follow(self, after: int = 0) -> Iterator[Step]:
        """Snapshots that advance, of a store opened for reading: see `trident_core.follow.follow`."""
        return follow(self, self.path, after=after)

    def verify(self) -> Verification:
        """See `trident_core.contracts.Store.verify`. A writer's syncs first; what is on the disk is read."""
        self._require_open()
        if self.mode != "read" and not self._log.failure:
            self._log.sync()
        found = survey(self._files, self.engine, self.path, everything=True)
        found.close()
        return Verification(found.end.ordinal, found.end.last_seq, found.bytes, found.findings)

    def stats(self) -> dict[str, int]:
        """events, segments (blocks), bytes (of all the engine's files), last_seq, durable_events,
        durable_seq."""
        self._require_open()
        if self.mode == "read":
            end, mark = self._seen.end, self._seen.marks.mark
            events, last_seq, durable = end.ordinal, end.last_seq, mark.end if mark else End()
        else:
            state, durable = self._log.state, self._log.durable
            end, events, last_seq = state.end, state.events, state.last_seq
        folder = self.path / self.engine.name
        return {
            "events": events,
            "segments": end.blocks,
            "bytes": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
            "last_seq": last_seq,
            "durable_events": durable.ordinal,
            "durable_seq": durable.last_seq,
        }

    def close(self) -> None:
        """Sync and release. Idempotent. After a failure it only releases: that failure was raised."""
        if self._closed:
            return
        self._closed = True
        if self.mode == "read":
            del self._source  # snapshots keep it, and the files it has open, as long as they live
            return
        try:
            if not self._log.failure:
                self._log.sync()
        finally:
            self._log.release()

    def __enter__(self) -> BlockStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- small things --

    def _look(self) -> None:
        """Look at what is on the disk now."""
        self._seen = found = survey(self._files, self.engine, self.path, everything=False)
        if found.unfinished:
            found.close()
            found.require_session(self.path)
        view, found.view = found.view, None
        self._source = Source(lambda: open_view(self._files, self.engine, self.path), view)

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError(f"the store {self.path} is closed")

    def _require_writer(self) -> BlockLog:
        self._require_open()
        if self.mode == "read":
            raise UsageError(f"{self.path} is open for reading only", hint='open it with mode "append"')
        return self._log


def _recovery(found: Survey) -> Recovery:
    return Recovery(found.end.ordinal, found.torn[0], found.torn[1], found.end.blocks)
