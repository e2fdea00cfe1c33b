"""One run at a time writes into a folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from trident_core.errors import InputError


class Claim:
    """Holds `folder` until `release` or the end of the process: two runs would share temporary files.

    The lock (flock) is on the folder itself, so that nothing is left behind; a file system without such
    locks gives none. Raises InputError when another run holds the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._handle = -1
        try:
            self._handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise InputError(
                f"another run is writing into {folder}", hint="wait for its end, or name another folder"
            ) from None
        except OSError:
            self.release()

    def release(self) -> None:
        """Idempotent."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)
