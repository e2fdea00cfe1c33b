"""A table, read in plain numpy: opened, checked, and given out in append order. Layout: docs/store-format.md.

Every byte of a table hangs on its line in the manifest: that has the footer's CRC, the footer those of the
sections, and these those of the pieces of the events and of the large indexes. The small sections are checked
when a table is opened, the pieces before they are first used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Finding
from trident_core.dtypes import EVENT, Events
from trident_core.errors import DamagedStoreError, UsageError
from trident_core.session import Session
from trident_store.filesystem import FileSystem, read
from trident_store.format import VERSION, Position, crc32c, decode_position
from trident_store.lsm.layout import (
    BLOCK,
    CHECKED_AT_OPENING,
    COLUMN_BYTES,
    COLUMN_OFFSETS,
    COLUMNS,
    FOOTER,
    FOOTER_BYTES,
    FOOTER_MAGIC,
    HEADER_BYTES,
    PAGE,
    RUN,
    TABLE_MAGIC,
    WINDOW,
    Section,
    pieces,
    section_bytes,
    table_name,
)
from trident_store.lsm.manifest import Entry

_READ_BYTES: Final = 1 << 20


class Table:
    """One table of a store, mapped. Immutable; usable in any thread, and after its file is removed.

    Raises DamagedStoreError when it is not what the manifest says, OSError when it cannot be read.
    """

    def __init__(self, files: FileSystem, folder: Path, store_id: bytes, entry: Entry) -> None:
        self.entry = entry
        self.name = table_name(entry.table)
        self._files, self._path = files, folder / self.name
        handle = files.open(self._path)
        try:
            if files.size(handle) != entry.nbytes or entry.nbytes < HEADER_BYTES + FOOTER_BYTES:
                raise self.damaged(0, f"the table has not the {entry.nbytes} bytes that it should have")
            self.raw = files.map(handle, entry.nbytes)
        finally:
            files.close(handle)
        self._read_footer(store_id)
        for section in CHECKED_AT_OPENING:
            offset, size, crc = self.sections[section]
            if crc32c(self.raw[offset : offset + size]) != crc:
                raise self.damaged(offset, f"the table's {section.name} does not check")
        footer = self.footer
        self.block_events, self.window_events = int(footer["block_events"]), int(footer["window_events"])
        self.page_refs = int(footer["page_refs"])
        self.blocks = self._array(Section.BLOCK_INFO, BLOCK, pieces(entry.count, self.block_events))
        self.runs = self._array(Section.RUNS, RUN, int(footer["locates"]))
        self.seq_index = self._array(Section.SEQ_INDEX, "<u4", entry.count)
        self.windows = self._array(Section.WINDOWS, WINDOW, pieces(entry.count, self.window_events))
        self.refs = self._array(Section.REFS, "<u8", int(footer["refs"]))
        self.ref_positions = self._array(Section.REF_POSITIONS, "<u4", len(self.refs))
        self.pages = self._array(Section.PAGES, PAGE, pieces(len(self.refs), self.page_refs))
        self.bloom = self._array(Section.BLOOM, "<u8", self.sections[Section.BLOOM][1] // 8)
        self.checked_columns = np.zeros((len(self.blocks), len(COLUMNS)), np.uint8)
        self.checked_windows = np.zeros(len(self.windows), np.uint8)
        self.checked_pages = np.zeros(len(self.pages), np.uint8)

    def _read_footer(self, store_id: bytes) -> None:
        """Check header and footer against each other and the manifest."""
        entry, start = self.entry, self.entry.nbytes - FOOTER_BYTES
        data = self.raw[start:]
        footer: Any = data.view(FOOTER)[0]
        if int(footer["crc"]) != entry.footer_crc or crc32c(data[:-4]) != entry.footer_crc:
            raise self.damaged(start, "the table's footer does not check")
        header = decode_position(TABLE_MAGIC, self.raw[:HEADER_BYTES].tobytes())
        place = Position(entry.table, entry.count, entry.first_ordinal, entry.last_seq, entry.epoch)
        if header != (store_id, place):
            raise self.damaged(0, "the table's header does not check")
        said = [int(footer[name]) for name in ("table", "first_ordinal", "count", "first_seq", "last_seq")]
        meant = [entry.table, entry.first_ordinal, entry.count, entry.first_seq, entry.last_seq]
        version = (int(footer["major"]), int(footer["minor"]))
        if footer["magic"] != FOOTER_MAGIC or footer["store_id"].tobytes() != store_id or said != meant:
            raise self.damaged(start, "the table's footer is of another table")
        cut = [int(footer[name]) for name in ("block_events", "window_events", "page_refs")]
        if version > VERSION or min(cut) < 1:
            raise self.damaged(start, "the table's footer cannot be read")
        self.footer = footer
        self.sections: dict[Section, tuple[int, int, int]] = {}
        end = HEADER_BYTES
        for section in Section:
            row = footer["sections"][section]
            offset, size, crc = (int(row[name]) for name in ("offset", "nbytes", "crc"))
            if offset != end or size % 64 or not 0 <= size - section_bytes(section, footer) < 64:
                raise self.damaged(start, f"the table's footer gives {section.name} no place that can be")
            self.sections[section] = (offset, size, crc)
            end = offset + size
        if end != start:
            raise self.damaged(start, "the table's sections do not fill it")

    def _array(self, section: Section, dtype: Any, count: int) -> Any:
        offset, _, _ = self.sections[section]
        kind = np.dtype(dtype)
        return self.raw[offset : offset + count * kind.itemsize].view(kind)

    # -- reading --

    @property
    def session(self) -> Session:
        """The session with its directory, as it was behind the table's last event."""
        offset, size, _ = self.sections[Section.SESSION]
        try:
            return Session.from_json(json.loads(self.raw[offset : offset + size].tobytes()))
        except (ValueError, UsageError) as error:
            raise self.damaged(offset, f"the table's session is not what it should be ({error})") from None

    def rows(self, positions: NDArray[np.uint32]) -> Events:
        """The events at these positions, in this order; their blocks are checked."""
        block = positions.astype(np.int64) // self.block_events
        for each in np.unique(block).tolist():
            self.check_block(each)
        row = positions - block * self.block_events
        here = np.where(block == len(self.blocks) - 1, self._rows_of_last(), self.block_events)
        base = HEADER_BYTES + block * (self.block_events * EVENT.itemsize)
        out = np.empty(len(positions), EVENT)
        for offset, width in zip(COLUMN_OFFSETS, COLUMN_BYTES, strict=True):
            words = self.raw.view(f"<u{width}")  # a column of n rows begins where its width divides
            target = out.view(f"<u{width}").reshape(-1, EVENT.itemsize // width)[:, offset // width]
            np.take(words, (base + here * offset + row * width) // width, out=target)
        return out

    def events(self, seq: tuple[int, int] = (0, (1 << 64) - 1)) -> Iterator[Events]:
        """The events in append order, in arrays of up to `window_events`, those left out whose seq are not of
        the closed range as a whole. Raises DamagedStoreError before it would yield a damaged event."""
        firsts = self.windows["first_seq"]
        for window in range(len(firsts)):
            if window + 1 < len(firsts) and int(firsts[window + 1]) <= seq[0]:
                continue
            if int(firsts[window]) > seq[1]:
                return
            yield self.rows(self.window(window))

    def window(self, window: int) -> NDArray[np.uint32]:
        """A window of the index in append order, checked: the positions of its events."""
        self.check_window(window)
        start = window * self.window_events
        part: NDArray[np.uint32] = self.seq_index[start : start + self.window_events]
        return part

    def rows_in(self, block: int) -> int:
        """How many events a block has."""
        return self.block_events if block < len(self.blocks) - 1 else self._rows_of_last()

    def _rows_of_last(self) -> int:
        return self.entry.count - (len(self.blocks) - 1) * self.block_events

    def column_place(self, block: int, column: int) -> tuple[int, int]:
        """(offset, bytes) of a column in a block."""
        rows = self.rows_in(block)
        base = HEADER_BYTES + block * self.block_events * EVENT.itemsize
        return base + rows * int(COLUMN_OFFSETS[column]), rows * int(COLUMN_BYTES[column])

    # -- checking --

    def check_block(self, block: int) -> None:
        if not self.checked_columns[block].all():
            for column in range(len(COLUMNS)):
                self.check_column(block, column)

    def check_column(self, block: int, column: int) -> None:
        if self.checked_columns[block, column]:
            return
        offset, size = self.column_place(block, column)
        if crc32c(self.raw[offset : offset + size]) != int(self.blocks["crc"][block, column]):
            first, last = self._ordinals_of(block)
            raise self.damaged(
                offset, f"column {COLUMNS[column]} of block {block} does not check", first, last
            )
        self.checked_columns[block, column] = 1

    def check_window(self, window: int) -> None:
        if self.checked_windows[window]:
            return
        offset, size = self.piece(Section.SEQ_INDEX, window)
        if crc32c(self.raw[offset : offset + size]) != int(self.windows["crc"][window]):
            first = self.entry.first_ordinal + window * self.window_events
            last = min(first + self.window_events, self.entry.end_ordinal) - 1
            raise self.damaged(offset, "the order of appending does not check", first, last)
        self.checked_windows[window] = 1

    def check_page(self, page: int) -> None:
        if self.checked_pages[page]:
            return
        for section, name in ((Section.REFS, "refs_crc"), (Section.REF_POSITIONS, "positions_crc")):
            offset, size = self.piece(section, page)
            if crc32c(self.raw[offset : offset + size]) != int(self.pages[name][page]):
                raise self.damaged(offset, "the index of references does not check")
        self.checked_pages[page] = 1

    def piece(self, section: Section, number: int) -> tuple[int, int]:
        """(offset, bytes) of a piece of SEQ_INDEX, REFS or REF_POSITIONS; the last one goes to the section's
        end, so that no byte is left unchecked."""
        width = 8 if section == Section.REFS else 4
        size = width * (self.window_events if section == Section.SEQ_INDEX else self.page_refs)
        offset, total, _ = self.sections[section]
        last = len(self.windows if section == Section.SEQ_INDEX else self.pages) - 1
        return offset + number * size, size if number < last else total - number * size

    def findings(self) -> Iterator[Finding]:
        """Check every byte that opening did not; read through the file first, for a disk that fails shows in
        an error there, and ends the process when a mapped page is touched."""
        offset = 0
        try:
            handle = self._files.open(self._path)
            try:
                while len(data := read(self._files, handle, _READ_BYTES, offset)):
                    offset += len(data)
            finally:
                self._files.close(handle)
        except OSError as error:
            yield finding_of(self.damaged(offset, f"cannot be read ({error.strerror})"))
            return
        if self.all_check():
            return
        checks: list[tuple[Callable[[int], None], int]] = [
            (self.check_block, len(self.blocks)), (self.check_window, len(self.windows)),
            (self.check_page, len(self.pages)),
        ]  # fmt: skip
        for check, count in checks:
            for number in range(count):
                try:
                    check(number)
                except DamagedStoreError as error:
                    yield finding_of(error)

    def all_check(self) -> bool:
        """Are all pieces right? False when not, or when it is not known without a look at each."""
        return False

    def _ordinals_of(self, block: int) -> tuple[int, int]:
        """The first and the last ordinal of a block's events; the table's when its index does not check."""
        entry = self.entry
        try:
            for window in range(len(self.windows)):
                self.check_window(window)
        except DamagedStoreError:
            return entry.first_ordinal, entry.end_ordinal - 1
        here = np.flatnonzero(self.seq_index // np.uint32(self.block_events) == block)
        return entry.first_ordinal + int(here[0]), entry.first_ordinal + int(here[-1])

    def damaged(
        self, offset: int, problem: str, first: int | None = None, last: int | None = None
    ) -> DamagedStoreError:
        entry = self.entry
        return DamagedStoreError(
            problem,
            file=self.name,
            offset=offset,
            first=entry.first_ordinal if first is None else first,
            last=entry.end_ordinal - 1 if last is None else last,
            hint="`trident verify` lists everything that is wrong with the store",
        )


def finding_of(error: DamagedStoreError) -> Finding:
    """What `verify` reports of an error."""
    problem = error.message.partition(": ")[0]
    return Finding(error.file, error.offset, error.first, error.last, problem)
