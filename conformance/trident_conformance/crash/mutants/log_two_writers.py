"""The lock is opened, not locked: two writers append to one log."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import two_writers
from trident_store.writer import LogWriter

STORE = "reference"
TRIAL = two_writers


def plant(patch: Patch) -> None:
    def resume(self: Any, *rest: Any) -> Any:
        files = self._files
        files.lock = lambda path: files.open(path, write=True)
        try:
            return real(self, *rest)
        finally:
            del files.lock

    real = patch.set(LogWriter, "resume", resume)
