"""Books at a time of day: a replay of one symbol's events from the nearest checkpoint."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from trident_core.contracts import Book, TradingState
from trident_core.day.index import Locates
from trident_core.day.inputs import Read
from trident_core.day.reader import IndexReader, Reader
from trident_core.day.snapshot import BookSnapshot
from trident_core.dtypes import EVENT, TOP, Events, Orders, Tops
from trident_core.session import Session

#: A checkpoint is kept after so many events of the symbol.
INTERVAL: Final = 1 << 15
#: Checkpoints of the symbols looked at last are kept up to so many bytes.
MEMORY_MAX: Final = 1 << 27
#: No checkpoints are kept of more symbols that are entangled (see `DayIndex`) than so many.
GROUP_MAX: Final = 64


@dataclass(slots=True)
class Checkpoint:
    """The books of a few symbols after their first `events` events, the last of them at `ts`."""

    events: int
    ts: int
    orders: Orders
    states: dict[int, TradingState]
    tops: dict[int, Tops]

    def load(self, book: Book) -> None:
        """Put the orders and states into an empty book, through nothing but its contract."""
        adds = np.zeros(len(self.orders), EVENT)
        adds["type"] = ord("F")
        for name in ("ref", "price", "qty", "ts", "locate", "side"):
            adds[name] = self.orders[name]
        adds["aux"][:, :4] = self.orders["mpid"]
        halts = np.zeros(len(self.states), EVENT)
        halts["type"] = ord("H")
        halts["locate"] = list(self.states)
        halts["aux"][:, 0] = [int(state) for state in self.states.values()]
        book.apply(adds)
        book.apply(halts)


@dataclass(slots=True)
class _Kept:
    checkpoints: list[Checkpoint] = field(default_factory=list)

    def bytes(self) -> int:
        return sum(512 + each.orders.nbytes for each in self.checkpoints)


class Lookup:
    """Answers `at`. With an index a look-up replays at most INTERVAL events of the symbol after a checkpoint,
    when an earlier look-up has come as far; without one, or in a day whose times go back, all from the start.
    """

    def __init__(self, reader: Reader, session: Session, make_book: Callable[[], Book]) -> None:
        self._reader, self._session, self._make_book = reader, session, make_book
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()

    def at(self, locate: int, ts: int) -> BookSnapshot:
        """The book of a symbol after the last event before the first that is later than `ts`."""
        group = self._reader.group(np.array([locate], np.uint32))
        book = self._make_book()
        reader = self._reader
        few = group is not None and len(group) <= GROUP_MAX
        if few and isinstance(reader, IndexReader) and reader.index.in_order:
            assert group is not None
            top = self._from_checkpoint(reader, group, book, locate, ts)
        else:
            top = np.zeros(1, TOP)
            for read in reader.scan(group, until=ts):
                _apply(book, read.events, {locate: top})
        return BookSnapshot.of(book, self._session, locate, ts, top)

    def _from_checkpoint(self, reader: IndexReader, group: Locates, book: Book, locate: int, ts: int) -> Tops:
        kept = self._kept.setdefault(group.tobytes(), _Kept())
        self._kept.move_to_end(group.tobytes())
        tops = {int(each): np.zeros(1, TOP) for each in group}
        done = saved = 0
        if at := bisect_right(kept.checkpoints, ts, key=lambda each: each.ts):
            start = kept.checkpoints[at - 1]
            start.load(book)
            tops = {each: top.copy() for each, top in start.tops.items()}
            done = saved = start.events
        for events in _pieces(reader.index.scan(group, until=ts, first=done), done):
            _apply(book, events, tops)
            done += len(events)
            if done - saved == INTERVAL:
                saved = done
                if at == len(kept.checkpoints):
                    kept.checkpoints.append(_checkpoint(book, group, done, int(events["ts"][-1]), tops))
                    at += 1
        self._forget()
        return tops[locate]

    def _forget(self) -> None:
        """Drop the checkpoints of the symbols that were not asked for longest; of one symbol, the last."""
        size = sum(kept.bytes() for kept in self._kept.values())
        while size > MEMORY_MAX and len(self._kept) > 1:
            size -= self._kept.popitem(last=False)[1].bytes()
        (*_, last) = self._kept.values()
        while size > MEMORY_MAX and last.checkpoints:
            size -= 512 + last.checkpoints.pop().orders.nbytes


def _pieces(reads: Iterator[Read], done: int) -> Iterator[Events]:
    """Events cut where a checkpoint is due."""
    for read in reads:
        events = read.events
        while len(events):
            size = INTERVAL - done % INTERVAL
            yield events[:size]
            done += len(events[:size])
            events = events[size:]


def _apply(book: Book, events: Events, last: dict[int, Tops]) -> None:
    """Apply, and remember the last top of each of these symbols."""
    tops = np.zeros(len(events), TOP)
    book.apply(events, tops)
    for locate, top in last.items():
        mine = np.flatnonzero(tops["locate"] == locate)
        if len(mine):
            top[0] = tops[mine[-1]]


def _checkpoint(book: Book, group: Locates, events: int, ts: int, tops: dict[int, Tops]) -> Checkpoint:
    locates = [int(locate) for locate in group]
    return Checkpoint(
        events, ts,
        np.concatenate([book.orders(locate) for locate in locates]),
        {locate: book.state(locate) for locate in locates},
        {locate: top.copy() for locate, top in tops.items()},
    )  # fmt: skip
