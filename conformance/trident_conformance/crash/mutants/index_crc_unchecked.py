"""The index of order references is believed without a look at its CRCs."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import rot
from trident_store.lsm.table_reader import LsmTable
from trident_store.tables import Table

STORE = "lsm"
TRIAL = rot("a16 s a3 s", files=".tab")


def plant(patch: Patch) -> None:
    def check(self: Any, page: int) -> None:
        self.checked_pages[page] = 1

    for owner in (Table, LsmTable):
        patch.set(owner, "check_page", check)
