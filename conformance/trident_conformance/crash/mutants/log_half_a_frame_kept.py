"""After "no space left" the writer goes on behind the half frame that the disk had room for."""

import contextlib

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import refuse
from trident_store.filesystem import write_all
from trident_store.writer import LogWriter

STORE = "reference"
TRIAL = refuse("short", "a3 s a2 s a9 s a2 s a1 s")


def plant(patch: Patch) -> None:
    def settle(self: LogWriter) -> None:
        pending = self._pending
        if pending is None:
            return
        with contextlib.suppress(OSError):  # "there will be room again"
            write_all(self._files, self._log.handle, pending.data, pending.offset)
        self._log = self._log._replace(end=pending.end)
        self._pending = None

    patch.set(LogWriter, "settle", settle)
