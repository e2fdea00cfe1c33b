"""The events of a day on disk, sorted by symbol in spans, so that a symbol is read without the others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.day.entangled import Entangled
from trident_core.day.event_file import EventFile
from trident_core.day.inputs import BATCH, Read
from trident_core.day.records import joined, raw, take
from trident_core.dtypes import EVENT, Effects, Events, Tops
from trident_core.tables.common import Table

#: Events of a span: what is sorted in memory at once.
SPAN: Final = 1 << 20
#: A span is read whole when the symbols asked for have more than this share of it.
_WHOLE: Final = 0.25

Locates = NDArray[np.uint32]


@dataclass(slots=True)
class Span:
    """A run of events: at `offset` sorted by symbol, then u32 places that each had in the run.

    Symbol `locates[i]` has those from `starts[i]` to `starts[i + 1]`. `typed`: letter -> (offset, rows).
    """

    offset: int
    count: int
    locates: Locates
    starts: NDArray[np.int64]
    ts_max: int
    typed: dict[str, tuple[int, int]] = field(default_factory=dict)

    def places_offset(self, at: int) -> int:
        return self.offset + self.count * EVENT.itemsize + 4 * at


class DayIndex:
    """Takes the events of a day, batch by batch, and gives back those of any symbols, in order.

    Disk: 68 bytes a message, and the typed rows of rare messages; a thread writes, while the next span comes
    in. Memory: 3 spans of 68 MB while it is made, 2 while many symbols are read; else the batches read, and
    12 bytes for each symbol in each span.

    The symbol of an event is its order's, as `TOP.locate` says. A symbol's book depends on its own events
    alone, unless an add took the reference of another symbol's live order (`duplicate_ref`): such symbols are
    entangled, and `group` gives all of them, to be read and replayed together.
    """

    def __init__(self, file: EventFile) -> None:
        self.file = file
        self.in_order = True  # times never go back
        self.events = 0
        self._spans: list[Span] = []
        self._entangled = Entangled()
        self._buffers = [(np.empty(SPAN, EVENT), np.empty(SPAN, np.uint32)) for _ in range(2)]
        self._filled = 0
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="trident-index")
        self._writing: Future[Span] | None = None
        self._last_ts = 0
        self._typed: dict[str, list[Table]] = {}
        self._typed_dtypes: dict[str, np.dtype[Any]] = {}

    # --- making -------------------------------------------------------------------------------------------

    def add(self, read: Read, tops: Tops, effects: Effects) -> None:
        """Take one batch (at most SPAN events) and what the book of all symbols made of it."""
        events, n = read.events, len(read.events)
        if self._filled + n > SPAN:
            self._flush()
        buffer, homes = self._buffers[0]
        raw(buffer)[self._filled : self._filled + n] = raw(events)
        homes[self._filled : self._filled + n] = tops["locate"]
        self._filled += n
        self._check_order(events)
        self._entangled.note(events, effects)
        for letter, rows in read.typed.items():
            self._typed.setdefault(letter, []).append(rows)
            self._typed_dtypes[letter] = rows.dtype

    def finish(self) -> None:
        """All events are in: find the entangled symbols, and let the buffers go."""
        self._flush()
        self._take_span()
        self.stop()
        if self._entangled.refs:
            for span in self._spans:
                self._entangled.find(self._whole(span)[0], self._homes_of(span))

    def stop(self) -> None:
        """No more is added: end the writing thread, let the buffers go. Before the file is closed."""
        self._writer.shutdown(cancel_futures=True)
        self._buffers.clear()

    def _check_order(self, events: Events) -> None:
        ts = events["ts"]
        if self.in_order and len(ts):
            self.in_order = int(ts[0]) >= self._last_ts and bool((ts[1:] >= ts[:-1]).all())
            self._last_ts = int(ts[-1])

    def _flush(self) -> None:
        """Hand the events gathered to the writing thread, and go on with the other buffer."""
        n = self._filled
        if not n:
            return
        self._take_span()
        (events, homes), typed = self._buffers[0], {name: joined(rows) for name, rows in self._typed.items()}
        self._writing = self._writer.submit(_write, self.file, events[:n], homes[:n], typed)
        self._buffers.reverse()
        self._typed.clear()
        self.events += n
        self._filled = 0

    def _take_span(self) -> None:
        """Wait for the span that is being written. Raises what the writing thread met."""
        if self._writing:
            writing, self._writing = self._writing, None
            self._spans.append(writing.result())

    # --- reading ------------------------------------------------------------------------------------------

    def group(self, locates: Locates) -> Locates | None:
        """u32, ascending: these symbols, and all they are entangled with; None: all symbols."""
        return self._entangled.closure(locates)

    def scan(
        self, locates: Locates | None, *, until: int | None = None, first: int = 0, typed: str = ""
    ) -> Iterator[Read]:
        """The events of these symbols (None: of all) in batches of at most BATCH events, in their order.

        `until`: end before the first event of the day, of any symbol, that is later. `first`: leave out so
        many. `typed`: with the typed rows of these letters.
        """
        waiting: list[Read] = []
        size = 0
        for span in self._spans:
            here = _count(span, locates)
            if here <= first:
                first -= here
                if until is not None and span.ts_max > until:
                    break
                continue
            events, places = self._whole(span) if locates is None else self._some(span, locates)
            cut = None if until is None or span.ts_max <= until else self._cut(span, events, places, until)
            events = events[first:cut]
            first = 0
            waiting.append(Read(events, self._typed_rows(span, typed)))
            size += len(events)
            if size >= BATCH:
                yield from _batches(waiting)
                waiting, size = [], 0
            if cut is not None:
                break
        yield from _batches(waiting)

    def _whole(self, span: Span) -> tuple[Events, NDArray[np.uint32]]:
        """All events of a span, in the order of the input, and their places (0, 1, …)."""
        events, places = np.empty(span.count, EVENT), np.empty(span.count, np.uint32)
        self.file.read(span.offset, events)
        self.file.read(span.places_offset(0), places)
        ordered = np.empty_like(events)
        raw(ordered)[places] = raw(events)
        return ordered, np.arange(span.count, dtype=np.uint32)

    def _homes_of(self, span: Span) -> Locates:
        """The symbol of each event of a span, in the order of the input."""
        homes, places = np.empty(span.count, np.uint32), np.empty(span.count, np.uint32)
        self.file.read(span.places_offset(0), places)
        homes[places] = np.repeat(span.locates, np.diff(span.starts))
        return homes

    def _some(self, span: Span, locates: Locates) -> tuple[Events, NDArray[np.uint32]]:
        """The events of these symbols in a span, in the order of the input, and their places."""
        at = _segments(span, locates)
        if len(at) > 64 and _count(span, locates) > _WHOLE * span.count:
            events, places = self._whole(span)
            chosen = np.flatnonzero(np.isin(self._homes_of(span), locates))
            return take(events, chosen), places[chosen]
        size = _count(span, locates)
        events, places = np.empty(size, EVENT), np.empty(size, np.uint32)
        filled = 0
        for start, end in zip(span.starts[at].tolist(), span.starts[at + 1].tolist(), strict=True):
            part = slice(filled, filled + end - start)
            self.file.read(span.offset + EVENT.itemsize * start, events[part])
            self.file.read(span.places_offset(start), places[part])
            filled += end - start
        if len(at) > 1:
            by_place = np.argsort(places)
            events, places = take(events, by_place), places[by_place]
        return events, places

    def _cut(self, span: Span, events: Events, places: NDArray[np.uint32], until: int) -> int:
        """How many of `events` come before the first event of the span that is later than `until`."""
        if self.in_order:
            return int(np.searchsorted(events["ts"], np.uint64(until), side="right"))
        later = np.flatnonzero(self._whole(span)[0]["ts"] > np.uint64(until))
        return int(np.searchsorted(places, later[0]))

    def _typed_rows(self, span: Span, letters: str) -> dict[str, Table]:
        found = {}
        for letter in letters:
            if letter in span.typed:
                offset, count = span.typed[letter]
                found[letter] = np.empty(count, self._typed_dtypes[letter])
                self.file.read(offset, found[letter])
        return found


def _write(file: EventFile, events: Events, homes: Locates, typed: dict[str, Table]) -> Span:
    """Sort a span by symbol and append it to the file."""
    n = len(events)
    keys = homes.astype(np.uint16) if int(homes.max()) < 1 << 16 else homes
    order: NDArray[np.uint32] = np.argsort(keys, kind="stable").astype(np.uint32)
    homes = homes[order]
    starts = np.flatnonzero(np.diff(homes.astype(np.int64), prepend=-1))
    offset = file.append(take(events, order))
    file.append(order)
    span = Span(offset, n, homes[starts], np.append(starts, n), int(events["ts"].max()))
    for letter, rows in typed.items():
        span.typed[letter] = (file.append(rows), len(rows))
    return span


def _segments(span: Span, locates: Locates) -> NDArray[np.intp]:
    """Where in `span.locates` those of `locates` are that it has."""
    at = np.searchsorted(span.locates, locates)
    inside = at < len(span.locates)
    at, locates = at[inside], locates[inside]
    found: NDArray[np.intp] = at[span.locates[at] == locates]
    return found


def _count(span: Span, locates: Locates | None) -> int:
    if locates is None:
        return span.count
    at = _segments(span, locates)
    return int((span.starts[at + 1] - span.starts[at]).sum())


def _batches(reads: list[Read]) -> Iterator[Read]:
    """Reads of any size as batches of at most BATCH events."""
    if not reads:
        return
    read = reads[0]
    if len(reads) > 1:
        letters = {letter for each in reads for letter in each.typed}
        typed = {letter: joined([r.typed[letter] for r in reads if letter in r.typed]) for letter in letters}
        read = Read(joined([each.events for each in reads]), typed)
    for start in range(0, len(read.events), BATCH):
        yield Read(read.events[start : start + BATCH], read.typed)
