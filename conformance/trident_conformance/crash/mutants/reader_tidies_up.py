"""A reader removes files that nothing names: a writer beside it, or the next recovery, may need them."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import recovery
from trident_store.lsm.engine import LsmStore

STORE = "lsm"
TRIAL = cut("a30 s a16 s", per_point=8)


def plant(patch: Patch) -> None:
    def survey(self: Any) -> Any:
        found = real(self)
        recovery.remove_leftovers(self._files, self.path, found.store_id, found.manifest)
        return found

    real = patch.set(LsmStore, "_survey", survey)
