"""A file system in memory, of one folder, for files that are made anew before they may replace others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trident_store.filesystem import Buffer


class ScratchFiles:
    """Only what writing a table takes; `data` is the bytes of each file by name."""

    def __init__(self) -> None:
        self.data: dict[str, bytearray] = {}
        self._names: list[str] = []

    def open(self, path: Path, *, write: bool = False, create: bool = False) -> int:
        if create:
            self.data[path.name] = bytearray()
        self._names.append(path.name)
        return len(self._names) - 1

    def write(self, handle: int, data: Buffer, offset: int) -> int:
        file = self.data[self._names[handle]]
        if len(file) < offset:
            file.extend(bytes(offset - len(file)))
        file[offset : offset + len(data)] = data
        return len(data)

    def close(self, handle: int) -> None:
        """Nothing to do, as for the next three."""

    def sync(self, handle: int) -> None: ...

    def sync_directory(self, path: Path) -> None: ...

    def remove(self, path: Path) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a table is written without {name}")
