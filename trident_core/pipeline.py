"""The line: feed -> parser -> book -> ring -> store. One direction, no step back.

The calling thread reads, parses and applies; a thread or process behind the ring stores (see
`trident_core.line`). The book's only contact with storage is the ring. When it is full the calling thread
waits (and counts the waits), so that nothing is ever dropped; in live mode the ladder sees to it that it is
never full.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import numpy as np

from trident_core.contracts import Book, ByteSource, Feed, Parser, Store, Warmable
from trident_core.decode import LINGER_S, decode
from trident_core.dtypes import Effects, Events, Tops
from trident_core.errors import UsageError
from trident_core.interrupts import Interrupts
from trident_core.line.pinning import pinned
from trident_core.session import Session
from trident_core.sharding import AHEAD, Applied, Lane, ShardedBook, Work
from trident_core.stats import RunStats

if TYPE_CHECKING:  # numba: only runs that store need it
    from trident_core.filesystem import FileSystem
    from trident_core.line.faults import Faults
    from trident_core.line.writer import Writer

#: Called with the raw bytes read, the raw bytes in all (None: unknown) and the events so far.
Progress = Callable[[int, int | None, int], None]
#: Called with each batch and what it did to the book; the arrays are valid only during the call. A sharded
#: book is then up to `sharding.AHEAD` batches further, unless the run goes `in_step`.
Observer = Callable[[Events, Tops, Effects], None]

BATCH: Final = 1 << 14
RING_CAPACITY: Final = 1 << 16
#: In live mode the ring also bridges what the ladder takes to act: at 10 M events/s this one holds 100 ms.
LIVE_RING_CAPACITY: Final = 1 << 20
#: The store is synced at least this often while it has something new, in seconds.
SYNC_INTERVAL_S: Final = 1.0


@dataclass(slots=True)
class LineOptions:
    """`symbols`: apply and store only these (and messages of no symbol); empty means all. `until`: stop
    before the first event later than this time of day, ns. `batch` and `ring_capacity` are in events.
    `resume_after`: do not store events up to this seq (they are in the store already). `resume_event`:
    EVENT[1], the store's last event; the input must have it too, byte for byte, or it is another input.
    `linger_s`: see `decode`; inf makes all batches full, however slow the input is. `in_step`: the observer
    looks at the book, so it comes before the next batch, also when sharded.

    Behind the ring: `live`: the ladder instead of waiting, with spill files in `spill_folder` (None: no last
    rung). `filesystem`: for these; `faults`: to be met. `pin`: processors of the calling thread and of the
    store's. `laps`: note how long each batch took in book and ring, for `Line.laps`."""

    symbols: tuple[str, ...] = ()
    until: int | None = None
    batch: int = BATCH
    ring_capacity: int = RING_CAPACITY
    sync_interval_s: float = SYNC_INTERVAL_S
    resume_after: int = 0
    resume_event: Events | None = None
    linger_s: float = LINGER_S
    in_step: bool = False
    live: bool = False
    spill_folder: Path | None = None
    filesystem: FileSystem | None = None
    faults: Faults | None = None
    pin: tuple[int, ...] = ()
    laps: bool = False


@runtime_checkable
class SplitObserver(Protocol):
    """An observer part of whose work may be done by the threads of a sharded book, each on its own events."""

    #: Needs it whole tops and effects of each batch as well?
    whole: bool

    def work(self) -> Work:
        """The work on the batch that was just parsed: called once for each batch, before it is applied."""
        ...

    def join(self, done: Applied) -> None:
        """The rest, once the batch is applied; in order. `done.results` are those of `work`."""
        ...


class Line:
    """One run over one input. `book` and `store` may be None: the line then ends before them. `writer`: what
    takes events instead of a thread with `store` behind it."""

    def __init__(
        self,
        feed: Feed,
        source: ByteSource,
        parser: Parser,
        book: Book | None = None,
        store: Store | None = None,
        *,
        writer: Writer | None = None,
        options: LineOptions | None = None,
        progress: Progress | None = None,
        observer: Observer | SplitObserver | None = None,
    ) -> None:
        self.feed, self.source, self.parser, self.book, self.store = feed, source, parser, book, store
        self.options = options or LineOptions()
        self.stats = RunStats(source=source.name)
        self.laps: list[tuple[int, int]] = []  # events, ns: of each batch, if `options.laps`
        self._writer = writer
        self._progress, self._observer = progress, observer
        self._keep = _SymbolFilter(parser.session, self.options.symbols)
        self._resumption = _Resumption(source.name, self.options.resume_event)
        self._type_counts = np.zeros(256, np.int64)
        self._split = observer if isinstance(observer, SplitObserver) else None
        self._lane: Lane | None = None

    def run(self) -> RunStats:
        """Run to the end of the input. Ctrl-C ends it early: what was read is applied, stored and synced.

        Raises what the feed or the store raises, and UsageError when the input does not have `resume_event`;
        the store is then still closed by its owner.
        """
        writer = self._writer
        if self.book is not None:
            whole = self._split.whole if self._split else self._observer is not None
            ahead = 0 if self.options.in_step else AHEAD
            self._lane = Lane(self.book, tops=whole, effects=whole, ahead=ahead)
        began = time.perf_counter()
        try:
            with Interrupts() as interrupts:
                if self.store is not None and writer is None:
                    writer = self._begin_writer(self.store)
                for engine in (self.parser, self.book):
                    if isinstance(engine, Warmable):
                        engine.warm_up()
                began = time.perf_counter()  # compiling kernels is not part of the run
                with pinned(next(iter(self.options.pin), None), self.stats.notices):
                    self._read(writer, interrupts)
        except KeyboardInterrupt:
            self.stats.interrupted = True
        finally:
            if writer:
                writer.finish()
        if writer:
            writer.raise_error()
        self.stats.wall_s = time.perf_counter() - began
        self._summarise(writer)
        return self.stats

    def _read(self, writer: Writer | None, interrupts: Interrupts) -> None:
        """All batches through the line; those that are underway when it ends early, to their end."""
        self.stats.stage_s = dict.fromkeys(("parse", "book", "ring"), 0.0)
        try:
            self._batches(writer, interrupts)
        except KeyboardInterrupt:
            interrupts.hold()
            self._drain()
            raise
        except BaseException:
            if self._lane:
                self._lane.abandon()
            raise
        interrupts.hold()
        self._drain()
        interrupts.release()

    def _batches(self, writer: Writer | None, interrupts: Interrupts) -> None:
        stage, clock = self.stats.stage_s, time.perf_counter
        before = clock()
        kept = self._lane.ahead + 1 if self._lane else 1
        batch_max, linger_s = self.options.batch, self.options.linger_s
        for batch in decode(self.feed, self.parser, batch=batch_max, linger_s=linger_s, kept=kept):
            interrupts.hold()  # the batch goes through book, ring and figures, or through none of them
            parsed = clock()
            stage["parse"] += parsed - before
            events, last = self._cut(batch)
            self.stats.cut = last
            wanted = self._keep(events)
            self._resumption.check(wanted)
            self._apply(wanted)
            applied = clock()
            stage["book"] += applied - parsed
            if writer and not writer.put(self._new(wanted)):
                return
            put = clock()
            stage["ring"] += put - applied
            if self.options.laps:
                self.laps.append((len(wanted), int((put - parsed) * 1e9)))
            self._note(events)
            interrupts.release()
            if self._progress:
                self._progress(*self.source.progress(), self.stats.events)
            if last:
                return
            before = clock()
        self._resumption.require_met()

    def _begin_writer(self, store: Store) -> Writer:
        from trident_core.line.drain import DrainOptions
        from trident_core.line.writer import ThreadWriter

        options = self.options
        behind = DrainOptions(
            batch=options.batch, sync_interval_s=options.sync_interval_s, live=options.live,
            spill_folder=options.spill_folder, filesystem=options.filesystem, faults=options.faults,
        )  # fmt: skip
        cpu = options.pin[1] if len(options.pin) > 1 else None
        session = self.parser.session
        return ThreadWriter(store, session, behind, ring_capacity=options.ring_capacity, cpu=cpu)

    def _new(self, events: Events) -> Events:
        """The events that the store does not have yet."""
        after = self.options.resume_after
        return events[events["seq"] > after] if after else events

    def _cut(self, events: Events) -> tuple[Events, bool]:
        """The events up to `until`, and whether that was the end."""
        until = self.options.until
        if until is None:
            return events, False
        later = events["ts"] > until
        first = int(later.argmax()) if later.any() else len(events)
        return events[:first], first < len(events)

    def _note(self, events: Events) -> None:
        if len(events):
            if not self.stats.events:
                self.stats.first_ts, self.stats.first_seq = int(events["ts"][0]), int(events["seq"][0])
            self.stats.last_ts, self.stats.last_seq = int(events["ts"][-1]), int(events["seq"][-1])
            self.stats.events += len(events)
            self._type_counts += np.bincount(events["type"], minlength=256)

    def _apply(self, events: Events) -> None:
        if self._lane is None:
            return
        done = self._lane.put(events, None, self._split.work() if self._split else None)
        self.stats.applied += len(events)
        if done:
            self._observe(done)

    def _drain(self) -> None:
        """Wait for the batches that are underway in the book."""
        began = time.perf_counter()
        for done in self._lane.rest() if self._lane else ():
            self._observe(done)
        self.stats.stage_s["book"] += time.perf_counter() - began

    def _observe(self, done: Applied) -> None:
        if self._split:
            self._split.join(done)
        elif callable(self._observer) and done.tops is not None and done.effects is not None:
            self._observer(done.events, done.tops, done.effects)

    def _summarise(self, writer: Writer | None) -> None:
        stats = self.stats
        stats.symbols = len(self.parser.session.directory)
        # The parser also counts what it skipped, but it reads on to the end of a batch.
        counts = self._type_counts if stats.cut or stats.interrupted else self.parser.counts
        stats.counts = {chr(t): int(n) for t, n in enumerate(counts) if n}
        for owner in (self.source, self.feed, self.parser, self.book):
            if owner is not None:
                stats.anomalies.merge(owner.anomalies)
        if self.book is not None:
            stats.live_orders = self.book.live_orders()
            stats.digest = self.book.digest().hex()
            if isinstance(self.book, ShardedBook) and self.book.notice:
                stats.notices.append(self.book.notice)
        if writer:
            report = writer.report()
            stats.stored, stats.durable_seq = report.stored, report.durable_seq
            stats.stage_s["store"] = report.busy_s
            stats.ring_full_waits, stats.ring_full_wait_s = report.full_waits, report.full_wait_s
            stats.line = report.line
            stats.notices += report.notices


class _Resumption:
    """Holds the input against the last event of the store that it is to continue."""

    def __init__(self, source: str, event: Events | None) -> None:
        self._source = source
        self._event = event[:1] if event is not None and len(event) else None

    def check(self, events: Events) -> None:
        """Raises UsageError when the events go past the store's last one without having it."""
        if self._event is None:
            return
        at = int(np.searchsorted(events["seq"], self._event["seq"][0]))
        if at < len(events):
            if events[at : at + 1].tobytes() != self._event.tobytes():
                raise self._another(
                    f"has another message where the store ends, at seq {self._event['seq'][0]}"
                )
            self._event = None

    def require_met(self) -> None:
        """Raises UsageError when the input is over and the store's last event did not come."""
        if self._event is not None:
            raise self._another(f"ends before the store does, at seq {self._event['seq'][0]}")

    def _another(self, what: str) -> UsageError:
        return UsageError(
            f"{self._source} {what}: nothing was stored",
            hint="resume with the input that the store was begun with, whole, and with the same options",
        )


class _SymbolFilter:
    """Keeps the events of some symbols and those of no symbol; looks names up as the directory grows."""

    def __init__(self, session: Session, symbols: Iterable[str]) -> None:
        self._session, self._names = session, frozenset(symbols)
        self._version, self._locates = -1, np.zeros(0, np.uint32)

    def __call__(self, events: Events) -> Events:
        if not self._names:
            return events
        directory = self._session.directory
        if self._version != directory.version:
            self._version = directory.version
            wanted = [i.locate for i in directory if i.symbol in self._names]
            self._locates = np.array([0, *wanted], np.uint32)
        return events[np.isin(events["locate"], self._locates)]
