"""A table read by kernels: rows, the runs of some locates, and the events that name an order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_store.filesystem import FileSystem
from trident_store.filters import Filter
from trident_store.lsm import block_kernels, read_kernels
from trident_store.lsm.layout import COLUMNS, HEADER_BYTES, Section
from trident_store.lsm.lookup import Table as Address
from trident_store.lsm.manifest import Entry
from trident_store.tables import Table

#: Events that are gathered, and sorted into append order, at once when runs are read.
_SLICE_EVENTS: Final = 1 << 18
#: Blocks whose columns are given out at once.
_BLOCKS_AT_ONCE: Final = 256
#: Runs are read instead of windows when the wanted locates have less than this part of a table's events.
_SELECTIVE: Final = 0.25
_ALL_SEQ: Final = (0, (1 << 64) - 1)


class LsmTable(Table):
    """A `Table`, faster. Nothing is given out of a piece that has not been checked."""

    def __init__(self, files: FileSystem, folder: Path, store_id: bytes, entry: Entry) -> None:
        super().__init__(files, folder, store_id, entry)
        blocks = self.raw[HEADER_BYTES:][: self.sections[Section.BLOCKS][1]]
        self._views = blocks.view("<u8"), blocks.view("<u4"), blocks.view("<u2"), blocks
        self._columns: dict[int, list[NDArray[Any]]] = {}  # that are known to be right, as views
        self._checked_blocks = np.zeros(len(self.blocks), np.uint8)
        # Copies, also of a single row: kernels are compiled for what can be written to, or not.
        self._block_crcs = self.blocks["crc"].copy()
        self._first_refs = self.pages["first_ref"].copy()
        #: For `lookup`.
        self.addresses = np.zeros(Address.WORDS, np.uint64)
        arrays = (
            (Address.FILTER, self.bloom), (Address.FIRSTS, self._first_refs), (Address.REFS, self.refs),
            (Address.CHECKED_PAGES, self.checked_pages), (Address.POSITIONS, self.ref_positions),
            (Address.EVENTS, blocks), (Address.CHECKED_BLOCKS, self._checked_blocks),
        )  # fmt: skip
        for word, array in arrays:
            self.addresses[word] = array.ctypes.data
        values = (
            (Address.FILTER_BLOCKS, len(self.bloom) // 8), (Address.PAGES, len(self.pages)),
            (Address.MIN_REF, self.footer["min_ref"]), (Address.MAX_REF, self.footer["max_ref"]),
            (Address.REF_COUNT, len(self.refs)), (Address.PAGE_REFS, self.page_refs),
            (Address.COUNT, entry.count), (Address.BLOCK_EVENTS, self.block_events),
        )  # fmt: skip
        for word, value in values:
            self.addresses[word] = value

    def check_block(self, block: int) -> None:
        super().check_block(block)
        self._checked_blocks[block] = 1

    def all_check(self) -> bool:
        start = self.addresses[Address.EVENTS]
        if block_kernels.first_bad_block(start, self.entry.count, self.block_events, self._block_crcs) >= 0:
            return False
        parts = (
            (Section.SEQ_INDEX, 4 * self.window_events, self.windows["crc"]),
            (Section.REFS, 8 * self.page_refs, self.pages["refs_crc"]),
            (Section.REF_POSITIONS, 4 * self.page_refs, self.pages["positions_crc"]),
        )
        for section, piece_bytes, crcs in parts:
            offset, size, _ = self.sections[section]
            found = np.empty(len(crcs), np.uint32)
            block_kernels.piece_crcs(np.uint64(self.raw[offset:].ctypes.data), size, piece_bytes, found)
            if not np.array_equal(found, crcs):
                return False
        for checked in (self.checked_columns, self._checked_blocks, self.checked_windows, self.checked_pages):
            checked[...] = 1
        return True

    def rows(self, positions: NDArray[np.uint32]) -> Events:
        out = np.empty(len(positions), EVENT)
        words = out.view(np.uint64).reshape(-1, 8)
        while True:
            block = read_kernels.gather(
                *self._views, positions, self.block_events, self.entry.count, self._checked_blocks, words
            )
            if block == -1:
                return out
            if block < 0:
                raise self.damaged(HEADER_BYTES, "an index names an event that the table does not have")
            self.check_block(block)

    def scan(self, where: Filter) -> Iterator[Events]:
        """The events that satisfy all conditions, in append order, in arrays of any size."""
        low, high = where.ts
        if high < int(self.footer["min_ts"]) or low > int(self.footer["max_ts"]):
            return
        if where.locates is not None:
            wanted = self._runs_of(where.locates)
            if not len(wanted):
                return
            if (wanted[:, 1] - wanted[:, 0]).sum() < _SELECTIVE * self.entry.count:
                yield from (where.pick(events) for events in self._run_slices(wanted, where.seq))
                return
        for window in self._windows_of(where):
            yield where.pick(self.rows(self.window(window)))

    def column(self, name: str, where: Filter) -> Iterator[NDArray[Any]]:
        """The values of a column in the table's own order, of the events that satisfy the conditions on seq,
        ts and locates. Read-only views that stay valid, [blocks, events of a block] or, of `aux`, [blocks,
        events, 8]; of a block of which the ranges take a part, a copy. Zone maps say which blocks are read.
        """
        number = COLUMNS.index(name)
        if where.locates is None and self._all_in(where):
            yield from self._whole_column(number)
            return
        spans = np.array([[0, self.entry.count]]) if where.locates is None else self._runs_of(where.locates)
        some, whole = self._zones(where)
        for start, end in spans.tolist():
            while start < end:
                block, row = divmod(start, self.block_events)
                rows = min(end - start, self.rows_in(block) - row)
                if whole[block] and row == 0:
                    most = min((end - start) // self.block_events, _BLOCKS_AT_ONCE, len(whole) - 1 - block)
                    parts = np.flatnonzero(~whole[block : block + most])
                    most = int(parts[0]) if len(parts) else most
                    if most > 0:
                        yield self._column_of(number, block, most)
                        start += most * self.block_events
                        continue
                if some[block]:
                    values = self._column_of(number, block, 1)[:, row : row + rows]
                    yield values if whole[block] else values[:, self._wanted(block, row, rows, where)]
                start += rows

    def _all_in(self, where: Filter) -> bool:
        """Are all events in the ranges of seq and ts?"""
        entry, footer = self.entry, self.footer
        in_seq = where.seq[0] <= entry.first_seq and where.seq[1] >= entry.last_seq
        return in_seq and where.ts[0] <= int(footer["min_ts"]) and where.ts[1] >= int(footer["max_ts"])

    def _whole_column(self, number: int) -> Iterator[NDArray[Any]]:
        """A column of all blocks: piece by piece as they are checked, in one piece once they are."""
        views = self._columns.get(number)
        if views is None:
            blocks = len(self.blocks)
            full = blocks if self.rows_in(blocks - 1) == self.block_events else blocks - 1
            for block in range(0, full, _BLOCKS_AT_ONCE):
                yield self._column_of(number, block, min(_BLOCKS_AT_ONCE, full - block))
            views = [self._column_of(number, 0, full)] if full else []
            if full < blocks:
                yield (last := self._column_of(number, full, 1))
                views.append(last)
            self._columns[number] = views
        else:
            yield from views

    def _zones(self, where: Filter) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of each block: may an event of it be in the ranges of seq and ts, and are all?"""
        some, whole = np.ones(len(self.blocks), np.bool_), np.ones(len(self.blocks), np.bool_)
        for name, (low, high) in (("seq", where.seq), ("ts", where.ts)):
            least, most = self.blocks[f"min_{name}"], self.blocks[f"max_{name}"]
            some &= (most >= np.uint64(low)) & (least <= np.uint64(high))
            whole &= (least >= np.uint64(low)) & (most <= np.uint64(high))
        return some, whole

    def _wanted(self, block: int, row: int, rows: int, where: Filter) -> NDArray[np.bool_]:
        """Which of some rows of a block are in the ranges of seq and ts."""
        keep = np.ones(rows, np.bool_)
        for number, (low, high) in ((0, where.seq), (1, where.ts)):
            values = self._column_of(number, block, 1)[0, row : row + rows]
            keep &= (values >= np.uint64(low)) & (values <= np.uint64(high))
        return keep

    def _column_of(self, number: int, block: int, blocks: int) -> NDArray[Any]:
        """A column of neighbouring blocks of the same size, checked."""
        if not self.checked_columns[block : block + blocks, number].all():
            crcs = self._block_crcs[block : block + blocks]
            start = self.addresses[Address.EVENTS]
            if (
                block_kernels.first_bad_column(
                    start, self.entry.count, self.block_events, block, number, crcs
                )
                < 0
            ):
                self.checked_columns[block : block + blocks, number] = 1
            for each in range(block, block + blocks):
                self.check_column(each, number)
        kind = EVENT[COLUMNS[number]]
        offset, size = self.column_place(block, number)
        stride = self.block_events * EVENT.itemsize
        data = self.raw[offset : offset + (blocks - 1) * stride + size]
        rows: NDArray[np.uint8] = np.ndarray((blocks, size), np.uint8, data, strides=(stride, 1))
        return rows.view(kind.base).reshape(blocks, -1, *kind.shape)

    def _windows_of(self, where: Filter) -> list[int]:
        """The windows that may hold an event of the ranges."""
        windows = self.windows
        lasts = np.append(windows["first_seq"][1:] - np.uint64(1), np.uint64(self.entry.last_seq))
        keep = (lasts >= np.uint64(where.seq[0])) & (windows["first_seq"] <= np.uint64(where.seq[1]))
        keep &= (windows["max_ts"] >= np.uint64(where.ts[0])) & (windows["min_ts"] <= np.uint64(where.ts[1]))
        return list(np.flatnonzero(keep).tolist())

    def _runs_of(self, locates: NDArray[np.uint32]) -> NDArray[np.int64]:
        """[start, end) of the runs of these locates that the table has: i64[n, 2]."""
        have = self.runs["locate"]
        at = np.flatnonzero(np.isin(have, locates))
        ends = np.append(self.runs["start"], self.entry.count)
        return np.stack([self.runs["start"][at], ends[at + 1]], axis=1).astype(np.int64)

    def _run_slices(self, runs: NDArray[np.int64], seq: tuple[int, int]) -> Iterator[Events]:
        """The events of some runs whose seq are of the closed range, in append order."""
        self._check_seq(runs)
        runs = np.stack([self._cuts(runs, seq[0]), self._cuts(runs, seq[1] + 1)], axis=1)
        total = int((runs[:, 1] - runs[:, 0]).sum())
        steps = -(-total // _SLICE_EVENTS)
        firsts = self.windows["first_seq"]
        starts = runs[:, 0]
        for step in range(1, steps + 1):
            # Slices end where windows begin; as events are spread, so are the slices' sizes.
            ends = runs[:, 1]
            if step < steps:
                ends = np.minimum(self._cuts(runs, int(firsts[len(firsts) * step // steps])), ends)
            parts = [np.arange(a, b, dtype=np.uint32) for a, b in zip(starts, ends, strict=True) if a < b]
            starts = np.maximum(starts, ends)
            if parts:
                events = self.rows(np.concatenate(parts))
                if len(parts) > 1:
                    order = np.argsort(events["seq"], kind="stable")
                    events = events.view("<u8").reshape(-1, 8)[order].reshape(-1).view(EVENT)
                yield events

    def _check_seq(self, runs: NDArray[np.int64]) -> None:
        for start, end in runs // self.block_events:
            for block in range(int(start), min(int(end) + 1, len(self.blocks))):
                self.check_column(block, 0)

    def _cuts(self, runs: NDArray[np.int64], seq: int) -> NDArray[np.int64]:
        """For each run its first position whose seq is not below `seq`."""
        if seq > _ALL_SEQ[1]:
            return runs[:, 1]
        if seq <= self.entry.first_seq:
            return runs[:, 0]
        raw64, wanted = self._views[0], np.uint64(seq)
        return np.array(
            [
                read_kernels.cut_run(raw64, start, end, self.block_events, wanted)
                for start, end in runs.tolist()
            ]
        )
