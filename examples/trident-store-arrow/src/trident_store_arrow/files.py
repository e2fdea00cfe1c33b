"""The files of a store: events as Arrow IPC, and the manifest that says which of them count.

    manifest.json      {"version": 1, "session": …, "directory": file, "files": [file, …]}, a newline, SHA-256
    directory-N.json   the instruments, as JSON
    NNNNNNN.arrow      events; `aux` is fixed-size binary, the other columns are what EVENT has

A file entry is {"name", "sha256", "bytes"}, of events also {"events", "first", "last"}. Files are written,
synced and named before the manifest that counts them; what no manifest counts is what a crash left, and is
removed by the next writer.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from trident_core.dtypes import EVENT, Events
from trident_core.errors import DamagedStoreError, StoreError

MANIFEST = "manifest.json"
VERSION = 1


class Entry(NamedTuple):
    """A file that counts. Events are numbered from 0 through the store; `first` and `last` are their seq."""

    name: str
    sha256: str
    bytes: int
    events: int = 0
    first: int = 0
    last: int = 0


class Manifest(NamedTuple):
    session: dict[str, Any]  # without its directory
    directory: Entry
    files: tuple[Entry, ...] = ()

    @property
    def events(self) -> int:
        return sum(entry.events for entry in self.files)

    @property
    def last_seq(self) -> int:
        return self.files[-1].last if self.files else 0


def encode(events: Events) -> bytes:
    """Events as the bytes of an Arrow IPC file."""
    columns = {
        name: pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(8), len(events), [None, pa.py_buffer(np.ascontiguousarray(events[name]))]
        )
        if name == "aux"
        else pa.array(np.ascontiguousarray(events[name]))
        for name in EVENT.names
    }
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def decode(data: bytes) -> Events:
    """The inverse of `encode`."""
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all().combine_chunks()
    events = np.zeros(table.num_rows, EVENT)
    for name in EVENT.names:
        chunks = table[name].chunks
        if chunks and name == "aux":
            events[name] = np.frombuffer(chunks[0].buffers()[1], np.uint8)[: 8 * len(events)].reshape(-1, 8)
        elif chunks:
            events[name] = chunks[0].to_numpy()
    return events


def write(folder: Path, name: str, data: bytes) -> None:
    """A new file, whole and durable under its name. Raises OSError."""
    part = folder / f"{name}.part"
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    finally:
        os.close(handle)
    os.rename(part, folder / name)
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def entry_of(name: str, data: bytes, events: Events | None = None) -> Entry:
    digest = hashlib.sha256(data).hexdigest()
    if events is None:
        return Entry(name, digest, len(data))
    return Entry(name, digest, len(data), len(events), int(events["seq"][0]), int(events["seq"][-1]))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    body = json.dumps(
        {
            "version": VERSION,
            "session": manifest.session,
            "directory": manifest.directory._asdict(),
            "files": [entry._asdict() for entry in manifest.files],
        }
    ).encode()
    write(folder, MANIFEST, body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n")


def read_manifest(folder: Path) -> Manifest:
    """Raises StoreError where there is no store, or a newer one; DamagedStoreError."""
    try:
        data = (folder / MANIFEST).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        left = sorted(folder.glob("*.arrow")) if folder.is_dir() else []
        if left:
            raise damaged(MANIFEST, "is gone", 0, 0, None) from None
        raise StoreError(f"there is no store at {folder}", hint="is the path right?") from None
    except OSError as error:
        raise StoreError(f"cannot read {folder / MANIFEST}: {error.strerror}") from error
    body, _, rest = data.partition(b"\n")
    if rest != hashlib.sha256(body).hexdigest().encode() + b"\n":
        raise damaged(MANIFEST, "does not have its checksum", 0, 0, None)
    found = json.loads(body)
    if found["version"] > VERSION:
        raise StoreError(
            f"{folder} has format {found['version']}, this package knows {VERSION}", hint="update the package"
        )
    entries = tuple(Entry(**entry) for entry in found["files"])
    return Manifest(found["session"], Entry(**found["directory"]), entries)


def checked(folder: Path, entry: Entry, first: int) -> bytes:
    """The bytes of a file that counts; `first` is the number of its first event. Raises DamagedStoreError."""
    last = first + entry.events - 1 if entry.events else None
    try:
        data = (folder / entry.name).read_bytes()
    except FileNotFoundError:
        raise damaged(entry.name, "is gone", 0, first, last) from None
    except OSError as error:
        raise StoreError(f"cannot read {folder / entry.name}: {error.strerror}") from error
    if len(data) != entry.bytes:
        raise damaged(entry.name, f"has {len(data)} bytes instead of {entry.bytes}", len(data), first, last)
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise damaged(entry.name, "does not have its checksum", 0, first, last)
    return data


def damaged(name: str, problem: str, offset: int, first: int, last: int | None) -> DamagedStoreError:
    return DamagedStoreError(
        f"{name} {problem}", file=name, offset=offset, first=first, last=last, hint="restore it from a backup"
    )


def strays(folder: Path, manifest: Manifest) -> list[Path]:
    """Files of this format that no manifest counts."""
    counted = {MANIFEST, manifest.directory.name, *(entry.name for entry in manifest.files)}
    patterns: Sequence[str] = ("*.arrow", "*.part", "directory-*.json")
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.name not in counted})
