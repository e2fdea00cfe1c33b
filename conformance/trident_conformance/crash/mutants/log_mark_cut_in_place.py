"""The mark is rewritten by emptying its file first: a crash in between leaves no mark."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import writer

STORE = "reference"
TRIAL = cut("a2 s a3 s")


def plant(patch: Patch) -> None:
    def write_slot(files: Any, handle: int, slot: int, *rest: Any, **more: Any) -> None:
        files.truncate(handle, 0)
        for each in (0, 1):
            real(files, handle, each, *rest, **more)

    real = patch.set(writer, "write_slot", write_slot)
