"""A table that may be damaged: what its own bytes still prove, and the original made anew.

The CRCs hang together: the manifest has the footer's, the footer those of the sections. All sections but the
session are functions of the events. So a table that is written anew of the events, and has the footer's CRC
that the manifest (or the footer itself) recorded, is the original, byte for byte; and nothing else passes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_store.filesystem import FileSystem, read
from trident_store.format import Position, crc32c, decode_position
from trident_store.lsm.layout import (
    BLOCK,
    COLUMN_BYTES,
    COLUMN_OFFSETS,
    FOOTER,
    FOOTER_BYTES,
    FOOTER_MAGIC,
    HEADER_BYTES,
    TABLE_MAGIC,
    Section,
    Shape,
    pieces,
    table_name,
)
from trident_store.lsm.manifest import Entry
from trident_store.lsm.table_writer import Meta, content_of, write_table
from trident_store.tools.frames import bytes_of
from trident_store.tools.scratch import ScratchFiles

_EVENT: Final = EVENT.itemsize


class LostBlock(NamedTuple):
    """Events that cannot be proven. `seqs`, `locates`: the closed ranges of the block, (0, 0) if unknown."""

    file: str
    offset: int
    events: int
    seqs: tuple[int, int]
    locates: tuple[int, int]


class TableParts:
    """One table file as it is. `entry` is what is known of the table: from the manifest, else from a footer
    that checks, else None. Raises OSError when the file cannot be read."""

    def __init__(
        self, files: FileSystem, folder: Path, number: int, store_id: bytes, entry: Entry | None = None
    ) -> None:
        self.number, self.name, self.store_id = number, table_name(number), store_id
        self._files, self._path = files, folder / self.name
        handle = files.open(self._path)
        try:
            self.nbytes = files.size(handle)
        finally:
            files.close(handle)
        self.footer: Any = self._footer(entry)
        self.entry = entry if entry is not None else self._entry()
        self.header = self._header()
        #: Do the bytes say that they are this store's table of this number?
        self.ours = self.footer is not None or self.header is not None

    @cached_property
    def data(self) -> NDArray[np.uint8]:
        """All bytes, in memory from then on: up to 1.2 GiB with the default of `table_events`."""
        return bytes_of(self._files, self._path)

    def read(self, offset: int, size: int) -> NDArray[np.uint8]:
        """Some bytes, fewer at the end of the file."""
        handle = self._files.open(self._path)
        try:
            return read(self._files, handle, size, offset)
        finally:
            self._files.close(handle)

    def _header(self) -> Position | None:
        """What the header says, if it checks."""
        found = decode_position(TABLE_MAGIC, self.read(0, HEADER_BYTES).tobytes())
        if found is None or found[0] != self.store_id or found[1].segment != self.number:
            return None
        return found[1]

    def _footer(self, entry: Entry | None) -> Any:
        """The footer, if it checks; else None."""
        if self.nbytes < HEADER_BYTES + FOOTER_BYTES:
            return None
        data = self.read(self.nbytes - FOOTER_BYTES, FOOTER_BYTES)
        row: Any = data.view(FOOTER)[0]
        crc = crc32c(data[:-4])
        right = row["magic"] == FOOTER_MAGIC and row["store_id"].tobytes() == self.store_id
        if crc != int(row["crc"]) or not right or int(row["table"]) != self.number:
            return None
        return row if entry is None or crc == entry.footer_crc else None

    def _entry(self) -> Entry | None:
        row = self.footer
        if row is None:
            return None
        names = ("table", "level", "epoch", "first_ordinal", "count", "first_seq", "last_seq")
        fields = {name: int(row[name]) for name in names}
        return Entry(footer_crc=int(row["crc"]), nbytes=self.nbytes, **fields)

    @property
    def count(self) -> int:
        """How many events the table had; 0 when nothing tells."""
        if self.entry is not None:
            return self.entry.count
        return self.header.offset if self.header is not None else 0

    @property
    def log(self) -> Position | None:
        """Where the log went on behind the table, if its footer tells: segment, offset, ordinal, last seq."""
        row = self.footer
        if row is None or self.entry is None:
            return None
        last = self.entry
        return Position(int(row["log_segment"]), int(row["log_offset"]), last.end_ordinal, last.last_seq)

    # -- the original, made anew --

    def original(self, sessions: Sequence[bytes] = (), shapes: Sequence[Shape] = ()) -> bytes | None:
        """The table as it was written, or None when the events, or what else it takes, are not there.

        `sessions`: other tables' sections, of which one may be this table's too; `shapes`: likewise.
        """
        entry = self.entry
        if entry is None or len(self.data) < HEADER_BYTES + entry.count * _EVENT:
            return None
        for shape in self.shapes(shapes):
            events = self.all_events(shape.block_events, entry.count)
            if events is None:
                continue
            content = content_of(events, shape)
            for log, session in itertools.product(self._logs(), self._sessions(content, shape, sessions)):
                made = self._written(events, shape, log, session)
                if made is not None:
                    return made
        return None

    def _written(self, events: Events, shape: Shape, log: Position, session: bytes) -> bytes | None:
        """The table of this content, if it is the one that the entry means."""
        entry = self.entry
        assert entry is not None
        scratch: Any = ScratchFiles()
        meta = Meta(self.store_id, entry.table, entry.level, entry.epoch, entry.first_ordinal, log, session)
        made = write_table(scratch, Path(), meta, content_of(events, shape), shape)
        return bytes(scratch.data[self.name]) if made == entry else None

    def shapes(self, others: Sequence[Shape]) -> list[Shape]:
        """How finely the table may have been cut."""
        if self.footer is not None:
            row = self.footer
            return [Shape(*(int(row[name]) for name in ("block_events", "window_events", "page_refs")))]
        return list(dict.fromkeys([Shape(), *others]))

    def _logs(self) -> list[Position]:
        """Where the log may have gone on; of a footer that does not check, what it says there."""
        row: Any = self.data[-FOOTER_BYTES:].view(FOOTER)[0] if self.footer is None else self.footer
        return [Position(int(row["log_segment"]), int(row["log_offset"]))]

    def _sessions(self, content: Any, shape: Shape, others: Sequence[bytes]) -> Iterator[bytes]:
        """What the session's section may have been: the bytes that are there, then other tables'."""
        if self.footer is not None:
            row = self.footer["sections"][Section.SESSION]
            offset, size = int(row["offset"]), int(row["nbytes"])
            here = self.read(offset, size).tobytes()
            yield from (each for each in (here, *others) if self.is_session(each))
            return
        size = len(self.data) - FOOTER_BYTES
        yield from others
        start = self._session_offset(content, shape)
        if HEADER_BYTES < start < size:
            yield self.data[start:size].tobytes()

    def _session_offset(self, content: Any, shape: Shape) -> int:
        from trident_store.lsm.layout import section_bytes

        row: Any = np.zeros(1, FOOTER)[0]
        row["count"], row["refs"], row["locates"] = content.count, content.ref_count, len(content.runs)
        for name, value in shape._asdict().items():
            row[name] = value
        sizes = [section_bytes(each, row) for each in Section if each != Section.SESSION]
        return HEADER_BYTES + sum(size + -size % 64 for size in sizes)

    def is_session(self, data: bytes) -> bool:
        """Is this what the session's section was? By the footer, which must check."""
        row = self.footer["sections"][Section.SESSION]
        return len(data) == int(row["nbytes"]) and crc32c(data) == int(row["crc"])

    def session(self) -> bytes | None:
        """The session's section, if it checks."""
        if self.footer is None:
            return None
        row = self.footer["sections"][Section.SESSION]
        data = self.read(int(row["offset"]), int(row["nbytes"])).tobytes()
        return data if self.is_session(data) else None

    # -- events --

    def all_events(self, block_events: int, count: int) -> Events | None:
        """The events as the blocks have them, in the order of appending; None when that cannot be it."""
        events = np.concatenate(
            [self.block(block, block_events, count) for block in range(pieces(count, block_events))]
        )
        return _in_order(events)

    def block(self, block: int, block_events: int, count: int) -> Events:
        """One block's events, unchecked."""
        rows, base = self.place(block, block_events, count)
        out = np.empty(rows, EVENT)
        for start, width in zip(COLUMN_OFFSETS.tolist(), COLUMN_BYTES.tolist(), strict=True):
            column = self.data[base + rows * start : base + rows * (start + width)]
            target = out.view(np.uint8).reshape(rows, _EVENT)
            target[:, start : start + width] = column.reshape(rows, width)
        return out

    @staticmethod
    def place(block: int, block_events: int, count: int) -> tuple[int, int]:
        """(events, offset) of a block."""
        rows = min(block_events, count - block * block_events)
        return rows, HEADER_BYTES + block * block_events * _EVENT

    def proven(self, shapes: Sequence[Shape] = ()) -> tuple[Events, list[LostBlock]]:
        """The events of the blocks whose every column checks, in the order of appending; and what is lost."""
        count = self.count
        best: tuple[Events, list[LostBlock]] = (
            np.empty(0, EVENT),
            [LostBlock(self.name, 0, count, (0, 0), (0, 0))],
        )
        if not count or not self.ours or len(self.data) < HEADER_BYTES + _EVENT:
            return best
        for shape in self.shapes(shapes):
            found = self._proven(shape.block_events, count)
            if len(found[0]) > len(best[0]):
                best = found
        return best

    def _proven(self, block_events: int, count: int) -> tuple[Events, list[LostBlock]]:
        start = HEADER_BYTES + count * _EVENT
        blocks = pieces(count, block_events)
        info = self.data[start : start + blocks * BLOCK.itemsize]
        info = info[: len(info) // BLOCK.itemsize * BLOCK.itemsize].view(BLOCK)
        good, lost = [np.empty(0, EVENT)], []
        for block in range(blocks):
            rows, base = self.place(block, block_events, count)
            row: Any = info[block] if block < len(info) else None
            if row is not None and not self.bad_columns(rows, base, row["crc"]):
                good.append(self.block(block, block_events, count))
                continue
            lost.append(self._lost(base, rows, row))
        events = _in_order(np.concatenate(good))
        if events is None or not self._in_range(
            events
        ):  # CRCs that check and events that contradict each other: none is provably right
            return np.empty(0, EVENT), [LostBlock(self.name, 0, count, (0, 0), (0, 0))]
        return events, lost

    def _lost(self, base: int, rows: int, row: Any) -> LostBlock:
        """What is known of a block that does not check; its zone map may be what is damaged."""
        entry = self.entry
        whole = (entry.first_seq, entry.last_seq) if entry is not None else (0, 0)
        if row is None:
            return LostBlock(self.name, base, rows, whole, (0, 0))
        seqs = int(row["min_seq"]), int(row["max_seq"])
        if not (whole[0] <= seqs[0] <= seqs[1] <= whole[1]):
            return LostBlock(self.name, base, rows, whole, (0, 0))
        return LostBlock(self.name, base, rows, seqs, (int(row["min_locate"]), int(row["max_locate"])))

    def _in_range(self, events: Events) -> bool:
        """Are the events of the range that the manifest or the footer gives?"""
        if self.entry is None or not len(events):
            return True
        return self.entry.first_seq <= int(events["seq"][0]) and int(events["seq"][-1]) <= self.entry.last_seq

    def bad_columns(self, rows: int, base: int, crcs: NDArray[np.uint32]) -> list[int]:
        """Which columns of a block do not have these CRCs."""
        bad = []
        for c, crc in enumerate(crcs.tolist()):
            start, width = int(COLUMN_OFFSETS[c]), int(COLUMN_BYTES[c])
            column = self.data[base + rows * start : base + rows * (start + width)]
            if len(column) != rows * width or crc32c(column) != crc:
                bad.append(c)
        return bad


def _in_order(events: Events) -> Events | None:
    """By seq; None unless that grows strictly."""
    words = events.view(np.uint64).reshape(-1, 8)
    words = words[np.argsort(words[:, 0], kind="stable")]
    seq = words[:, 0]
    return words.reshape(-1).view(EVENT) if bool(np.all(seq[1:] > seq[:-1])) else None
