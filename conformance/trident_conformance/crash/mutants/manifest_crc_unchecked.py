"""A record of the manifest is believed without a look at its CRC."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import rot
from trident_store.lsm import manifest

STORE = "lsm"
TRIAL = rot("a30 s a16 s", files=".man")


def plant(patch: Patch) -> None:
    patch.blind(manifest, "_decode_record", manifest)
