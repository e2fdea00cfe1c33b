"""A file system in memory that can lose power: for testing stores, ours and others'.

`CrashFileSystem` keeps what is needed to tell every state that a power cut may leave (`diskstates`). One
folder deep, like a store.

A sync that fails is modelled as Linux does it: the bytes never reach the disk, the cache still shows them,
and the next sync says yes.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import StoreError
from trident_core.filesystem import Buffer
from trident_store.diskstates import SECTOR, CrashPoint, Disk, FileState, NameChange

__all__ = ["SECTOR", "CrashFileSystem", "CrashPoint", "Disk"]


class CrashFileSystem:
    """A folder in memory. `on_change` is called after every call that changes something, `before` before
    every call, with its name. Both may raise: an OSError, a KeyboardInterrupt."""

    def __init__(self, disk: Disk | None = None, *, exists: bool = True) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.before: Callable[[str], None] = lambda call: None
        self.exists = exists
        self._folder: Path | None = None  # once it was made here
        self._files: dict[int, FileState] = {}
        self._names: dict[str, int] = {}
        self._disk_names: dict[str, int] = {}
        self._changes: list[NameChange] = []  # of names, that no sync has made certain
        self._handles: dict[int, int] = {}
        self._locked: set[int] = set()  # handles
        self._shared: set[int] = set()  # handles
        self._next = 1
        for name, content in (disk or {}).items():
            self._files[self._next] = FileState(bytearray(content), content)
            self._names[name] = self._disk_names[name] = self._next
            self._next += 1

    def crash_point(self, *note: int) -> CrashPoint:
        added = {change.added[1] for change in self._changes if change.added is not None}
        reachable = {*self._names.values(), *self._disk_names.values(), *added}
        files = {number: self._files[number].copy() for number in sorted(reachable)}
        return CrashPoint(files, dict(self._disk_names), tuple(self._changes), note)

    def visible(self) -> Disk:
        """What a program sees now."""
        return {name: bytes(self._files[number].cache) for name, number in self._names.items()}

    def release(self) -> None:
        """The process that had files open is no more: its locks are free."""
        self._locked.clear()
        self._shared.clear()

    # -- FileSystem --

    def make_directory(self, path: Path) -> None:
        self.before("make_directory")
        if self.exists:
            raise FileExistsError(errno.EEXIST, "File exists", str(path))
        self.exists, self._folder = True, path
        self._changes.append(NameChange(None, None))
        self.on_change()

    def list_directory(self, path: Path) -> list[str]:
        self.before("list_directory")
        if not self.exists:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        return list(self._names)

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> int:
        self.before("open")
        if path.name not in self._names:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
            self._changes.append(NameChange(None, (path.name, self._next)))
            self._new_file(path.name)
            self.on_change()
        elif create:
            self._files[self._names[path.name]].resize(0)
            self.on_change()
        return self._handle(self._names[path.name])

    def close(self, handle: int) -> None:
        self._handles.pop(handle)
        self._locked.discard(handle)
        self._shared.discard(handle)

    def size(self, handle: int) -> int:
        return len(self._files[self._handles[handle]].cache)

    def read_into(self, handle: int, buffer: NDArray[np.uint8], offset: int) -> int:
        self.before("read_into")
        cache = self._files[self._handles[handle]].cache
        size = max(min(len(cache) - offset, len(buffer)), 0)
        if size:
            buffer.data[:size] = memoryview(cache)[offset : offset + size]
        return size

    def map(self, handle: int, size: int) -> NDArray[np.uint8]:
        self.before("map")
        content = bytes(self._files[self._handles[handle]].cache[:size])
        if len(content) < size:
            raise OSError(errno.EIO, "the file is shorter than it was")
        return np.frombuffer(content, np.uint8)

    def write(self, handle: int, data: Buffer, offset: int) -> int:
        self.before("write")
        self._files[self._handles[handle]].write(data, offset)
        self.on_change()
        return len(data)

    def truncate(self, handle: int, size: int) -> None:
        self.before("truncate")
        self._files[self._handles[handle]].resize(size)
        self.on_change()

    def sync(self, handle: int) -> None:
        file = self._files[self._handles[handle]]
        try:
            self.before("sync")
        except OSError:
            file.lost()
            raise
        file.synced()
        self.on_change()

    def sync_directory(self, path: Path) -> None:
        self.before("sync_directory")
        if self._folder is not None and path == self._folder.parent:
            self._changes = [change for change in self._changes if not change.makes_folder]
        else:
            self._disk_names = dict(self._names)
            self._changes = [change for change in self._changes if change.makes_folder]
        self.on_change()

    def remove(self, path: Path) -> None:
        self.before("remove")
        number = self._names.pop(path.name)
        self._changes.append(NameChange((path.name, number), None))
        self.on_change()

    def rename(self, path: Path, to: Path) -> None:
        self.before("rename")
        number = self._names[to.name] = self._names.pop(path.name)
        self._changes.append(NameChange((path.name, number), (to.name, number)))
        self.on_change()

    def open_shared(self, path: Path) -> int:
        handle = self.open(path)
        self._shared.add(handle)
        return handle

    def set_aside(self, path: Path, to: Path) -> bool:
        if any(self._handles[handle] == self._names[path.name] for handle in self._shared):
            return False
        self.rename(path, to)
        return True

    def forget(self, handle: int) -> None:
        self.before("forget")
        self._files[self._handles[handle]].forget()

    def lock(self, path: Path) -> int:
        self.before("lock")
        if path.name not in self._names:
            # That a lock file may be lost is nothing that a store could notice; it is certain at once.
            self._disk_names[path.name] = self._next
            self._new_file(path.name)
        number = self._names[path.name]
        if any(self._handles[handle] == number for handle in self._locked):
            raise StoreError(f"{path.parent} is being written by this process")
        handle = self._handle(number)
        self._locked.add(handle)
        return handle

    def _new_file(self, name: str) -> None:
        self._names[name] = self._next
        self._files[self._next] = FileState()
        self._next += 1

    def _handle(self, number: int) -> int:
        handle, self._next = self._next, self._next + 1
        self._handles[handle] = number
        return handle
