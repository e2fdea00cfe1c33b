"""Recovery leaves the torn tail where it is and appends into it."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.crashmodel import CrashFileSystem

STORE = "reference"
TRIAL = cut("a2 a1 s a3 s a16", "a3 s a4 x a1 s", keys=4)


def plant(patch: Patch) -> None:
    def truncate(self: Any, handle: int, size: int) -> None:
        return None

    patch.set(CrashFileSystem, "truncate", truncate)
