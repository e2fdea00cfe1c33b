"""A compaction is gone on with without a look at the blocks that its job file says are there."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import rot_of_work
from trident_store.lsm import merging

STORE = "lsm"
TRIAL = rot_of_work("a30 s a2 s", ending=".job")


def plant(patch: Patch) -> None:
    def are_there(files: Any, folder: Any, job: Any) -> bool:
        return True

    patch.set(merging, "_are_there", are_there)
