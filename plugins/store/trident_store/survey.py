"""One walk over a store's files, for opening and for `verify`: the valid prefix, and all that is amiss.

A place that does not check is a *torn tail* when it lies behind the mark, in the last segment, and its bytes
are unreadable rather than contradictory: a crash explains it, and nothing there was acknowledged. Everything
else is damage. When one slot of the mark does not check, nothing is a torn tail: a slot is written only while
nothing else is, so a crash spoils the one or the other. In a store whose mark may trail that does not hold;
there nothing is a torn tail that stands before a settled frame: what that one saw was durable.

When the mark says that there are tables, these come first; the walk begins where the manifest
says that the log goes on behind them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from trident_core.contracts import Finding
from trident_core.dtypes import EVENT
from trident_core.errors import DamagedStoreError, StoreError, UsageError
from trident_core.session import Directory, Session
from trident_store.checks import where_else
from trident_store.filesystem import FileSystem, read
from trident_store.format import (
    MARK_NAME,
    RECORD_BYTES,
    SEGMENT_MAGIC,
    TABLES,
    TRAILING,
    Frame,
    FrameKind,
    Position,
    contradiction,
    crc32c,
    decode_frame,
    decode_instruments,
    decode_position,
    segment_name,
    segment_number,
    seq_problem,
)
from trident_store.found import Extent, Survey, Tear, notes
from trident_store.logscan import Walker, find_frame, only_zeros
from trident_store.lsm.manifest import Manifest, read_manifest
from trident_store.mark import Mark, read_mark
from trident_store.tables import finding_of
from trident_store.tableset import TableCache, TableSet, look_at_tables

_TRIES: Final = 16  # walks beside a writer that keeps moving the log into tables


def survey(
    files: FileSystem, folder: Path, *, payloads: bool, forget: bool = False, cache: TableCache | None = None
) -> Survey:
    """Walk the whole store. With `payloads` every byte is checked; without, the events in tables and in the
    log before the mark are left for the scan that reads them. `forget`: read mark and last segment from disk,
    not from the page cache. `cache`: keeps tables open from one walk to the next, and has what is faster
    than this module at frames that are sound.

    Raises StoreError when the folder is not a store, cannot be read, or has another format version.
    """
    cache = cache or TableCache(files, folder)
    try:
        for _ in range(_TRIES):
            found = _walk(files, folder, payloads, forget, cache)
            # A writer beside may have put tables in the place of segments since mark and manifest were read.
            if not found.damaged or _state_now(files, folder) == (found.mark.minor, found.manifest.place):
                break
        return found
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"there is no store at {folder}", hint="is the path right?") from None
    except OSError as error:
        raise StoreError(f"cannot read the store {folder}: {error.strerror or error}") from error


def _state_now(files: FileSystem, folder: Path) -> tuple[int, tuple[int, int]]:
    """(minor version, place of the manifest's newest record)."""
    mark = read_mark(files, folder)
    state = read_manifest(files, folder, mark.store_id) if mark.minor & TABLES else Manifest()
    return mark.minor, state.place if isinstance(state, Manifest) else (0, 0)


def _walk(files: FileSystem, folder: Path, payloads: bool, forget: bool, cache: TableCache) -> Survey:
    mark = read_mark(files, folder, forget=forget)
    tables = TableSet()
    if mark.minor & TABLES:
        tables = look_at_tables(files, folder, mark.store_id, cache, every_byte=payloads, forget=forget)
    first = tables.manifest.log.segment
    found = sorted(n for n in map(segment_number, files.list_directory(folder)) if n is not None)
    numbers = [n for n in found if n >= first]  # the others are in tables, and about to be removed
    if not found and mark.at is None:
        hint = where_else(files.list_directory(folder), "it has no segment (00000000.seg) in it")
        raise StoreError(f"{folder} is not a store", hint=hint)
    walk = _Walk(files, folder, mark, tables, payloads, forget, cache.walk)
    for number in numbers:
        walk.segment(number, last=number == numbers[-1])
    return walk.finish()


class _BrokenError(Exception):
    """A place that does not check. `frame`: its header does, only the payload is bad."""

    def __init__(self, problem: str, *, torn: bool, frame: Frame | None = None) -> None:
        super().__init__(problem)
        self.problem, self.torn, self.frame = problem, torn, frame


class _Walk:
    """The state of a walk: `here` is the place reached, `lost` says that its ordinal is not known."""

    def __init__(
        self, files: FileSystem, folder: Path, mark: Mark, tables: TableSet, payloads: bool, forget: bool,
        walk: Callable[..., Walker] | None,
    ) -> None:  # fmt: skip
        self.files, self.folder, self.payloads, self.forget = files, folder, payloads, forget
        self.walk = walk
        self.survey = Survey(mark.store_id, mark, manifest=tables.manifest, tables=tables.tables)
        self.here = self.start = tables.manifest.log
        self.next_number = self.start.segment
        self.sound = True  # nothing was amiss so far: `here` is the end of the valid prefix
        self.lost: Finding | None = None  # damage whose last ordinal the next readable header will tell
        self.mark_met = False
        self.events_met = False
        self.trailing = bool(mark.minor & TRAILING)
        self.buffer = np.empty(0, np.uint8)  # for payloads: new memory costs more than the checks
        self.behind_tables(tables)

    def behind_tables(self, tables: TableSet) -> None:
        """Begin where the tables end."""
        result, start = self.survey, self.start
        result.bytes = tables.bytes
        result.findings = list(tables.findings)
        if tables.tables:
            last = tables.tables[-1].entry
            result.end = Position(0, 0, last.end_ordinal, last.last_seq)
            try:
                result.session = tables.tables[-1].session
                result.instruments = dict(result.session.directory.as_mapping())
            except DamagedStoreError as error:
                result.findings.append(finding_of(error))
        self.sound = not result.damaged
        mark = result.mark.at
        if self.sound and start.segment:
            # Where the segment before the log's first one ended, a mark may still stand.
            result.end = start._replace(segment=start.segment - 1)
            if mark is not None and mark.place == result.end.place:
                self.meet_mark(mark, start)

    # -- segments --

    def segment(self, number: int, *, last: bool) -> None:
        """Walk one segment."""
        if number != self.next_number:
            gone = segment_name(self.next_number)
            self.error(gone, 0, f"segments are missing before {segment_name(number)}", lost=True)
        self.next_number = number + 1
        name = segment_name(number)
        try:
            handle = self.files.open(self.folder / name)
        except FileNotFoundError:
            if not last:  # a writer may have dropped a torn last one since the folder was listed
                self.error(name, 0, "the segment has gone", lost=True)
            return
        try:
            if self.forget and last:
                self.files.forget(handle)
            size = self.files.size(handle)
            self.survey.bytes += size
            if self.header(handle, number, size, last):
                self.frames(handle, number, size, last)
        except OSError as error:
            self.error(name, self.here.offset, f"cannot be read ({error.strerror})", lost=True)
        finally:
            self.files.close(handle)

    def header(self, handle: int, number: int, size: int, last: bool) -> bool:
        """Check a segment's header; True when its frames are worth a look."""
        name, mark = segment_name(number), self.survey.mark.at
        found = decode_position(SEGMENT_MAGIC, read(self.files, handle, RECORD_BYTES, 0).tobytes())
        if found is None:
            torn = last and self.tearable() and mark is not None and number > mark.segment
            if torn and number > self.start.segment:  # that one was durable before it was the log's first
                self.survey.tears.append(Tear(number, 0, size))
                return False
            self.error(name, 0, "the segment's header does not check", lost=True)
            self.here = self.here._replace(segment=number, offset=RECORD_BYTES)
            return True
        store_id, start = found
        if not self.survey.store_id:
            self.survey.store_id = store_id
        if store_id != self.survey.store_id:
            self.error(name, 0, "the segment is of another store", lost=True)
            return False
        if start.segment != number:
            self.error(name, 0, f"the file holds segment {start.segment}", lost=True)
            return False
        self.settle_lost(start.ordinal)
        if self.sound and start[1:4] != (self.here.offset, self.here.ordinal, self.here.last_seq):
            self.error(
                name,
                0,
                f"the segment continues event {start.ordinal}, offset {start.offset}; the one before ends "
                f"with {self.here.ordinal}, {self.here.offset}",
            )
        elif self.sound and start.epoch < self.here.epoch:
            self.error(name, 0, f"a segment of epoch {start.epoch} follows epoch {self.here.epoch}")
        self.here = start._replace(offset=RECORD_BYTES)
        if self.sound:
            self.survey.extents.append(Extent(number, RECORD_BYTES))
            self.survey.end = self.here
        return True

    # -- frames --

    def frames(self, handle: int, number: int, size: int, last: bool) -> None:
        fast = self.walk if self.payloads else None
        walker = fast(self.files, handle, number, size, self.survey.store_id) if fast else None
        while self.here.offset < size:
            if walker is not None and self.pass_over(walker) == size:
                break
            try:
                self.accept(self.frame(handle, size))
            except _BrokenError as broken:
                if broken.torn and last and self.behind_mark():
                    if self.tearable(handle, size):
                        self.survey.tears.append(Tear(number, self.here.offset, size - self.here.offset))
                        return
                    if self.written_meanwhile(handle, size):
                        continue
                if not self.skip(handle, size, broken):
                    return

    def pass_over(self, walker: Walker) -> int:
        """Pass over frames that are sound, up to the mark; the offset that is reached."""
        before, mark = self.here, self.survey.mark.at
        stop = mark.offset if mark is not None and mark.segment == before.segment else 0
        here = walker.pass_over(before, stop if before.offset < stop else 0)
        self.here = here
        self.events_met |= here.ordinal > before.ordinal
        if self.sound and here != before:
            self.survey.end = here
            self.survey.extents[-1] = Extent(here.segment, here.offset)
            if mark is not None and here.place == mark.place:
                self.meet_mark(mark, here)
        return here.offset

    def frame(self, handle: int, size: int) -> Frame:
        """The frame at `here`, checked. Raises _BrokenError."""
        here = self.here
        data = read(self.files, handle, RECORD_BYTES, here.offset).tobytes()
        frame = decode_frame(self.survey.store_id, data)
        if frame is None:
            raise _BrokenError("a frame's header does not check", torn=True)
        if self.trailing and frame.segment < here.segment:
            raise _BrokenError("a frame of what the segment's file was before", torn=True)
        problem = contradiction(frame, here)
        if problem:
            raise _BrokenError(problem, torn=False)
        if here.offset + RECORD_BYTES + frame.payload_bytes > size:
            raise _BrokenError("a frame is cut short", torn=True)
        if self.payloads or frame.kind != FrameKind.EVENTS or self.behind_mark():
            self.payload(handle, frame)
        return frame

    def payload(self, handle: int, frame: Frame) -> None:
        if len(self.buffer) < frame.payload_bytes:
            self.buffer = np.empty(frame.payload_bytes, np.uint8)
        payload = self.buffer[: frame.payload_bytes]
        got = self.files.read_into(handle, payload, frame.offset + RECORD_BYTES)
        if got < frame.payload_bytes or crc32c(payload) != frame.payload_crc:
            raise _BrokenError("a frame's payload does not check", torn=True, frame=frame)
        try:
            if frame.kind == FrameKind.EVENTS:
                problem = seq_problem(frame, payload.view(EVENT))
                if problem:
                    raise _BrokenError(problem, torn=False, frame=frame)
            elif self.sound and frame.kind == FrameKind.SESSION:
                self.survey.session = Session.from_json(json.loads(payload.tobytes()))
            elif self.sound and frame.kind == FrameKind.DIRECTORY:
                for instrument in decode_instruments(payload.tobytes()):
                    self.survey.instruments[instrument.locate] = instrument
        except (ValueError, TypeError, UsageError) as error:
            raise _BrokenError(
                f"a frame's JSON is not what it should be ({error})", torn=False, frame=frame
            ) from None

    def accept(self, frame: Frame) -> None:
        self.here = frame.after()
        self.events_met |= frame.kind == FrameKind.EVENTS
        if not self.sound:
            return
        self.survey.end = self.here
        self.survey.extents[-1] = Extent(frame.segment, self.here.offset)
        mark = self.survey.mark.at
        if mark is not None and self.here.place == mark.place:
            self.meet_mark(mark, self.here)

    def meet_mark(self, mark: Position, here: Position) -> None:
        self.mark_met = True
        if (here.ordinal, here.last_seq) != (mark.ordinal, mark.last_seq):
            self.error(MARK_NAME, 0, f"the mark counts {mark.ordinal} events where there are {here.ordinal}")

    def skip(self, handle: int, size: int, broken: _BrokenError) -> bool:
        """Record damage and go on behind it; False when nothing readable follows in this segment."""
        here, frame = self.here, broken.frame
        name = segment_name(here.segment)
        if frame is not None:
            self.here = frame.after()
            self.error(name, frame.offset, broken.problem, last=self.here.ordinal - 1, first=frame.ordinal)
            return True
        found = self.next_frame(handle, here.offset + RECORD_BYTES, size)
        if found is None:
            self.error(name, here.offset, broken.problem, lost=True)
            return False
        self.error(name, here.offset, broken.problem, last=found.ordinal - 1)
        before = found.first_seq - (found.kind == FrameKind.EVENTS)
        self.here = Position(found.segment, found.offset, found.ordinal, before, found.epoch)
        return True

    def next_frame(self, handle: int, start: int, size: int, *, settled: bool = False) -> Frame | None:
        """The next frame (the next settled one) of this segment whose header checks and says that it stands
        where it does."""
        store_id, segment = self.survey.store_id, self.here.segment
        return find_frame(self.files, handle, store_id, segment, start, size, settled=settled)

    # -- bookkeeping --

    def tearable(self, handle: int = -1, size: int = 0) -> bool:
        """May the next place be a torn tail, if it lies behind the mark? Not before a settled frame. When the
        mark does not trail and has a bad slot, only zeros up to `size` may: they were written ahead."""
        if self.trailing and handle >= 0:
            return self.next_frame(handle, self.here.offset + RECORD_BYTES, size, settled=True) is None
        if not self.survey.mark.bad_slots:
            return self.sound
        return self.sound and handle >= 0 and self.zeros(handle, size)

    def written_meanwhile(self, handle: int, size: int) -> bool:
        """Has a writer beside put a frame here, and settled ones behind it, since this place was read?"""
        try:
            self.accept(self.frame(handle, size))
        except _BrokenError:
            return False
        return self.trailing

    def zeros(self, handle: int, size: int) -> bool:
        """Are there only zeros from here to the end of the segment?"""
        return only_zeros(self.files, handle, self.here.offset, size)

    def behind_mark(self) -> bool:
        mark = self.survey.mark.at
        return mark is not None and self.here.place >= mark.place

    def error(
        self, file: str, offset: int, problem: str, *, first: int | None = None, last: int | None = None,
        lost: bool = False,
    ) -> None:  # fmt: skip
        """Note damage. `lost`: which events it touches is known only when the next header is read."""
        first = self.here.ordinal if first is None else first
        if last is not None and last < first:  # it held symbols, no events: whose, cannot be known
            last = None
        finding = Finding(file, offset, first, last, problem)
        self.survey.findings.append(finding)
        self.sound = False
        if lost and self.lost is None:
            self.lost = finding

    def settle_lost(self, ordinal: int) -> None:
        if self.lost is not None:
            self.lost.last = ordinal - 1 if ordinal > self.lost.first else None
            self.lost = None

    def finish(self) -> Survey:
        """Judge the end of the log against the mark."""
        if 0 < self.start.segment == self.next_number:
            self.error(segment_name(self.next_number), 0, "the log's first segment has gone", lost=True)
        result, mark, end = self.survey, self.survey.mark.at, self.survey.end
        if mark is None:
            result.unfinished = not self.events_met and self.next_number <= 1
            self.error(MARK_NAME, 0, "the mark of what is durable is missing or damaged", first=0)
        elif self.sound and end.place < mark.place:
            self.error(
                segment_name(end.segment),
                end.offset,
                f"the log ends, but is known to reach offset {mark.offset} of {segment_name(mark.segment)}",
                last=mark.ordinal - 1,
            )
        elif self.sound and not self.mark_met:
            self.error(MARK_NAME, 0, "the mark does not stand between two frames")
        if mark is not None:
            self.settle_lost(mark.ordinal)
        result.findings += notes(result)
        if result.session is not None:
            result.session.directory = Directory(result.instruments.values())
        return result
