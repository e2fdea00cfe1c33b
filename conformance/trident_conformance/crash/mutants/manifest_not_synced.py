"""Segments are removed while the manifest that makes them superfluous is not durable."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.lsm.manifest import ManifestWriter

STORE = "lsm"
TRIAL = cut("a30 s a16 s", per_point=12)


def plant(patch: Patch) -> None:
    patch.without(ManifestWriter, "publish", "sync")
