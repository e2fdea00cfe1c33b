"""A file system that counts what is read, so that a walk over a store can tell how far it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_store.filesystem import FileSystem

#: Told of (bytes read, bytes in all).
Advance = Callable[[int, int], None]


class CountingFiles:
    """The calls of `files`, and `advance` told of each read. Only for reading."""

    def __init__(self, files: FileSystem, total: int, advance: Advance) -> None:
        self._files, self._total, self._advance = files, total, advance
        self.done = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def read_into(self, handle: int, buffer: NDArray[np.uint8], offset: int) -> int:
        got = self._files.read_into(handle, buffer, offset)
        self.count(got)
        return got

    def grow(self, nbytes: int) -> None:
        """There is more to do than was known."""
        self._total = max(self._total, self.done) + nbytes

    def count(self, nbytes: int) -> None:
        """So many bytes more were looked at."""
        self.done += nbytes
        self._advance(min(self.done, self._total), self._total)


def size_of(files: FileSystem, folder: Path) -> int:
    """Bytes of all files in a store's folder; those that go meanwhile count nothing. Raises OSError."""
    total = 0
    for name in files.list_directory(folder):
        try:
            handle = files.open(folder / name)
        except OSError:
            continue
        try:
            total += files.size(handle)
        except OSError:
            continue
        finally:
            files.close(handle)
    return total
