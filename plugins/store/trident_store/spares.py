"""Files of segments that tables took the place of, kept to be written over: a sync of blocks that a file has
already is faster than one that makes it grow."""

from __future__ import annotations

import contextlib
from pathlib import Path

from trident_store.filesystem import FileSystem
from trident_store.format import segment_name, spare_name
from trident_store.found import Extent


class Spares:
    """At most `most` files, none of less than half of `segment_bytes`. One thread keeps, another may take."""

    def __init__(self, files: FileSystem, folder: Path, most: int, segment_bytes: int) -> None:
        self._files, self._folder, self._most, self._segment_bytes = files, folder, most, segment_bytes
        self._paths: list[Path] = []

    def keep(self, segment: Extent) -> None:
        """Keep a segment's file if there is room and nobody reads it; else remove it. Raises OSError."""
        path = self._folder / segment_name(segment.number)
        if len(self._paths) < self._most and 2 * segment.end >= self._segment_bytes:
            spare = self._folder / spare_name(segment.number)
            if self._files.set_aside(path, spare):
                self._paths.append(spare)
                return
        self._files.remove(path)

    def take(self) -> Path | None:
        return self._paths.pop() if self._paths else None

    def remove(self) -> None:
        """Remove what is kept. Never raises: the next opening removes what is left."""
        while self._paths:
            with contextlib.suppress(OSError):
                self._files.remove(self._paths.pop())
