"""Which symbols depend on each other: an add that takes the reference of another symbol's live order."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import Effects, Events, Outcome
from trident_core.tables.common import is_any

#: With more duplicate references than this, all symbols count as entangled.
REFS_MAX: Final = 1 << 20


class Entangled:
    """Finds symbols that must be replayed together. Feeds have none; broken ones do.

    `note` every batch; then `find` in all events again, if there are `refs`; then ask for `closure`. Symbols
    are taken together when both added an order of a reference that was ever a duplicate, which is more than
    needed and never less. Memory: 8 bytes for each such reference, at most REFS_MAX of them.
    """

    def __init__(self) -> None:
        self.refs: set[int] = set()
        self._all = False
        self._first: dict[int, int] = {}  # reference -> the first symbol that added it
        self._parent: dict[int, int] = {}

    def note(self, events: Events, effects: Effects) -> None:
        """Remember the references of this batch that evict an order, or may."""
        outcome = effects["outcome"]
        odd = (outcome == Outcome.DUPLICATE_REF) | (outcome == Outcome.REJECTED)
        if not odd.any() or self._all:
            return
        self.refs.update(_entering(events[odd]).tolist())
        if len(self.refs) > REFS_MAX:
            self._all = True
            self.refs.clear()

    def find(self, events: Events, homes: NDArray[np.uint32]) -> None:
        """Join the symbols (`homes`, one for each event) that added orders of the same noted reference."""
        adds = np.flatnonzero(is_any(events["type"], "AFU"))
        refs = _entering(events[adds])
        noted = np.isin(refs, np.fromiter(self.refs, np.uint64, len(self.refs)))
        for ref, home in zip(refs[noted].tolist(), homes[adds[noted]].tolist(), strict=True):
            first = self._first.setdefault(ref, home)
            if first != home:
                self._parent[self._root(home)] = self._root(first)

    def closure(self, locates: NDArray[np.uint32]) -> NDArray[np.uint32] | None:
        """u32, ascending: these and all that they are entangled with; None: all symbols."""
        if self._all:
            return None
        roots = {self._root(locate) for locate in locates.tolist()}
        joined = [locate for locate in self._parent if self._root(locate) in roots]
        return np.unique(np.concatenate([locates, np.array([*roots, *joined], np.uint32)]))

    def _root(self, locate: int) -> int:
        while (parent := self._parent.get(locate, locate)) != locate:
            locate = parent
        return locate


def _entering(events: Events) -> NDArray[np.uint64]:
    """The reference that each A, F or U brings into the book."""
    return np.where(events["type"] == ord("U"), events["ref2"], events["ref"])
