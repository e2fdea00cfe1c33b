"""Every call a store makes to the file system, in one object, so that a crash model can stand behind it."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import weakref
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import StoreError

Buffer = bytes | bytearray | memoryview


class FileSystem(Protocol):
    """What a store needs of a file system. Failures are OSErrors; handles are small integers.

    Nothing is durable before `sync` (a file's bytes and size) and `sync_directory` (the names in a folder).
    """

    def make_directory(self, path: Path) -> None:
        """Raises FileExistsError when there is something of that name."""
        ...

    def list_directory(self, path: Path) -> list[str]: ...

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> int:
        """`create` makes the file, or empties it."""
        ...

    def close(self, handle: int) -> None: ...

    def size(self, handle: int) -> int: ...

    def read_into(self, handle: int, buffer: NDArray[np.uint8], offset: int) -> int:
        """Fill `buffer` from `offset`; return how many bytes there were, fewer only at the end."""
        ...

    def map(self, handle: int, size: int) -> NDArray[np.uint8]:
        """The first `size` bytes of a file that never changes again, read-only: u8[size], size > 0. They stay
        readable when the handle is closed and the file removed. Raises OSError when there are fewer."""
        ...

    def write(self, handle: int, data: Buffer, offset: int) -> int:
        """Write at `offset`; return how many bytes were taken, which may be fewer than were given."""
        ...

    def truncate(self, handle: int, size: int) -> None: ...

    def sync(self, handle: int) -> None:
        """Make the file's bytes and size durable."""
        ...

    def sync_directory(self, path: Path) -> None:
        """Make the names in a folder durable."""
        ...

    def remove(self, path: Path) -> None: ...

    def rename(self, path: Path, to: Path) -> None:
        """Give a file another name in the same folder, in the place of what has that name."""
        ...

    def open_shared(self, path: Path) -> int:
        """Open for reading a file that its writer may want to use again: while the handle is open,
        `set_aside` leaves the file alone. Raises FileNotFoundError also when it was set aside just now."""
        ...

    def set_aside(self, path: Path, to: Path) -> bool:
        """Rename a file, to be written over, unless a handle of `open_shared`, of any process, is on it:
        then False, and nothing was done."""
        ...

    def forget(self, handle: int) -> None:
        """Drop cached bytes, so that the next read sees the disk: after a failed sync the two may differ."""
        ...

    def lock(self, path: Path) -> int:
        """Take the only lock on a file, creating it; closing the handle gives it back.

        Raises StoreError, naming the holder, when another handle of any process has it.
        """
        ...


class OsFileSystem:
    """The real one (Linux)."""

    def make_directory(self, path: Path) -> None:
        os.mkdir(path)

    def list_directory(self, path: Path) -> list[str]:
        return os.listdir(path)

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> int:
        # Of a FIFO in a file's place, opening would wait for ever; a regular file does not mind.
        flags = os.O_NONBLOCK | (os.O_RDWR if write else os.O_RDONLY)
        return os.open(path, flags | (os.O_CREAT | os.O_TRUNC if create else 0), 0o644)

    def close(self, handle: int) -> None:
        os.close(handle)

    def size(self, handle: int) -> int:
        return os.fstat(handle).st_size

    def read_into(self, handle: int, buffer: NDArray[np.uint8], offset: int) -> int:
        done = 0
        while done < len(buffer):
            got = os.preadv(handle, [buffer[done:].data], offset + done)
            if got == 0:
                break
            done += got
        return done

    def map(self, handle: int, size: int) -> NDArray[np.uint8]:
        # Pages behind the end of a mapped file end the process with SIGBUS when they are read.
        if self.size(handle) < size:
            raise OSError(errno.EIO, "the file is shorter than it was")
        return np.frombuffer(mmap.mmap(handle, size, access=mmap.ACCESS_READ), np.uint8)

    def write(self, handle: int, data: Buffer, offset: int) -> int:
        return os.pwrite(handle, data, offset)

    def truncate(self, handle: int, size: int) -> None:
        os.ftruncate(handle, size)

    def sync(self, handle: int) -> None:
        os.fdatasync(handle)

    def sync_directory(self, path: Path) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def remove(self, path: Path) -> None:
        os.unlink(path)

    def rename(self, path: Path, to: Path) -> None:
        os.rename(path, to)

    def open_shared(self, path: Path) -> int:
        handle = self.open(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            # Between opening and locking it may have been set aside, and even be in use again.
            if not os.path.samestat(os.fstat(handle), os.stat(path)):
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path))
        except BlockingIOError:
            os.close(handle)
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(path)) from None
        except BaseException:
            os.close(handle)
            raise
        return handle

    def set_aside(self, path: Path, to: Path) -> bool:
        handle = self.open(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(path, to)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return True

    def forget(self, handle: int) -> None:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)

    def lock(self, path: Path) -> int:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            # flock, not lockf: POSIX record locks do not exclude a second open within one process.
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(handle, 0)
            os.pwrite(handle, b"%d\n" % os.getpid(), 0)
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            os.close(handle)
            who = f"process {holder}" if holder.isdigit() else "another process"
            raise StoreError(
                f"{path.parent} is being written by {who}",
                hint='only one writer at a time; open with mode "read", or end the other one',
            ) from None
        except BaseException:
            os.close(handle)
            raise
        return handle


class OpenFile:
    """A file, open for reading for as long as anyone has this object; removed, it stays readable, and it is
    not written over."""

    def __init__(self, files: FileSystem, path: Path) -> None:
        self.handle = files.open_shared(path)
        self._close = weakref.finalize(self, files.close, self.handle)
        self._close.atexit = False


def read(files: FileSystem, handle: int, size: int, offset: int) -> NDArray[np.uint8]:
    """Up to `size` bytes from `offset`: u8[n], n < size only at the end of the file."""
    buffer = np.empty(size, np.uint8)
    return buffer[: files.read_into(handle, buffer, offset)]


def write_all(files: FileSystem, handle: int, data: Buffer, offset: int) -> None:
    """Write all of `data` at `offset`, however short the single writes are. Raises OSError."""
    rest = memoryview(data)
    while rest:
        taken = files.write(handle, rest, offset)
        if taken <= 0:
            raise OSError("the file system took no bytes and gave no reason")
        rest, offset = rest[taken:], offset + taken
