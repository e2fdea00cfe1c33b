"""A temporary file without a name: it is gone when the process is, however that ends."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import TridentError, UsageError

#: What is left free on the disk, whatever happens.
RESERVE_BYTES: Final = 1 << 30


class NoRoomError(TridentError):
    """The cache would grow beyond its limit, or fill the disk."""


def default_folder() -> Path:
    """$TRIDENT_CACHE, else $TMPDIR, else /var/tmp (on disk, where /tmp may be memory), else the system's."""
    for name in ("TRIDENT_CACHE", "TMPDIR"):
        if os.environ.get(name):
            return Path(os.environ[name])
    usual = Path("/var/tmp")
    return usual if os.access(usual, os.W_OK) else Path(tempfile.gettempdir())


class EventFile:
    """Arrays appended to, and read from, an unnamed file in `folder`, of at most `bytes_max` bytes.

    The file has no name, so nobody else can open it and nothing is left behind, not even by a kill; its bytes
    are freed by `close`, by the garbage collector or by the end of the process. RESERVE_BYTES of the disk are
    left free. Raises UsageError for a folder that cannot be used.
    """

    def __init__(self, folder: Path | None = None, bytes_max: int | None = None) -> None:
        self.folder = folder or default_folder()
        self.bytes = 0
        self._bytes_max = bytes_max
        try:
            self._fd = _open_unnamed(self.folder)
        except OSError as error:
            raise UsageError(
                f"no cache can be kept in {self.folder}: {error.strerror}",
                hint="name a folder on a disk with cache=, or read the input each time with cache=False",
            ) from None
        self._finalizer = weakref.finalize(self, os.close, self._fd)

    def append(self, array: NDArray[Any]) -> int:
        """Write a C-contiguous array; return its offset. Raises NoRoomError, and then writes nothing more."""
        data = _bytes(array)
        offset = self.bytes
        self._check_room(len(data))
        done = 0
        while done < len(data):
            try:
                done += os.pwrite(self._fd, data[done:], offset + done)
            except OSError as error:
                raise NoRoomError(f"the cache in {self.folder}: {error.strerror}") from None
        self.bytes += len(data)
        return offset

    def read(self, offset: int, out: NDArray[Any]) -> None:
        """Fill a C-contiguous array from `offset` on. Raises UsageError when closed."""
        if not self._finalizer.alive:
            raise UsageError("this day is closed", hint="open it again, or ask inside its `with` block")
        data = _bytes(out)
        done = 0
        while done < len(data):
            count = os.preadv(self._fd, [data[done:]], offset + done)
            if not count:
                raise TridentError(
                    f"the cache in {self.folder} ends at {offset + done}", hint="a disk error?"
                )
            done += count

    def close(self) -> None:
        """Give the disk back. Idempotent."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def _check_room(self, more: int) -> None:
        if self._bytes_max is not None and self.bytes + more > self._bytes_max:
            raise NoRoomError(f"the cache would pass its limit of {self._bytes_max:,} bytes")
        about = os.fstatvfs(self._fd)
        if about.f_bavail * about.f_frsize < more + RESERVE_BYTES:
            raise NoRoomError(f"the disk of {self.folder} would be left with less than 1 GiB")


def _bytes(array: NDArray[Any]) -> memoryview:
    return memoryview(array.view(np.uint8))  # type: ignore[arg-type]  # numpy's arrays are buffers


def _open_unnamed(folder: Path) -> int:
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:  # a file system that has no unnamed files, or no folder: then this says so
        number, name = tempfile.mkstemp(prefix="trident-", dir=folder)
        os.unlink(name)
        return number
