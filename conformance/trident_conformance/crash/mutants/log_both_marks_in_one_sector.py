"""The two slots of the mark stand in one sector: one torn write spoils both."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import mark

STORE = "reference"
TRIAL = cut("a2 a1 s a3 s a16 a3 s")


def plant(patch: Patch) -> None:
    patch.set(mark, "MARK_SLOT_BYTES", 64)
