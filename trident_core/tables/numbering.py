"""Locates, any u32, as small numbers from 0: what arrays of state per symbol are indexed by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Symbols:
    """Numbers locates in the order in which batches bring them. Memory: one entry for each locate seen."""

    def __init__(self) -> None:
        self._number_of: dict[int, int] = {}
        self._dense: NDArray[np.int64] = np.full(1 << 16, -1, np.int64)

    def __len__(self) -> int:
        return len(self._number_of)

    def locates(self) -> NDArray[np.uint32]:
        """u32[len]: the locate of each number."""
        return np.array(list(self._number_of), np.uint32)

    def numbers(self, locates: NDArray[Any]) -> NDArray[np.int64]:
        """i64[n]: the number of each locate; new ones get the next numbers, in ascending order of locate."""
        if not len(locates):
            return np.zeros(0, np.int64)
        small = int(locates.max()) < len(self._dense)
        if small:
            known: NDArray[np.int64] = self._dense[locates]
            if int(known.min()) >= 0:
                return known
        for locate in np.unique(locates).tolist():
            number = self._number_of.setdefault(locate, len(self._number_of))
            if locate < len(self._dense):
                self._dense[locate] = number
        if small:
            return self._dense[locates]  # type: ignore[no-any-return]
        return np.array([self._number_of[locate] for locate in locates.tolist()], np.int64)
