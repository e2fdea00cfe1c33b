"""A view of a store up to a place: its tables, then its log; checks every piece that it gives out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_store.filters import Range, check_reference, conditions, join, naming, rebatch
from trident_store.format import FrameKind
from trident_store.logfiles import LogPart
from trident_store.tables import Table


class LogSnapshot:
    """The first `count` events of a store; never changes, whatever the writer does. Usable in any thread,
    and after the store is closed."""

    def __init__(self, tables: Sequence[Table], log: LogPart, session: Session) -> None:
        self.session = session
        self.count = log.end.ordinal
        self.last_seq = log.end.last_seq
        self._tables, self._log = tuple(tables), log
        self._closed = False

    def scan(
        self,
        *,
        seq: Range = (None, None),
        ts: Range = (None, None),
        locates: Sequence[int] | NDArray[Any] | None = None,
        types: bytes | None = None,
        batch: int = 65_536,
    ) -> Iterator[Events]:
        """See `trident_core.contracts.Snapshot.scan`. The arrays are the caller's own.

        Raises UsageError at once for a wrong argument; DamagedStoreError before it would yield an event of a
        frame or a block that does not check.
        """
        self._require_open()
        where = conditions(seq, ts, locates, types, batch)
        return rebatch((where.pick(events) for events in self._parts(where.seq)), batch)

    def get(self, ref: int) -> Events:
        """Every event that names the order reference `ref`, or replaces an order by it (U), in append order.

        Reads the whole snapshot. Reference 0 means "no order": nothing names it. Raises UsageError unless
        0 <= ref < 2**64; DamagedStoreError as `scan` does.
        """
        self._require_open()
        check_reference(ref)
        found = [np.empty(0, EVENT)]
        if ref:
            found += (naming(events, ref) for events in self._parts((0, (1 << 64) - 1)))
        return join(found)

    def close(self) -> None:
        """Release. Idempotent; a scan under way may finish."""
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("the snapshot is closed", hint="take another one")

    def _parts(self, seq: tuple[int, int]) -> Iterator[Events]:
        """The events of each window of a table and each frame of the log that may hold a seq of the closed
        range, in order."""
        for table in self._tables:
            if table.entry.last_seq >= seq[0]:
                yield from table.events(seq)
        yield from log_events(self._log, seq)


def log_events(log: LogPart, seq: tuple[int, int]) -> Iterator[Events]:
    """The events of each frame that may hold a seq of the closed range, in order."""
    for frame, file in log.frames():
        if frame.kind != FrameKind.EVENTS or frame.last_seq < seq[0]:
            continue
        if frame.first_seq > seq[1]:
            return
        yield log.payload(frame, file).view(EVENT)
