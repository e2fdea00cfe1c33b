"""What follows a sync shares a sector with what was synced: a torn write of the one spoils the other."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import recovery, writer

STORE = "reference"
TRIAL = cut("a2 a1 s a3 s a16 a3 s")


def plant(patch: Patch) -> None:
    for module in (writer, recovery):
        patch.set(module, "pad_frame", lambda here, sector_bytes: None)
