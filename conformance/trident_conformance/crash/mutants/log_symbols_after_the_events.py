"""What the directory gained is recorded behind the events that need it."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.reference import ReferenceStore
from trident_store.writer import LogWriter

STORE = "reference"
TRIAL = cut("a2 s a3 a4 a1 s")


def plant(patch: Patch) -> None:
    def append(self: Any, events: Any) -> int:
        patch_off[0] = True
        last: int = real(self, events)
        patch_off[0] = False
        self._writer.record(self._session.directory)
        return last

    def record(self: Any, directory: Any) -> None:
        if not patch_off[0]:
            recorded(self, directory)

    patch_off = [False]
    real = patch.set(ReferenceStore, "append", append)
    recorded = patch.set(LogWriter, "record", record)
