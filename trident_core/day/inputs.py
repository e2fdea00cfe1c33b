"""The input of a day: how to open it again, and what one pass over it found."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Book, Kind
from trident_core.decode import decode
from trident_core.dtypes import Events
from trident_core.inputs import Opened, open_input
from trident_core.plugins import registry
from trident_core.readahead import ReadAhead
from trident_core.session import Session
from trident_core.sharding import AHEAD, ShardedBook, make_books
from trident_core.stats import Anomalies
from trident_core.tables.catalog import TABLES
from trident_core.tables.common import Table

#: Events that are decoded, applied and made into rows at once.
BATCH = 1 << 14
#: Letters whose typed rows some table needs.
TYPED = "".join(spec.typed for spec in TABLES.values())


class Read(NamedTuple):
    """EVENT[n] in the order of the input, and typed rows of (at least) the same messages, by letter."""

    events: Events
    typed: dict[str, Table]


@dataclass(slots=True)
class Survey:
    """What a pass over the whole input found. `voids`: u64, ascending, the match numbers that a B named.
    `notices`: what was done otherwise than asked, such as going on with one thread."""

    events: int = 0
    first_ts: int = 0
    last_ts: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    anomalies: Anomalies = field(default_factory=Anomalies)
    engines: dict[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    voids: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))


@dataclass(frozen=True, slots=True)
class Input:
    """An input by its path and the options it is opened with."""

    path: str
    date: dt.date | None = None
    lenient: bool = False
    feed: str | None = None
    parser: str | None = None
    book: str | None = None
    port: int | None = None
    threads: int = 1

    @property
    def once(self) -> bool:
        """Can it be read once only (standard input, a pipe)?"""
        return self.path == "-" or (os.path.exists(self.path) and not os.path.isfile(self.path))

    def open(self, *, with_book: bool = False) -> Opened:
        """Open it: feed, source, session, parser, and a book if asked for. Raises as `open_feed`."""
        return open_input(
            self.path, feed=self.feed, parser=self.parser, book=self.book,
            date=self.date, lenient=self.lenient, port=self.port, with_book=with_book, threads=self.threads,
        )  # fmt: skip

    def make_book(self, session: Session, threads: int = 1) -> Book:
        """An empty book of the engine selected, over several threads if asked for."""
        return make_books(registry().select(Kind.BOOK, self.book).spec, session, threads)


class Pass:
    """One pass over an input. Iterating yields `Read`s whose events are valid until `events_kept` more were
    asked for; then `survey` says what was found, without the anomalies of a book. `close` it in any case."""

    def __init__(self, source: Input, *, typed: str = "", with_book: bool = False) -> None:
        self.opened = source.open(with_book=with_book)
        self.session = self.opened.session
        self.events_kept = AHEAD + 1 if isinstance(self.opened.book, ShardedBook) else 1
        self.survey = Survey(engines=self.opened.engines)
        self._tap = self.opened.tap(typed) if typed else None
        self._parser = self._tap or self.opened.parser

    def __iter__(self) -> Iterator[Read]:
        survey, voids = self.survey, []
        feed, kept = ReadAhead(self.opened.feed), self.events_kept
        for events in decode(feed, self._parser, batch=BATCH, kept=kept):
            if not survey.events:
                survey.first_ts = int(events["ts"][0])
            survey.events += len(events)
            survey.last_ts = int(events["ts"][-1])
            breaks = events["type"] == ord("B")
            if breaks.any():
                voids.append(events["ref2"][breaks])
            yield Read(events, self._tap.take() if self._tap else {})
        survey.voids = np.unique(np.concatenate([*voids, np.zeros(0, np.uint64)]))
        survey.counts = {chr(t): int(n) for t, n in enumerate(self._parser.counts) if n}
        for owner in (self.opened.source, self.opened.feed, self._parser):
            survey.anomalies.merge(owner.anomalies)

    def close(self) -> None:
        """Close the input."""
        self.opened.close()
