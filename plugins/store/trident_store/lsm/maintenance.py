"""Behind the writer: sealed segments become tables, tables become larger tables.

The order of the steps is the protocol (docs/store-format.md): a table and its name are durable before the
manifest names it; the manifest is durable before anything is removed that it no longer names; and both marks
say that there are tables before the first segment is removed. A step that is interrupted leaves the state
before it in force.
"""

from __future__ import annotations

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
from trident_store.lsm.compaction import merged
from trident_store.lsm.layout import MAX_TABLE_EVENTS, Section, Shape, file_number
from trident_store.lsm.manifest import Entry, ManifestWriter
from trident_store.lsm.memtable import load, next_batch, start_of
from trident_store.lsm.table_writer import Meta, content_of, write_table
from trident_store.tables import Table
from trident_store.tableset import TableCache
from trident_store.writer import LogWriter


class Settings(NamedTuple):
    """`flush_bytes`: sealed segments are put into one table up to so many bytes. `fanout` neighbouring tables
    of a level become one of the next, if it has at most `table_events` events. `compaction_bytes_per_s`: how
    fast compaction writes; 0 is as fast as it can."""

    flush_bytes: int = 64 << 20
    fanout: int = 8
    table_events: int = 1 << 23
    compaction_bytes_per_s: int = 0
    shape: Shape = Shape()

    def check(self) -> None:
        """Raises UsageError."""
        if not 2 <= self.fanout <= 64:
            raise UsageError(f"fanout must be 2 to 64, not {self.fanout}")
        if not 1 <= self.table_events <= MAX_TABLE_EVENTS:
            raise UsageError(f"table_events must be 1 to {MAX_TABLE_EVENTS}, not {self.table_events}")
        if self.flush_bytes < 0 or self.compaction_bytes_per_s < 0 or min(self.shape) < 1:
            raise UsageError("sizes and rates of tables cannot be negative")


class Home(NamedTuple):
    """What maintenance needs of its store; each call is one moment for whoever uses the store meanwhile."""

    state: Callable[[], tuple[tuple[Extent, ...], tuple[Table, ...], Position]]
    """The sealed segments, the tables, and where the log goes on behind them."""
    upgrade: Callable[[], None]
    """Have both marks say that there are tables. Raises StoreError."""
    install: Callable[[tuple[Table, ...], Position], None]
    """Put these tables in force for new snapshots; forget the segments before the position's."""


class StopError(Exception):
    """The store is being closed; a compaction is given up."""


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
        self.waiting = False  # the ring presses on the store: a compaction under way holds still
        self.flushed_bytes = self.compacted_bytes = 0  # written since the store was opened
        self._work = threading.Lock()  # one step at a time
        self._manifest: ManifestWriter | None = None
        numbers = [file_number(name, "tab") for name in files.list_directory(folder)]
        self._next_table = max((n for n in numbers if n is not None), default=0) + 1
        self._directory: tuple[dict[int, Instrument], bytes] | None = None  # behind the last table

    def step(self, *, compact: bool = True) -> bool:
        """Do one thing that is due: a flush before a compaction; False when nothing was."""
        with self._work:
            if self.failure:
                return False
            try:
                return self._flush() or (compact and self._compact())
            except StopError:
                return False
            except (OSError, StoreError) as error:
                self.failure = str(getattr(error, "strerror", None) or error)
                return False

    def close(self) -> None:
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
        """Merge the first neighbours of a level that are enough for one table of the next."""
        _, tables, log = self._home.state()
        entries = [table.entry for table in tables]
        chosen = due(entries, self.settings)
        if chosen is None:
            return False
        first, end = chosen
        inputs = tables[first:end]
        for table in inputs:
            for finding in table.findings():
                raise damage(finding)
        last = inputs[-1]
        behind = Position(
            int(last.footer["log_segment"]), int(last.footer["log_offset"]), last.entry.end_ordinal,
            last.entry.last_seq,
        )  # fmt: skip
        offset, size, _ = last.sections[Section.SESSION]
        session_json = last.raw[offset : offset + size].tobytes()
        meta = self._meta(inputs[0].entry.level + 1, inputs[0].entry.first_ordinal, behind, session_json)
        content = merged(inputs, self.settings.shape)
        entry = write_table(self._files, self._folder, meta, content, self.settings.shape, Pace(self))
        self.compacted_bytes += entry.nbytes
        made = self._cache.open(self._writer.store_id, entry)
        self._publish((*tables[:first], made, *tables[end:]), log)
        for table in inputs:
            self._files.remove(self._folder / table.name)
        return True

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


class Pace:
    """Holds a compaction to its rate, and ends it when the store is being closed."""

    def __init__(self, maintenance: Maintenance) -> None:
        self._maintenance = maintenance
        self._began = time.monotonic()
        self._written = 0

    def __call__(self, nbytes: int) -> None:
        self._written += nbytes
        rate = self._maintenance.settings.compaction_bytes_per_s
        while True:
            if self._maintenance.stopping:
                raise StopError
            early = self._written / rate - (time.monotonic() - self._began) if rate else 0.0
            if early <= 0 and not self._maintenance.waiting:
                return
            time.sleep(min(max(early, 0.005), 0.05))


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
