"""What one shard does in its thread, the arrays it does it in, and how books become one again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Book, TradingState
from trident_core.dtypes import EFFECT, EVENT, TOP, Effects, Events, Tops
from trident_core.sharding import kernel
from trident_core.sharding.owners import Owners
from trident_core.stats import POSITIONS_KEPT, Anomaly

#: What a batch added to the anomalies of a book.
Delta = dict[str, Anomaly]

#: Orders that are put into another book at once.
_MOVED: Final = 1 << 14
_NO_TOPS: Final = np.zeros((0, 8), np.uint64)
_NO_EFFECTS: Final = np.zeros((0, 4), np.uint64)


def aligned(n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """n zeroed records that begin on a cache line, so that threads that write to other rows rarely meet."""
    room = np.zeros(n * dtype.itemsize + 64, np.uint8)
    start = -room.ctypes.data % 64
    return room[start : start + n * dtype.itemsize].view(dtype)


class Part:
    """A batch dealt to shards: shard s has `events[s, :counts[s]]`, which stood at `index[s, :counts[s]]`."""

    def __init__(self, shards: int, n: int) -> None:
        self.shards = shards
        self._room = 0
        self.counts: list[int] = []
        self.make_room(n)

    def make_room(self, n: int) -> None:
        """For n events; what is in it is forgotten. Only what is used of it takes memory."""
        if n > self._room:
            self._room = n
            shape = self.shards, n
            self.events, self.index = (
                aligned(self.shards * n, EVENT).reshape(shape),
                np.zeros(shape, np.int32),
            )
            self.tops = aligned(self.shards * n, TOP).reshape(shape)
            self.effects = aligned(self.shards * n, EFFECT).reshape(shape)

    def deal(self, words: NDArray[np.uint64], bits: int, owners: Owners) -> tuple[int, int]:
        """Deal events, u64[n, 8], as far as the owners of references let: how many, and why not all."""
        counts = np.zeros(self.shards, np.int64)
        dealt = self.events.view(np.uint64).reshape(self.shards, -1, 8)
        done, why = kernel.deal(words, bits, owners, counts, dealt, self.index)
        self.counts = counts.tolist()
        return done, why

    def put_back(self, shard: int, tops: Tops | None, effects: Effects | None) -> None:
        """Copy the rows of a shard's events to their places in the arrays of the whole batch."""
        mine = shard, slice(0, self.counts[shard])
        index = self.index[mine]
        plain = [out is None or (out.flags.c_contiguous and out.flags.aligned) for out in (tops, effects)]
        if not all(plain):
            if tops is not None:
                tops[index] = self.tops[mine]
            if effects is not None:
                effects[index] = self.effects[mine]
            return
        kernel.put_back(
            _NO_TOPS if tops is None else self.tops[mine].view(np.uint64).reshape(-1, 8),
            _NO_EFFECTS if effects is None else self.effects[mine].view(np.uint64).reshape(-1, 4),
            index,
            _NO_TOPS if tops is None else tops.view(np.uint64).reshape(-1, 8),
            _NO_EFFECTS if effects is None else effects.view(np.uint64).reshape(-1, 4),
        )


@dataclass(frozen=True, slots=True)
class Work:
    """What a shard's thread does with its events once they are applied: `do(events, tops, effects)`, with
    outputs as far as asked for. The arrays are valid only during the call; others may run at once."""

    do: Callable[[Events, Any, Any], Any]
    tops: bool = True
    effects: bool = True


class Done(NamedTuple):
    """What a batch added to the anomalies of one shard's book, and what its `Work` gave."""

    delta: Delta
    result: Any = None


class Shard:
    """A book, and which of its anomalies have been told."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._told: dict[str, tuple[int, int]] = {}
        self._news()  # a book made of others has none

    def apply(self, events: Events, tops: Tops | None, effects: Effects | None, work: Work | None) -> Done:
        """Apply a batch whose events are all of this shard."""
        if work and work.tops and tops is None:
            tops = np.zeros(len(events), TOP)
        if work and work.effects and effects is None:
            effects = np.zeros(len(events), EFFECT)
        self.book.apply(events, tops, effects)
        delta, n = self._news(), len(events)
        if work is None:
            return Done(delta)
        return Done(
            delta,
            work.do(events, None if tops is None else tops[:n], None if effects is None else effects[:n]),
        )

    def apply_part(
        self, part: Part, shard: int, tops: Tops | None, effects: Effects | None, work: Work | None
    ) -> Done:
        """Apply this shard's events of a part; `tops` and `effects` are the whole batch's."""
        mine = shard, slice(0, part.counts[shard])
        own_tops = part.tops[mine] if tops is not None or (work and work.tops) else None
        own_effects = part.effects[mine] if effects is not None or (work and work.effects) else None
        done = self.apply(part.events[mine], own_tops, own_effects, work)
        if tops is not None or effects is not None:
            part.put_back(shard, tops, effects)
        return done

    def _news(self) -> Delta:
        """What was counted since the last call."""
        found = {}
        for name, item in self.book.anomalies.items():
            count, kept = self._told.get(name, (0, 0))
            if item.count != count:
                found[name] = Anomaly(item.count - count, list(item.positions[kept:]))
                self._told[name] = (item.count, len(item.positions))
        return found


def merged(deltas: Sequence[Delta]) -> Delta:
    """The anomalies of one batch, of which each shard had some events: positions in order again."""
    found: Delta = {}
    for name in sorted({name for delta in deltas for name in delta}):
        items = [delta[name] for delta in deltas if name in delta]
        positions = [position for item in items for position in item.positions]
        if len(items) > 1:  # one shard's are in the order of its events, by whatever number
            positions.sort()
        found[name] = Anomaly(sum(item.count for item in items), positions[:POSITIONS_KEPT])
    return found


def unite(book: Book, books: Sequence[Book]) -> Book:
    """Put the orders, states and last events of books that share no symbol into the empty `book`.

    Through nothing but the contract: orders as F in queue order, and then for each symbol an event that
    leaves its book alone, but for its state.
    """
    for other in books:
        known = [int(locate) for locate in other.locates()]
        if other.top(0)["seq"][0] or other.top(0)["ts"][0] or len(other.orders(0)):
            known.insert(0, 0)
        for events in _orders_of(other, known):
            book.apply(events)
        for start in range(0, len(known), _MOVED):
            book.apply(_last_events(other, known[start : start + _MOVED]))
    return book


def _orders_of(book: Book, locates: list[int]) -> Iterator[Events]:
    """F events that make the orders of a book, in batches."""
    waiting, size = [], 0
    for locate in locates:
        orders = book.orders(locate)
        waiting.append(orders)
        size += len(orders)
        if size >= _MOVED or locate == locates[-1]:
            orders = np.concatenate(waiting)
            adds = np.zeros(len(orders), EVENT)
            adds["type"] = ord("F")
            for name in ("ref", "price", "qty", "ts", "locate", "side"):
                adds[name] = orders[name]
            adds["aux"][:, :4] = orders["mpid"]
            yield adds
            waiting, size = [], 0


def _last_events(book: Book, locates: list[int]) -> Events:
    """For each symbol an H of its state, with the number and time of its last event; a Y if it had no H."""
    events = np.zeros(len(locates), EVENT)
    events["locate"] = locates
    for event, locate in zip(events, locates, strict=True):
        top, state = book.top(locate)[0], book.state(locate)
        event["seq"], event["ts"] = top["seq"], top["ts"]
        event["type"] = ord("Y" if state is TradingState.UNKNOWN else "H")
        event["aux"][0] = int(state)
    return events
