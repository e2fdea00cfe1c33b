"""The writing half of a block store: events to blocks, blocks to the engine, then the mark.

Up to 4,096 events wait in the tail for a block to be full, blocks wait for a commit: both are memory, nothing
of them is durable, and all of them is when `sync` returns. So every write of the engine is a durable,
atomic commit, and no order of unsynced writes can ever matter.
"""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError
from trident_core.session import Directory, Instrument, Session
from trident_store.blocks.engine import Engine, EngineError, Source, Writer
from trident_store.blocks.format import MAX_BLOCK_EVENTS, End, encode_block
from trident_store.blocks.mark import MARK_NAME, Mark, write_mark
from trident_store.blocks.survey import Survey, open_view
from trident_store.filesystem import FileSystem
from trident_store.format import LOCK_NAME, FrameKind, encode_json, instrument_payloads


class State(NamedTuple):
    """What is appended: `end` of the blocks, those that are not committed yet, events in the tail.

    One object, so that an interrupt finds it as it was before or as it is after a step.
    """

    end: End = End()
    pending: tuple[bytes, ...] = ()
    tail: int = 0
    last_seq: int = 0

    @property
    def events(self) -> int:
        return self.end.ordinal + self.tail


class BlockLog:
    """One writer of a store. Raises StoreError when the engine refuses; then nothing more is written."""

    def __init__(self, files: FileSystem, engine: Engine, folder: Path, commit_blocks: int) -> None:
        self._files, self._engine, self._folder = files, engine, folder
        self._commit_blocks = commit_blocks
        self._handles: list[int] = []
        self._tail = np.empty(MAX_BLOCK_EVENTS, EVENT)
        self._writer: Writer | None = None
        self._retry = False  # a commit was begun and its end not seen
        self._turn = 0
        self.failure = ""
        self.state = State()
        self.durable = End()
        self.recorded: dict[int, Instrument] = {}
        self._recorded_version = -1

    # -- opening --

    def lock(self) -> None:
        self._handles.append(self._files.lock(self._folder / LOCK_NAME))

    def create(self, session: Session, store_id: bytes | None) -> None:
        """Make an empty store in a folder that is not there or empty. Raises OSError, StoreError.

        A creation that fails or is interrupted leaves no file behind, unless the process dies of it.
        """
        files, folder = self._files, self._folder
        self.store_id = uuid.uuid4().bytes if store_id is None else store_id
        try:
            files.make_directory(folder)
        except FileExistsError:
            if files.list_directory(folder):
                raise StoreError(
                    f"{folder} exists and is not empty",
                    hint='choose another folder, or open this one with mode "append"',
                ) from None
        files.sync_directory(folder.parent)
        self.lock()
        if files.list_directory(folder) != [LOCK_NAME]:
            raise StoreError(f"{folder} is being created by another process")
        try:
            self._lay_out(session)
        except BaseException:
            self.release()
            shutil.rmtree(folder / self._engine.name, ignore_errors=True)
            for name in (MARK_NAME, LOCK_NAME):
                (folder / name).unlink(missing_ok=True)
            raise

    def _lay_out(self, session: Session) -> None:
        """The session's block, then the mark: without one, creation was interrupted."""
        with self._engine_guard():
            self._attach(self._engine.create(self._folder / self._engine.name))
        self._put(FrameKind.SESSION, 1, encode_json(session.to_json() | {"directory": []}))
        self._open_mark(create=True)
        self.record(session.directory)
        self.sync()
        with self._engine_guard():
            self._set_mark()
            self._files.sync_directory(self._folder)

    def resume(self, found: Survey) -> None:
        """Go on behind a sound store. Raises StoreError when the engine then shows another end."""
        assert found.marks.mark is not None
        self.store_id, self._turn = found.store_id, found.marks.mark.turn
        with self._engine_guard():
            self._attach(self._engine.write(self._folder / self._engine.name, found.marks.mark.hint))
            last, beyond = self.source.get(found.end.blocks - 1), self.source.get(found.end.blocks)
        if last is None or beyond is not None:
            raise StoreError(
                f"{self._engine.name} shows other blocks for writing than for reading",
                hint="`trident verify` tells what is wrong with the store",
            )
        self.state = State(found.end, last_seq=found.end.last_seq)
        self.recorded = dict(found.instruments)
        with self._engine_guard():
            self._open_mark(create=False)
            for _ in range(2):  # both slots: the note in an older one may be of files that are gone
                self._set_mark()

    def _attach(self, writer: Writer) -> None:
        self._writer = writer
        self.source = Source(lambda: open_view(self._files, self._engine, self._folder), writer, live=True)

    def _open_mark(self, *, create: bool) -> None:
        self._mark = self._files.open(self._folder / MARK_NAME, write=True, create=create)
        self._handles.append(self._mark)
        # A slot that a killed process left in the cache: durable before the other one is written.
        self._files.sync(self._mark)

    # -- writing --

    def append(self, events: Events) -> None:
        """Append checked events."""
        at = 0
        while at < len(events):
            state = self.state
            if state.tail == MAX_BLOCK_EVENTS:  # an interrupt came before it was sealed
                self._seal(self._tail)
                continue
            take = min(MAX_BLOCK_EVENTS - state.tail, len(events) - at)
            part, at = events[at : at + take], at + take
            if take < MAX_BLOCK_EVENTS:
                rows = self._tail.view("<u8").reshape(-1, 8)  # moves as memory, not field by field
                rows[state.tail : state.tail + take] = part.view("<u8").reshape(-1, 8)
                self.state = state._replace(tail=state.tail + take, last_seq=int(part["seq"][-1]))
                if state.tail + take == MAX_BLOCK_EVENTS:
                    self._seal(self._tail)
            else:
                self._seal(part)
            if len(self.state.pending) >= self._commit_blocks:
                self._commit()

    def _seal(self, events: Events) -> None:
        """Make a block of the events that stand behind the last one (the tail, or a part of the caller's)."""
        self._put(
            FrameKind.EVENTS, len(events), events.tobytes(), int(events["seq"][0]), int(events["seq"][-1])
        )

    def _put(
        self, kind: FrameKind, count: int, payload: bytes, first: int | None = None, last: int | None = None
    ) -> None:
        state = self.state
        before = state.end.last_seq
        block, end = encode_block(
            self.store_id, state.end, kind, count,
            before if first is None else first, before if last is None else last, payload,
        )  # fmt: skip
        events = kind == FrameKind.EVENTS
        self.state = State(
            end,
            (*state.pending, block),
            0 if events else state.tail,
            end.last_seq if events else state.last_seq,
        )

    def record(self, directory: Directory) -> None:
        """Append what the directory gained, if anything. Raises UsageError, with nothing written."""
        version = directory.version
        if version == self._recorded_version:
            return
        new = [each for each in directory if self.recorded.get(each.locate) != each]
        for payload, part in list(instrument_payloads(new)):
            self._put(FrameKind.DIRECTORY, len(part), payload)
            self.recorded.update((each.locate, each) for each in part)
        self._recorded_version = version

    def sync(self) -> None:
        """Make everything durable, then the mark that says so."""
        self.require_writable()
        if self.state.tail:
            self._seal(self._tail[: self.state.tail])
        if self.durable != self.state.end:
            self._commit()

    def _commit(self) -> None:
        self.require_writable()
        assert self._writer is not None
        state = self.state
        with self._engine_guard():
            if state.pending:
                blocks, first = state.pending, state.end.blocks - len(state.pending)
                while self._retry and blocks and self._writer.get(first) is not None:
                    blocks, first = blocks[1:], first + 1  # an interrupt came after the commit
                self._retry = True
                self._writer.commit(first, blocks)
                self.state = state._replace(pending=())
                self._retry = False
            self._set_mark()

    def _set_mark(self) -> None:
        assert self._writer is not None
        end = self.state.end
        mark = Mark(self.store_id, end, self._writer.hint, self._turn + 1)
        write_mark(self._files, self._mark, mark)
        self.durable, self._turn = end, self._turn + 1

    def require_writable(self) -> None:
        if self.failure:
            raise StoreError(f"{self._folder} is read-only: {self.failure}", hint="open it again")

    @contextlib.contextmanager
    def _engine_guard(self) -> Iterator[None]:
        """What fails may have reached the disk or not: after it, nothing is written or called durable."""
        try:
            yield
        except (EngineError, OSError) as error:
            self.failure = error.problem if isinstance(error, EngineError) else error.strerror or str(error)
            raise StoreError(
                f"cannot write to {self._folder}: {self.failure}",
                hint="what was durable before is safe; make room or mend the disk, and open it again",
            ) from error

    # -- for snapshots, and the end --

    def waiting(self) -> Events:
        """A copy of the events in the tail."""
        return self._tail[: self.state.tail].copy()

    def release(self) -> None:
        """Close everything, the lock last. Idempotent.

        Raises StoreError when the engine refuses, unless an earlier failure of its was raised already.
        """
        writer, self._writer = self._writer, None
        failed_before = bool(self.failure)
        try:
            if writer is not None:
                self.source.detach()
                with self._engine_guard():
                    writer.close()
        except StoreError:
            if not failed_before:
                raise
        finally:
            handles, self._handles = self._handles, []
            for handle in reversed(handles):
                with contextlib.suppress(OSError):
                    self._files.close(handle)
