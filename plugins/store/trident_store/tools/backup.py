"""Backup and restore: a store's files, consistent while a writer is at work, each checked before it counts.

A backup is a folder of numbered copies. Each copy is a store of its own, complete, with a list of its files
(`backup.json`: bytes and CRC-32C of each). What has not changed since the copy before is a second name of the
same file, so a copy costs what is new. A copy that is not complete has the name `<number>.partial`, and is
taken up again by the next backup.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import google_crc32c

from trident_core import digests
from trident_core.contracts import Verification
from trident_core.errors import DamagedStoreError, StoreError, UsageError
from trident_store.filesystem import OsFileSystem
from trident_store.format import (
    MARK_MAGIC,
    MARK_NAME,
    MARK_SLOT_BYTES,
    SECTOR_BYTES,
    Position,
    encode_frame,
    encode_position,
    pad_frame,
    segment_name,
)
from trident_store.found import Survey
from trident_store.lsm.layout import HEADER_BYTES, MANIFEST_MAGIC, MINOR, manifest_name, table_name
from trident_store.lsm.manifest import Manifest, encode_record
from trident_store.survey import survey
from trident_store.tools.counting import Advance
from trident_store.tools.verify import REPORT, verify

LIST: Final = "backup.json"
_CHUNK: Final = 4 << 20
_TRIES: Final = 8
_PARTIAL: Final = ".partial"


class Listed(NamedTuple):
    """A file of a copy."""

    name: str
    bytes: int
    crc: int


@dataclass(slots=True)
class Copy:
    """A complete copy. `linked`, `copied`, `kept`: bytes that the copy before had, that were copied, and that
    an interrupted attempt had left."""

    path: Path
    source: str = ""
    store_id: str = ""
    events: int = 0
    last_seq: int = 0
    files: list[Listed] = field(default_factory=list)
    linked: int = 0
    copied: int = 0
    kept: int = 0


def copies(folder: Path) -> list[Path]:
    """The complete copies in a folder of backups, oldest first; [] when there are none."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name for name in sorted(names) if name.isdigit() and (folder / name / LIST).is_file()]


def read_list(copy: Path) -> Copy:
    """What a copy says of itself. Raises StoreError when it cannot be read or does not check."""
    try:
        text = (copy / LIST).read_bytes()
        data: dict[str, Any] = json.loads(text)
        crc = data.pop("crc")
        if crc != _crc_of(data):
            raise ValueError("its CRC is another one")
        rows = [Listed(str(name), int(size), int(each)) for name, size, each in data["files"]]
        return Copy(copy, data["source"], data["store_id"], data["events"], data["last_seq"], rows)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{copy / LIST} is not the list of a backup: {error}", hint="take an earlier copy"
        ) from None


def _crc_of(data: dict[str, Any]) -> int:
    return int(google_crc32c.value(json.dumps(data, sort_keys=True).encode()))


def backup(store: Path, folder: Path, *, advance: Advance | None = None) -> Copy:
    """Make a copy of the store as it is now in `folder`, which is made if need be.

    Raises StoreError when the store cannot be read, DamagedStoreError when it is damaged (nothing counts as a
    copy then), UsageError when `folder` holds something else, or another store's backups.
    """
    tell = advance or (lambda done, total: None)
    for tries_left in range(_TRIES - 1, -1, -1):
        found = survey(OsFileSystem(), store, payloads=False)
        found.raise_damage()
        try:
            return _Backup(store, folder, found, tell).run()
        except _MovedError:  # the writer has put other files in the place of these
            if not tries_left:
                raise StoreError(
                    f"{store} changes faster than it can be copied", hint="try again when less is written"
                ) from None
        except OSError as error:
            where = f": {os.fsdecode(error.filename)}" if error.filename else ""
            raise StoreError(
                f"the backup of {store} failed{where}: {error.strerror or error}",
                hint="what was copied is kept; the same command goes on from there",
            ) from error
    raise AssertionError("unreachable")


class _MovedError(Exception):
    """A file of the store has gone, or is another one, since the store was looked at."""


class _Backup:
    def __init__(self, store: Path, folder: Path, found: Survey, tell: Advance) -> None:
        self.store, self.folder, self.found, self.tell = store, folder, found, tell
        self.base: Copy | None = None
        earlier = copies(folder)
        if earlier:
            self.base = read_list(earlier[-1])
            if self.base.store_id != found.store_id.hex():
                raise UsageError(
                    f"{folder} holds backups of another store ({self.base.source})",
                    hint="name another folder",
                )
        elif folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is no folder", hint="name a folder for backups")
        elif folder.exists() and any(not name.endswith(_PARTIAL) for name in os.listdir(folder)):
            raise UsageError(f"{folder} exists and holds no backups", hint="name a new or an empty folder")
        number = int(earlier[-1].name) + 1 if earlier else 1
        self.path = folder / f"{number:08d}"
        self.work = folder / f"{number:08d}{_PARTIAL}"
        self.result = Copy(self.path, str(store), found.store_id.hex())
        self.total = sum(t.entry.nbytes for t in found.tables) + sum(e.end for e in found.extents)
        self.done = 0
        self.end = found.end  # of the log in the copy

    def run(self) -> Copy:
        os.makedirs(self.work, exist_ok=True)
        before = {each.name: each for each in self.base.files} if self.base else {}
        wanted = set()
        for table in self.found.tables:
            name = table_name(table.entry.table)
            wanted.add(name)
            self._take(name, table.entry.nbytes, before.get(name))
        for extent in self.found.extents:
            name = segment_name(extent.number)
            wanted.add(name)
            if extent.number != self.found.end.segment or extent.end % SECTOR_BYTES == 0:
                self._take(name, extent.end, before.get(name))
            else:
                self._take_padded(name, extent.end)
        for name, data in self._small().items():
            wanted.add(name)
            self._put(name, data)
        for name in set(os.listdir(self.work)) - wanted:
            os.unlink(self.work / name)
        self._check()
        self._list()
        os.rename(self.work, self.path)
        _sync_folder(self.folder)
        return self.result

    def _take(self, name: str, size: int, before: Listed | None) -> None:
        """The first `size` bytes of a file of the store: of an earlier copy if that has them, else copied."""
        target = self.work / name
        crc: int | None = None
        if before is not None and before.bytes == size and self.base is not None:
            crc = _crc_of_file(self.base.path / name, size, self._count)
            if crc == before.crc and self._same(name, size, crc):
                target.unlink(missing_ok=True)
                os.link(self.base.path / name, target)
                self.result.linked += size
                self.result.files.append(Listed(name, size, crc))
                return
        there = target.stat().st_size if target.exists() else -1
        if there == size and self._same(name, size, kept := _crc_of_file(target, size, self._count)):
            self.result.kept += size
            self.result.files.append(Listed(name, size, kept))
            return
        try:
            crc = copy_file(self.store / name, target, size, self._count)
        except FileNotFoundError:
            raise _MovedError from None
        self.result.copied += size
        self.result.files.append(Listed(name, size, crc))

    def _take_padded(self, name: str, size: int) -> None:
        """The log's end, filled up to a sector's boundary: a mark may stand only there."""
        pad = pad_frame(self.found.end, SECTOR_BYTES)
        assert pad is not None
        try:
            copy_file(self.store / name, self.work / name, size, self._count)
        except FileNotFoundError:
            raise _MovedError from None
        with open(self.work / name, "ab") as file:
            file.write(encode_frame(self.found.store_id, pad[0]) + pad[1])
            file.flush()
            os.fsync(file.fileno())
        self.end = pad[0].after()
        size = self.end.offset
        self.result.copied += size
        self.result.files.append(Listed(name, size, _crc_of_file(self.work / name, size, lambda n: None)))

    def _same(self, name: str, size: int, crc: int) -> bool:
        """Has the store's file these bytes now? A table never changes; a segment may be used again."""
        if name.endswith(".tab"):
            return True
        try:
            return crc == _crc_of_file(self.store / name, size, lambda n: None)
        except FileNotFoundError:
            raise _MovedError from None

    def _count(self, nbytes: int) -> None:
        self.done += nbytes
        self.tell(min(self.done, self.total), self.total)

    def _small(self) -> dict[str, bytes]:
        """Mark and manifest of the copy, made for what was copied; the digests of its events."""
        found, end = self.found, self.end
        slot = encode_position(MARK_MAGIC, found.store_id, end, found.mark.minor).ljust(
            MARK_SLOT_BYTES, b"\0"
        )
        made = {MARK_NAME: slot * 2}
        if found.manifest.entries:
            log = found.manifest.log
            number = found.manifest.place[0]
            at = Position(segment=number, ordinal=log.ordinal, last_seq=log.last_seq, epoch=end.epoch)
            state = Manifest(found.manifest.entries, log, (number, HEADER_BYTES))
            made[manifest_name(number)] = encode_position(
                MANIFEST_MAGIC, found.store_id, at, MINOR
            ) + encode_record(found.store_id, state, end.epoch, SECTOR_BYTES)
        records = [each for each in digests.read_digests(self.store)[0] if each.events <= end.ordinal]
        if records:
            made[digests.NAME] = digests.encode(records)
        if (self.store / REPORT).is_file():
            made[REPORT] = (self.store / REPORT).read_bytes()
        return made

    def _put(self, name: str, data: bytes) -> None:
        _write(self.work / name, data)
        self.result.files.append(Listed(name, len(data), int(google_crc32c.value(data))))

    def _check(self) -> None:
        """The copy is a sound store with the events it should have, or it does not count."""
        report = verify(OsFileSystem(), self.work, lambda done, total: None)
        if report.ok and report.events == self.end.ordinal:
            self.result.events, self.result.last_seq = report.events, report.last_seq
            return
        whole = verify(OsFileSystem(), self.store, lambda done, total: None)
        if whole.ok:
            raise _MovedError  # what was copied was being used again
        finding = next(each for each in whole.findings if each.severity == "error")
        raise DamagedStoreError(
            f"{self.store} is damaged and not backed up: {finding.problem}", file=finding.file,
            offset=finding.offset, first=finding.first, last=finding.last,
            hint="`trident verify` lists all; earlier copies are untouched",
        )  # fmt: skip

    def _list(self) -> None:
        data: dict[str, Any] = {
            "backup": 1, "source": self.result.source, "store_id": self.result.store_id,
            "events": self.result.events, "last_seq": self.result.last_seq,
            "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "files": [list(each) for each in self.result.files],
        }  # fmt: skip
        data["crc"] = _crc_of(json.loads(json.dumps(data)))
        _write(self.work / LIST, json.dumps(data, indent=1).encode() + b"\n")
        _sync_folder(self.work)


def restore(copy: Path, store: Path, *, advance: Advance | None = None) -> tuple[Copy, Verification]:
    """Make a store of a copy: every file is checked while it is copied, the whole before it has its name.

    Raises UsageError when `store` is there already, StoreError when the copy is damaged or the disk refuses;
    what was copied then is in `<store>.partial`, and the same call goes on from there.
    """
    tell = advance or (lambda done, total: None)
    if store.exists() and (not store.is_dir() or any(store.iterdir())):
        raise UsageError(f"{store} exists already", hint="restore into a new folder")
    if not store.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {store.absolute().parent}", hint="make it first")
    listed = read_list(copy)
    work = store.with_name(store.name + _PARTIAL)
    total, done = sum(each.bytes for each in listed.files), 0

    def count(nbytes: int) -> None:
        nonlocal done
        done += nbytes
        tell(min(done, total), total)

    try:
        os.makedirs(work, exist_ok=True)
        for each in listed.files:
            _restore_file(copy, work, each, count)
        for name in set(os.listdir(work)) - {each.name for each in listed.files}:
            os.unlink(work / name)
        _sync_folder(work)
        report = verify(OsFileSystem(), work, lambda done, total: None)
        if not report.ok or report.events != listed.events:
            raise StoreError(
                f"the copy {copy} is damaged: it does not verify", hint="restore an earlier copy"
            )
        if store.exists():
            store.rmdir()
        os.rename(work, store)
        _sync_folder(store.absolute().parent)
    except OSError as error:
        raise StoreError(
            f"restoring {store} failed: {error.strerror or error}",
            hint="what was copied is kept; the same command goes on from there",
        ) from error
    return listed, report


def _restore_file(copy: Path, work: Path, each: Listed, count: Callable[[int], None]) -> None:
    target = work / each.name
    there = target.stat().st_size if target.exists() else -1
    if there == each.bytes and _crc_of_file(target, each.bytes, count) == each.crc:
        return
    try:
        crc = copy_file(copy / each.name, target, each.bytes, count)
    except FileNotFoundError:
        raise StoreError(f"the copy {copy} lacks {each.name}", hint="restore an earlier copy") from None
    if crc != each.crc:
        raise StoreError(
            f"{copy / each.name} is damaged: its CRC is {crc:08x}, the backup's list says {each.crc:08x}",
            hint="restore an earlier copy, or salvage what this one has",
        )


def copy_file(source: Path, target: Path, size: int, count: Callable[[int], None]) -> int:
    """The first `size` bytes of a file, durable on return; their CRC. Raises OSError."""
    crc, left = 0, size
    target.unlink(missing_ok=True)  # it may be a second name of an earlier copy's
    # A segment that is being read is not used again while a shared lock is on it.
    shared = source.name.endswith(".seg")
    handle = OsFileSystem().open_shared(source) if shared else os.open(source, os.O_RDONLY)
    with open(handle, "rb") as reader, open(target, "wb") as writer:
        while left:
            data = reader.read(min(_CHUNK, left))
            if not data:
                raise FileNotFoundError(f"{source} is shorter than it was")
            crc = google_crc32c.extend(crc, data)
            writer.write(data)
            left -= len(data)
            count(len(data))
        writer.flush()
        os.fsync(writer.fileno())
    return int(crc)


def _crc_of_file(path: Path, size: int, count: Callable[[int], None]) -> int:
    """The CRC of the first `size` bytes; of fewer, when there are fewer."""
    crc, left = 0, size
    with open(path, "rb") as file:
        while left and (data := file.read(min(_CHUNK, left))):
            crc = google_crc32c.extend(crc, data)
            left -= len(data)
            count(len(data))
    return int(crc)


def _write(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
