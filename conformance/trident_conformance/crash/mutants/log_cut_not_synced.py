"""Recovery cuts the torn tail off and does not sync that before it writes there: a second crash brings back
what followed the tear, behind sound frames."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.crashmodel import CrashFileSystem

STORE = "reference"
TRIAL = cut("a1 s a1 a1 a1 a1 a1 a1 x a2 s", per_point=32, first_key=7, keys=20)


def plant(patch: Patch) -> None:
    waits: set[tuple[int, int]] = set()

    def truncate(self: Any, handle: int, size: int) -> None:
        cut_off(self, handle, size)
        waits.add((id(self), handle))

    def sync(self: Any, handle: int) -> None:
        if (id(self), handle) in waits:
            waits.discard((id(self), handle))
        else:
            real(self, handle)

    cut_off = patch.set(CrashFileSystem, "truncate", truncate)
    real = patch.set(CrashFileSystem, "sync", sync)
