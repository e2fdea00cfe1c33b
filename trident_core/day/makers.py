"""From a day's batches to the rows of one table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trident_core.day.records import take
from trident_core.session import Session
from trident_core.tables.candles import Bars, BarSpec
from trident_core.tables.catalog import TABLES, Batch
from trident_core.tables.common import Table, is_any
from trident_core.tables.ladder import Ladder
from trident_core.tables.lives import OrderLives
from trident_core.tables.prints import trades
from trident_core.tables.voids import TRADE_OF_DAY


class Maker(Protocol):
    """Rows of one table. It is given every batch of its symbols from the first on."""

    def apply(self, batch: Batch) -> Table: ...

    def finish(self) -> Table | None:
        """The rows that only the end brings."""
        ...


class Stateless:
    """Tables that are a function of each batch."""

    def __init__(self, make: Callable[[Batch], Table]) -> None:
        self._make = make

    def apply(self, batch: Batch) -> Table:
        return self._make(batch)

    def finish(self) -> None:
        return None


class Trades:
    """`trades` with its mark `voided`: `voids` are the match numbers that a B of the day names, ascending."""

    def __init__(self, voids: NDArray[np.uint64]) -> None:
        self._voids = voids

    def apply(self, batch: Batch) -> Table:
        plain = trades(batch.events, batch.effects, batch.session, batch.tops)
        rows = np.zeros(len(plain), TRADE_OF_DAY)
        for name in plain.dtype.names or ():
            rows[name] = plain[name]
        rows["voided"] = np.isin(plain["match_number"], self._voids) & (plain["kind"] != b"B")
        return rows

    def finish(self) -> None:
        return None


class BarsOf:
    """`bars` of the prints in a window, [start, end) in UTC ns."""

    def __init__(
        self, session: Session, kind: str, voids: NDArray[np.uint64], window: tuple[int, int]
    ) -> None:
        self._prints, self._bars = Trades(voids), Bars(session, BarSpec.parse(kind))
        self._window = window

    def apply(self, batch: Batch) -> Table:
        prints = self._prints.apply(batch)
        start, end = self._window
        inside = (prints["ts_event"] >= start) & (prints["ts_event"] < end)
        return self._bars.apply(take(prints, inside))

    def finish(self) -> Table:
        return self._bars.finish()


class FromRecords:
    """`depth` and `orders`, which remember what the batches before did."""

    def __init__(self, inner: Ladder | OrderLives) -> None:
        self._inner = inner

    def apply(self, batch: Batch) -> Table:
        return self._inner.apply(batch.events, batch.effects, batch.tops)

    def finish(self) -> Table | None:
        return self._inner.finish() if isinstance(self._inner, OrderLives) else None


def chosen_by(batch: Batch, keep: NDArray[np.bool_]) -> Batch:
    """The events of a batch that `keep` says, with their tops and effects."""
    if keep.all():
        return batch
    events, tops, effects = (take(each, keep) for each in (batch.events, batch.tops, batch.effects))
    return Batch(batch.session, events, tops, effects, batch.typed)


def touches(name: str, batch: Batch) -> bool:
    """May the batch have rows of the table `name`, which is a function of each batch?"""
    types = TABLES[name].types
    return not types or bool(is_any(batch.events["type"], types).any())
