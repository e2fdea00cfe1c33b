"""The columns of a table's blocks are believed without a look at their CRCs."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import rot
from trident_store.tables import Table

STORE = "lsm"
TRIAL = rot("a16 s a3 s", files=".tab")


def plant(patch: Patch) -> None:
    def check_column(self: Any, block: int, column: int) -> None:
        self.checked_columns[block, column] = 1

    patch.set(Table, "check_column", check_column)
