"""What a crash explains is called damage: the store is refused after a power cut."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import survey

STORE = "reference"
TRIAL = cut("a2 s a3 a1")


def plant(patch: Patch) -> None:
    patch.set(survey._Walk, "tearable", lambda self, handle=-1, size=0: False)
