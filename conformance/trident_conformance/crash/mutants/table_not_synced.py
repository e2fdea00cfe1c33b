"""A table is named by the manifest before its bytes are durable."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.lsm import maintenance

STORE = "lsm"
TRIAL = cut("a30 s a16 s", per_point=12)


def plant(patch: Patch) -> None:
    patch.without(maintenance, "write_table", "sync")
