"""Repair: what can be proven to have been otherwise is put back; nothing else is touched.

Each fix has a proof (see `table_parts`, `log_fixes`, and the manifest's below). Files that are replaced stay
in the folder as `<name>.replaced`, whole. What has no proof is left for `salvage`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from trident_core.contracts import Finding, Verification
from trident_core.errors import StoreError
from trident_store.filesystem import FileSystem, write_all
from trident_store.format import LOCK_NAME, SECTOR_BYTES, TABLES, Position, encode_position, segment_name
from trident_store.lsm.layout import HEADER_BYTES, MANIFEST_MAGIC, MINOR, Shape, file_number, manifest_name
from trident_store.lsm.manifest import Entry, Manifest, encode_record, manifest_numbers, read_manifest
from trident_store.mark import Mark, read_mark
from trident_store.tables import Table
from trident_store.tools.counting import Advance
from trident_store.tools.frames import Segment, bytes_of, segment_numbers
from trident_store.tools.log_fixes import Patch, log_patches
from trident_store.tools.table_check import TableCheck
from trident_store.tools.table_parts import TableParts
from trident_store.tools.verify import verify


class Fix(NamedTuple):
    """A file that is replaced as a whole: `what` is wrong, `proof` why the new bytes are the right ones."""

    file: str
    what: str
    proof: str
    data: bytes


@dataclass(slots=True)
class Plan:
    """What can be done, and what was found that cannot be mended."""

    fixes: list[Fix] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class Repaired:
    """What was done; `after` is the verification that followed (before it, for a dry run)."""

    fixes: list[Fix]
    kept: list[str]
    left: list[Finding]
    after: Verification


def repair(
    files: FileSystem, folder: Path, *, dry_run: bool = False, advance: Advance | None = None
) -> Repaired:
    """Mend what can be proven, with the store's lock held, then verify everything.

    Raises StoreError when there is no store, another process is writing it, or the disk refuses: every single
    replacement is atomic, so what was done until then stands.
    """
    tell = advance or (lambda done, total: None)
    with _locked(files, folder, dry_run):
        try:
            found = plan(files, folder)
            kept = [] if dry_run else [_replace(files, folder, fix) for fix in found.fixes]
        except OSError as error:
            raise StoreError(f"cannot repair {folder}: {error.strerror or error}") from error
        return Repaired(found.fixes, [k for k in kept if k], found.left, verify(files, folder, tell))


def plan(files: FileSystem, folder: Path) -> Plan:
    """What can be mended. Raises StoreError for another version, OSError."""
    mark = read_mark(files, folder)
    made = Plan()
    if mark.at is None:
        made.left.append(
            Finding("durable", 0, 0, None, "without a mark nothing says how far the log was durable")
        )
        return made
    state = Manifest()
    if mark.minor & TABLES:
        known = _Tables(files, folder, mark, made)
        state = known.run()
        if known.lost:
            return made
    for number, patches in log_patches(
        files, folder, mark.store_id, state.log, mark.at, segment_numbers(files.list_directory(folder))
    ).items():
        made.fixes.append(_patched(files, folder, number, patches))
    return made


def _patched(files: FileSystem, folder: Path, number: int, patches: list[Patch]) -> Fix:
    data = bytearray(bytes_of(files, folder / segment_name(number)).tobytes())
    for patch in patches:
        data[patch.offset : patch.offset + len(patch.data)] = patch.data
    what = ", ".join(f"{patch.what} at {patch.offset}" for patch in patches)
    return Fix(
        segment_name(number), what, "its place, its neighbours and its own bytes or CRC agree", bytes(data)
    )


class _Tables:
    """The tables of a store: those that check, those that can be made anew, and the manifest."""

    def __init__(self, files: FileSystem, folder: Path, mark: Mark, made: Plan) -> None:
        self.files, self.folder, self.mark, self.made = files, folder, mark, made
        names = files.list_directory(folder)
        self.numbers = sorted(n for n in (file_number(name, "tab") for name in names) if n is not None)
        self.logs: dict[Entry, Position] = {}
        self.lost = False

    def run(self) -> Manifest:
        """The state in force; the plan has what it takes for it."""
        state = read_manifest(self.files, self.folder, self.mark.store_id)
        if isinstance(state, Manifest):
            before = len(self.made.fixes)
            gone = [
                entry for entry in state.entries if not self._mend(entry) and entry.table not in self.numbers
            ]
            names = self.files.list_directory(self.folder)
            if not gone and segment_name(state.log.segment) in names:
                return state
            # An older record may be in force because the newest is damaged: what are the tables themselves?
            del self.made.fixes[before:]
            left, self.made.left = self.made.left, []
        else:
            left = [state]
        entries = [entry for number in self.numbers if (entry := self._mend_known(number)) is not None]
        chain = tiling(entries)
        log = self._log_behind(chain)
        if log is None:
            self.made.left = left
            self.lost = True
            return Manifest()
        return self._manifest(chain, log)

    def _mend_known(self, number: int) -> Entry | None:
        """The entry of a table that checks, or can be made anew; None for others."""
        try:
            parts = TableParts(self.files, self.folder, number, self.mark.store_id)
        except OSError:
            return None
        entry, log = parts.entry, parts.log
        if entry is None or log is None or not self._mend(entry):
            return None
        self.logs[entry] = log
        return entry

    def _mend(self, entry: Entry) -> bool:
        """Is the table sound, or can it be made so?"""
        name = f"{entry.table:08d}.tab"
        problem = self._problem(entry)
        if not problem:
            return True
        data = None
        with contextlib.suppress(OSError):
            parts = TableParts(self.files, self.folder, entry.table, self.mark.store_id, entry)
            data = parts.original(list(self._sessions()), self._shapes())
        if data is None:
            last = entry.end_ordinal - 1
            self.made.left.append(
                Finding(name, 0, entry.first_ordinal, last, f"{problem}, and the table cannot be made anew")
            )
            return False
        proof = f"made anew of its events, it has the CRC {entry.footer_crc:08x} that was recorded"
        self.made.fixes.append(Fix(name, problem, proof, data))
        return True

    def _problem(self, entry: Entry) -> str:
        """The first thing that is wrong with a table; empty when nothing is."""
        from trident_core.errors import DamagedStoreError

        try:
            table = Table(self.files, self.folder, self.mark.store_id, entry)
            findings = list(table.findings()) or list(TableCheck(table).findings())
        except DamagedStoreError as error:
            return error.message.partition(": ")[0]
        except OSError as error:
            return f"the table cannot be read ({error.strerror or error})"
        return next((each.problem for each in findings if each.severity == "error"), "")

    def _sessions(self) -> Iterator[bytes]:
        """The session's section of every table that has one which checks."""
        for number in self.numbers:
            with contextlib.suppress(OSError):
                data = TableParts(self.files, self.folder, number, self.mark.store_id).session()
                if data is not None:
                    yield data

    def _shapes(self) -> list[Shape]:
        shapes = []
        for number in self.numbers:
            with contextlib.suppress(OSError):
                row = TableParts(self.files, self.folder, number, self.mark.store_id).footer
                if row is not None:
                    names = ("block_events", "window_events", "page_refs")
                    shapes.append(Shape(*(int(row[name]) for name in names)))
        return shapes

    def _log_behind(self, chain: list[Entry]) -> Position | None:
        """The header of the segment that goes on behind these tables; None unless it is there and says so."""
        if not chain:
            return None
        due = self.logs[chain[-1]]
        try:
            found = Segment(self.files, self.folder, due.segment).header()
        except OSError:
            return None
        if found is None or found[0] != self.mark.store_id or found[1][:4] != due[:4]:
            return None
        return found[1]

    def _manifest(self, chain: list[Entry], log: Position) -> Manifest:
        """A new manifest that names these tables, behind all that there are."""
        store_id = self.mark.store_id
        number = max(manifest_numbers(self.files.list_directory(self.folder)), default=0) + 1
        assert self.mark.at is not None
        at = Position(
            segment=number,
            ordinal=log.ordinal,
            last_seq=log.last_seq,
            epoch=max(log.epoch, self.mark.at.epoch),
        )
        state = Manifest(tuple(chain), log, (number, HEADER_BYTES))
        data = encode_position(MANIFEST_MAGIC, store_id, at, MINOR)
        data += encode_record(store_id, state, at.epoch, SECTOR_BYTES)
        proof = f"{len(chain)} tables tile the first {log.ordinal} events, and the log continues the last one"
        self.made.fixes.append(Fix(manifest_name(number), "the manifest is lost", proof, data))
        return state


def tiling(entries: list[Entry]) -> list[Entry]:
    """Tables that tile the store's first events, the most of them, larger ones first; [] when none begin."""
    starts: dict[int, list[Entry]] = {}
    for entry in entries:
        starts.setdefault(entry.first_ordinal, []).append(entry)
    best: dict[int, list[Entry]] = {}
    for first in sorted(starts, reverse=True):
        options = [[each, *best.get(each.end_ordinal, [])] for each in starts[first]]
        best[first] = max(options, key=lambda chain: (chain[-1].end_ordinal, chain[0].level))
    return best.get(0, [])


def _replace(files: FileSystem, folder: Path, fix: Fix) -> str:
    """Put a fix in the place of its file, whose bytes are kept; the name they have then."""
    kept = ""
    new, old = folder / f"{fix.file}.new", folder / fix.file
    if fix.file in files.list_directory(folder):
        kept = _free_name(files.list_directory(folder), fix.file)
        _write(files, folder / kept, bytes_of(files, old).tobytes())
    _write(files, new, fix.data)
    files.sync_directory(folder)
    files.rename(new, old)
    files.sync_directory(folder)
    return kept


def _free_name(names: list[str], name: str) -> str:
    taken = set(names)
    candidates = (f"{name}.replaced{suffix}" for suffix in ("", *(f"-{i}" for i in range(2, 1 << 16))))
    return next(each for each in candidates if each not in taken)


def _write(files: FileSystem, path: Path, data: bytes) -> None:
    handle = files.open(path, write=True, create=True)
    try:
        write_all(files, handle, data, 0)
        files.sync(handle)
    finally:
        files.close(handle)


@contextlib.contextmanager
def _locked(files: FileSystem, folder: Path, dry_run: bool) -> Iterator[None]:
    """Nobody else writes meanwhile. A dry run takes no lock, for it writes nothing."""
    if dry_run:
        yield
        return
    try:
        names = files.list_directory(folder)
        if not any(segment_numbers([name]) or file_number(name, "tab") for name in names):
            raise StoreError(f"{folder} is not a store", hint="it has neither segments nor tables in it")
        handle = files.lock(folder / LOCK_NAME)
    except OSError as error:
        raise StoreError(f"cannot open the store {folder}: {error.strerror or error}") from error
    try:
        yield
    finally:
        files.close(handle)
