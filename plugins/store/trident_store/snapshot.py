"""A view of a store up to a place: its tables, then its log; checks every piece that it gives out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trident_core.dtypes import EVENT, Events
from trident_core.session import Session
from trident_store.format import FrameKind
from trident_store.logfiles import LogPart
from trident_store.parts import PartsSnapshot
from trident_store.tables import Table


class LogSnapshot(PartsSnapshot):
    """The first `count` events of a store; never changes, whatever the writer does. Usable in any thread,
    and after the store is closed."""

    def __init__(self, tables: Sequence[Table], log: LogPart, session: Session) -> None:
        super().__init__(session, log.end.ordinal, log.end.last_seq)
        self._tables, self._log = tuple(tables), log

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
