"""A compaction under way: neighbouring tables become one, in steps, and where it ended it goes on.

The order of the steps is the protocol (docs/store-format.md): blocks are durable before the job file says so;
the new table and its name before the manifest names it; and the job file is removed last of all. What is
gone on with is read back first, from the disk: blocks that are not what the job file says are made anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trident_core.dtypes import EVENT
from trident_store.filesystem import FileSystem, read, write_all
from trident_store.format import Position, crc32c
from trident_store.found import damage
from trident_store.lsm.compaction import merged
from trident_store.lsm.jobs import Job, encode_job, encode_progress
from trident_store.lsm.layout import (
    BLOCK,
    COLUMN_BYTES,
    COLUMN_OFFSETS,
    HEADER_BYTES,
    Section,
    Shape,
    job_name,
    table_name,
)
from trident_store.lsm.manifest import Entry
from trident_store.lsm.table_writer import STEP_BLOCKS, Meta, TableWriter
from trident_store.tables import Table


class Merge:
    """One compaction. `inputs` are checked, every byte, before anything is made of them.

    Raises DamagedStoreError for what is wrong with them, OSError.
    """

    def __init__(
        self, files: FileSystem, folder: Path, store_id: bytes, inputs: Sequence[Table], job: Job,
        checkpoint_events: int, *, begin: bool,
    ) -> None:  # fmt: skip
        for table in inputs:
            for finding in table.findings():
                raise damage(finding)
        self.inputs = tuple(inputs)
        self._files, self._folder, self._store_id, self.job = files, folder, store_id, job
        self._checkpoint_blocks = max(checkpoint_events // job.shape.block_events, 1)
        self._handle = files.open(folder / job_name(job.number), write=True, create=begin)
        try:
            if begin:
                entries = [table.entry for table in inputs]
                data = encode_job(store_id, job.number, job.epoch, job.shape, entries)
                write_all(files, self._handle, data, 0)
                self.job = job._replace(end=len(data))
            step_blocks = min(STEP_BLOCKS, self._checkpoint_blocks)
            content = merged(inputs, job.shape, len(job.blocks), step_blocks)
            self._writer = TableWriter(
                files, folder, _meta(store_id, inputs, job), content, job.shape,
                None if begin else job.blocks,
            )  # fmt: skip
        except BaseException:
            files.close(self._handle)
            raise
        self._steps = self._writer.steps()

    @classmethod
    def begun(
        cls, files: FileSystem, folder: Path, store_id: bytes, inputs: Sequence[Table], number: int,
        epoch: int, shape: Shape, checkpoint_events: int,
    ) -> Merge:  # fmt: skip
        """A new one, into the table of this number."""
        job = Job(number, epoch, shape, tuple(table.entry for table in inputs), np.zeros(0, BLOCK), 0)
        return cls(files, folder, store_id, inputs, job, checkpoint_events, begin=True)

    @classmethod
    def resumed(
        cls, files: FileSystem, folder: Path, store_id: bytes, inputs: Sequence[Table], job: Job,
        checkpoint_events: int,
    ) -> Merge | None:  # fmt: skip
        """One that was begun before; None when a block of it is not what the job file says."""
        if not _are_there(files, folder, job):
            return None
        return cls(files, folder, store_id, inputs, job, checkpoint_events, begin=False)

    @property
    def written(self) -> int:
        """Bytes of the table that were written."""
        return self._writer.written

    def step(self) -> Entry | None:
        """Write a part of some MiB; the table's line for the manifest when it and its name are durable."""
        entry = next(self._steps)
        if entry is None and self._writer.blocks_done - len(self.job.blocks) >= self._checkpoint_blocks:
            self.checkpoint()
        return entry

    def checkpoint(self) -> None:
        """Make the blocks that are written durable, then the record that says so."""
        writer, job = self._writer, self.job
        more = writer.info[len(job.blocks) : writer.blocks_done]
        if not len(more):
            return
        self._files.sync(writer.handle)
        record = encode_progress(self._store_id, job, more)
        write_all(self._files, self._handle, record, job.end)
        self._files.sync(self._handle)
        if not len(job.blocks):
            self._files.sync_directory(self._folder)
        self.job = job._replace(blocks=np.concatenate([job.blocks, more]), end=job.end + len(record))

    def close(self, *, keep: bool = True) -> None:
        """Let go of the files; `keep` them, to be gone on with, or remove them. Never raises."""
        with contextlib.suppress(OSError):
            self._writer.close()
        with contextlib.suppress(OSError):
            self._files.close(self._handle)
        if not keep:
            for name in (table_name(self.job.number), job_name(self.job.number)):
                with contextlib.suppress(OSError):
                    self._files.remove(self._folder / name)


def _meta(store_id: bytes, inputs: Sequence[Table], job: Job) -> Meta:
    last = inputs[-1]
    behind = Position(
        int(last.footer["log_segment"]), int(last.footer["log_offset"]), last.entry.end_ordinal,
        last.entry.last_seq,
    )  # fmt: skip
    offset, size, _ = last.sections[Section.SESSION]
    session_json = last.raw[offset : offset + size].tobytes()
    first = inputs[0].entry
    return Meta(store_id, job.number, first.level + 1, job.epoch, first.first_ordinal, behind, session_json)


def _are_there(files: FileSystem, folder: Path, job: Job) -> bool:
    """Are the blocks on the disk, not only in its cache, those that the job file tells of?"""
    handle = files.open(folder / table_name(job.number))
    try:
        files.forget(handle)
        left = job.event_count
        offset = HEADER_BYTES
        for row in job.blocks:
            rows = min(job.shape.block_events, left)
            block = read(files, handle, rows * EVENT.itemsize, offset)
            if len(block) < rows * EVENT.itemsize:
                return False
            for c, (start, width) in enumerate(zip(COLUMN_OFFSETS, COLUMN_BYTES, strict=True)):
                if crc32c(block[start * rows : (start + width) * rows]) != int(row["crc"][c]):
                    return False
            left -= rows
            offset += len(block)
        return True
    finally:
        files.close(handle)
