"""An index of the log behind the tables, made when an order is first looked up there."""

from __future__ import annotations

from typing import Final

import numpy as np

from trident_core.dtypes import EVENT, Events
from trident_store.filters import join, naming
from trident_store.logfiles import LogPart
from trident_store.lsm import kernels
from trident_store.lsm.memtable import load
from trident_store.snapshot import log_events

#: A longer log (no table was made of it) is read through for each look-up: its events would fill memory.
_MAX_EVENTS: Final = 1 << 22
_ALL_SEQ: Final = (0, (1 << 64) - 1)


class Tail:
    """The events of a part of the log by order reference. Memory: 76 bytes an event once it was asked."""

    def __init__(self, log: LogPart) -> None:
        self._log = log
        self._events: Events | None = None
        self._refs = np.empty(0, np.uint64)
        self._positions = np.empty(0, np.uint32)

    def find(self, ref: int) -> Events:
        """The events that name an order reference (not 0), in append order. Raises DamagedStoreError."""
        count = self._log.end.ordinal - self._log.start.ordinal
        if not count:
            return np.empty(0, EVENT)
        if count > _MAX_EVENTS:
            parts = [naming(events, ref) for events in log_events(self._log, _ALL_SEQ)]
            return join([np.empty(0, EVENT), *parts])
        if self._events is None:
            self._index(load(self._log).events)
        events = self._events
        assert events is not None
        wanted = np.uint64(ref)
        low, high = self._refs.searchsorted(wanted), self._refs.searchsorted(wanted, "right")
        words = events.view("<u8").reshape(-1, 8)[self._positions[low:high]]
        return words.reshape(-1).view(EVENT)

    def _index(self, events: Events) -> None:
        words = events.view(np.uint64).reshape(-1, 8)
        refs, positions = np.empty(2 * len(words), np.uint64), np.empty(2 * len(words), np.uint32)
        n = kernels.ref_entries(words, np.arange(len(words), dtype=np.uint32), refs, positions)
        refs, positions = refs[:n], positions[:n]
        others = np.empty_like(refs), np.empty_like(positions)
        swapped = kernels.radix_sort(refs, positions, *others)
        self._refs, self._positions = others if swapped else (refs, positions)
        self._events = events  # last: another thread may be looking
