"""Batches through a book, a few ahead of those that are given back, so that no thread waits for another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Final, NamedTuple

from trident_core.contracts import Book
from trident_core.dtypes import EFFECT, TOP, Effects, Events, Tops
from trident_core.sharding.shard import Work, aligned
from trident_core.sharding.sharded import Job, ShardedBook

#: Batches that may be underway in a sharded book while the next is parsed.
AHEAD: Final = 3


class Applied(NamedTuple):
    """A batch and what the book made of it, with what it was put in with. Outputs not wanted are None.
    `results`: of `work`, for each part of the batch in order one for each shard that had events of it."""

    events: Events
    tops: Any
    effects: Any
    tag: Any
    results: list[list[Any]]


class Lane:
    """Applies batches in order. Those of a sharded book come back up to `ahead` batches later than they went
    in; until then `events` must stay as they are. Any other book: at once.

    `fresh`: outputs are the caller's to keep; else they are used again after `ahead` + 1 more batches.
    """

    def __init__(
        self,
        book: Book,
        *,
        tops: bool = False,
        effects: bool = False,
        fresh: bool = False,
        ahead: int = AHEAD,
    ) -> None:
        self._book, self._wanted, self._fresh = book, (tops, effects), fresh
        self.ahead = ahead if isinstance(book, ShardedBook) else 0
        self._outputs: list[tuple[Any, Any]] = [(None, None)] * (self.ahead + 1)
        self._next = 0
        self._pending: deque[tuple[Applied, Job | None]] = deque()

    def put(self, events: Events, tag: Any = None, work: Work | None = None) -> Applied | None:
        """Apply a batch, or begin to; the oldest one underway, finished, if there are enough."""
        job, results = None, []
        if isinstance(self._book, ShardedBook):
            tops, effects = self._room(len(events), *self._wanted)
            job = self._book.submit(events, tops, effects, work)
        else:
            wanted = (work.tops, work.effects) if work else (False, False)
            tops, effects = self._room(
                len(events), *(a or b for a, b in zip(self._wanted, wanted, strict=True))
            )
            self._book.apply(events, tops, effects)
            results = [[work.do(events, tops, effects)]] if work else []
        self._pending.append((Applied(events, tops, effects, tag, results), job))
        return self._take() if len(self._pending) > self.ahead else None

    def rest(self) -> Iterator[Applied]:
        """Those that are still underway, finished."""
        while self._pending:
            yield self._take()

    def abandon(self) -> None:
        """Wait for what is underway, whatever comes of it, and forget it."""
        for _, job in self._pending:
            if job:
                job.wait()
        self._pending.clear()

    def _take(self) -> Applied:
        done, job = self._pending.popleft()
        if job and isinstance(self._book, ShardedBook):
            return done._replace(results=self._book.finish(job))
        return done

    def _room(self, n: int, with_tops: bool, with_effects: bool) -> tuple[Tops | None, Effects | None]:
        """Arrays for the outputs that are wanted."""
        at = self._next
        self._next = (at + 1) % len(self._outputs)
        made = []
        for old, wanted, dtype in zip(
            self._outputs[at], (with_tops, with_effects), (TOP, EFFECT), strict=True
        ):
            if wanted and (old is None or self._fresh or len(old) < n):
                old = aligned(n, dtype)
            made.append(old if wanted else None)
        if not self._fresh:
            self._outputs[at] = made[0], made[1]
        return made[0] if made[0] is None else made[0][:n], made[1] if made[1] is None else made[1][:n]


def applied(
    batches: Iterable[tuple[Events, Any]],
    book: Book,
    *,
    tops: bool = False,
    effects: bool = False,
    fresh: bool = False,
    work: Callable[[Any], Work] | None = None,
) -> Generator[Applied, None, None]:
    """Each batch of (events, tag) with what the book made of it, in order. `work` makes it of a tag."""
    lane = Lane(book, tops=tops, effects=effects, fresh=fresh)
    try:
        for events, tag in batches:
            if done := lane.put(events, tag, work(tag) if work else None):
                yield done
        yield from lane.rest()
    finally:
        lane.abandon()
