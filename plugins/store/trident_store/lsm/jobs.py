"""A compaction's job file: which tables become one, and how much of that one is durable already.

It lets a compaction go on where a crash or a close ended it. Nothing depends on it: without it, or with one
that does not check, the compaction begins anew. What it says of the new table's blocks is held against the
blocks before it is used, so that damage to either costs time and no event.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import StoreError
from trident_store.filesystem import FileSystem, read
from trident_store.format import (
    RECORD_BYTES,
    Frame,
    FrameKind,
    Position,
    crc32c,
    decode_frame,
    decode_position,
    encode_frame,
    encode_position,
)
from trident_store.lsm.layout import (
    BLOCK,
    ENTRY,
    HEADER_BYTES,
    JOB_MAGIC,
    MINOR,
    PLAN,
    Shape,
    file_number,
    job_name,
    pieces,
    table_name,
)
from trident_store.lsm.manifest import Entry, Manifest, entry_rows, rows_entries

_PLAN_BYTES: Final = PLAN.itemsize


class Job(NamedTuple):
    """A compaction under way. `number` and `epoch` are those of the table that is being made of `inputs`;
    `blocks` is what is known of its first blocks (BLOCK), `end` where the next record of the file goes."""

    number: int
    epoch: int
    shape: Shape
    inputs: tuple[Entry, ...]
    blocks: NDArray[Any]
    end: int

    @property
    def event_count(self) -> int:
        return sum(entry.count for entry in self.inputs)


def encode_job(store_id: bytes, number: int, epoch: int, shape: Shape, inputs: Sequence[Entry]) -> bytes:
    """A job file with nothing done yet."""
    at = Position(number, 0, inputs[0].first_ordinal, inputs[-1].last_seq, epoch)
    plan = np.zeros(1, PLAN)
    plan["block_events"], plan["window_events"], plan["page_refs"] = shape
    payload = plan.tobytes() + entry_rows(inputs).tobytes()
    header = encode_position(JOB_MAGIC, store_id, at, MINOR)
    return header + _record(store_id, at._replace(offset=HEADER_BYTES), len(inputs), 0, payload)


def encode_progress(store_id: bytes, job: Job, blocks: NDArray[Any]) -> bytes:
    """A record that stands at `job.end`: so many more blocks are durable."""
    at = Position(job.number, job.end, job.inputs[0].first_ordinal, job.inputs[-1].last_seq, job.epoch)
    return _record(store_id, at, len(blocks), len(job.blocks), blocks.tobytes())


def _record(store_id: bytes, at: Position, count: int, first: int, payload: bytes) -> bytes:
    frame = Frame(
        kind=FrameKind.JOB,
        count=count,
        epoch=at.epoch,
        ordinal=first,
        first_seq=at.last_seq,
        last_seq=at.last_seq,
        payload_bytes=len(payload),
        payload_crc=crc32c(payload),
        offset=at.offset,
        segment=at.segment,
    )
    return encode_frame(store_id, frame) + payload


def find_job(files: FileSystem, folder: Path, store_id: bytes, state: Manifest) -> Job | None:
    """The compaction that can be gone on with: its inputs are in force, its table is there and is not.
    Raises OSError."""
    names = set(files.list_directory(folder))
    in_force = {entry.table for entry in state.entries}
    for number in sorted((n for n in (file_number(each, "job") for each in names) if n), reverse=True):
        if number in in_force or table_name(number) not in names:
            continue
        job = _read(files, folder, store_id, number)
        if job is not None and _are_neighbours(job.inputs, state.entries):
            return job
    return None


def _are_neighbours(inputs: tuple[Entry, ...], entries: tuple[Entry, ...]) -> bool:
    """Do the inputs stand, just so, one behind the other among the tables in force?"""
    first = entries.index(inputs[0]) if inputs[0] in entries else len(entries)
    return entries[first : first + len(inputs)] == inputs


def _read(files: FileSystem, folder: Path, store_id: bytes, number: int) -> Job | None:
    """A job file up to the first record that does not check; None when it cannot be used at all."""
    handle = files.open(folder / job_name(number))
    try:
        files.forget(handle)
        data = read(files, handle, files.size(handle), 0)
    finally:
        files.close(handle)
    try:
        header = decode_position(JOB_MAGIC, data[:HEADER_BYTES].tobytes())
    except StoreError:  # of a version to come: the compaction begins anew
        return None
    plan = _record_at(store_id, data, number, HEADER_BYTES)
    if header is None or header[0] != store_id or header[1].segment != number or plan is None:
        return None
    frame, payload = plan
    if frame.count < 2 or len(payload) != _PLAN_BYTES + frame.count * ENTRY.itemsize:
        return None
    row: Any = payload[:_PLAN_BYTES].view(PLAN)[0]
    shape = Shape(int(row["block_events"]), int(row["window_events"]), int(row["page_refs"]))
    inputs = rows_entries(payload[_PLAN_BYTES:].view(ENTRY))
    if min(shape) < 1:
        return None
    job = Job(number, frame.epoch, shape, inputs, np.zeros(0, BLOCK), frame.after().offset)
    return _with_progress(store_id, data, job)


def _with_progress(store_id: bytes, data: NDArray[np.uint8], job: Job) -> Job:
    most, parts, end, done = pieces(job.event_count, job.shape.block_events), [job.blocks], job.end, 0
    while (found := _record_at(store_id, data, job.number, end)) is not None:
        frame, payload = found
        if frame.ordinal != done or len(payload) != frame.count * BLOCK.itemsize or not frame.count:
            break
        done += frame.count
        if done > most:
            break
        parts.append(payload.view(BLOCK))
        end = frame.after().offset
    return job._replace(blocks=np.concatenate(parts), end=end)


def _record_at(
    store_id: bytes, data: NDArray[np.uint8], number: int, offset: int
) -> tuple[Frame, NDArray[np.uint8]] | None:
    frame = decode_frame(store_id, data[offset : offset + RECORD_BYTES].tobytes())
    if frame is None or frame.kind != FrameKind.JOB or (frame.segment, frame.offset) != (number, offset):
        return None
    payload = data[offset + RECORD_BYTES :][: frame.payload_bytes]
    if len(payload) != frame.payload_bytes or crc32c(payload) != frame.payload_crc:
        return None
    return frame, np.ascontiguousarray(payload)
