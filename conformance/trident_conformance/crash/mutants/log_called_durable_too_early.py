"""`durable_seq` is what was appended, not what was synced."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.reference import ReferenceStore

STORE = "reference"
TRIAL = cut("a2 s a3 a1")


def plant(patch: Patch) -> None:
    def stats(self: ReferenceStore) -> dict[str, int]:
        figures: dict[str, int] = real(self)
        return figures | {"durable_seq": figures["last_seq"]}

    real = patch.set(ReferenceStore, "stats", stats)
