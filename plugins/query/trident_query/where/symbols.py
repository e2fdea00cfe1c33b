"""Answers about symbols, as tables that a locate looks up: one byte for each symbol of the directory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_core.session import Directory

#: Locates below this are places of a table; those above, of which a session has few, are looked for.
NEAR_MAX: Final = 1 << 20


class SymbolTables:
    """Tables over one directory. `near`: places of locates from 0 on; then one for each of `far`, i64,
    ascending."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        locates = [each.locate for each in directory]
        self.near = 1 + max((locate for locate in locates if locate < NEAR_MAX), default=0)
        self.far = np.array([locate for locate in locates if locate >= NEAR_MAX], np.int64)

    def table(self, holds: Callable[[str], bool]) -> NDArray[np.uint8]:
        """u8[near + far]: 1 for the locates whose symbol is known and `holds`."""
        made = np.zeros(self.near + len(self.far), np.uint8)
        beyond = self.near
        for each in self.directory:
            place = each.locate
            if place >= NEAR_MAX:
                place, beyond = beyond, beyond + 1
            made[place] = bool(each.symbol) and holds(each.symbol)
        return made
