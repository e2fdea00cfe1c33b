"""Stores: EVENTs become a durable log and its snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:  # listing plugins must not wait for numpy
    from numpy.typing import NDArray

    from trident_core.dtypes import Events
    from trident_core.session import Session


@dataclass(slots=True)
class Recovery:
    """What opening a store for writing found and did."""

    events: int = 0  # events in the store after recovery
    torn_bytes: int = 0  # bytes of a partial last frame that were cut off
    torn_file: str = ""
    segments: int = 0
    spilled_events: int = 0  # events that the line had spilled when it died, now in the store
    spill_left_out: int = 0  # spilled events, or 1 for a torn frame, that do not continue the store


@dataclass(slots=True)
class Finding:
    """One thing that `verify` found wrong. Ordinals count events from 0; last None: unknown."""

    file: str
    offset: int
    first: int
    last: int | None
    problem: str
    severity: str = "error"  # "error": damaged; "note": explained by a crash, no acknowledged event is lost
    seqs: tuple[int, int] | None = None  # closed range of sequence numbers in which the events lie, if known
    hint: str = ""  # what to do about it


@dataclass(slots=True)
class Verification:
    """`events` and `last_seq` of the valid prefix; `ok` is False when any finding is an error. `checked`:
    what was looked at beyond the bytes, and how often."""

    events: int = 0
    last_seq: int = 0
    bytes: int = 0
    findings: list[Finding] = field(default_factory=list)
    checked: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)


class Snapshot(Protocol):
    """A view of a store at one moment. It never changes and never blocks the writer."""

    session: Session
    count: int
    last_seq: int

    def scan(
        self,
        *,
        seq: tuple[int | None, int | None] = (None, None),
        ts: tuple[int | None, int | None] = (None, None),
        locates: Sequence[int] | NDArray[Any] | None = None,
        types: bytes | None = None,
        batch: int = 65_536,
    ) -> Iterator[Events]:
        """Events in append order that satisfy all filters, in batches of 1 to `batch` events.

        `seq` and `ts` are closed ranges, None is open. `locates`, `types`: only these; None means all.
        """
        ...

    def get(self, ref: int) -> Events:
        """Every event that names the order reference, as `ref` or as a replace's new one, in append order."""
        ...

    def close(self) -> None: ...


class Store(Protocol):
    """A durable, append-only log of events. Recovery is a pure function of the disk.

    Factory: `Store(path: Path, mode: str, session: Session | None = None, **options)`. Modes: "create" (path
    must not exist or be an empty folder; session required), "append" (recovers, one writer at a time),
    "read" (any number, in any process; never changes a byte). Records in = records out, in order; after any
    crash at least everything up to the last returned `sync` is there, without a gap. Damage that a crash
    cannot explain raises DamagedStoreError: never wrong data, never a silent cut. It is raised by opening for
    "append" and, in mode "read", by `snapshot` or its scans; opening for "read" succeeds on a damaged store,
    so that `verify` can report. What the session's directory gained since the last append is recorded too.
    """

    recovery: Recovery

    @property
    def session(self) -> Session:
        """The session; may be a plain attribute. A store opened for reading may put damage off until data is
        asked for (here, `snapshot`, a scan), so that `verify` can be asked of a store that is damaged."""
        ...

    def append(self, events: Events) -> int:
        """Append in order; return the last event's seq. `seq` must grow strictly, across calls too
        (gaps are allowed: they are the feed's): UsageError, and nothing is written, otherwise."""
        ...

    def sync(self) -> int:
        """Make everything appended durable; return the last durable seq (0 when empty)."""
        ...

    def snapshot(self) -> Snapshot:
        """A view of what is appended now (a reader: of the valid prefix on disk now)."""
        ...

    def verify(self) -> Verification:
        """Read every byte and check it. Never raises for damage: it is reported."""
        ...

    def stats(self) -> dict[str, int]:
        """At least: events, segments, bytes, last_seq, durable_seq."""
        ...

    def close(self) -> None:
        """Sync and release. Idempotent."""
        ...


@runtime_checkable
class WatchedStore(Protocol):
    """Optional for stores: a verification that tells how far it is, and may look at more than bytes."""

    def verify_watched(self, advance: Callable[[int, int], None]) -> Verification:
        """As `Store.verify`; `advance` is told (bytes read, bytes in all) as it goes."""
        ...


class Pressure(IntEnum):
    """What is put off because the ring in front of a store fills: the line's ladder (docs/line.md)."""

    NORMAL = 0
    SHED_SYNC = 1  # syncs that nobody waits for
    SHED_INDEX = 2  # background work: tables, indexes, compaction
    RAW_SPILL = 3  # the store itself: events go to a spill file, and from there into the store


@runtime_checkable
class Sheddable(Protocol):
    """Optional for stores: takes part in the line's ladder. Other stores work too; the line itself puts its
    own syncs off and spills."""

    def shed(self, level: Pressure) -> None:
        """From now on put off what `level` names and the levels below it: syncs that the store makes by
        itself in the background, background work; at NORMAL, go on with them. Returns at once, also while
        another thread is inside `append` or `sync`. What these and `close` promise stays as it is, and so do
        all answers. A sync that `append` owes its caller (a policy of "always") is not put off.
        """
        ...
