"""The contracts: what each kind of engine must do. These docstrings are normative; docs/contracts explains.

Engines satisfy Protocols; there is nothing to inherit. Batches cross the boundary, single messages never do.
Arrays in and out are caller-owned, C-contiguous and 1-D unless a method says otherwise; an engine must not
keep a view of a caller's array after it returns, and must not write to an array it was given to read.

Longer than other modules on purpose: whoever writes an engine reads the whole contract in one place.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

from trident_core.errors import PluginError

if TYPE_CHECKING:  # listing plugins must not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

    from trident_core.dtypes import Effects, Events, Frames, Levels, Matched, Orders, Tops
    from trident_core.session import Session
    from trident_core.stats import Anomalies


class Kind(StrEnum):
    """The kinds of engine. One register hook each (`trident_core.hookspecs`)."""

    FEED = "feed"
    PARSER = "parser"
    BOOK = "book"
    STORE = "store"
    QUERY = "query"
    SEQUENCE = "sequence"
    COMMAND = "command"


#: Version of each kind's contract (major, minor). An engine made for another major is refused; one made for a
#: smaller minor is accepted, and lacks what came later; for a greater minor, refused.
CONTRACT_VERSIONS: Final[Mapping[Kind, tuple[int, int]]] = dict.fromkeys(Kind, (1, 0))


class Capability(StrEnum):
    """Optional abilities an engine may declare. Undeclared: skipped by conformance. Declared: must pass."""

    ENCODE = "encode"  # parser: encode_events and encode_rows
    TABLES = "tables"  # parser: parse_tables
    LENIENT = "lenient"  # feed, parser: a documented lenient mode
    SPANS = "spans"  # query: Program.spans
    FIRST = "first"  # query: compile(first=True), spans that are leftmost-first
    ENDS = "ends"  # query: Program.ends
    SETS = "sets"  # query: compile_set, many patterns at once
    SHARDED = "sharded"  # book: several at once in threads, each with some of the symbols (see Book)
    PORTABLE_FORMAT = "portable_format"  # store: reads and writes the reference's files
    FILESYSTEM = (
        "filesystem"  # store: takes `filesystem=`, a FileSystem; all it does to the disk goes through it
    )


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One engine, described without importing it.

    `factory` is "package.module:Class", resolved by `load()` only when the engine is selected, so that
    listing engines never imports numba. `protocols` names the wire formats a feed yields or a parser reads.
    `files`, of a store: patterns of names (as of `fnmatch`) in its folder, any of which gives it away.
    """

    kind: Kind
    name: str
    factory: str
    summary: str
    contract: tuple[int, int] = (1, 0)
    capabilities: frozenset[str] = frozenset()
    protocols: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    install_hint: str = ""
    files: tuple[str, ...] = ()

    def load(self) -> Any:
        """Import and return the factory. Raises PluginError with the cause and the install hint."""
        module, _, attribute = self.factory.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except Exception as error:  # a stranger's module may raise anything
            raise PluginError(
                f"{self.kind} engine {self.name!r} cannot be loaded from {self.factory}: {error!r}",
                hint=self.install_hint or f"is the package that provides {module} complete?",
            ) from error


@runtime_checkable
class Warmable(Protocol):
    """Optional for engines of every kind that compile: `warm_up` does so before the clock of a run starts."""

    def warm_up(self) -> None:
        """Compile, or load from the cache, all kernels; change nothing that can be observed."""
        ...


# --- Feed ---------------------------------------------------------------------------------------------------


class Chunk(NamedTuple):
    """A run of bytes of one feed, in the framing its `protocol` names.

    `data` is read-only u8[n] and stays valid until the next chunk is asked for. `seq` is the sequence number
    of the first message that starts in the chunk, when the transport knows it; None continues the count.
    A chunk with a `seq` starts on a message boundary. `offset` is the position of data[0] in the source after
    decompression (for captures: of the packet that carried it).
    """

    data: Frames
    seq: int | None
    offset: int


class ByteSource(Protocol):
    """Where a feed reads its bytes: a file, standard input or a pipe, decompressed on the way.

    `name` is for messages, `path` the file's path or None. `anomalies` counts what decompression met.
    """

    name: str
    path: Path | None
    anomalies: Anomalies

    def peek(self, n: int) -> bytes:
        """The next up to n bytes (n <= 64 KiB), without consuming them; fewer only at the end."""
        ...

    def read(self, n: int) -> bytes:
        """The next 1 to n bytes; b"" at the end. Bounded memory: never more than n bytes."""
        ...

    def progress(self) -> tuple[int, int | None]:
        """(raw bytes consumed, raw bytes in all or None when unknown), for a progress bar."""
        ...

    def close(self) -> None: ...


@dataclass(slots=True)
class FeedOptions:
    """`lenient`: accept what docs/contracts/feed.md lists. `port`: of a capture, only this UDP/TCP port."""

    lenient: bool = False
    chunk_bytes: int = 1 << 20
    port: int | None = None


class Feed(Protocol):
    """Bytes of one source -> chunks of framed messages.

    Factory: `Feed(source: ByteSource, session: Session, options: FeedOptions)`; it must not read before
    iteration starts. Iterating yields chunks once. `protocol` is the wire format of the chunks
    ("itch50": each message behind a 2-byte big-endian length, whatever the transport was).
    """

    protocol: str
    anomalies: Anomalies

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        """How sure the feed is that `head` (the first up to 64 KiB, decompressed) is its format: 0 to 100.

        Judged from the bytes; `name` may only break ties. The highest answer wins.
        """
        ...

    def __iter__(self) -> Iterator[Chunk]: ...


# --- Parser -------------------------------------------------------------------------------------------------


class Status(IntEnum):
    """Why `parse_into` stopped."""

    OK = 0  # every byte was consumed
    NEED_MORE = 1  # the bytes from `consumed` on are the start of one more message
    OUT_FULL = 2  # `out` is full; call again with the bytes from `consumed` on
    MALFORMED = 3  # the bytes at `consumed` cannot be framed
    END = 4  # an end-of-session mark was consumed; what follows is not of this session


class ParseResult(NamedTuple):
    consumed: int  # bytes of `frames` used
    count: int  # type: ignore[assignment]  # events written to `out`; shadows tuple.count
    status: Status


class Parser(Protocol):
    """Framed bytes -> EVENTs: exactly one for each message of a known type and length, in order.

    A format whose messages are parts of events has a page that says which make none, or several.

    Factory: `Parser(session: Session, *, lenient: bool = False)`. State across calls: `next_seq`, the
    sequence number of the next message (starts at 1; every framed message takes one, skipped ones too; the
    caller may set it between calls); `position`, the source offset of the next byte (the caller may set it);
    `counts`, u64[256], messages by type byte, skipped ones included. The parser puts every symbol it meets
    into `session.directory`. Unknown types and wrong lengths are skipped, and counted in `anomalies` at their
    source offsets. Any split of the input gives the same events, counts and anomalies.
    """

    session: Session
    anomalies: Anomalies
    counts: NDArray[np.uint64]
    next_seq: int
    position: int

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        """Parse whole messages of `frames` (u8[n], may be read-only) into `out` (EVENT[m], m >= 1).

        Never reads past a message, never writes past `count`. Raises UsageError only for wrong arrays.
        """
        ...


@runtime_checkable
class TableParser(Protocol):
    """Capability TABLES."""

    def parse_tables(self, frames: Frames, types: str = "") -> dict[str, NDArray[Any]]:
        """All whole messages of `frames` as typed rows: type letter -> structured array, one dtype per type.

        `types`: rows of these letters only; empty means all. State moves the same for any `types`.

        The first field is `seq`; then every field of the specification after the type, by name, in native
        byte order; letters and texts as the bytes of the wire (`S`), padding included, so that `encode_rows`
        is exact. Only types that occur are in the answer. Uses and advances `next_seq`, `position`, `counts`
        and `anomalies` as `parse_into` does.
        """
        ...


@runtime_checkable
class Encoder(Protocol):
    """Capability ENCODE: the inverse of the parser. parse(encode(x)) == x for events and for typed rows."""

    def encode_events(self, events: Events) -> Frames:
        """EVENTs back to framed messages, in order. Symbols come from `session.directory`.

        Fields that EVENT does not have are zero (numbers) or blank (texts). Raises UsageError, naming the
        index and the column, for a value that the wire format cannot hold.
        """
        ...

    def encode_rows(self, type_letter: str, rows: NDArray[Any]) -> Frames:
        """Typed rows of one type back to framed messages, in order, byte for byte."""
        ...


# --- Book ---------------------------------------------------------------------------------------------------


class TradingState(IntEnum):
    """Trading state of a symbol: the wire's letter. UNKNOWN until the first H of the symbol."""

    UNKNOWN = 0
    TRADING = ord("T")
    HALTED = ord("H")
    PAUSED = ord("P")
    QUOTATION = ord("Q")


class Book(Protocol):
    """EVENTs -> full L3 order books of every symbol.

    Factory: `Book(session: Session)`. Rules: docs/contracts/book.md (each with the trap it comes from).
    References are unique in a session across symbols. `anomalies` holds positions as EVENT.seq.

    Capability SHARDED: books made by one factory share nothing that changes, so that each may be driven by a
    thread of its own at the same time, with a session that all share and another thread adds symbols to; and
    each need be given only the events of some locates: its tops, effects, readings and anomalies are then
    those that one book of all events would have for them, if no reference is used by two of the books.
    Kernels should run without the GIL: an engine that holds it is as right, and no faster.
    """

    session: Session
    anomalies: Anomalies

    def apply(self, events: Events, tops: Tops | None = None, effects: Effects | None = None) -> int:
        """Apply all events in order; return how many (always len(events)).

        With `tops` (TOP[m], m >= len(events)): tops[i] is the top of the event's symbol after event i (for a
        modify, the resting order's symbol). With `effects` (EFFECT[m]): what event i did. Never raises for
        data. Any split into batches gives the same state, tops, effects and anomalies.
        """
        ...

    def top(self, locate: int) -> Tops:
        """TOP[1]: the top now, with seq and ts of the symbol's last event (0 if it had none)."""
        ...

    def levels(self, locate: int, side: str, n: int = 0) -> Levels:
        """LEVEL[k]: the best n levels of side "B" or "S", best first; n = 0 means all."""
        ...

    def orders(self, locate: int) -> Orders:
        """ORDER[k]: all live orders: bids from best to worst, then asks; in queue order in each level."""
        ...

    def state(self, locate: int) -> TradingState:
        """Trading state by the last H of the symbol."""
        ...

    def locates(self) -> NDArray[np.uint32]:
        """Locates that have had an event that names them, ascending, 0 left out."""
        ...

    def live_orders(self) -> int:
        """How many orders rest in all books."""
        ...

    def digest(self) -> bytes:
        """SHA-256 of the canonical state: DIGEST_ROW for each live order, ascending locate, bids then asks,
        best to worst price, queue order. Two books are equal when their digests are."""
        ...

    def validate(self) -> list[str]:
        """Check every invariant; the list of violations, empty when sound. Slow; for tests and `verify`."""
        ...


@runtime_checkable
class TimedBook(Protocol):
    """Optional for books: times itself from inside, closer than a caller in Python can."""

    def time_events(self, events: Events, tops: Tops, effects: Effects, ticks: NDArray[np.int64]) -> None:
        """Apply all events, one by one, as `apply` would in batches of one: the same state, tops, effects and
        anomalies. ticks[i], of i64[n] and n = len(events): what event i took, by `trident_core.ticks`, from
        a read of the counter before it to one after it. Only called where `ticks.available()`.
        """
        ...


# --- Store --------------------------------------------------------------------------------------------------


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


# --- Query --------------------------------------------------------------------------------------------------


class Program(Protocol):
    """A compiled pattern over the bytes of one field. Dialect: docs/dialect.md."""

    pattern: str

    def match(self, column: NDArray[Any]) -> NDArray[np.bool_]:
        """bool[n]: does the pattern occur in each value? `column` is S[n] or u8[n, w]; trailing padding
        (spaces, NULs) of a value does not belong to it unless compiled with raw=True."""
        ...


@runtime_checkable
class SpanProgram(Protocol):
    """Capability SPANS."""

    def spans(self, data: bytes, limit: int = 0) -> list[tuple[int, int]]:
        """Leftmost-longest, non-overlapping [start, end) spans in `data`; limit 0 means all. Of a program
        compiled with first=True (capability FIRST): leftmost-first."""
        ...


@runtime_checkable
class EndsProgram(Protocol):
    """Capability ENDS."""

    def ends(self, data: bytes, limit: int = 0) -> list[int]:
        """Every position of `data` at which some match ends, empty ones too, ascending; limit 0 means all."""
        ...


class SetProgram(Protocol):
    """Up to 64 patterns, asked at once."""

    patterns: tuple[str, ...]

    def match_set(self, column: NDArray[Any]) -> NDArray[np.uint64]:
        """u64[n]: bit i of a value says what pattern i's own `match` would."""
        ...


@runtime_checkable
class Explained(Protocol):
    """Optional for programs: `explain` says what was compiled and why, in values that JSON has. Keys that
    mean something everywhere: engine, why, positions, states, table_bytes, prefilter."""

    def explain(self) -> dict[str, Any]: ...


@runtime_checkable
class SetQuery(Protocol):
    """Capability SETS."""

    def compile_set(
        self, patterns: Sequence[str], *, flags: str = "", full: bool = False, raw: bool = False
    ) -> SetProgram:
        """Compile 1 to 64 patterns. Raises as `compile` does, UsageError for another number of them."""
        ...


class Query(Protocol):
    """Patterns -> programs. Factory: `Query()`."""

    def compile(self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False) -> Program:
        """Compile. `flags` are letters of "ismx"; `full`: the whole value must match, as between ^ and $.
        With capability FIRST there is one more, `first`: spans are leftmost-first, not leftmost-longest.

        Raises PatternError with the byte offset for anything outside the dialect, and for a pattern that is
        too large for the engine; it never gives a program that another engine runs in silence.
        """
        ...


# --- Sequence -----------------------------------------------------------------------------------------------


class ScanBounds(Protocol):
    """What a scan can skip by, without losing an event that a predicate is true for."""

    seq: tuple[int, int]
    ts: tuple[int, int]

    @property
    def impossible(self) -> bool:
        """No event can satisfy the predicate."""
        ...

    def scan_types(self) -> bytes | None: ...

    def scan_locates(self) -> NDArray[np.uint32] | None: ...


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
    """A search for sequences in events that come in batches; any split gives the same matches."""

    last_seq: int
    total: int

    def feed(self, events: Events) -> Matched:
        """MATCHED[m]: the matches that are final with these events. Raises a TridentError at a cap."""
        ...

    def finish(self) -> Matched:
        """MATCHED[m]: the stream ends, and every partition with it."""
        ...

    def partition(self, events: Events) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """For the same events, fed again to a fresh search: a number for each one's partition, -1 for none,
        and its letter (what `rows` asks for). Numbers of partitions that have ended may be used again."""
        ...

    def value(self, key: int) -> int | str:
        """What `MATCHED.key` stands for: an order's first reference, a symbol, an MPID, or "all"."""
        ...

    def rows(self, events: Events, letters: NDArray[np.uint32]) -> list[dict[str, Any]]:
        """The measures (or all rows) of one match, given its events and their letters."""
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


# --- Commands -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A subcommand of `trident` that a plugin adds. `target` is "module:function", a typer-style function,
    imported only when the command is run or its own --help asked for."""

    name: str
    target: str
    summary: str
    contract: tuple[int, int] = (1, 0)
    kind: Kind = Kind.COMMAND
