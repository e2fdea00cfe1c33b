"""The table that a compaction makes is named by the manifest without a sync of it."""

from typing import Any

from trident_conformance.crash.mutants import Patch, deaf
from trident_conformance.crash.trials import cut
from trident_store.lsm.merging import Merge

STORE = "lsm"
TRIAL = cut("a30", per_point=8)


def plant(patch: Patch) -> None:
    def unsynced(self: Any) -> Any:
        with deaf(self._files, "sync"):
            return step(self)

    step = patch.set(Merge, "step", unsynced)
