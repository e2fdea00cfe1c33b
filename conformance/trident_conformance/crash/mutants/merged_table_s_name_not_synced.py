"""The folder is not synced after a compaction has made a table in it."""

from typing import Any

from trident_conformance.crash.mutants import Patch, deaf
from trident_conformance.crash.trials import cut
from trident_store.lsm.merging import Merge

STORE = "lsm"
TRIAL = cut("a30", per_point=8)


def plant(patch: Patch) -> None:
    def unsynced(self: Any) -> Any:
        with deaf(self._files, "sync_directory"):
            return step(self)

    step = patch.set(Merge, "step", unsynced)
