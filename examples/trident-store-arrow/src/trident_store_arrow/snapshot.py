"""A view of a store at one moment: the files that counted then, and what had not become a file yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_store_arrow import files


class ArrowSnapshot:
    """Files never change once they count, so that a list of them is all a snapshot needs."""

    def __init__(
        self, folder: Path, entries: Sequence[files.Entry], tail: Sequence[Events], session: Session
    ) -> None:
        self.session = session
        self._folder, self._entries, self._tail = folder, tuple(entries), tuple(tail)
        self.count = sum(entry.events for entry in entries) + sum(len(events) for events in tail)
        last = int(tail[-1]["seq"][-1]) if tail else 0
        self.last_seq = last or (entries[-1].last if entries else 0)
        self._closed = False

    def scan(
        self, *, seq=(None, None), ts=(None, None), locates=None, types=None, batch=65_536
    ) -> Iterator[Events]:
        if batch < 1:
            raise UsageError(f"a batch holds at least one event, not {batch}")
        return self._scan(seq, ts, locates, types, batch)

    def _scan(self, seq, ts, locates, types, batch) -> Iterator[Events]:
        wanted = None if locates is None else np.asarray(locates, np.int64)
        letters = None if types is None else np.frombuffer(types, np.uint8)
        for events in self._parts(*seq):
            keep = np.ones(len(events), bool)
            for column, (low, high) in (("seq", seq), ("ts", ts)):
                if low is not None:
                    keep &= events[column] >= np.uint64(max(low, 0))
                if high is not None:
                    keep &= (events[column] <= np.uint64(max(high, 0))) & (high >= 0)
            if wanted is not None:
                keep &= np.isin(events["locate"], wanted)
            if letters is not None:
                keep &= np.isin(events["type"], letters)
            chosen = events[keep]
            for start in range(0, len(chosen), batch):
                yield chosen[start : start + batch]

    def get(self, ref: int) -> Events:
        found = [np.zeros(0, EVENT)]
        if ref:
            for events in self._parts(None, None):
                new = (events["type"] == ord("U")) & (events["ref2"] == np.uint64(ref))
                found.append(events[(events["ref"] == np.uint64(ref)) | new])
        return np.concatenate(found)

    def close(self) -> None:
        self._closed = True

    def _parts(self, low: int | None, high: int | None) -> Iterator[Events]:
        """The events of each file that may hold a seq of the closed range, and of the tail."""
        if self._closed:
            raise UsageError("the snapshot is closed")
        first = 0
        for entry in self._entries:
            if (low is None or entry.last >= low) and (high is None or entry.first <= high):
                yield files.decode(files.checked(self._folder, entry, first))
            first += entry.events
        yield from self._tail
