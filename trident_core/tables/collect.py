"""From the line's batches to the tables that were asked for: the observer behind `trident convert`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from trident_core.dtypes import EFFECT, EVENT, TOP, Effects, Events, Tops
from trident_core.session import Session
from trident_core.sharding import Applied, Work
from trident_core.sharding.merge import merge_rows
from trident_core.tables import databento
from trident_core.tables.candles import Bars, BarSpec
from trident_core.tables.catalog import TABLES, Batch, Naming, TableSpec
from trident_core.tables.common import Table
from trident_core.tables.ladder import Ladder
from trident_core.tables.lives import OrderLives
from trident_core.tables.prints import TRADE, trades
from trident_core.tables.tap import TappedParser
from trident_core.tables.voids import PrintLog

#: Called with the name of a table and rows of it.
Put = Callable[[str, Table], None]
#: Called when a batch was parsed: what there is then can be kept until its rows are put.
Mark = Callable[[], Callable[[], None]]
#: The name under which the rows for a `PrintLog` go.
_PRINTS: Final = "(prints)"


@dataclass(frozen=True, slots=True)
class TableOptions:
    """`depth`: levels of `depth`. `bars`: kinds of bar. `start`: leave out rows earlier than this time of
    day, ns (books are built from the beginning all the same). `folder`: where the log of prints may spill."""

    depth: int = 10
    bars: tuple[str, ...] = ("1m",)
    start: int = 0
    naming: Naming = Naming.TRIDENT
    folder: Path | None = None


class Collector:
    """An Observer, and a SplitObserver, that makes tables. `finish` gives what only the end of the input can:
    prints, bars, orders.

    `mark` is called when a batch was parsed; what it returns, before the batch's rows are put.
    `tap` is needed by tables whose spec has `typed`. Memory: that of `OrderLives`, `Ladder`, `Bars` and
    `PrintLog`, as far as their tables are asked for. Any split into batches gives the same rows.
    """

    def __init__(
        self,
        session: Session,
        tables: dict[str, TableSpec],
        put: Put,
        *,
        options: TableOptions | None = None,
        tap: TappedParser | None = None,
        mark: Mark | None = None,
    ) -> None:
        self._session, self._tables, self._put, self._tap = session, tables, put, tap
        self._mark = mark
        self._marks: deque[Callable[[], None]] = deque()
        self._options = options = options or TableOptions()
        self._from = session.midnight_ns() + options.start
        self._lives = OrderLives(session) if "orders" in tables else None
        self._levels = 10 if "mbp-10" in tables else options.depth
        self._ladder = Ladder(session, self._levels) if tables.keys() & {"depth", "mbp-10"} else None
        self._bars = self._make_bars()
        native = options.naming is Naming.TRIDENT
        self._keeps_prints = native and "trades" in tables
        self._prints = PrintLog(options.folder) if self._keeps_prints or self._bars else None
        self.whole = bool(self._lives or self._ladder)
        self.voided = 0

    def _make_bars(self) -> dict[str, tuple[Bars, int]]:
        """Table name -> its builder, and its rtype in Databento's numbers."""
        made = {}
        if "bars" in self._tables:
            for text in dict.fromkeys(self._options.bars):
                spec = BarSpec.parse(text)
                made[f"bars_{spec.text}"] = (Bars(self._session, spec), -1)
        for name in self._tables:
            if name.startswith("ohlcv-"):
                bars = Bars(self._session, BarSpec.parse(name.removeprefix("ohlcv-")))
                made[name] = (bars, databento.RTYPES[name])
        return made

    def __call__(self, events: Events, tops: Tops, effects: Effects) -> None:
        """See `trident_core.pipeline.Observer`."""
        rows = self.work().do(events, tops, effects)
        self.join(Applied(events, tops, effects, None, [[rows]]))

    def work(self) -> Work:
        """Tables that are a function of each event. See `trident_core.pipeline.SplitObserver`."""
        if self._mark:
            self._marks.append(self._mark())
        return Work(partial(self._make, self._tap.take() if self._tap else {}))

    def join(self, done: Applied) -> None:
        """Give the rows of `work`, in the order of the events, and those that depend on earlier batches."""
        if self._marks:
            self._marks.popleft()()
        for name, spec in self._tables.items():
            if spec.make:
                self._give(name, _joined(done, name), whole_day=spec.whole_day)
        if self._prints:
            prints = _joined(done, _PRINTS)
            if prints is not None:
                self._prints.append(prints)
        if done.tops is None or done.effects is None or not self.whole:
            return
        if self._lives:
            self._give("orders", self._lives.apply(done.events, done.effects, done.tops))
        if self._ladder:
            rows = self._ladder.apply(done.events, done.effects, done.tops)
            if "depth" in self._tables:
                self._give("depth", rows)
            if "mbp-10" in self._tables:
                rows = databento.mbp_n(rows, 10, done.events, done.effects, done.tops, self._session)
                self._give("mbp-10", rows)

    def _make(
        self, typed: dict[str, Table], events: Events, tops: Tops, effects: Effects
    ) -> dict[str, Table]:
        """Name -> rows of some events, whatever came before them. May run in several threads at once."""
        batch = Batch(self._session, events, tops, effects, typed)
        present = np.bincount(events["type"], minlength=256)
        made = {}
        for name, spec in self._tables.items():
            if spec.make and (not spec.types or any(present[ord(letter)] for letter in spec.types)):
                made[name] = spec.make(batch)
        if self._prints and any(present[ord(letter)] for letter in "ECPQB"):
            made[_PRINTS] = trades(events, effects, self._session, tops)
        return made

    def warm_up(self) -> None:
        """Compile, or load, every kernel that the tables need, on spare state."""
        session = Session()
        spare = Collector(session, self._tables, lambda name, rows: None, options=self._options)
        nothing = np.zeros(2, EVENT), np.zeros(2, TOP), np.zeros(2, EFFECT)
        spare(*nothing)
        for grows in (spare._lives, spare._ladder):
            if grows:
                grows.warm_up()
        trades(nothing[0], nothing[2], session, nothing[1])
        for bars, _ in spare._bars.values():
            bars.apply(np.zeros(2, TRADE))
        spare.finish()

    def finish(self) -> None:
        """Give the rows that had to wait for the end of the input, and forget everything."""
        if self._mark:
            self._mark()()
        if self._lives:
            self._give("orders", self._lives.finish())
        if self._prints:
            for rows in self._prints.read():
                if self._keeps_prints:
                    self._give("trades", rows)
                kept = rows[rows["ts_event"] >= self._from]
                for name, (bars, _) in self._bars.items():
                    self._give_bars(name, bars.apply(kept))
            self.voided = self._prints.voided
            for name, (bars, _) in self._bars.items():
                self._give_bars(name, bars.finish())
        self.close()

    def close(self) -> None:
        """Give up: nothing is given any more."""
        if self._prints:
            self._prints.close()

    def _give(self, name: str, rows: Table | None, *, whole_day: bool = False) -> None:
        if rows is None:
            return
        if self._options.start and not whole_day:
            rows = rows[rows["ts_event"] >= self._from]
        if len(rows):
            self._put(name, rows)

    def _give_bars(self, name: str, rows: Table) -> None:
        rtype = self._bars[name][1]
        if len(rows):
            self._put(name, rows if rtype < 0 else databento.ohlcv(rows, rtype, self._session))


def _joined(done: Applied, name: str) -> Table | None:
    """The rows that the threads made for one table, in the order of the events."""
    parts = []
    for results in done.results:
        found = [made[name] for made in results if name in made]
        if found:
            key = "seq" if "seq" in (found[0].dtype.names or ()) else "sequence"
            parts.append(merge_rows(found, key))
    return np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else None


def typed_types(tables: dict[str, TableSpec]) -> str:
    """The types whose typed rows these tables need."""
    return "".join(spec.typed for spec in tables.values())


def names_of(tables: dict[str, TableSpec], bars: tuple[str, ...]) -> tuple[str, ...]:
    """The names that `Put` is called with: those of the tables, `bars` once for each kind."""
    kinds = [f"bars_{BarSpec.parse(text).text}" for text in dict.fromkeys(bars)]
    return tuple(n for name in tables for n in (kinds if tables[name] is TABLES["bars"] else [name]))
