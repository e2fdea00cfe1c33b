"""A file system in memory that can lose power: for testing stores, ours and others'.

What a disk may hold after a crash is more than "everything up to some call". Until a file is synced each of
its 512-byte sectors is, on its own, as it was, as it was meant to be at any moment since, or garbled; its
size is the old or the new one; and until a folder is synced each name in it that came or went may have done
so or not. `CrashFileSystem` keeps what is needed to enumerate these states. One folder deep, like a store.

A sync that fails is modelled as Linux does it: the bytes never reach the disk, the cache still shows them,
and the next sync says yes.

Sectors are written whole or not (garbled: half of it is), which disks promise; a disk that lies about syncs
is beyond any store.
"""

from __future__ import annotations

import errno
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import StoreError
from trident_store.filesystem import Buffer

SECTOR: Final = 512


@dataclass(slots=True)
class _File:
    """A file: what programs see (`cache`), what a crash cannot take (`disk`), and what came in between."""

    cache: bytearray = field(default_factory=bytearray)
    disk: bytes = b""
    dirty: dict[int, list[bytes]] = field(default_factory=dict)  # sector -> its contents since the last sync
    sizes: list[int] = field(default_factory=list)  # sizes since the last sync

    def changed(self, start: int, end: int) -> None:
        """Note the present contents of the sectors that [start, end) touches."""
        for sector in range(start // SECTOR, -(-end // SECTOR)):
            now = bytes(self.cache[sector * SECTOR : (sector + 1) * SECTOR]).ljust(SECTOR, b"\0")
            self.dirty.setdefault(sector, []).append(now)
        self.sizes.append(len(self.cache))

    def synced(self) -> None:
        """The dirty sectors and the size reach the disk; what a failed sync lost does not."""
        self.disk = self._with_dirty()
        self.dirty, self.sizes = {}, []

    def lost(self) -> None:
        """A sync failed: what was dirty counts as clean, and is not on the disk."""
        self.dirty, self.sizes = {}, []

    def forget(self) -> None:
        """Clean bytes are read from the disk again."""
        self.cache = bytearray(self._with_dirty())

    def _with_dirty(self) -> bytes:
        size = self.sizes[-1] if self.sizes else len(self.disk)
        return self.after_crash(size, [(sector, versions[-1]) for sector, versions in self.dirty.items()])

    def copy(self) -> _File:
        return _File(
            bytearray(self.cache), self.disk, {k: list(v) for k, v in self.dirty.items()}, list(self.sizes)
        )

    def sector_options(self) -> list[tuple[list[Any], list[Any]]]:
        """For each dirty sector: what it may hold after a crash, first without and then with garbling."""
        options: list[tuple[list[Any], list[Any]]] = []
        for sector, versions in sorted(self.dirty.items()):
            old = self.disk[sector * SECTOR : (sector + 1) * SECTOR].ljust(SECTOR, b"\0")
            new = versions[-1]
            half = new[: SECTOR // 2] + old[SECTOR // 2 :]
            noise = bytes(byte ^ 0x5A for byte in new)
            whole = [(sector, each) for each in dict.fromkeys([old, new, *versions])]
            spoiled = [(sector, each) for each in (half, noise) if (sector, each) not in whole]
            options.append((whole, whole + spoiled))
        return options

    def after_crash(self, size: int, sectors: Sequence[tuple[int, bytes]]) -> bytes:
        content = bytearray(self.disk[:size].ljust(size, b"\0"))
        for sector, data in sectors:
            start = sector * SECTOR
            if start < size:
                content[start : min(start + SECTOR, size)] = data[: size - start]
        return bytes(content)


Disk = dict[str, bytes]  # file name -> content: one state of the folder after a crash


@dataclass(slots=True)
class CrashPoint:
    """The folder at one moment; a power cut now may leave any of `states`."""

    files: dict[int, _File]
    names: dict[str, int]
    disk_names: dict[str, int]
    note: tuple[int, ...]  # what the test wanted to remember of this moment

    def states(self, limit: int, rng: random.Random) -> Iterator[Disk]:
        """Every state the disk may be in; a random sample, all-old and all-new included, if over `limit`."""
        uncertain = [
            name
            for name in sorted({*self.names, *self.disk_names})
            if self.names.get(name) != self.disk_names.get(name)
        ]
        choices: list[tuple[list[Any], list[Any]]] = [([False, True],) * 2 for _ in uncertain]
        dirty = [(number, file) for number, file in sorted(self.files.items()) if file.dirty or file.sizes]
        for _, file in dirty:
            sizes = list(dict.fromkeys([len(file.disk), len(file.cache), *file.sizes]))
            choices += [(sizes, sizes), *file.sector_options()]
        if math.prod(len(every) for _, every in choices) <= limit:
            picks: Iterator[Sequence[Any]] = itertools.product(*(every for _, every in choices))
        else:
            picks = _sample(choices, limit, rng)
        for pick in picks:
            yield self._state(uncertain, dirty, list(pick))

    def _state(self, uncertain: list[str], dirty: list[tuple[int, _File]], pick: list[Any]) -> Disk:
        names = dict(self.disk_names)
        for name in uncertain:
            if pick.pop(0):
                if name in self.names:
                    names[name] = self.names[name]
                else:
                    del names[name]
        contents = {number: file.disk for number, file in self.files.items()}
        for number, file in dirty:
            size = pick.pop(0)
            sectors = [pick.pop(0) for _ in file.dirty]
            contents[number] = file.after_crash(size, sectors)
        return {name: contents[number] for name, number in names.items()}


def _sample(
    choices: list[tuple[list[Any], list[Any]]], count: int, rng: random.Random
) -> Iterator[Sequence[Any]]:
    """All old, all new, then in turn: nothing garbled, one thing perhaps, everything perhaps."""
    yield [every[0] for _, every in choices]
    yield [every[min(1, len(every) - 1)] for _, every in choices]
    for turn in range(count - 2):
        lucky = rng.randrange(len(choices))
        yield [
            rng.choice(every if turn % 3 == 2 or (turn % 3 == 1 and i == lucky) else whole)
            for i, (whole, every) in enumerate(choices)
        ]


class CrashFileSystem:
    """A folder in memory. `on_change` is called after every call that changes something, `before` before
    every call, with its name. Both may raise: an OSError, a KeyboardInterrupt."""

    def __init__(self, disk: Disk | None = None, *, exists: bool = True) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.before: Callable[[str], None] = lambda call: None
        self.exists = exists
        self._files: dict[int, _File] = {}
        self._names: dict[str, int] = {}
        self._disk_names: dict[str, int] = {}
        self._handles: dict[int, int] = {}
        self._locked: set[int] = set()  # handles
        self._shared: set[int] = set()  # handles
        self._next = 1
        for name, content in (disk or {}).items():
            self._files[self._next] = _File(bytearray(content), content)
            self._names[name] = self._disk_names[name] = self._next
            self._next += 1

    def crash_point(self, *note: int) -> CrashPoint:
        reachable = {*self._names.values(), *self._disk_names.values()}
        files = {number: self._files[number].copy() for number in sorted(reachable)}
        return CrashPoint(files, dict(self._names), dict(self._disk_names), note)

    def visible(self) -> Disk:
        """What a program sees now."""
        return {name: bytes(self._files[number].cache) for name, number in self._names.items()}

    # -- FileSystem --

    def make_directory(self, path: Path) -> None:
        self.before("make_directory")
        if self.exists:
            raise FileExistsError(errno.EEXIST, "File exists", str(path))
        self.exists = True

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
            self._names[path.name] = self._next
            self._files[self._next] = _File()
            self._next += 1
            self.on_change()
        elif create:
            self._cut(self._files[self._names[path.name]], 0)
        return self._handle(self._names[path.name])

    def close(self, handle: int) -> None:
        self._handles.pop(handle)
        self._locked.discard(handle)
        self._shared.discard(handle)

    def size(self, handle: int) -> int:
        return len(self._files[self._handles[handle]].cache)

    def read_into(self, handle: int, buffer: NDArray[np.uint8], offset: int) -> int:
        self.before("read_into")
        file = self._files[self._handles[handle]]
        got = bytes(file.cache[offset : offset + len(buffer)])
        buffer[: len(got)] = np.frombuffer(got, np.uint8)
        return len(got)

    def map(self, handle: int, size: int) -> NDArray[np.uint8]:
        self.before("map")
        content = bytes(self._files[self._handles[handle]].cache[:size])
        if len(content) < size:
            raise OSError(errno.EIO, "the file is shorter than it was")
        return np.frombuffer(content, np.uint8)

    def write(self, handle: int, data: Buffer, offset: int) -> int:
        self.before("write")
        file = self._files[self._handles[handle]]
        if len(file.cache) < offset:
            file.cache.extend(bytes(offset - len(file.cache)))
        file.cache[offset : offset + len(data)] = data
        file.changed(offset, offset + len(data))
        self.on_change()
        return len(data)

    def truncate(self, handle: int, size: int) -> None:
        self.before("truncate")
        self._cut(self._files[self._handles[handle]], size)

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
        self._disk_names = dict(self._names)
        self.on_change()

    def remove(self, path: Path) -> None:
        self.before("remove")
        del self._names[path.name]
        self.on_change()

    def rename(self, path: Path, to: Path) -> None:
        self.before("rename")
        self._names[to.name] = self._names.pop(path.name)
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
            self._names[path.name] = self._disk_names[path.name] = self._next
            self._files[self._next] = _File()
            self._next += 1
        number = self._names[path.name]
        if any(self._handles[handle] == number for handle in self._locked):
            raise StoreError(f"{path.parent} is being written by this process")
        handle = self._handle(number)
        self._locked.add(handle)
        return handle

    def _handle(self, number: int) -> int:
        handle, self._next = self._next, self._next + 1
        self._handles[handle] = number
        return handle

    def _cut(self, file: _File, size: int) -> None:
        del file.cache[size:]
        if size % SECTOR:
            file.changed(size, size + 1)
        else:
            file.sizes.append(size)
        self.on_change()
