"""What a snapshot is when all it has is parts: arrays of events, in append order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.export import need_pyarrow
from trident_core.session import Session
from trident_store.filters import Filter, Range, check_reference, conditions, join, naming, rebatch

ALL_SEQ: Final = (0, (1 << 64) - 1)


class PartsSnapshot(ABC):
    """The first `count` events of a store; never changes, whatever the writer does. Usable in any thread,
    and after the store is closed. Subclasses say what the parts are."""

    def __init__(self, session: Session, count: int, last_seq: int) -> None:
        self.session, self.count, self.last_seq = session, count, last_seq
        self._closed = False

    @abstractmethod
    def _parts(self, seq: tuple[int, int]) -> Iterator[Events]:
        """The events, in order; those may be left out whose seq is not of the closed range. Raises
        DamagedStoreError before it would yield an event of a piece that does not check."""

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
        return rebatch(self._picked(where), batch)

    def _picked(self, where: Filter) -> Iterator[Events]:
        """The events that satisfy all conditions, in order, in arrays of any size."""
        return (where.pick(events) for events in self._parts(where.seq))

    def scan_into(self, out: Events, **filters: Any) -> Iterator[int]:
        """As `scan`, into the caller's array, EVENT[n]: each time as many events as fit, and how many.

        They stay until the next one is asked for. Raises UsageError when `out` is not EVENT, flat, contiguous
        and writable, and what `scan` raises.
        """
        good = isinstance(out, np.ndarray) and out.dtype == EVENT and out.ndim == 1 and len(out) > 0
        if not good or not out.flags.c_contiguous or not out.flags.writeable:
            raise UsageError(
                "scan_into fills a flat, contiguous, writable array of EVENT", hint="np.empty(65_536, EVENT)"
            )
        parts = self.scan(batch=len(out), **filters)
        words = out.view(np.uint64)

        def fill() -> Iterator[int]:
            for events in parts:
                words[: 8 * len(events)] = events.view(np.uint64)
                yield len(events)

        return fill()

    def scan_arrow(self, **filters: Any) -> Iterator[Any]:
        """As `scan`, in batches of Arrow: pyarrow.RecordBatch with EVENT's fields, integers as they are and
        `aux` as binary(8). Raises PluginError without pyarrow, and what `scan` raises."""
        need_pyarrow()
        return (_record_batch(events) for events in self.scan(**filters))

    def get(self, ref: int) -> Events:
        """Every event that names the order reference `ref`, or replaces an order by it (U), in append order.

        Reads the whole snapshot, where there is no index. Reference 0 means "no order": nothing names it.
        Raises UsageError unless 0 <= ref < 2**64; DamagedStoreError as `scan` does.
        """
        self._require_open()
        check_reference(ref)
        found = [np.empty(0, EVENT)]
        if ref:
            found += (naming(events, ref) for events in self._parts(ALL_SEQ))
        return join(found)

    def close(self) -> None:
        """Release. Idempotent; a scan under way may finish."""
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("the snapshot is closed", hint="take another one")


def _record_batch(events: Events) -> Any:
    import pyarrow as pa

    names = [name for name in EVENT.names or () if name != "aux"]
    columns = [pa.array(np.ascontiguousarray(events[name])) for name in names]
    aux = pa.py_buffer(np.ascontiguousarray(events["aux"]))
    columns.append(pa.Array.from_buffers(pa.binary(8), len(events), [None, aux]))
    return pa.RecordBatch.from_arrays(columns, names=[*names, "aux"])
