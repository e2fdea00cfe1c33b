"""A book made of several, each with its own symbols and its own thread; together they are one book."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Book, Capability, EngineSpec, TradingState, Warmable
from trident_core.dtypes import DIGEST_ROW, EFFECT, EVENT, TOP, Effects, Events, Levels, Orders, Tops
from trident_core.engines import make
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.sharding import kernel
from trident_core.sharding.merge import merge_rows
from trident_core.sharding.owners import BYTES_MAX, bits_of, make_owners
from trident_core.sharding.shard import Done, Part, Shard, Work, merged, unite
from trident_core.sharding.worker import Task, Worker
from trident_core.stats import Anomalies

#: More threads than this are refused: a mistake, or a machine that one parser cannot keep busy.
THREADS_MAX: Final = 64
#: How often the sequence numbers inside a batch may go back.
_BACKS_MAX: Final = 1_000
#: Events that `apply` deals at once.
_PIECE: Final = 1 << 14


@dataclass(slots=True)
class Job:
    """A batch on its way through the shards. `tasks[i]` are those of part i; parts follow each other."""

    tasks: list[list[Task[Done]]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    def wait(self) -> None:
        """Return when the shards are done with it, whatever came of it."""
        for tasks in self.tasks:
            for task in tasks:
                task.wait()


class ShardedBook:
    """A `contracts.Book` whose symbols are dealt over threads by locate: each shard is a book of its own.

    `factory` makes a book for a session: that of an engine that declares SHARDED. Everything it says, in any
    batches, is what one book of the engine would say: tops, effects, levels, orders, digest, counts and first
    positions of anomalies. No order reference may be used by symbols of two shards, as in every sound feed;
    where a message does, or where references are so far apart that this cannot be proven in `owner_bytes`,
    the shards' books become one before it, and `notice` says so.

    `submit` starts a batch and `finish` ends it, in order; `apply` does both. Several may be underway.
    All methods are for one thread. Memory beyond the books: `owner_bytes` (2 bits for each reference of a
    day up to 3 threads, 4 up to 15, 8 beyond), and 164 bytes for each event underway.

    Raises UsageError for fewer than 2 or more than THREADS_MAX threads. `close` ends the threads.
    """

    def __init__(self, factory: Any, session: Session, threads: int, *, owner_bytes: int = BYTES_MAX) -> None:
        check_threads(threads, fewest=2)
        self.session = session
        self.anomalies = Anomalies()
        self.notice = ""
        self._factory = factory
        self._shards = [Shard(factory(session)) for _ in range(threads)]
        self._threads = [Worker(f"trident-shard-{n}") for n in range(threads)]
        self._bits = bits_of(threads)
        self._owners = make_owners(threads, owner_bytes)
        self._spare: list[Part] = []
        self._last: dict[int, Task[Done]] = {}
        self._backs = 0
        self._closed = False

    def warm_up(self) -> None:
        """See `trident_core.contracts.Warmable`."""
        spare = self._shards[0].book
        if isinstance(spare, Warmable):
            spare.warm_up()
        part = Part(2, 2)
        part.deal(_words(np.zeros(2, EVENT)), 2, make_owners(2, 1))
        part.put_back(0, np.zeros(2, TOP), np.zeros(2, EFFECT))
        for more in ([], [("letter", "S1")]):  # rows of whole words, and others
            merge_rows([np.zeros(1, [("seq", "<u8"), *more])] * 2, "seq")

    # --- applying events ------------------------------------------------------------------------------------

    def apply(self, events: Events, tops: Tops | None = None, effects: Effects | None = None) -> int:
        """See `contracts.Book.apply`."""
        n = _check(events, tops, effects)
        for start in range(0, n, _PIECE):
            piece = slice(start, min(start + _PIECE, n))
            self.finish(self.submit(events[piece], _from(tops, piece), _from(effects, piece)))
        return n

    def submit(
        self,
        events: Events,
        tops: Tops | None = None,
        effects: Effects | None = None,
        work: Work | None = None,
    ) -> Job:
        """Begin to apply a batch; `finish` it after those before, and until then leave its arrays alone.

        `work` is done by each shard's thread with its own events. Raises UsageError as `apply`.
        """
        n = _check(events, tops, effects)
        job = Job()
        done = 0
        while done < n:
            left = slice(done, n)
            rest = events[left], _from(tops, left), _from(effects, left)
            if len(self._shards) == 1:
                job.tasks.append([self._start(0, self._shards[0].apply, *rest, work)])
                break
            dealt, why = self._deal(job, *rest, work)
            done += dealt
            if why != kernel.DEALT:
                self._stopped(why, events[done])
        return job

    def finish(self, job: Job) -> list[list[Any]]:
        """Wait until a batch is applied, and count its anomalies. Returns what `work` gave: for each part of
        the batch, in order, one for each shard that had events of it. Raises what a shard raised."""
        job.wait()
        self._spare += [part for part in job.parts if part.shards == len(self._shards)]
        results = []
        for tasks in job.tasks:
            done = [task.result() for task in tasks]
            self.anomalies.merge(merged([each.delta for each in done]))
            results.append([each.result for each in done])
        return results

    def close(self) -> None:
        """End the threads, after what is underway. Reading goes on working, applying does not. Idempotent."""
        self._closed = True
        for thread in self._threads:
            thread.close()

    def _deal(
        self, job: Job, events: Events, tops: Tops | None, effects: Effects | None, work: Work | None
    ) -> tuple[int, int]:
        """Give the shards their events: how many events, and why not all."""
        part = self._spare.pop() if self._spare else Part(len(self._shards), len(events))
        part.make_room(len(events))
        done, why = part.deal(_words(events), self._bits, self._owners)
        job.parts.append(part)
        job.tasks.append(
            [
                self._start(n, shard.apply_part, part, n, tops, effects, work)
                for n, shard in enumerate(self._shards)
                if part.counts[n]
            ]
        )
        return done, why

    def _start(self, n: int, function: Any, *args: Any) -> Task[Done]:
        if self._closed:
            raise UsageError("this book's threads have ended", hint="apply before close")
        task: Task[Done] = self._threads[n].submit(function, *args)
        self._last[n] = task
        return task

    def _stopped(self, why: int, event: Any) -> None:
        """A batch could not be dealt beyond an event. Where numbers go back, a new part begins; else, and if
        they do so all the time, the shards' books become one."""
        seq, letter = int(event["seq"]), chr(event["type"])
        self._backs += why == kernel.BACK
        if why == kernel.BACK and self._backs < _BACKS_MAX:
            return
        self.notice = {
            kernel.SHARED: f"message {seq} ({letter}) uses an order reference of another shard's symbol",
            kernel.FAR: f"the order references up to message {seq} are too far apart to keep track of",
            kernel.BACK: f"sequence numbers go back time and again, up to message {seq}",
        }[why] + ": from there on, one thread builds all books"
        self._settle()
        self._shards = [Shard(unite(self._factory(self.session), [shard.book for shard in self._shards]))]
        self._owners = make_owners(2, 1)
        self._spare.clear()

    def _settle(self) -> None:
        """Wait for everything underway."""
        for task in self._last.values():
            task.wait()

    # --- reading --------------------------------------------------------------------------------------------

    def _book_of(self, locate: Any) -> Book:
        self._settle()
        known = isinstance(locate, int | np.integer) and 0 <= locate < 1 << 32
        return self._shards[kernel.home(int(locate), len(self._shards)) if known else 0].book

    def top(self, locate: int) -> Tops:
        """See `contracts.Book`."""
        return self._book_of(locate).top(locate)

    def levels(self, locate: int, side: str, n: int = 0) -> Levels:
        """See `contracts.Book`."""
        return self._book_of(locate).levels(locate, side, n)

    def orders(self, locate: int) -> Orders:
        """See `contracts.Book`."""
        return self._book_of(locate).orders(locate)

    def state(self, locate: int) -> TradingState:
        """See `contracts.Book`."""
        return self._book_of(locate).state(locate)

    def locates(self) -> NDArray[np.uint32]:
        """See `contracts.Book`."""
        self._settle()
        return np.unique(np.concatenate([shard.book.locates() for shard in self._shards]))

    def live_orders(self) -> int:
        """See `contracts.Book`."""
        self._settle()
        return sum(shard.book.live_orders() for shard in self._shards)

    def digest(self) -> bytes:
        """See `contracts.Book`."""
        self._settle()
        if len(self._shards) == 1:
            return self._shards[0].book.digest()
        hasher = hashlib.sha256()
        for rows in self._digest_rows():
            hasher.update(rows.tobytes())
        return hasher.digest()

    def _digest_rows(self) -> Iterator[NDArray[Any]]:
        for locate in (0, *map(int, self.locates())):
            orders = self._book_of(locate).orders(locate)
            rows = np.empty(len(orders), DIGEST_ROW)
            for name in DIGEST_ROW.names or ():
                rows[name] = orders[name]
            yield rows

    def validate(self) -> list[str]:
        """See `contracts.Book`."""
        self._settle()
        return [found for shard in self._shards for found in shard.book.validate()]


def check_threads(threads: int, *, fewest: int = 1) -> None:
    """Raises UsageError unless `fewest` <= threads <= THREADS_MAX."""
    if not isinstance(threads, int) or isinstance(threads, bool) or not fewest <= threads <= THREADS_MAX:
        raise UsageError(f"cannot use {threads!r} threads", hint=f"choose {fewest} to {THREADS_MAX}")


def make_books(spec: EngineSpec, session: Session, threads: int = 1) -> Book:
    """The book, or with several threads the books, of an engine: one book if it does not declare SHARDED.

    Raises UsageError as `check_threads`, PluginError if the engine cannot be loaded.
    """
    check_threads(threads)
    if threads == 1 or Capability.SHARDED not in spec.capabilities:
        book: Book = make(spec, session)
        return book
    return ShardedBook(partial(make, spec), session, threads)


def _from(records: NDArray[Any] | None, part: slice) -> NDArray[Any] | None:
    return None if records is None else records[part]


def _words(events: Events) -> NDArray[np.uint64]:
    """EVENTs as u64[n, 8], read-only: one type for the kernel, whatever the caller's array is."""
    words = np.require(events, requirements=["C", "A"]).view(np.uint64).reshape(-1, 8)
    words.flags.writeable = False
    return words


def _check(events: Events, tops: Tops | None, effects: Effects | None) -> int:
    """How many events. Raises UsageError for other arrays than `Book.apply` takes."""
    for array, dtype in ((events, EVENT), (tops, TOP), (effects, EFFECT)):
        if array is None:
            continue
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
            raise UsageError(f"not an array of {dtype.names}", hint="see trident_core.dtypes")
        if len(array) < len(events):
            raise UsageError(f"{len(array)} records for {len(events)} events", hint="give at least as many")
    return len(events)
