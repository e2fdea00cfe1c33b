"""What a snapshot is when all it has is parts: arrays of events, in append order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_store.filters import Range, check_reference, conditions, join, naming, rebatch

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
        return rebatch((where.pick(events) for events in self._parts(where.seq)), batch)

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
