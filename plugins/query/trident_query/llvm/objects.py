"""Compiled code on disk: a folder of objects, each under the hash of what it was made from.

A file is whole or absent (it is written under another name and renamed), starts with a checksum (a damaged
one is deleted and its code made again), and never outlives a change of pattern, CPU, LLVM or compiler: all
are in its key. The folder is kept under a cap; the least recently used go first. It must belong to the user,
and be writable by no one else, because what is in it is executed; otherwise, or where it cannot be written,
there is no cache, and `problem` says so.

    $TRIDENT_LLVM_CACHE, else $XDG_CACHE_HOME/trident/llvm, else ~/.cache/trident/llvm
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

#: Bytes of all files.
FOLDER_BYTES_MAX: Final = 64 << 20
#: Bytes of one file; longer ones are not read.
FILE_BYTES_MAX: Final = 8 << 20

_MAGIC: Final = b"TRIDENT\x01"
_HEAD: Final = struct.Struct("<8s32s")  # magic, SHA-256 of the rest
_LENGTH: Final = struct.Struct("<I")  # bytes of the facts, which follow; then the code
#: After so many new files the folder is measured again.
_NEW_FILES: Final = 64
#: A file that was used is marked so at most this often.
_MARK_S: Final = 3_600


class Stored(NamedTuple):
    """Compiled code. `facts`: what the compiler knows of it, for `explain`."""

    code: bytes
    facts: dict[str, Any]


class ObjectCache:
    """A folder of compiled code. For several threads and processes at once."""

    def __init__(self, folder: Path, bytes_max: int = FOLDER_BYTES_MAX) -> None:
        self.folder, self.bytes_max = folder, bytes_max
        self.problem = ""
        self._new_files = 0
        self.hits = self.misses = self.damaged = 0

    def get(self, key: str, make: Callable[[], Stored]) -> tuple[Stored, bool]:
        """(the code of `key`, whether it was there); otherwise it is made and kept."""
        path = self.folder / f"{hashlib.sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()}.o"
        usable = self._usable()
        if usable and (found := self._read(path)) is not None:
            self.hits += 1
            return found, True
        self.misses += 1
        made = make()
        if usable:
            try:
                self._write(path, made)
            except OSError as error:
                self.problem = f"{self.folder}: {error.strerror}"
        return made, False

    def _usable(self) -> bool:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = self.folder.stat()
        except OSError as error:
            self.problem = f"{self.folder}: {error.strerror}"
            return False
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            self.problem = f"{self.folder} can be written by others, so no code is taken from it"
            return False
        return True

    def _read(self, path: Path) -> Stored | None:
        try:
            with open(path, "rb") as file:
                content = file.read(FILE_BYTES_MAX + 1)
                written = os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        found = _decoded(content)
        if found is None:
            self.damaged += 1
            with suppress(OSError):
                path.unlink()
        elif time.time() - written > _MARK_S:
            with suppress(OSError):
                os.utime(path)
        return found

    def _write(self, path: Path, made: Stored) -> None:
        facts = json.dumps(made.facts).encode()
        rest = _LENGTH.pack(len(facts)) + facts + made.code
        if len(rest) > FILE_BYTES_MAX - _HEAD.size:
            return
        handle, temporary = tempfile.mkstemp(dir=self.folder, suffix=".new")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_HEAD.pack(_MAGIC, hashlib.sha256(rest).digest()) + rest)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        if self._new_files % _NEW_FILES == 0:
            self.evict()
        self._new_files += 1

    def evict(self) -> None:
        """Delete the least recently used files until the rest is under the cap, and what crashes left."""
        files = []
        for entry in os.scandir(self.folder):
            with suppress(OSError):  # deleted by another process meanwhile
                found = entry.stat()
                if entry.name.endswith(".new") and time.time() - found.st_mtime > _MARK_S:
                    os.unlink(entry.path)
                elif entry.name.endswith(".o"):
                    files.append((found.st_mtime, found.st_size, entry.path))
        left = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if left <= self.bytes_max:
                return
            with suppress(OSError):
                os.unlink(path)
            left -= size


def default_folder() -> Path:
    chosen = os.environ.get("TRIDENT_LLVM_CACHE")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "trident" / "llvm"


def _decoded(content: bytes) -> Stored | None:
    """What is in a file, or None if it is damaged."""
    if not _HEAD.size <= len(content) <= FILE_BYTES_MAX:
        return None
    magic, digest = _HEAD.unpack_from(content)
    rest = content[_HEAD.size :]
    if magic != _MAGIC or hashlib.sha256(rest).digest() != digest:
        return None
    end = _LENGTH.size + _LENGTH.unpack_from(rest)[0]
    return Stored(rest[end:], json.loads(rest[_LENGTH.size : end]))
