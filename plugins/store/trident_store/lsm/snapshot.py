"""A snapshot of an lsm store: mapped tables and, behind them, the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_store.filters import Filter, Range, check_reference, conditions, join
from trident_store.logfiles import LogPart
from trident_store.lsm.layout import COLUMNS
from trident_store.lsm.lookup import Found, lookup
from trident_store.lsm.lookup import Table as Address
from trident_store.lsm.table_reader import LsmTable
from trident_store.lsm.tail import Tail
from trident_store.snapshot import LogSnapshot, log_events

_MAX_REF: Final = (1 << 64) - 1


class _Room:
    """Where a look-up puts events, made once: numpy takes longer to make an array than to find an order."""

    def __init__(self, events: int = 16) -> None:
        self.words = np.empty((events, 8), np.uint64)
        self.bytes = memoryview(self.words.data).cast("B")
        self.state = np.zeros(3, np.int64)


class LsmSnapshot(LogSnapshot):
    """The first `count` events of a store; never changes, whatever the writer does. Usable in any thread, and
    after the store is closed: tables that are removed stay readable until the last snapshot of them goes."""

    def __init__(self, tables: Sequence[LsmTable], log: LogPart, session: Session) -> None:
        super().__init__(tables, log, session)
        self._readers = tuple(tables)
        self._addresses = np.array([table.addresses for table in tables], np.uint64).reshape(
            -1, Address.WORDS
        )
        self._tail = Tail(log) if log.end.ordinal > log.start.ordinal else None
        self._rooms: list[_Room] = []  # for look-ups, one for each that is under way

    def _picked(self, where: Filter) -> Iterator[Events]:
        tables = (table.scan(where) for table in self._readers if _overlap(table, where.seq))
        log = (where.pick(events) for events in log_events(self._log, where.seq))
        return chain(chain.from_iterable(tables), log)

    def get(self, ref: int) -> Events:
        """Every event that names the order reference `ref`, or replaces an order by it (U), in append order.

        Asks the filter of each table, then the index of those that may have it; the first look-up that goes
        to the log indexes it. Reference 0 means "no order": nothing names it. Raises UsageError unless
        0 <= ref < 2**64; DamagedStoreError when a piece that is needed does not check.
        """
        if self._closed:
            self._require_open()
        if not 0 < ref <= _MAX_REF:
            check_reference(ref)
            return np.empty(0, EVENT)
        rooms = self._rooms
        room = rooms.pop() if rooms else _Room()
        count = lookup(np.uint64(ref), self._addresses, room.words, room.state)
        if count < 0:
            room, count = self._look_on(np.uint64(ref), room, count)
        # numpy takes five microseconds to copy structures, and half of one to look at bytes that were copied.
        rows = bytearray(room.bytes[: count * EVENT.itemsize])
        events: Events = np.frombuffer(rows, EVENT) if count else np.empty(0, EVENT)
        rooms.append(room)
        if self._tail is None:
            return events
        tail = self._tail.find(ref)
        return join([events, tail]) if len(tail) else events

    def _look_on(self, ref: np.uint64, room: _Room, why: int) -> tuple[_Room, int]:
        """Go on with a look-up that ended early: check what it asks for, or make more room."""
        while why < 0:
            table, piece = self._readers[room.state[0]], int(room.state[2])
            if why == Found.UNCHECKED_PAGE:
                table.check_page(piece)
            elif why == Found.UNCHECKED_BLOCK:
                table.check_block(piece)
            elif why == Found.NO_EVENT:
                raise table.damaged(0, "the index of references names an event that the table does not have")
            else:
                room = _Room(4 * len(room.words))
            why = lookup(ref, self._addresses, room.words, room.state)
        return room, why

    def column(
        self, name: str, *, locates: Sequence[int] | None = None, seq: Range = (None, None),
        ts: Range = (None, None),
    ) -> Iterator[NDArray[Any]]:  # fmt: skip
        """The values of one column, for sums and counts: tables give read-only views of their blocks without
        a copy, [blocks, events] ("aux": [blocks, events, 8]), each table in its own order, by locate, then
        append order; the log gives copies, [1, events]. With conditions only what satisfies them: blocks are
        passed over by their zone maps, locates found by the runs.

        Raises UsageError for an unknown column or wrong conditions; DamagedStoreError before it would yield a
        piece that does not check.
        """
        self._require_open()
        if name not in COLUMNS:
            raise UsageError(f"no column {name!r} in EVENT", hint=", ".join(COLUMNS))
        where = conditions(seq, ts, locates, None, 1)
        tables = (table.column(name, where) for table in self._readers if _overlap(table, where.seq))
        if self._tail is None:
            return chain.from_iterable(tables)
        log = (where.pick(events)[name][np.newaxis].copy() for events in log_events(self._log, where.seq))
        return chain(chain.from_iterable(tables), log)

    def column_into(self, name: str, out: NDArray[Any], **conditions: Any) -> int:
        """Copy the values that `column` gives to the beginning of the caller's array: how many.

        `out` is [n] of the column's dtype ("aux": u8[n, 8]), contiguous and writable; `count` rows are always
        enough. Raises what `column` raises; UsageError for another array, and when it is too small: what was
        copied by then stays.
        """
        kind = EVENT[name] if name in COLUMNS else EVENT
        right = isinstance(out, np.ndarray) and out.dtype == kind.base and out.shape[1:] == kind.shape
        parts = self.column(name, **conditions)
        if not right or out.ndim < 1 or not out.flags.c_contiguous or not out.flags.writeable:
            shape = ", ".join(["snapshot.count", *map(str, kind.shape)])
            raise UsageError(
                f"column {name!r} is copied into a contiguous, writable array of {kind.base}",
                hint=f"np.empty(({shape}), {str(kind.base)!r})",
            )
        done = 0
        for part in parts:
            rows = part.shape[0] * part.shape[1]
            if done + rows > len(out):
                raise UsageError(f"the array has {len(out)} rows, too few", hint="snapshot.count are enough")
            out[done : done + rows].reshape(part.shape)[...] = part
            done += rows
        return done


def _overlap(table: LsmTable, seq: tuple[int, int]) -> bool:
    return table.entry.last_seq >= seq[0] and table.entry.first_seq <= seq[1]
