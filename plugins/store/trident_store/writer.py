"""The writing end of a log: frames, rotation, the mark, and what happens when the disk refuses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from trident_core.dtypes import Events
from trident_core.errors import StoreError
from trident_core.session import Directory, Instrument
from trident_store.checks import check_events
from trident_store.filesystem import Buffer, FileSystem, write_all
from trident_store.format import (
    LOCK_NAME,
    MARK_NAME,
    RECORD_BYTES,
    SEGMENT_MAGIC,
    TRAILING,
    Frame,
    FrameKind,
    Position,
    encode_frame,
    encode_position,
    instrument_payloads,
    pad_frame,
    segment_name,
)
from trident_store.found import Extent, Survey
from trident_store.logstate import Log, Pending
from trident_store.mark import write_slot
from trident_store.recovery import recover
from trident_store.spares import Spares
from trident_store.staging import Staging
from trident_store.tableset import TableCache


class LogWriter:
    """The one writer of a store. Methods raise StoreError when the disk refuses; from then on `append` does
    so at once, and after a failed sync `sync` too: the next fsync would say yes although the data is gone."""

    #: When syncs come after fewer bytes, zeros are written ahead; of more they cost more than they save.
    EAGER_BYTES = 1 << 17
    AHEAD_FROM = 1 << 20  # from this size of a segment on
    #: A mark that trails is synced, too, when so many bytes of the log are durable behind the one that is.
    TRAILING_BYTES = 16 << 20
    _new_staging = Staging
    #: A frame of so many bytes is written with its padding while a sync follows each; None: never.
    PADDED_BYTES: int | None = None

    def __init__(
        self, files: FileSystem, folder: Path, segment_bytes: int, sector_bytes: int, *,
        ahead_bytes: int = 0, trailing: bool = False, spares: int = 0,
    ) -> None:  # fmt: skip
        self.store_id = b""
        self.trailing = trailing  # a sync of the log is not followed by one of the mark
        self.minor = TRAILING if trailing or spares else 0  # of the format, in what is written
        self.marked_minor = 0  # what both slots of the mark are known to say
        self.durable = Position()  # what the newest mark says
        self.recorded: dict[int, Instrument] = {}
        self.sync_failure = ""  # why nothing can be made durable any more
        self._write_failure = ""  # why nothing can be appended any more
        self._files, self._folder = files, folder
        self._segment_bytes, self.sector_bytes = segment_bytes, sector_bytes
        self._handles: list[int] = []
        self._pending: Pending | None = None
        self._torn = False  # a write failed: part of it may stand behind the log
        self._staging = self._new_staging()
        self._recorded_version = -1
        self._slot = 0
        self._mark_open = False  # a slot is being written; nothing else may be until it is durable
        self._ahead_bytes = ahead_bytes  # how far zeros are written ahead; 0: not at all
        self._ahead = 0  # where the bytes end that the segment has behind the log
        self._eager = False  # syncs come often
        self._unsynced = 0  # frames of events since the last sync
        self._alternate = False  # a sync has followed each frame
        self._settled = (0, 0)  # everything before this place is durable
        self._marked = Position()  # the newest mark that is itself durable
        self._spares = Spares(files, folder, spares, segment_bytes)

    # -- opening --

    def create(self, store_id: bytes, session_json: bytes) -> None:
        """Make an empty store in a folder that is not there or empty. Raises StoreError, OSError.

        A creation that fails or is interrupted leaves no file behind, unless the process dies of it.
        """
        files, folder = self._files, self._folder
        self.store_id = store_id
        try:
            files.make_directory(folder)
        except FileExistsError:
            if files.list_directory(folder):
                raise StoreError(
                    f"{folder} exists and is not empty",
                    hint='choose another folder, or open this one with mode "append"',
                ) from None
        files.sync_directory(folder.parent)
        self._handles.append(files.lock(folder / LOCK_NAME))
        mine = [LOCK_NAME]
        try:
            if files.list_directory(folder) != mine:
                mine = []
                raise StoreError(f"{folder} is being created by another process")
            mine = [MARK_NAME, segment_name(0), LOCK_NAME]  # to be removed in this order
            self._lay_out(store_id, session_json)
        except BaseException:
            with contextlib.suppress(OSError):
                left = files.list_directory(folder)
                for name in (name for name in mine if name in left):
                    files.remove(folder / name)
            raise

    def _lay_out(self, store_id: bytes, session_json: bytes) -> None:
        """The first segment with the session, then the mark."""
        files, folder = self._files, self._folder
        self._log = self._new_segment(0, Position(), ())
        self._put(FrameKind.SESSION, session_json, 1, 0, 0)
        self._pad()
        files.sync(self._log.handle)
        # The mark comes last: without one, creation was interrupted. It has both slots from the start, so
        # that a slot which does not check always means something.
        self._mark = files.open(folder / MARK_NAME, write=True, create=True)
        self._handles.append(self._mark)
        for slot in (0, 1):
            write_slot(files, self._mark, slot, store_id, self._log.end, self.minor)
        files.sync_directory(folder)
        self.durable = self._marked = self._log.end
        self._settled = self._log.end.place

    def resume(self, cache: TableCache) -> Survey:
        """Lock and recover a store; return what was found. Raises StoreError, OSError."""
        self._handles.append(self._files.lock(self._folder / LOCK_NAME))
        found, end, handle, self._mark = recover(
            self._files, self._folder, self.sector_bytes, cache, self.minor
        )
        self._handles += [handle, self._mark]
        self.store_id = found.store_id
        self.minor = self.marked_minor = self.minor | found.mark.minor
        self._log = Log(handle, end, tuple(found.extents[:-1]))
        self.durable = self._marked = end
        self._settled = end.place
        self.recorded = dict(found.instruments)
        return found

    # -- state --

    @property
    def end(self) -> Position:
        return self._log.end

    @property
    def extents(self) -> tuple[Extent, ...]:
        """All segments with their bytes."""
        return (*self._log.sealed, Extent(self._log.end.segment, self._log.end.offset))

    # -- writing --

    def check(self, events: Events) -> None:
        """Raises UsageError unless these events may be appended."""
        check_events(events, self.end.last_seq)

    def append(self, payload: Buffer, count: int, first_seq: int, last_seq: int) -> None:
        """Append one frame of `count` events."""
        self._alternate = self._alternate and not self._unsynced
        self._unsynced += 1
        self._put(FrameKind.EVENTS, payload, count, first_seq, last_seq)

    def record(self, directory: Directory) -> None:
        """Append what the directory gained, if anything. Raises UsageError, with nothing written."""
        version = directory.version
        if version == self._recorded_version:
            return
        new = [each for each in directory if self.recorded.get(each.locate) != each]
        last = self._log.end.last_seq
        for payload, part in list(instrument_payloads(new)):
            self._put(FrameKind.DIRECTORY, payload, len(part), last, last, part)
        self._recorded_version = version

    def require_writable(self) -> None:
        if self._write_failure:
            raise StoreError(f"{self._folder} is read-only: {self._write_failure}", hint="open it again")

    def settle(self) -> None:
        """Finish the frame that is being written, again if an interrupt came in between."""
        pending = self._pending
        if pending is None:
            return
        try:
            write_all(self._files, self._log.handle, pending.data, pending.offset)
        except OSError as error:
            raise self._refused("a write", error) from error
        self.recorded.update((instrument.locate, instrument) for instrument in pending.instruments)
        self._log = self._log._replace(end=pending.end)
        self._pending = None

    def sync(self) -> None:
        """Make everything durable, then the mark that says so, unless it trails."""
        if self.sync_failure:
            raise StoreError(f"{self._folder} is read-only: {self.sync_failure}", hint="open it again")
        self.settle()
        if self._torn:
            self._cut()
        self._alternate, self._unsynced = self._unsynced == 1, 0
        if self._log.end.place != self.durable.place:
            self._pad()
            end, durable = self._log.end, self.durable
            short = end.segment == durable.segment and end.offset - durable.offset < self.EAGER_BYTES
            self._eager = short and end.offset >= self.AHEAD_FROM
            near = end.segment == self._marked.segment
            near = near and end.offset - self._marked.offset < self.TRAILING_BYTES
            try:
                self._files.sync(self._log.handle)
                self._settled = end.place
                self._set_mark(end, trailing=self.trailing and near)
            except OSError as error:
                raise self._refused("a sync", error, sync=True) from error

    @property
    def trails(self) -> bool:
        """Is the durable mark behind what is durable?"""
        return self._marked.place != self.durable.place

    def sync_mark(self) -> None:
        """Make the mark durable, too, if it trails. Raises StoreError."""
        if self.trails and not self.sync_failure:
            with self._guard("a sync", sync=True):
                self._set_mark(self.durable)

    def _cut(self) -> None:
        """Take away what a failed write left: a crash that tears a slot of a mark must find no torn tail."""
        with self._guard("cutting a segment", sync=True):
            self._files.truncate(self._log.handle, self._log.end.offset)
            self._files.sync(self._log.handle)
        self._ahead, self._torn = 0, False

    def begin_segment(self) -> None:
        """Seal the segment being written, unless nothing is in it, and begin the next. Raises StoreError."""
        self.require_writable()
        self.settle()
        if self._mark_open:
            self.sync()
        if self._log.end.offset > self.sector_bytes + RECORD_BYTES:
            self._rotate()

    def upgrade(self, minor: int) -> None:
        """Have both slots of the mark say that a reader must know this minor version. Raises StoreError."""
        self.minor |= minor
        self.sync()
        with self._guard("a sync", sync=True):
            for _ in (0, 1):
                self._set_mark(self._log.end)
        self.marked_minor = self.minor

    def drop_sealed(self, before: int) -> None:
        """Forget the sealed segments below this number: tables have taken their place."""
        kept = tuple(extent for extent in self._log.sealed if extent.number >= before)
        self._log = self._log._replace(sealed=kept)

    def retire(self, segment: Extent) -> None:
        """Tables have taken the place of a segment: its file becomes a spare or goes. Raises OSError."""
        self._spares.keep(segment)

    def finish(self) -> None:
        """Make everything durable, and the file as long as the log. Raises StoreError."""
        trimmed = self.trim()
        self.sync()
        self.sync_mark()
        if trimmed:
            with self._guard("a sync", sync=True):
                self._files.sync(self._log.handle)
        self._spares.remove()

    def release(self) -> None:
        """Close all handles, the lock's too. Idempotent."""
        handles, self._handles = self._handles, []
        for handle in handles:
            with contextlib.suppress(OSError):
                self._files.close(handle)

    def _put(
        self, kind: FrameKind, payload: Buffer, count: int, first: int, last: int,
        instruments: tuple[Instrument, ...] = (),
    ) -> None:  # fmt: skip
        end = self._log.end
        if end.offset > self.sector_bytes and end.offset + RECORD_BYTES + len(payload) > self._segment_bytes:
            self._rotate()
            end = self._log.end
        frame = Frame(
            kind=kind, count=count, epoch=end.epoch, ordinal=end.ordinal, first_seq=first, last_seq=last,
            payload_bytes=len(payload), payload_crc=0, offset=end.offset, segment=end.segment,
        )  # fmt: skip  # the CRC is that of the copy that is written
        self._write(frame, payload, instruments)

    def _pad(self) -> None:
        """Fill the sector. Later writes may spoil only sectors in which nothing is acknowledged."""
        pad = pad_frame(self._log.end, self.sector_bytes)
        if pad is not None:
            self._write(*pad)

    def _write(self, frame: Frame, payload: Buffer, instruments: tuple[Instrument, ...] = ()) -> None:
        if self._mark_open:  # an interrupt came in between
            self.sync()
        pad, end = None, frame.after()
        if self._alternate and self.PADDED_BYTES is not None and len(payload) >= self.PADDED_BYTES:
            pad = pad_frame(end, self.sector_bytes)
            end = pad[0].after() if pad else end
        settled = bool(self.minor & TRAILING) and (frame.segment, frame.offset) == self._settled
        data = self._staging.encode(self.store_id, frame._replace(settled=settled), payload, pad)
        self._pending = Pending(data, frame.offset, end, instruments)
        self.settle()
        if self._eager and self._log.end.offset > self._ahead:
            self._write_ahead()

    def _write_ahead(self) -> None:
        """Zeros behind the log: a sync of blocks that are written already has no file size to record, and
        takes about half the time. They are what a crash may leave there anyhow; `trim` takes them away."""
        start = self._log.end.offset
        self._ahead = min(start + self._ahead_bytes, self._segment_bytes)
        if self._ahead > start:
            with contextlib.suppress(OSError):  # nothing is lost; the next frame will say what is wrong
                write_all(self._files, self._log.handle, bytes(self._ahead - start), start)

    def trim(self) -> bool:
        """Take away the zeros that were written ahead; True when there were any. Raises StoreError."""
        self.settle()
        if self._ahead <= self._log.end.offset:
            return False
        with self._guard("cutting a segment"):
            self._files.truncate(self._log.handle, self._log.end.offset)
        self._ahead = 0
        return True

    def _rotate(self) -> None:
        """Seal the segment and begin the next. Only the last segment may ever hold a torn tail: what a
        sealed one holds is durable, and marked so, before the next one exists."""
        self._pad()
        self.trim()
        old, end = self._log.handle, self._log.end
        with self._guard("beginning a segment", sync=True):
            self._files.sync(old)
            self._set_mark(end)
            self._ahead = 0
            self._log = self._new_segment(end.segment + 1, end, self.extents)
            self._settled = self._log.end.place
            self._handles.remove(old)
            self._files.close(old)

    def _new_segment(self, number: int, before: Position, sealed: tuple[Extent, ...]) -> Log:
        """Create a segment behind `before`, of a spare file if there is one; its header and its name are
        durable on return. What a spare holds behind the header is the end of the log wherever it is met."""
        path = self._folder / segment_name(number)
        spare = self._spares.take()
        handle = self._files.open(spare or path, write=True, create=spare is None)
        self._handles.append(handle)
        start = before._replace(segment=number)
        data = encode_position(SEGMENT_MAGIC, self.store_id, start, self.minor)
        start = start._replace(offset=RECORD_BYTES)
        pad = pad_frame(start, self.sector_bytes)
        if number and pad is not None:  # the first segment's first frame is the session's
            data += encode_frame(self.store_id, pad[0]) + pad[1]
            start = pad[0].after()
        write_all(self._files, handle, data, 0)
        self._files.sync(handle)
        if spare is not None:
            self._ahead = self._files.size(handle)
            self._files.rename(spare, path)
        self._files.sync_directory(self._folder)
        return Log(handle, start, sealed)

    def _set_mark(self, end: Position, *, trailing: bool = False) -> None:
        """Write a slot of the mark. `trailing`: without a sync. A crash may then spoil it; the other one is
        durable, and stays as it is until this one is, too."""
        self._mark_open = not trailing
        write_slot(self._files, self._mark, self._slot, self.store_id, end, self.minor, sync=not trailing)
        if trailing:
            self.durable = end
        else:
            self.durable, self._marked, self._slot = end, end, 1 - self._slot
        self._mark_open = False

    @contextlib.contextmanager
    def _guard(self, doing: str, *, sync: bool = False) -> Iterator[None]:
        """Turn an OSError into a StoreError, and the store read-only."""
        try:
            yield
        except OSError as error:
            raise self._refused(doing, error, sync=sync) from error

    def _refused(self, doing: str, error: OSError, *, sync: bool = False) -> StoreError:
        """What to raise of a disk that refuses; the store is read-only from now on."""
        self._pending, self._torn = None, True
        self._write_failure = f"{doing} failed ({error.strerror or error})"
        if sync:
            self.sync_failure = self._write_failure
        return StoreError(
            f"{self._folder}: {self._write_failure}; the store has {self._log.end.ordinal} events",
            hint="it is read-only now, what was acknowledged is safe; see to the disk and open it again",
        )
