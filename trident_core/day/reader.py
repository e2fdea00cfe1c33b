"""Where a day's events come from: its index, or the input itself, read again for each question."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from trident_core.contracts import Book
from trident_core.day.event_file import EventFile, NoRoomError
from trident_core.day.index import DayIndex, Locates
from trident_core.day.inputs import TYPED, Input, Pass, Read, Survey
from trident_core.day.records import copied
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.sharding import ShardedBook, Work, applied
from trident_core.sharding.merge import merge_rows
from trident_core.tables.catalog import Batch
from trident_core.tables.common import Table

#: Called with the raw bytes read, the raw bytes in all (None: unknown) and the events so far.
Advance = Callable[[int, int | None, int], None]


class Reader(Protocol):
    """Gives events of a day, any number of times. `survey` is of the whole input."""

    survey: Survey

    def group(self, locates: Locates) -> Locates | None:
        """The symbols to be replayed so that these come out right; None: all."""
        ...

    def scan(self, locates: Locates | None, *, until: int | None = None, typed: str = "") -> Iterator[Read]:
        """Events of at least these symbols, in order, up to the day's first that is later than `until`."""
        ...

    def close(self) -> None: ...


class IndexReader:
    """A Reader over a DayIndex, made in one pass over the input."""

    def __init__(self, index: DayIndex, survey: Survey) -> None:
        self.index, self.survey = index, survey

    @classmethod
    def build(cls, source: Input, session: Session, file: EventFile, advance: Advance) -> IndexReader:
        """Read the input. Raises NoRoomError when the file may not grow; closes the file if it raises."""
        index = DayIndex(file)
        try:
            survey = _survey(source, session, index, advance)
            index.finish()
        except BaseException:
            index.stop()
            file.close()
            raise
        return cls(index, survey)

    def group(self, locates: Locates) -> Locates | None:
        return self.index.group(locates)

    def scan(self, locates: Locates | None, *, until: int | None = None, typed: str = "") -> Iterator[Read]:
        return self.index.scan(locates, until=until, typed=typed)

    def close(self) -> None:
        self.index.file.close()


class InputReader:
    """A Reader that reads the input again for each scan. Memory: one batch."""

    def __init__(self, source: Input, session: Session, advance: Advance) -> None:
        self._source = source
        self.survey = _survey(source, session, None, advance)

    def group(self, locates: Locates) -> Locates | None:
        return None

    def scan(self, locates: Locates | None, *, until: int | None = None, typed: str = "") -> Iterator[Read]:
        reading = Pass(self._source, typed=typed)
        try:
            for read in reading:
                events = copied(read.events)
                if until is not None and int(events["ts"].max()) > until:
                    yield Read(events[: int(np.argmax(events["ts"] > np.uint64(until)))], read.typed)
                    return
                yield Read(events, read.typed)
        finally:
            reading.close()

    def close(self) -> None:
        """Nothing is held."""


def make_reader(
    source: Input, session: Session, cache: Path | bool | None, bytes_max: int | None, advance: Advance
) -> Reader:
    """The reader that the options ask for: with an index, unless `cache` is False or there is no room."""
    if cache is not False:
        file = EventFile(cache if isinstance(cache, Path) else None, bytes_max)
        try:
            return IndexReader.build(source, session, file, advance)
        except NoRoomError as error:
            if source.once:
                raise
            warnings.warn(
                f"{error.message}; the input is read again for each question. Name a larger disk with cache=",
                RuntimeWarning, stacklevel=2,
            )  # fmt: skip
    elif source.once:
        raise UsageError(f"{source.path} can be read only once", hint="leave out cache=False, or name a file")
    return InputReader(source, session, advance)


def replay(reads: Iterator[Read], book: Book) -> Iterator[Batch]:
    """Apply batch after batch to `book`; what it was given and gave, in arrays of their own."""
    try:
        for events, tops, effects, typed, _ in applied(reads, book, tops=True, effects=True, fresh=True):
            yield Batch(book.session, events, tops, effects, typed)
    finally:
        if isinstance(book, ShardedBook):
            book.close()


def replayed_rows(
    reads: Iterator[Read], book: Book, make: Callable[[Batch], Table | None]
) -> Iterator[Table]:
    """Rows of a table that is a function of each event; each thread of a sharded book makes those of its own.

    `make` may be called by several threads at once.
    """

    def work(typed: dict[str, Table]) -> Work:
        return Work(lambda events, tops, effects: make(Batch(book.session, events, tops, effects, typed)))

    try:
        for done in applied(reads, book, work=work):
            for made in done.results:
                if rows := [each for each in made if each is not None]:
                    yield merge_rows(rows, "seq")
    finally:
        if isinstance(book, ShardedBook):
            book.close()


def _survey(source: Input, session: Session, index: DayIndex | None, advance: Advance) -> Survey:
    """One pass over the whole input, with the books of all symbols; their events into `index`."""
    reading = Pass(source, typed=TYPED if index else "", with_book=True)
    book = reading.opened.book
    assert book is not None
    wanted = index is not None
    try:
        for done in applied(reading, book, tops=wanted, effects=wanted):
            if index:
                index.add(Read(done.events, done.tag), done.tops, done.effects)
            advance(*reading.opened.source.progress(), reading.survey.events)
    finally:
        reading.close()
    reading.survey.anomalies.merge(book.anomalies)
    reading.survey.notices = reading.opened.notices
    if isinstance(book, ShardedBook) and book.notice:
        reading.survey.notices += (book.notice,)
    session.learn(reading.session)
    return reading.survey
