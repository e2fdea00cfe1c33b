"""Behind the writer: sealed segments become tables, tables become larger tables.

The order of the steps is the protocol (docs/store-format.md): a table and its name are durable before the
manifest names it; the manifest is durable before anything is removed that it no longer names; and both marks
say that there are tables before the first segment is removed. A step that is interrupted leaves the state
before it in force.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from trident_core.contracts import Finding
from trident_core.errors import StoreError, UsageError
from trident_core.session import Instrument, Session
from trident_store.checks import copy_of
from trident_store.filesystem import FileSystem
from trident_store.format import TABLES, Position, encode_json, segment_name
from trident_store.found import Extent, damage
from trident_store.logfiles import LogFiles
from trident_store.lsm.jobs import find_job
from trident_store.lsm.layout import MAX_TABLE_EVENTS, Shape, file_number, job_name, table_name
from trident_store.lsm.manifest import Entry, Manifest, ManifestWriter
from trident_store.lsm.memtable import load, next_batch, start_of
from trident_store.lsm.merging import Merge
from trident_store.lsm.table_writer import Meta, content_of, write_table
from trident_store.tables import Table
from trident_store.tableset import TableCache
from trident_store.writer import LogWriter


class Settings(NamedTuple):
    """`flush_bytes`: sealed segments are put into one table up to so many bytes. `fanout` neighbouring tables
    of a level become one of the next, if it has at most `table_events` events. `compaction_bytes_per_s`: how
    fast compaction writes; 0 is as fast as it can. After so many `checkpoint_events` what a compaction has
    written is made durable, and it goes on from there after a crash."""

    flush_bytes: int = 64 << 20
    fanout: int = 8
    table_events: int = 1 << 23
    compaction_bytes_per_s: int = 0
    shape: Shape = Shape()
    checkpoint_events: int = 1 << 19

    def check(self) -> None:
        """Raises UsageError."""
        if not 2 <= self.fanout <= 64:
            raise UsageError(f"fanout must be 2 to 64, not {self.fanout}")
        if not 1 <= self.table_events <= MAX_TABLE_EVENTS:
            raise UsageError(f"table_events must be 1 to {MAX_TABLE_EVENTS}, not {self.table_events}")
        if min(self.flush_bytes, self.compaction_bytes_per_s) < 0 or min(self.shape) < 1:
            raise UsageError("sizes and rates of tables cannot be negative")
        if self.checkpoint_events < 1:
            raise UsageError(f"checkpoint_events must be at least 1, not {self.checkpoint_events}")


class Home(NamedTuple):
    """What maintenance needs of its store; each call is one moment for whoever uses the store meanwhile."""

    state: Callable[[], tuple[tuple[Extent, ...], tuple[Table, ...], Position]]
    """The sealed segments, the tables, and where the log goes on behind them."""
    upgrade: Callable[[], None]
    """Have both marks say that there are tables. Raises StoreError."""
    install: Callable[[tuple[Table, ...], Position], None]
    """Put these tables in force for new snapshots; forget the segments before the position's."""


class Maintenance:
    """Flush and compaction, a step at a time. `failure` says why no more is done until the store is opened
    again: after an error it is not known what the disk holds, and the log alone is enough."""

    def __init__(
        self, files: FileSystem, folder: Path, writer: LogWriter, session: Session, cache: TableCache,
        log_files: LogFiles, home: Home, settings: Settings,
    ) -> None:  # fmt: skip
        self._files, self._folder, self._writer, self._session = files, folder, writer, session
        self._cache, self._log_files, self._home, self.settings = cache, log_files, home, settings
        self.failure = ""
        self.stopping = False
        self.flushed_bytes = self.compacted_bytes = 0  # written since the store was opened
        self.pause: float | None = None
        self._work = threading.Lock()  # one step at a time
        self._merge: Merge | None = None  # the compaction under way
        self._merge_began, self._merge_bytes = 0.0, 0  # since when, and what it has written since
        self._look = True  # an earlier opening, or an interrupt, may have left one
        self._manifest: ManifestWriter | None = None
        numbers = [file_number(name, "tab") for name in files.list_directory(folder)]
        self._next_table = max((n for n in numbers if n is not None), default=0) + 1
        self._directory: tuple[dict[int, Instrument], bytes] | None = None  # behind the last table

    def step(self, *, compact: bool = True) -> bool:
        """Do one thing that is due: a flush, before a part of a compaction. False when nothing is, or, when
        `pause` says so, not before so many seconds have passed."""
        with self._work:
            self.pause = None
            if self.failure or self.stopping:
                return False
            try:
                return self._flush() or (compact and self._compact())
            except (OSError, StoreError) as error:
                self.failure = str(getattr(error, "strerror", None) or error)
                return False

    def step_or_wait(self) -> bool:
        """As `step`; when something is due later, it waits a little. False when nothing is left to do."""
        if self.step():
            return True
        if self.pause is None:
            return False
        time.sleep(min(self.pause, 0.05))
        return not self.stopping

    def close(self) -> None:
        """Leave a compaction under way as something that the next opening goes on with."""
        self.stopping = True
        with self._work:
            merge, self._merge = self._merge, None
            if merge is not None:
                with contextlib.suppress(OSError):  # it costs nothing but the work
                    merge.checkpoint()
                merge.close()
            if self._manifest is not None:
                self._manifest.close()

    # -- flush --

    def _flush(self) -> bool:
        """Make a table of the first sealed segments, put it in their place, remove them."""
        sealed, tables, log = self._home.state()
        batch = next_batch(sealed, self.settings.flush_bytes)
        if not batch:
            return False
        last = batch[-1]
        behind = self._log_files.part(self._writer.store_id, log, [Extent(last.number + 1, 0)], log)
        after = start_of(self._files, behind.segments[0][1], self._writer.store_id)
        if after is None or after.offset != last.end:
            name = segment_name(last.number + 1)
            raise damage(Finding(name, 0, log.ordinal, None, "the segment's header does not check"))
        if after.ordinal == log.ordinal:  # symbols only: they wait for events
            return False
        end = after._replace(segment=last.number, offset=last.end)
        part = self._log_files.part(self._writer.store_id, log, batch, end)
        found = load(part)
        del part, behind  # so that the segments may be used again
        session_json = self._session_json(tables, found.instruments)
        meta = self._meta(0, log.ordinal, after, session_json)
        content = content_of(found.events, self.settings.shape)
        entry = write_table(self._files, self._folder, meta, content, self.settings.shape)
        self.flushed_bytes += entry.nbytes
        self._publish((*tables, self._cache.open(self._writer.store_id, entry)), after)
        for extent in batch:
            self._writer.retire(extent)
        return True

    def _meta(self, level: int, first: int, log: Position, session_json: bytes) -> Meta:
        number, self._next_table = self._next_table, self._next_table + 1
        return Meta(self._writer.store_id, number, level, self._writer.end.epoch, first, log, session_json)

    def _session_json(self, tables: Sequence[Table], gained: list[Instrument]) -> bytes:
        """The session with the directory behind the last table, and what came then."""
        known = self._directory
        if known is None or gained:
            before = known[0] if known is not None else self._stored_directory(tables)
            now = before | {instrument.locate: instrument for instrument in gained}
            known = self._directory = (now, encode_json(copy_of(self._session, now).to_json()))
        return known[1]

    def _stored_directory(self, tables: Sequence[Table]) -> dict[int, Instrument]:
        return dict(tables[-1].session.directory.as_mapping()) if tables else {}

    # -- compaction --

    def _compact(self) -> bool:
        """Take a compaction one step further: the one under way, or the first that is due."""
        merge = self._merge or self._next_merge()
        if merge is None:
            return False
        self.pause = self._early()
        if self.pause:
            return False
        before = merge.written
        try:
            entry = merge.step()
        except (OSError, StoreError):
            self._merge = None
            merge.close(keep=False)
            raise
        except BaseException:  # an interrupt: what is done is gone on with
            self._merge, self._look = None, True
            merge.close()
            raise
        self._merge_bytes += merge.written - before
        self.compacted_bytes += merge.written - before
        if entry is not None:
            self._finish(merge, entry)
        return True

    def _next_merge(self) -> Merge | None:
        """What an earlier opening left unfinished, else the first neighbours of a level that are enough for
        one table of the next."""
        _, tables, log = self._home.state()
        entries = tuple(table.entry for table in tables)
        files, folder, store_id = self._files, self._folder, self._writer.store_id
        every, merge = self.settings.checkpoint_events, None
        if self._look:
            self._look = False
            job = find_job(files, folder, store_id, Manifest(entries, log))
            if job is not None:
                first = entries.index(job.inputs[0])
                inputs = tables[first : first + len(job.inputs)]
                merge = Merge.resumed(files, folder, store_id, inputs, job, every)
                if merge is None:
                    for name in (table_name(job.number), job_name(job.number)):
                        files.remove(folder / name)
        chosen = due(entries, self.settings)
        if merge is None and chosen is not None:
            number, self._next_table = self._next_table, self._next_table + 1
            epoch, shape = self._writer.end.epoch, self.settings.shape
            inputs = tables[chosen[0] : chosen[1]]
            merge = Merge.begun(files, folder, store_id, inputs, number, epoch, shape, every)
        self._merge, self._merge_began, self._merge_bytes = merge, time.monotonic(), 0
        return merge

    def _early(self) -> float | None:
        """How many seconds the compaction is ahead of the rate that is set."""
        rate = self.settings.compaction_bytes_per_s
        early = self._merge_bytes / rate - (time.monotonic() - self._merge_began) if rate else 0.0
        return early if early > 0 else None

    def _finish(self, merge: Merge, entry: Entry) -> None:
        """The new table takes the place of the old ones, and these are removed."""
        self._merge = None
        merge.close()
        _, tables, log = self._home.state()
        first = tables.index(merge.inputs[0])
        made = self._cache.open(self._writer.store_id, entry)
        self._publish((*tables[:first], made, *tables[first + len(merge.inputs) :]), log)
        for table in merge.inputs:
            self._files.remove(self._folder / table.name)
        self._files.remove(self._folder / job_name(entry.table))

    # -- both --

    def _publish(self, tables: tuple[Table, ...], log: Position) -> None:
        """Put a state in force: on the disk, then for new snapshots."""
        if self._manifest is None:
            self._manifest = ManifestWriter(
                self._files, self._folder, self._writer.store_id, self._writer.end.epoch,
                self._writer.sector_bytes,
            )  # fmt: skip
        entries = [table.entry for table in tables]
        self._manifest.publish(entries, log)
        if not self._writer.marked_minor & TABLES:
            self._home.upgrade()
        self._home.install(tables, log)
        self._cache.keep(entries)


def due(entries: Sequence[Entry], settings: Settings) -> tuple[int, int] | None:
    """[first, end) of the neighbours to merge next: of the lowest level that has enough, the oldest."""
    best: tuple[int, int, int] | None = None
    first = 0
    for i in range(1, len(entries) + 1):
        if i < len(entries) and entries[i].level == entries[first].level:
            continue
        end = first + settings.fanout
        events = sum(entry.count for entry in entries[first:end])
        if end <= i and events <= settings.table_events and (best is None or entries[first].level < best[0]):
            best = (entries[first].level, first, end)
        first = i
    return best and best[1:]
