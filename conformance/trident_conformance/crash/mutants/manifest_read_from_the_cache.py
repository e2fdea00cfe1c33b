"""Recovery reads the manifest from the page cache: after a sync that failed it shows what the disk does not
have. (Trident's own until the laboratory found it.)"""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import refuse
from trident_store import tableset

STORE = "lsm"
TRIAL = refuse("sync", "a16 s a16 s a3 s f a4 s r a5 s", per_point=4)


def plant(patch: Patch) -> None:
    def read_manifest(*rest: Any, forget: bool = False) -> Any:
        return real(*rest)

    real = patch.set(tableset, "read_manifest", read_manifest)
