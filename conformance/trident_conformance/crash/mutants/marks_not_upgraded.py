"""Segments go, and the marks do not say that the store has tables now."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.format import TABLES
from trident_store.lsm.engine import LsmStore

STORE = "lsm"
TRIAL = cut("a30 s a16 s", per_point=8)


def plant(patch: Patch) -> None:
    def upgrade(self: Any) -> None:
        self._writer.minor &= ~TABLES

    patch.set(LsmStore, "_upgrade", upgrade)
