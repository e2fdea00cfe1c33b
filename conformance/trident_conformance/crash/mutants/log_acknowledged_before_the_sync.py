"""`sync` returns when the bytes are written: they are in the page cache, and nowhere else."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.writer import LogWriter

STORE = "reference"
TRIAL = cut("a2 a1 s a3 s")


def plant(patch: Patch) -> None:
    patch.set(LogWriter, "sync", LogWriter.settle)
