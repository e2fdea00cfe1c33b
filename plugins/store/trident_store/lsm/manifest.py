"""The manifest: which tables a store has, and where its log goes on behind them.

A manifest is a header and records, each the complete state; the last one that checks is in force. It is
only ever appended to; a new one replaces it when the store is opened for writing or the old one has grown.
What a record no longer names is removed after the record is durable, so that an older record is either as
good as the newest or names a file that is gone, which is damage: it can never be taken for the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Finding
from trident_store.filesystem import FileSystem, read, write_all
from trident_store.format import (
    FRAME_MAGIC,
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
    ENTRY,
    HEADER_BYTES,
    LOG_MAGIC,
    MANIFEST_BYTES,
    MANIFEST_MAGIC,
    MINOR,
    file_number,
    manifest_name,
)


class Entry(NamedTuple):
    """A table as the manifest names it. `first_ordinal` counts the store's events from 0."""

    table: int
    level: int
    epoch: int
    footer_crc: int
    first_ordinal: int
    count: int  # type: ignore[assignment]  # of events; shadows tuple.count
    first_seq: int
    last_seq: int
    nbytes: int

    @property
    def end_ordinal(self) -> int:
        return self.first_ordinal + self.count


class Manifest(NamedTuple):
    """A state: the tables in the order of their events, and the log's first segment (its header's position).

    `place` is where the record stands: (manifest, offset)."""

    entries: tuple[Entry, ...] = ()
    log: Position = Position()
    place: tuple[int, int] = (0, 0)


def entry_rows(entries: Sequence[Entry]) -> NDArray[Any]:
    """ENTRY[n]: entries as a manifest has them."""
    rows = np.zeros(len(entries), ENTRY)
    for row, entry in zip(rows, entries, strict=True):
        for name, value in entry._asdict().items():
            row[name] = value
    return rows


def rows_entries(rows: NDArray[Any]) -> tuple[Entry, ...]:
    """The reverse of `entry_rows`."""
    found: Any = rows.tolist()
    return tuple(Entry(*row[:-1]) for row in found)


def encode_record(store_id: bytes, state: Manifest, epoch: int, sector_bytes: int) -> bytes:
    """A record that stands at `state.place`: a frame's header and its payload, up to a sector's boundary, so
    that what is appended later never shares a sector with it."""
    rows = entry_rows(state.entries)
    payload = encode_position(LOG_MAGIC, store_id, state.log, MINOR) + rows.tobytes()
    payload += bytes(-(state.place[1] + RECORD_BYTES + len(payload)) % sector_bytes)
    frame = Frame(
        kind=FrameKind.TABLES,
        count=len(rows),
        epoch=epoch,
        ordinal=state.log.ordinal,
        first_seq=state.log.last_seq,
        last_seq=state.log.last_seq,
        payload_bytes=len(payload),
        payload_crc=crc32c(payload),
        offset=state.place[1],
        segment=state.place[0],
    )
    return encode_frame(store_id, frame) + payload


def _decode_record(store_id: bytes, data: NDArray[np.uint8], place: tuple[int, int]) -> Manifest | None:
    """The record that stands at `place` of a manifest's bytes; None when it does not check."""
    offset = place[1]
    frame = decode_frame(store_id, data[offset : offset + RECORD_BYTES].tobytes())
    if frame is None or frame.kind != FrameKind.TABLES or (frame.segment, frame.offset) != place:
        return None
    payload = data[offset + RECORD_BYTES :][: frame.payload_bytes]
    end = RECORD_BYTES + frame.count * ENTRY.itemsize
    if not end <= len(payload) == frame.payload_bytes or crc32c(payload) != frame.payload_crc:
        return None
    log = decode_position(LOG_MAGIC, payload[:RECORD_BYTES].tobytes())
    if log is None or log[0] != store_id:
        return None
    return Manifest(rows_entries(payload[RECORD_BYTES:end].view(ENTRY)), log[1], place)


def _contradiction(state: Manifest) -> str:
    """Why a record that checks cannot be right; empty when it can."""
    ordinal = last_seq = 0
    for entry in state.entries:
        if entry.first_ordinal != ordinal or entry.count < 1 or entry.first_seq <= last_seq:
            return f"table {entry.table} does not continue event {ordinal}, seq {last_seq}"
        ordinal, last_seq = entry.end_ordinal, entry.last_seq
    if (state.log.ordinal, state.log.last_seq) != (ordinal, last_seq):
        return f"the log continues event {state.log.ordinal}, the tables end with {ordinal}"
    return ""


def manifest_numbers(names: Sequence[str]) -> list[int]:
    """The numbers of the manifests among file names, descending."""
    return sorted((n for n in (file_number(name, "man") for name in names) if n is not None), reverse=True)


def read_manifest(
    files: FileSystem, folder: Path, store_id: bytes, *, forget: bool = False
) -> Manifest | Finding:
    """The state in force, or what is wrong; `forget`: as it is on the disk, not in the cache. Raises
    StoreError for another version, OSError."""
    numbers = manifest_numbers(files.list_directory(folder))
    for number in numbers:
        try:
            state = _read_one(files, folder, store_id, number, forget)
        except FileNotFoundError:  # a writer beside has replaced it
            continue
        if state is not None:
            problem = _contradiction(state)
            return Finding(manifest_name(number), state.place[1], 0, None, problem) if problem else state
    name = manifest_name(numbers[0] if numbers else 1)
    return Finding(name, 0, 0, None, "the manifest of the tables is missing or damaged")


def _read_one(files: FileSystem, folder: Path, store_id: bytes, number: int, forget: bool) -> Manifest | None:
    handle = files.open(folder / manifest_name(number))
    try:
        if forget:
            files.forget(handle)
        data = read(files, handle, files.size(handle), 0)
    finally:
        files.close(handle)
    header = decode_position(MANIFEST_MAGIC, data[:HEADER_BYTES].tobytes())
    if header is None or header[0] != store_id or header[1].segment != number:
        return None
    words = data[: len(data) // RECORD_BYTES * RECORD_BYTES].view("<u4")[:: RECORD_BYTES // 4]
    for row in np.flatnonzero(words == np.frombuffer(FRAME_MAGIC, "<u4")[0])[::-1]:
        state = _decode_record(store_id, data, (number, int(row) * RECORD_BYTES))
        if state is not None:
            return state
    return None


def unreadable(files: FileSystem, folder: Path, store_id: bytes, state: Manifest) -> list[Finding]:
    """Places in the manifest in force that no record accounts for, as notes: a crash tore the last one, or
    older ones are damaged; no event is affected. Raises OSError."""
    number = state.place[0]
    name = manifest_name(number)
    handle = files.open(folder / name)
    try:
        data = read(files, handle, files.size(handle), 0)
    finally:
        files.close(handle)
    found, at = [], HEADER_BYTES
    while at < len(data):
        frame = decode_frame(store_id, data[at : at + RECORD_BYTES].tobytes())
        if frame is not None and _decode_record(store_id, data, (number, at)) is not None:
            at = frame.after().offset
            continue
        problem = "a record of the manifest does not check; another one is in force, no event is affected"
        found.append(Finding(name, at, state.log.ordinal, None, problem, "note"))
        magic = data[at + RECORD_BYTES :].tobytes().find(FRAME_MAGIC)
        at = len(data) if magic < 0 else at + RECORD_BYTES + magic
    return found


class ManifestWriter:
    """Publishes states. A state is in force, and what it no longer names may be removed, when `publish` has
    returned; when it raises, the caller must not go on: what the disk holds then is for the next opening."""

    def __init__(
        self, files: FileSystem, folder: Path, store_id: bytes, epoch: int, sector_bytes: int
    ) -> None:
        self._files, self._folder, self._store_id, self._epoch = files, folder, store_id, epoch
        self._sector_bytes = sector_bytes
        self._handle: int | None = None
        self._end = (0, 0)

    def publish(self, entries: Sequence[Entry], log: Position) -> Manifest:
        """Write a state and make it durable. Raises OSError."""
        if self._handle is None or self._end[1] > MANIFEST_BYTES:
            return self._replace(entries, log)
        handle, self._handle = self._handle, None  # an interrupted append is followed by a new manifest
        state = Manifest(tuple(entries), log, self._end)
        record = encode_record(self._store_id, state, self._epoch, self._sector_bytes)
        try:
            write_all(self._files, handle, record, self._end[1])
            self._files.sync(handle)
        except BaseException:
            self._files.close(handle)
            raise
        self._end = (self._end[0], self._end[1] + len(record))
        self._handle = handle
        return state

    def _replace(self, entries: Sequence[Entry], log: Position) -> Manifest:
        files, folder = self._files, self._folder
        self.close()
        old = manifest_numbers(files.list_directory(folder))
        number = old[0] + 1 if old else 1
        state = Manifest(tuple(entries), log, (number, HEADER_BYTES))
        at = Position(segment=number, ordinal=log.ordinal, last_seq=log.last_seq, epoch=self._epoch)
        data = encode_position(MANIFEST_MAGIC, self._store_id, at, MINOR)
        data += encode_record(self._store_id, state, self._epoch, self._sector_bytes)
        handle = files.open(folder / manifest_name(number), write=True, create=True)
        try:
            write_all(files, handle, data, 0)
            files.sync(handle)
            files.sync_directory(folder)
            for each in old:
                files.remove(folder / manifest_name(each))
        except BaseException:
            files.close(handle)
            raise
        self._end, self._handle = (number, len(data)), handle
        return state

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            self._files.close(handle)
