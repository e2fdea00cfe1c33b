"""Sequence engines: conditions and row patterns become searches over events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # listing plugins must not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

    from trident_core.contracts.query import Query
    from trident_core.dtypes import Events, Matched
    from trident_core.session import Session


class ScanBounds(Protocol):
    """What a scan can skip by, without losing an event that a predicate is true for. `seq` and `ts` are
    closed ranges; (0, 2**64 - 1) bounds nothing. Wider bounds than there could be are right, if slower.
    """

    seq: tuple[int, int]
    ts: tuple[int, int]

    @property
    def impossible(self) -> bool:
        """No event can satisfy the predicate. False where it is not known."""
        ...

    def scan_types(self) -> bytes | None:
        """The types that may satisfy it, a byte each, as `Snapshot.scan` takes them. None: any type may."""
        ...

    def scan_locates(self) -> NDArray[np.uint32] | None:
        """u32[n]: the locates that may satisfy it, ascending, as for `Snapshot.scan`. None: any may."""
        ...


class Predicate(Protocol):
    """A compiled condition on single events (docs/sequences.md). Not for several threads at once."""

    text: str
    bounds: ScanBounds

    def match(self, events: Events) -> NDArray[np.bool_]:
        """bool[n]: for which events it is true; unknown, as of a comparison with null, is not true. Raises
        UsageError where arithmetic on an event does not fit 64 bits."""
        ...

    def explain(self) -> dict[str, Any]: ...


class SequenceSearch(Protocol):
    """A search for sequences in events that come in batches; any split gives the same matches. `last_seq`: of
    the last event that was fed, 0 before; `total`: how many matches were given.
    """

    last_seq: int
    total: int

    def feed(self, events: Events) -> Matched:
        """MATCHED[m]: the matches that are final with these events, in any order. Raises a TridentError at a
        cap."""
        ...

    def finish(self) -> Matched:
        """MATCHED[m]: the stream ends, and every partition with it; in any order, not by partition."""
        ...

    def partition(self, events: Events) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """For the same events, fed again to a fresh search: a number for each one's partition, -1 for none,
        and its letter (what `rows` asks for). Numbers of partitions that have ended may be used again."""
        ...

    def value(self, key: int) -> int | str:
        """What `MATCHED.key`, any i64 of the engine's own, stands for: an order's first reference, a symbol
        (or the locate without one), an MPID, or "all". Asked at any time, also after `finish`."""
        ...

    def rows(self, events: Events, letters: NDArray[np.uint32]) -> list[dict[str, Any]]:
        """The measures of one match, given its events and their letters: one dictionary, `labels` (the
        variables of its rows, joined by blanks) and the measures by name; with all rows one for each row that
        is not hidden: `seq`, `labels` (its variable), and the measures."""
        ...

    def save(self, path: Path) -> None: ...

    def load(self, path: Path) -> None: ...

    def explain(self) -> dict[str, Any]: ...


class Sequences(Protocol):
    """Predicates and row patterns over events (docs/sequences.md). Factory: `Sequences()`.

    `texts` answers the patterns on texts inside conditions; None: the engine's own.
    """

    def predicate(self, text: str, session: Session, *, texts: Query | None = None) -> Predicate:
        """Compile a condition. Raises PatternError with the byte offset."""
        ...

    def sql(
        self, text: str, events: Events, session: Session, *, allow_backtracking: bool = False, steps: int = 0
    ) -> tuple[list[str] | None, list[list[Any]]]:
        """Names (None: all columns) and rows of a SELECT … FROM events MATCH_RECOGNIZE (…)."""
        ...

    def search(
        self, match: str, session: Session, *, define: Sequence[str] = (), per: str = "order",
        within: str | None = None, skip: str = "past", measures: Sequence[str] = (), all_rows: bool = False,
        texts: Query | None = None, count_only: bool = False,
    ) -> SequenceSearch:  # fmt: skip
        """Compile a row pattern. Raises PatternError with the byte offset, UsageError or a typed error that
        names a cap."""
        ...
