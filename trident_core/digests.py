"""The file `digests` in a store's folder: what the book was after an exact event, as the run that stored it
knew it. Format: docs/store-format.md. Any engine's store may have one; engines leave it alone.

A record binds the store to the book: whoever rebuilds the book from the store alone must get that digest.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import google_crc32c

from trident_core.contracts import Finding
from trident_core.errors import StoreError

NAME: Final = "digests"
HEADER: Final = b"TRIDENT DIGESTS 1\n"
#: The oldest records go when there are more.
KEPT: Final = 64
_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DigestRecord:
    """After the store's first `events` events, the last of them with `last_seq`, a book of all of them had
    this digest (hex) and so many live orders; `counts`: events by type, empty when not known. `book`: the
    engine that said so."""

    events: int
    last_seq: int
    digest: str
    live_orders: int
    counts: Mapping[str, int] = field(default_factory=dict)
    book: str = ""


def record_digest(folder: Path, record: DigestRecord) -> None:
    """Add a record and make it durable; the events must be durable before. The file is replaced as a whole,
    so that a crash leaves the old one or the new one. Raises StoreError when the disk refuses."""
    kept, findings = read_digests(folder)
    if any(finding.offset == 0 for finding in findings):  # of another version: not ours to replace
        return
    kept = [each for each in kept if each.events < record.events][-KEPT + 1 :]
    try:
        write_digests(folder, [*kept, record])
    except OSError as error:
        raise StoreError(
            f"{folder / NAME} cannot be written: {error.strerror or error}",
            hint="the events are stored and durable; only the digest of the book is not recorded",
        ) from error


def write_digests(folder: Path, records: list[DigestRecord]) -> None:
    """Replace the file by these records, durably. Raises OSError."""
    data = encode(records)
    new = folder / f"{NAME}.new"
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
        os.fsync(handle)
    finally:
        os.close(handle)
    os.replace(new, folder / NAME)
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(above)
    finally:
        os.close(above)


def encode(records: list[DigestRecord]) -> bytes:
    """The file that holds these records."""
    return HEADER + b"".join(_encode(each) for each in records)


def read_digests(folder: Path) -> tuple[list[DigestRecord], list[Finding]]:
    """The records that check, by growing `events`, and what is wrong with the file. A store without the file
    has no records: it was not made by a run, or no run of it came to its end. Raises OSError."""
    try:
        with open(folder / NAME, "rb") as file:
            data = file.read(_BYTES_MAX + 1)
    except FileNotFoundError:
        return [], []
    if not data.startswith(HEADER) or len(data) > _BYTES_MAX:
        newer = data.startswith(HEADER[:-2])
        what = "is of another version" if newer else "does not begin as such a file does"
        return [], [_finding(0, f"the file of the book's digests {what}")]
    records: list[DigestRecord] = []
    findings = []
    at = len(HEADER)
    for line in data[at:].splitlines(keepends=True):
        record = _decode(line)
        if record is None or (records and record.events <= records[-1].events):
            findings.append(_finding(at, "a record of the book's digest does not check"))
        else:
            records.append(record)
        at += len(line)
    return records, findings


def _finding(offset: int, problem: str) -> Finding:
    return Finding(NAME, offset, 0, None, f"{problem}; no event is affected")


def _encode(record: DigestRecord) -> bytes:
    text = json.dumps(asdict(record), separators=(",", ":"), sort_keys=True).encode("ascii")
    return b"%08x %s\n" % (google_crc32c.value(text), text)


def _decode(line: bytes) -> DigestRecord | None:
    text = line[9:-1]
    if line != b"%08x %s\n" % (google_crc32c.value(text), text):
        return None
    try:
        data: dict[str, Any] = json.loads(text)
        return DigestRecord(
            events=int(data["events"]),
            last_seq=int(data["last_seq"]),
            digest=str(data["digest"]),
            live_orders=int(data["live_orders"]),
            counts={str(letter): int(n) for letter, n in data["counts"].items()},
            book=str(data["book"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
