"""Recovery believes a record of the manifest that a killed process left in the cache, and removes what it
does not name, before the record is durable. (Trident's own until the laboratory found it.)"""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import recovery

STORE = "lsm"
TRIAL = cut(*(f"a16 s k{n}" for n in (66, 65, 67, 71)), per_point=6)


def plant(patch: Patch) -> None:
    patch.set(recovery, "_settle_manifest", lambda files, folder, found: None)
