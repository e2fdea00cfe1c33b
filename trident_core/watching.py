"""Waiting for a file or a folder to change, without looking at it again and again (inotify).

Where the kernel has no watch to give, it is looked at every tenth of a second.
"""

from __future__ import annotations

import ctypes
import os
import select
import time
from pathlib import Path
from typing import Final

_MODIFY, _CREATE, _MOVED_TO, _DELETE_SELF, _MOVE_SELF = 0x2, 0x100, 0x80, 0x400, 0x800
_EVENTS: Final = _MODIFY | _CREATE | _MOVED_TO | _DELETE_SELF | _MOVE_SELF
_POLL_S: Final = 0.1


class Watch:
    """Tells when something was written to a file, or into a folder, since the last `wait`.

    `native`: the kernel tells; else it is polled. A watch is made before what it watches is read, so that no
    change falls between the two.
    """

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._handle = _inotify(paths)
        self.native = self._handle >= 0
        self._seen = self._look()

    def wait(self, seconds: float | None = None) -> bool:
        """Until something changes; False when `seconds` are over before. Ctrl-C gets through."""
        if self.native:
            ready, _, _ = select.select([self._handle], [], [], seconds)
            if ready:
                os.read(self._handle, 1 << 16)  # what has come in so far is one change
            return bool(ready)
        end = None if seconds is None else time.monotonic() + seconds
        while (now := self._look()) == self._seen:
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(_POLL_S)
        self._seen = now
        return True

    def close(self) -> None:
        """Idempotent."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
            self.native = False

    def _look(self) -> list[tuple[int, int]]:
        found = []
        for path in self._paths:
            try:
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size))
            except OSError:
                found.append((0, 0))
        return found


def _inotify(paths: tuple[Path, ...]) -> int:
    """A handle that becomes readable when one of the paths changes; -1 where there is none to be had."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        handle: int = libc.inotify_init1(os.O_CLOEXEC)
    except (OSError, AttributeError):
        return -1
    if handle < 0:
        return -1
    for path in paths:
        if libc.inotify_add_watch(handle, os.fsencode(path), ctypes.c_uint32(_EVENTS)) < 0:
            os.close(handle)
            return -1
    return handle
