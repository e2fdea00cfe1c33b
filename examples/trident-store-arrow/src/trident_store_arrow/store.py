"""A store of the contract trident_core.contracts.Store; the ids (STORE-n) are its rules."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from trident_core.contracts import Finding, Recovery, Verification
from trident_core.dtypes import EVENT, Events
from trident_core.errors import DamagedStoreError, StoreError, UsageError
from trident_core.session import Directory, Session
from trident_store_arrow import files
from trident_store_arrow.snapshot import ArrowSnapshot

#: Events held in memory before they become a file.
HELD_MAX = 65_536
FILES_MAX = 1_000_000
LOCK = "lock"


class ArrowStore:
    """Events in memory until a sync, or until there are many; then a file of Arrow."""

    def __init__(self, path: Path, mode: str, session: Session | None = None) -> None:
        if mode not in ("create", "append", "read"):
            raise UsageError(f"no such mode: {mode!r}", hint='"create", "append" or "read"')
        self._folder, self._mode, self.recovery = Path(path), mode, Recovery()
        self._closed, self._refused = False, ""
        self._held: list[Events] = []
        self._files: list[files.Entry] = []  # written, counted by the manifest after the next sync
        self._lock = -1
        if mode == "read":
            if session is not None:
                _require_same(session, self.session)
            elif not (self._folder / files.MANIFEST).exists():
                files.read_manifest(self._folder)  # says what is not there
            return
        try:
            self._session = self._create(session) if mode == "create" else self._resume(session)
        except OSError as error:
            self._release()
            raise StoreError(
                f"cannot open {self._folder} for writing: {error.strerror or error}",
                hint="may you write there?",
            ) from error
        except BaseException:
            self._release()
            raise

    # --- opening

    def _create(self, session: Session | None) -> Session:
        if session is None:
            raise UsageError("a new store needs a session", hint="pass session=Session(...)")
        if self._folder.exists() and (not self._folder.is_dir() or any(self._folder.iterdir())):
            raise StoreError(f"{self._folder} is not an empty folder", hint="name a new one")
        self._folder.mkdir(exist_ok=True)
        self._take_lock()
        self._manifest = files.Manifest(session.to_json() | {"directory": []}, files.Entry("", "", 0))
        self._known = -1
        self._commit(session)
        files.sync_folder(self._folder.parent)
        return session

    def _resume(self, session: Session | None) -> Session:
        self._manifest = files.read_manifest(self._folder)
        self._take_lock()
        self._manifest = files.read_manifest(self._folder)  # as the writer before left it
        stored = self._stored_session(self._manifest)
        first = 0
        for entry in self._manifest.files:  # STORE-21: all of it, before anything is changed
            files.checked(self._folder, entry, first)
            first += entry.events
        for path in files.strays(self._folder, self._manifest):
            self.recovery.torn_bytes += path.stat().st_size
            self.recovery.torn_file = path.name
            path.unlink()
        self._write_pid()
        self.recovery.events, self.recovery.segments = self._manifest.events, len(self._manifest.files)
        self._files = list(self._manifest.files)
        self._known = len(stored.directory)
        if session is None:
            return stored
        _require_same(session, stored)
        for instrument in stored.directory:
            if session.directory.get(instrument.locate) is None:
                session.directory.put(instrument)
        return session

    def _take_lock(self) -> None:
        path = self._folder / LOCK
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pid = path.read_text(errors="replace").strip() or "unknown"
            raise StoreError(
                f"{self._folder} is open for writing in process {pid}",
                hint="one writer at a time; read it meanwhile",
            ) from None
        if self._mode == "create":
            self._write_pid()

    def _write_pid(self) -> None:
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _release(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _stored_session(self, manifest: files.Manifest) -> Session:
        instruments = json.loads(files.checked(self._folder, manifest.directory, 0))
        return Session.from_json(manifest.session | {"directory": instruments})

    # --- the contract

    @property
    def session(self) -> Session:
        if self._mode == "read":
            return self._stored_session(files.read_manifest(self._folder))
        return self._session

    def append(self, events: Events) -> int:
        self._require_writer()
        _check(events, self._last_seq())
        if len(events):
            self._held.append(events.copy())
            if sum(map(len, self._held)) >= HELD_MAX:
                self._write_held()
        return self._last_seq()

    def sync(self) -> int:
        self._require_writer()
        self._write_held()
        if tuple(self._files) != self._manifest.files or len(self._session.directory) != self._known:
            try:
                self._commit(self._session)
            except OSError as error:  # STORE-15: never tried again
                self._refuse("sync", error)
        return self._manifest.last_seq

    def snapshot(self) -> ArrowSnapshot:
        self._require_open()
        if self._mode == "read":
            manifest = files.read_manifest(self._folder)
            return ArrowSnapshot(self._folder, manifest.files, (), self._stored_session(manifest))
        session = replace(self._session, directory=Directory(self._session.directory))
        return ArrowSnapshot(self._folder, self._files, self._held, session)

    def verify(self) -> Verification:
        self._require_open()
        found = Verification()
        try:
            manifest = files.read_manifest(self._folder)
        except DamagedStoreError as error:
            found.findings.append(_finding(error))
            return found
        except StoreError as error:
            found.findings.append(Finding(files.MANIFEST, 0, 0, None, error.message))
            return found
        first = 0
        for entry in (manifest.directory, *manifest.files):
            try:
                found.bytes += len(files.checked(self._folder, entry, first))
            except DamagedStoreError as error:
                found.findings.append(_finding(error))
            except StoreError as error:
                found.findings.append(Finding(entry.name, 0, first, None, error.message))
            if not found.findings and entry.events:
                found.events, found.last_seq = found.events + entry.events, entry.last
            first += entry.events
        if self._mode == "read":
            for path in files.strays(self._folder, manifest):
                problem = "counted by no manifest: a crash, or a writer at work"
                found.findings.append(Finding(path.name, 0, manifest.events, None, problem, "note"))
        return found

    def stats(self) -> dict[str, int]:
        self._require_open()
        if self._mode == "read":
            try:
                manifest = files.read_manifest(self._folder)
            except DamagedStoreError:
                return dict.fromkeys(("events", "segments", "bytes", "last_seq", "durable_seq"), 0)
            entries, held, durable = list(manifest.files), 0, manifest.last_seq
        else:
            entries, held, durable = self._files, sum(map(len, self._held)), self._manifest.last_seq
        return {
            "events": sum(entry.events for entry in entries) + held,
            "segments": len(entries),
            "bytes": sum(entry.bytes for entry in entries),
            "last_seq": durable if self._mode == "read" else self._last_seq(),
            "durable_seq": durable,
        }

    def close(self) -> None:
        if self._closed:
            return
        try:
            if self._mode != "read" and not self._refused:
                self.sync()
        finally:
            self._closed = True
            self._release()

    def __enter__(self) -> ArrowStore:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # --- writing

    def _last_seq(self) -> int:
        if self._held:
            return int(self._held[-1]["seq"][-1])
        return self._files[-1].last if self._files else 0

    def _write_held(self) -> None:
        """What is held becomes a file, which counts after the next manifest."""
        if not self._held:
            return
        if len(self._files) >= FILES_MAX:
            raise StoreError(
                f"the store has {FILES_MAX:,} files", hint="sync less often; go on in a new store"
            )
        events = np.concatenate(self._held)
        data = files.encode(events)
        entry = files.entry_of(f"{len(self._files):07d}.arrow", data, events)
        try:
            files.write(self._folder, entry.name, data)
        except OSError as error:
            self._refuse("write", error)
        self._files.append(entry)
        self._held = []

    def _commit(self, session: Session) -> None:
        """The manifest counts all files and the directory as they are now. Raises OSError."""
        before = self._manifest.directory.name
        directory = self._manifest.directory
        if len(session.directory) != self._known:
            data = json.dumps(session.to_json()["directory"]).encode()
            directory = files.entry_of(f"directory-{len(session.directory)}.json", data)
            files.write(self._folder, directory.name, data)
        manifest = self._manifest._replace(directory=directory, files=tuple(self._files))
        files.write_manifest(self._folder, manifest)
        self._manifest, self._known = manifest, len(session.directory)
        if before not in ("", directory.name):
            (self._folder / before).unlink(missing_ok=True)

    def _refuse(self, what: str, error: OSError) -> None:
        self._refused = f"the disk refused a {what}: {error.strerror or error}"
        raise StoreError(
            self._refused, hint="what was synced before is safe; make room and open it again"
        ) from error

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("the store is closed")

    def _require_writer(self) -> None:
        self._require_open()
        if self._mode == "read":
            raise UsageError("the store is open for reading", hint='open it with mode "append"')
        if self._refused:
            raise StoreError(self._refused, hint="open the store again")


def _finding(error: DamagedStoreError) -> Finding:
    return Finding(error.file, error.offset, error.first, error.last, error.message)


def _check(events: Events, last: int) -> None:
    """STORE-2 and 3."""
    if not isinstance(events, np.ndarray) or events.dtype != EVENT:
        raise UsageError("append takes an array of EVENT", hint="np.zeros(n, EVENT)")
    if events.ndim != 1 or not events.flags.c_contiguous:
        raise UsageError("append takes a flat, contiguous array", hint="np.ascontiguousarray(events)")
    if len(events) and int(events["seq"][0]) <= last:
        raise UsageError(f"seq must grow: event 0 has {events['seq'][0]}, the store ends with {last}")
    wrong = np.flatnonzero(events["seq"][1:] <= events["seq"][:-1])
    if len(wrong):
        raise UsageError(f"seq must grow: event {int(wrong[0]) + 1} does not come after the one before it")


def _require_same(given: Session, stored: Session) -> None:
    """STORE-42: the same session, its directory aside."""
    mine, theirs = (session.to_json() | {"directory": []} for session in (given, stored))
    for name, value in theirs.items():
        if mine[name] != value:
            raise UsageError(f"the store's session has {name} {value}, the one given has {mine[name]}")
