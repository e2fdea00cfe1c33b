"""`python -m trident_conformance.crash.fuse_server MOUNT`: a file system in memory behind FUSE, that notes at
every change what a power cut might leave. For stores that take no file-system object.

An extended attribute set on the mount's root, `user.note`, is "acked attempted": what a process has been
promised by now. Setting `user.dump` to a path writes all crash points there, pickled, to be read by the same
Python. Folders are durable at once; an unsynced name, a rename and every sector of a file are not.
"""

from __future__ import annotations

import errno
import os
import pickle
import stat
import sys
import time
from pathlib import Path, PurePosixPath
from typing import Any

import mfusepy

from trident_store.diskstates import CrashPoint, FileState, NameChange

ROOT = "/"


class Tree(mfusepy.Operations):  # type: ignore[misc]
    """Files by number, names by path; the calls of a file system."""

    use_ns = True

    def __init__(self) -> None:
        self.files: dict[int, FileState] = {}
        self.names: dict[str, int] = {}
        self.disk_names: dict[str, int] = {}
        self.changes: list[NameChange] = []
        self.folders = {ROOT}
        self.points: list[tuple[CrashPoint, tuple[str, ...]]] = []
        self.note = (-1, 0)
        self._handles: dict[int, int] = {}
        self._next = 1
        self._began = time.time_ns()

    # -- what may be left --

    def point(self) -> None:
        added = {change.added[1] for change in self.changes if change.added is not None}
        reachable = {*self.names.values(), *self.disk_names.values(), *added}
        files = {number: self.files[number].copy() for number in sorted(reachable)}
        made = CrashPoint(files, dict(self.disk_names), tuple(self.changes), self.note)
        self.points.append((made, tuple(sorted(self.folders))))

    def setxattr(self, path: str, name: str, value: bytes, options: int, position: int = 0) -> int:
        if name == "user.note":
            acked, attempted = value.decode().split()
            self.note = (int(acked), int(attempted))
            self.point()
        elif name == "user.dump":
            Path(value.decode()).write_bytes(pickle.dumps(self.points))
        else:
            raise mfusepy.FuseOSError(errno.ENOTSUP)
        return 0

    # -- names --

    def _number(self, path: str) -> int:
        try:
            return self.names[path]
        except KeyError:
            raise mfusepy.FuseOSError(errno.ENOENT) from None

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        times = dict.fromkeys(("st_atime", "st_mtime", "st_ctime"), self._began)
        owner = {"st_uid": os.getuid(), "st_gid": os.getgid()}
        if path in self.folders:
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2, **times, **owner}
        number = self._handles[fh] if fh else self._number(path)
        size = len(self.files[number].cache)
        blocks = -(-size // 512)
        return {
            "st_mode": stat.S_IFREG | 0o644, "st_nlink": 1, "st_size": size, "st_blocks": blocks,
            "st_ino": number, **times, **owner,
        }  # fmt: skip

    def readdir(self, path: str, fh: int) -> Any:
        inside = [name for name in (*self.names, *self.folders) if name != ROOT and parent_of(name) == path]
        return [".", "..", *(PurePosixPath(name).name for name in inside)]

    def mkdir(self, path: str, mode: int) -> int:
        self.folders.add(path)
        self.point()
        return 0

    def rmdir(self, path: str) -> int:
        if any(parent_of(name) == path for name in (*self.names, *self.folders) if name != ROOT):
            raise mfusepy.FuseOSError(errno.ENOTEMPTY)
        self.folders.discard(path)
        self.point()
        return 0

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        self.files[self._next] = FileState()
        self.names[path] = self._next
        self.changes.append(NameChange(None, (path, self._next)))
        self._next += 1
        self.point()
        return self._open(path)

    def unlink(self, path: str) -> int:
        number = self._number(path)
        del self.names[path]
        self.changes.append(NameChange((path, number), None))
        self.point()
        return 0

    def rename(self, old: str, new: str) -> int:
        if old in self.folders:  # no engine needs it; a state of half a folder would be hard to tell
            raise mfusepy.FuseOSError(errno.EXDEV)
        number = self.names[new] = self._number(old)
        del self.names[old]
        self.changes.append(NameChange((old, number), (new, number)))
        self.point()
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        """The names in this folder are certain; a rename out of it or into it is, too."""
        left = []
        for change in self.changes:
            touched = [each[0] for each in (change.removed, change.added) if each is not None]
            if any(parent_of(name) == path for name in touched):
                if change.removed is not None and self.disk_names.get(change.removed[0]) == change.removed[1]:
                    del self.disk_names[change.removed[0]]
                if change.added is not None:
                    self.disk_names[change.added[0]] = change.added[1]
            else:
                left.append(change)
        self.changes = left
        self.point()
        return 0

    # -- files --

    def _open(self, path: str) -> int:
        handle, self._next = self._next, self._next + 1
        self._handles[handle] = self._number(path)
        return handle

    def open(self, path: str, flags: int) -> int:
        return self._open(path)

    def release(self, path: str, fh: int) -> int:
        self._handles.pop(fh, None)
        return 0

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return bytes(self.files[self._handles[fh]].cache[offset : offset + size])

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self.files[self._handles[fh]].write(data, offset)
        self.point()
        return len(data)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        self.files[self._handles[fh] if fh else self._number(path)].resize(length)
        self.point()
        return 0

    def fallocate(self, path: str, mode: int, offset: int, size: int, fh: int) -> int:
        if mode:  # keeping the size, or punching holes: engines go on without
            raise mfusepy.FuseOSError(errno.EOPNOTSUPP)
        file = self.files[self._handles[fh]]
        if offset + size > len(file.cache):
            file.resize(offset + size)
            self.point()
        return 0

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        self.files[self._handles[fh]].synced()
        self.point()
        return 0

    def chmod(self, path: str, mode: int) -> int:
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        return 0

    def utimens(self, path: str, times: Any = None) -> int:
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        return {
            "f_bsize": 4096,
            "f_frsize": 4096,
            "f_blocks": 1 << 20,
            "f_bfree": 1 << 19,
            "f_bavail": 1 << 19,
        }


def parent_of(path: str) -> str:
    return str(PurePosixPath(path).parent)


if __name__ == "__main__":
    mfusepy.FUSE(Tree(), sys.argv[1], foreground=True, nothreads=True, attr_timeout=0, entry_timeout=0)
