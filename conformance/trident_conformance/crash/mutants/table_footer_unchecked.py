"""A table is opened without a look at the CRCs of its footer and its small sections."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import rot
from trident_store import tables

STORE = "lsm"
TRIAL = rot("a16 s a3 s", files=".tab")


def plant(patch: Patch) -> None:
    patch.blind(tables.Table, "__init__", tables)
