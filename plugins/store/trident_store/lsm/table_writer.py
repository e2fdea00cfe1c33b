"""Writing a table: its events in blocks, its indexes, its footer; durable on return, named by nobody yet."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_store.filesystem import FileSystem, read, write_all
from trident_store.format import VERSION, Position, crc32c, encode_position
from trident_store.lsm import block_kernels, kernels
from trident_store.lsm.layout import (
    BLOCK,
    FOOTER,
    FOOTER_BYTES,
    FOOTER_MAGIC,
    HEADER_BYTES,
    MINOR,
    PAGE,
    RUN,
    TABLE_MAGIC,
    WINDOW,
    Section,
    Shape,
    bloom_blocks,
    pieces,
    section_bytes,
    table_name,
)
from trident_store.lsm.manifest import Entry

#: Blocks of one step of a table's writing.
STEP_BLOCKS: Final = 64


class Meta(NamedTuple):
    """What a table says of itself. `log`: the header of the segment that goes on behind it."""

    store_id: bytes
    table: int
    level: int
    epoch: int
    first_ordinal: int
    log: Position
    session_json: bytes


class Content(NamedTuple):
    """What a table holds, sorted by (locate, append order). `blocks` yields whole blocks, some MiB of them at
    once and each time in the same memory, from the first that is not written yet; `refs` pieces of (u64,
    u32): references, ascending and in append order, and positions."""

    count: int  # type: ignore[assignment]  # of events; shadows tuple.count
    first_seq: int
    last_seq: int
    runs: NDArray[Any]  # RUN
    seq_index: NDArray[np.uint32]
    windows: NDArray[Any]  # WINDOW, without CRCs
    ref_count: int
    blocks: Iterable[NDArray[np.uint8]]
    refs: Iterable[tuple[NDArray[np.uint64], NDArray[np.uint32]]]


def write_table(
    files: FileSystem,
    folder: Path,
    meta: Meta,
    content: Content,
    shape: Shape,
) -> Entry:
    """Write a table and make it and its name durable; the line for the manifest.

    What was begun is removed when this raises: OSError, or what the content raises.
    """
    writer = TableWriter(files, folder, meta, content, shape)
    try:
        *_, entry = writer.steps()
    except BaseException:
        with contextlib.suppress(OSError):
            files.remove(folder / table_name(meta.table))
        raise
    finally:
        writer.close()
    assert entry is not None
    return entry


class TableWriter:
    """One table under way, written step by step. `written` counts bytes; of the blocks, `info` has what is
    known (BLOCK), and the first `blocks_done` are written.

    With `done` it goes on with a file that has so many blocks already, which the caller has checked; what
    else the file has of what would be written stays as it is.
    """

    def __init__(
        self, files: FileSystem, folder: Path, meta: Meta, content: Content, shape: Shape,
        done: NDArray[Any] | None = None,
    ) -> None:  # fmt: skip
        self.files, self.folder, self.meta, self.content, self.shape = files, folder, meta, content, shape
        self.footer: Any = np.zeros(1, FOOTER)
        self.place: dict[Section, int] = {}
        self.info = np.zeros(pieces(content.count, shape.block_events), BLOCK)
        self.blocks_done = 0 if done is None else len(done)
        self.written = 0
        self.handle = files.open(folder / table_name(meta.table), write=True, create=done is None)
        self._there = 0
        if done is not None:
            self.info[: len(done)] = done
            self._there = files.size(self.handle)

    def close(self) -> None:
        self.files.close(self.handle)

    def steps(self) -> Iterator[Entry | None]:
        """Write it; yields after each part of some MiB, and last of all, when the table and its name are
        durable, its line for the manifest. Raises OSError, and what the content raises."""
        meta, content = self.meta, self.content
        end = self._lay_out()
        at = Position(meta.table, content.count, meta.first_ordinal, content.last_seq, meta.epoch)
        self._put(encode_position(TABLE_MAGIC, meta.store_id, at, MINOR), 0)
        yield from self._write_blocks()
        self._section(Section.BLOCK_INFO, self.info)
        self._section(Section.RUNS, content.runs)
        self._section(Section.WINDOWS, self._write_seq_index())
        yield None
        yield from self._write_refs()
        self._section(Section.SESSION, np.frombuffer(meta.session_json, np.uint8))
        data = self.footer.view(np.uint8)
        self.footer["crc"] = crc32c(data[:-4])
        self._put(data.data, end)
        self.files.sync(self.handle)
        self.files.sync_directory(self.folder)
        yield Entry(
            table=meta.table,
            level=meta.level,
            epoch=meta.epoch,
            footer_crc=int(self.footer["crc"][0]),
            first_ordinal=meta.first_ordinal,
            count=content.count,
            first_seq=content.first_seq,
            last_seq=content.last_seq,
            nbytes=end + FOOTER_BYTES,
        )

    def _lay_out(self) -> int:
        """Fill in the footer, but for what is known only later; where it will stand."""
        meta, content, row = self.meta, self.content, self.footer[0]
        values = {
            "magic": FOOTER_MAGIC, "major": VERSION[0], "minor": MINOR, "table": meta.table,
            "store_id": np.frombuffer(meta.store_id, np.uint8), "first_ordinal": meta.first_ordinal,
            "count": content.count, "first_seq": content.first_seq, "last_seq": content.last_seq,
            "min_ts": content.windows["min_ts"].min(), "max_ts": content.windows["max_ts"].max(),
            "min_ref": 1, "max_ref": 0, "level": meta.level, "epoch": meta.epoch,
            "block_events": self.shape.block_events, "window_events": self.shape.window_events,
            "page_refs": self.shape.page_refs, "locates": len(content.runs), "refs": content.ref_count,
            "log_segment": meta.log.segment, "log_offset": meta.log.offset,
        }  # fmt: skip
        for name, value in values.items():
            row[name] = value
        row["sections"][Section.SESSION]["nbytes"] = len(meta.session_json)
        end = HEADER_BYTES
        for section in Section:
            size = section_bytes(section, row)
            self.place[section] = end
            row["sections"][section]["offset"] = end
            row["sections"][section]["nbytes"] = size + -size % 64
            end += size + -size % 64
        return end

    # -- sections --

    def _write_blocks(self) -> Iterator[None]:
        size = self.shape.block_events * EVENT.itemsize
        for blocks in self.content.blocks:
            first, count = self.blocks_done, pieces(len(blocks), size)
            info = self.info[first : first + count]
            block_kernels.describe_blocks(
                blocks.view("<u8"), blocks.view("<u4"), self.shape.block_events,
                info.view("<u8").reshape(count, -1), info.view("<u4").reshape(count, -1),
            )  # fmt: skip
            self._put(blocks.data, self.place[Section.BLOCKS] + first * size)
            self.blocks_done += count
            yield
        if self.blocks_done != len(self.info):
            raise ValueError(f"{self.blocks_done} blocks of {len(self.info)}")

    def _write_seq_index(self) -> NDArray[Any]:
        windows, index = self.content.windows, self.content.seq_index
        data = _filled(index.view(np.uint8), self._size(Section.SEQ_INDEX))
        crcs = np.empty(len(windows), np.uint32)
        block_kernels.piece_crcs(np.uint64(data.ctypes.data), len(data), self.shape.window_events * 4, crcs)
        windows["crc"] = crcs
        self._put(data.data, self.place[Section.SEQ_INDEX])
        return windows

    def _write_refs(self) -> Iterator[None]:
        """Both sections of references, side by side; then their pages, and the filter."""
        bloom = np.zeros((bloom_blocks(self.content.ref_count), 8), np.uint64)
        pages = np.zeros(pieces(self.content.ref_count, self.shape.page_refs), PAGE)
        places = [self.place[Section.REFS], self.place[Section.REF_POSITIONS]]
        footer, done = self.footer[0], 0
        for refs, positions in self._whole_pages():
            kernels.bloom_add(refs, bloom)
            if not done:
                footer["min_ref"] = refs[0]
            footer["max_ref"] = refs[-1]
            first = done // self.shape.page_refs
            done += len(refs)
            columns = [refs.view(np.uint8), positions.view(np.uint8)]
            if done == self.content.ref_count:
                ends = [self.place[Section.REF_POSITIONS], self.place[Section.PAGES]]
                columns = [_filled(*each) for each in zip(columns, np.subtract(ends, places), strict=True)]
            part = pages[first : first + pieces(len(refs), self.shape.page_refs)]
            part["first_ref"] = refs[:: self.shape.page_refs]
            for data, width, name in zip(columns, (8, 4), ("refs_crc", "positions_crc"), strict=True):
                crcs = np.empty(len(part), np.uint32)
                block_kernels.piece_crcs(
                    np.uint64(data.ctypes.data), len(data), self.shape.page_refs * width, crcs
                )
                part[name] = crcs
            for c, data in enumerate(columns):
                self._put(data.data, places[c])
                places[c] += len(data)
            yield
        self._section(Section.PAGES, pages)
        self._section(Section.BLOOM, bloom)

    def _whole_pages(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]]:
        """The content's pieces, cut so that each but the last is whole pages."""
        kept: list[tuple[NDArray[np.uint64], NDArray[np.uint32]]] = []
        have = 0
        for piece in self.content.refs:
            kept.append(piece)
            have += len(piece[0])
            whole = have - have % self.shape.page_refs
            if whole:
                refs, positions = (np.concatenate([each[i] for each in kept]) for i in (0, 1))
                yield refs[:whole], positions[:whole]
                kept, have = [(refs[whole:], positions[whole:])], have - whole
        if have:
            refs, positions = kept[-1]
            yield np.ascontiguousarray(refs), np.ascontiguousarray(positions)

    def _section(self, section: Section, data: NDArray[Any]) -> None:
        """Write a section that is checked as a whole."""
        filled = _filled(np.ascontiguousarray(data).reshape(-1).view(np.uint8), self._size(section))
        self.footer[0]["sections"][section]["crc"] = crc32c(filled)
        self._put(filled.data, self.place[section])

    def _size(self, section: Section) -> int:
        return int(self.footer[0]["sections"][section]["nbytes"])

    def _put(self, data: Any, offset: int) -> None:
        if (
            offset + len(data) <= self._there
            and read(self.files, self.handle, len(data), offset).data == data
        ):
            return
        write_all(self.files, self.handle, data, offset)
        self.written += len(data)


def _filled(data: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """With zeros up to `size` bytes."""
    gap = size - len(data)
    return np.concatenate([data, np.zeros(gap, np.uint8)]) if gap else data


def content_of(events: Events, shape: Shape) -> Content:
    """A table's content, of events in append order (EVENT[n], 0 < n < 2^31): radix-sorted by locate."""
    n = len(events)
    words = events.view(np.uint64).reshape(n, 8)
    keys, order = np.empty(n, np.uint64), np.empty(n, np.uint32)
    other_keys, other_order = np.empty_like(keys), np.empty_like(order)
    kernels.locate_keys(words, keys, order)
    if kernels.radix_sort(keys, order, other_keys, other_order):
        keys, order, other_keys, other_order = other_keys, other_order, keys, order
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    runs = np.zeros(len(starts), RUN)
    runs["locate"], runs["start"] = keys[starts], starts
    seq_index = other_order
    kernels.invert(order, seq_index)
    firsts = np.arange(0, n, shape.window_events)
    windows = np.zeros(len(firsts), WINDOW)
    windows["first_seq"] = events["seq"][firsts]
    ts = np.ascontiguousarray(events["ts"])
    windows["min_ts"], windows["max_ts"] = np.minimum.reduceat(ts, firsts), np.maximum.reduceat(ts, firsts)
    refs = _sorted_refs(words, seq_index)
    return Content(
        count=n,
        first_seq=int(events["seq"][0]),
        last_seq=int(events["seq"][-1]),
        runs=runs,
        seq_index=seq_index,
        windows=windows,
        ref_count=len(refs[0]),
        blocks=_blocks(words, order, shape.block_events),
        refs=[refs] if len(refs[0]) else [],
    )


def _blocks(
    words: NDArray[np.uint64], order: NDArray[np.uint32], block_events: int
) -> Iterator[NDArray[np.uint8]]:
    step = STEP_BLOCKS * block_events
    room = np.empty(min(step, len(order)) * EVENT.itemsize, np.uint8)
    for start in range(0, len(order), step):
        part = order[start : start + step]
        out = room[: len(part) * EVENT.itemsize]
        views = out.view("<u8"), out.view("<u4"), out.view("<u2"), out
        block_kernels.fill_blocks(words, part, block_events, *views)
        yield out


def _sorted_refs(
    words: NDArray[np.uint64], seq_index: NDArray[np.uint32]
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """All references that events name, ascending and in append order, and the positions."""
    refs, positions = np.empty(2 * len(words), np.uint64), np.empty(2 * len(words), np.uint32)
    n = kernels.ref_entries(words, seq_index, refs, positions)
    refs, positions = refs[:n], positions[:n]
    others = np.empty_like(refs), np.empty_like(positions)
    return others if kernels.radix_sort(refs, positions, *others) else (refs, positions)
