"""A day of market data: its tables, its books at any time, its batches."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Book
from trident_core.day.inputs import Input, Read, Survey
from trident_core.day.lookup import Lookup
from trident_core.day.makers import BarsOf, FromRecords, Maker, Stateless, Trades, chosen_by, touches
from trident_core.day.question import PRICES, TIMES, LazyTable, Price, Time, Wanted
from trident_core.day.reader import Advance, IndexReader, Reader, make_reader, replay, replayed_rows
from trident_core.day.records import take
from trident_core.day.snapshot import BookSnapshot
from trident_core.dtypes import Effects, Events, Tops
from trident_core.errors import UsageError
from trident_core.session import Session, parse_time
from trident_core.stats import Anomalies
from trident_core.tables.candles import BarSpec
from trident_core.tables.catalog import TABLES, Batch, Naming, dtype_of, select
from trident_core.tables.common import Table
from trident_core.tables.ladder import Ladder
from trident_core.tables.lives import OrderLives

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Symbols = str | Iterable[str] | None
Clock = str | int | dt.time

#: Tables whose messages are of the whole market: a symbol cannot choose among them.
_OF_THE_MARKET = ("system", "mwcb")
_FAR = (1 << 63) - 1
#: Fewer symbols than this are replayed by one thread.
_MANY = 64


def open_day(
    path: str | os.PathLike[str],
    *,
    date: dt.date | str | None = None,
    lenient: bool = False,
    feed: str | None = None,
    parser: str | None = None,
    book: str | None = None,
    port: int | None = None,
    cache: str | os.PathLike[str] | bool | None = None,
    cache_bytes_max: int | None = None,
    threads: int = 1,
    progress: bool | Advance = False,
) -> Day:
    """Open a day file, a capture or a LOBSTER file, compressed or not; "-" is standard input.

    `date`: the session's, if the file's name does not tell it. `feed`, `parser`, `book`: engines by name,
    else `TRIDENT_…`, trident.toml or the defaults. `cache`: the folder for the index (None: see
    docs/python.md; False: none, the input is read again for each question), of at most `cache_bytes_max`
    bytes. `threads`: over how many the symbols are dealt when books of many are built; no result depends on
    it. `progress`: True for a bar on a terminal, or a function of raw bytes read, of all (None: unknown)
    and of events.

    Raises InputError for what cannot be read, PluginError for engines that are not there, UsageError for a
    wrong date. The input is not read to its end before something of it is asked for, but standard input is.
    """
    if isinstance(date, str):
        try:
            date = dt.date.fromisoformat(date)
        except ValueError:
            raise UsageError(f"not a date: {date!r}", hint="write 2019-12-30") from None
    where = cache if isinstance(cache, bool) or cache is None else Path(cache)
    source = Input(os.fspath(path), date, lenient, feed, parser, book, port, threads)
    return Day(source, cache=where, cache_bytes_max=cache_bytes_max, progress=progress)


class Day:
    """One session of one input; made by `trident.open`. A context manager that gives its cache back.

    Tables (`bbo`, `trades`, … and `table`) are lazy: `LazyTable`. Symbols are a name, several, or None for
    all; an unknown one raises UsageError with near names. Windows are [start, end) of the time of day in the
    session's time zone: "09:30", "10:31:07.5", `datetime.time`, or nanoseconds since midnight.

    The first question reads the whole input once, through parser and book, into an index on disk; others read
    from there, and only the symbols asked for. Cache, memory and limits: docs/python.md. Not for use by
    several threads at once.
    """

    def __init__(
        self,
        source: Input,
        *,
        cache: Path | bool | None,
        cache_bytes_max: int | None,
        progress: bool | Advance,
    ) -> None:
        self._input, self._cache, self._bytes_max = source, cache, cache_bytes_max
        self._progress = progress
        self._reader: Reader | None = None
        self._lookup: Lookup | None = None
        self._closed = False
        self.session = Session(date=source.date)
        if source.once:
            self._read()
        else:
            opened = source.open(with_book=True)  # engines and format are wrong now, or right
            opened.close()
            self.session = opened.session

    # --- what it is ---------------------------------------------------------------------------------------

    @property
    def symbols(self) -> list[str]:
        """All symbols of the session, by locate."""
        self._read()
        return self.session.directory.symbols()

    def counts(self) -> dict[str, int]:
        """Messages by type letter, skipped ones included."""
        return dict(self.survey.counts)

    @property
    def survey(self) -> Survey:
        """What the pass over the whole input found: events, times, counts, anomalies, engines."""
        return self._read().survey

    @property
    def anomalies(self) -> Anomalies:
        """Everything that was odd in the input, for feed, parser and book."""
        return self.survey.anomalies

    @property
    def cache_bytes(self) -> int:
        """Bytes of disk that the index has now."""
        reader = self._reader
        return reader.index.file.bytes if isinstance(reader, IndexReader) and not self._closed else 0

    # --- tables -------------------------------------------------------------------------------------------

    def table(
        self,
        name: str,
        symbols: Symbols = None,
        *,
        start: Clock | None = None,
        end: Clock | None = None,
        price: Price = "fixed",
        time: Time = "utc",
        levels: int = 10,
        bars: str = "1m",
    ) -> LazyTable:
        """The table `name` of docs/tables.md. Raises UsageError for what does not make sense, at once."""
        select((name,), Naming.TRIDENT)
        if price not in PRICES or time not in TIMES:
            raise UsageError(
                f"no price={price!r}, time={time!r}",
                hint=f"price: {', '.join(PRICES)}; time: {', '.join(TIMES)}",
            )
        wanted = Wanted(name, _names(symbols), *self._window(start, end), price, time)
        if wanted.symbols is not None:
            self._locates(wanted.symbols)
            if name in _OF_THE_MARKET:
                raise UsageError(f"{name} is of the whole market", hint="leave the symbols out")
        kind = f"bars_{BarSpec.parse(bars).text}" if name == "bars" else name
        dtype = dtype_of(kind, Naming.TRIDENT, levels)
        return LazyTable(wanted, dtype, self.session, partial(self._rows, wanted, levels, bars))

    def bbo(self, symbols: Symbols = None, **options: Any) -> LazyTable:
        """Best bid and offer at every change. Options: those of `table`."""
        return self.table("bbo", symbols, **options)

    def trades(self, symbols: Symbols = None, **options: Any) -> LazyTable:
        """Prints, the voided ones marked. Options: those of `table`."""
        return self.table("trades", symbols, **options)

    def messages(self, symbols: Symbols = None, **options: Any) -> LazyTable:
        """Every message about an order, with what the book knew. Options: those of `table`."""
        return self.table("messages", symbols, **options)

    def depth(self, symbols: Symbols = None, levels: int = 10, **options: Any) -> LazyTable:
        """The best `levels` levels of both sides, at every change. Options: those of `table`."""
        return self.table("depth", symbols, levels=levels, **options)

    def orders(self, symbols: Symbols = None, **options: Any) -> LazyTable:
        """One row for each order's life, if it entered in the window. Options: those of `table`."""
        return self.table("orders", symbols, **options)

    def bars(self, symbols: Symbols = None, kind: str = "1m", **options: Any) -> LazyTable:
        """Bars of the prints in the window: 1s, 5m, 1h, 100trades, 10000shares, 1000000usd. Options: those
        of `table`."""
        return self.table("bars", symbols, bars=kind, **options)

    def batches(
        self, symbols: Symbols = None, *, start: Clock | None = None, end: Clock | None = None
    ) -> Iterator[tuple[Events, Tops, Effects]]:
        """EVENT[n], TOP[n], EFFECT[n] of these symbols in the window, in order; the arrays are yours."""
        wanted = Wanted("messages", _names(symbols), *self._window(start, end))
        locates = None if wanted.symbols is None else self._locates(wanted.symbols)
        for batch in self._replayed(wanted, locates):
            batch = chosen_by(batch, _inside(batch.tops, batch.events["ts"], locates, wanted, 0))
            if len(batch.events):
                yield batch.events, batch.tops, batch.effects

    # --- books and plots ----------------------------------------------------------------------------------

    def book_at(self, symbol: str, time: Clock) -> BookSnapshot:
        """The book of a symbol after all events up to and with `time`: before the day's first later event."""
        locate = int(self._locates((symbol,))[0])
        if self._lookup is None:
            self._lookup = Lookup(self._read(), self.session, partial(self._input.make_book, self.session))
        return self._lookup.at(locate, _clock(time))

    def plot_book(self, symbol: str, time: Clock, levels: int = 25, ax: Axes | None = None) -> Axes:
        """Cumulative depth over price at a time of day; returns the Axes. Needs matplotlib."""
        return self.book_at(symbol, time).plot(levels, ax)

    def plot_spread(
        self, symbol: str, start: Clock = "09:30", end: Clock = "16:00", ax: Axes | None = None
    ) -> Axes:
        """Best ask minus best bid over the time of day; returns the Axes. Needs matplotlib."""
        from trident_core.day.plots import plot_spread

        self._locates((symbol,))
        return plot_spread(self, symbol, _clock(start), _clock(end), ax)

    # --- its end ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Give the cache back. Idempotent; questions after it raise UsageError."""
        self._closed = True
        if self._reader:
            self._reader.close()

    def __enter__(self) -> Day:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        read = f", {self._reader.survey.events:,} messages" if self._reader else ""
        date = self.session.date or "unknown date"
        return f"<day {Path(self._input.path).name}, {self.session.venue}, {date}{read}>"

    def _repr_html_(self) -> str:
        from trident_core.day.html import day_html

        return day_html(self, self._input.path, self._reader.survey if self._reader else None)

    # --- inside -------------------------------------------------------------------------------------------

    def _read(self) -> Reader:
        """The reader, made at the first question."""
        if self._closed:
            raise UsageError("this day is closed", hint="open it again, or ask inside its `with` block")
        if self._reader is None:
            from trident_core.cli.output import progress

            with progress("reading", quiet=self._progress is not True) as bar:
                advance = self._progress if callable(self._progress) else bar
                self._reader = make_reader(self._input, self.session, self._cache, self._bytes_max, advance)
        return self._reader

    def _locates(self, names: tuple[str, ...]) -> NDArray[np.uint32]:
        """u32, ascending. Raises UsageError, with near names, for a symbol that the session does not have."""
        self._read()
        return np.unique(np.array([self.session.directory.locate(name) for name in names], np.uint32))

    def _window(self, start: Clock | None, end: Clock | None) -> tuple[int | None, int | None]:
        first, last = (None if at is None else _clock(at) for at in (start, end))
        if first is not None and last is not None and first >= last:
            raise UsageError(f"the window {start} to {end} is empty", hint="start comes before end")
        return first, last

    def _replayed(self, wanted: Wanted, locates: NDArray[np.uint32] | None, typed: str = "") -> Iterator[Any]:
        """Batches of at least the symbols wanted, from the first event to the end of the window."""
        return replay(*self._scanned(wanted, locates, typed))

    def _scanned(
        self, wanted: Wanted, locates: NDArray[np.uint32] | None, typed: str
    ) -> tuple[Iterator[Read], Book]:
        """The same before they are applied, and an empty book."""
        reader = self._read()
        in_order = isinstance(reader, IndexReader) and reader.index.in_order
        until = wanted.end - 1 if wanted.end and in_order else None
        group = None if locates is None else reader.group(locates)
        many = group is None or len(group) >= _MANY
        book = self._input.make_book(self.session, self._input.threads if many else 1)
        return reader.scan(group, until=until, typed=typed), book

    def _rows(self, wanted: Wanted, levels: int, bars: str) -> Iterator[Table]:
        spec = TABLES[wanted.table]
        whole = wanted.table in ("orders",)  # an order that entered in the window may end after it
        of_stock = wanted.table == "ipo"  # K has the locate 0, and the symbol's name
        locates = None if wanted.symbols is None or of_stock else self._locates(wanted.symbols)
        maker = self._maker(wanted, levels, bars)
        midnight = self.session.midnight_ns()
        scanned = Wanted(wanted.table, None, None, None) if whole else wanted
        if isinstance(maker, Stateless | Trades):
            make = partial(_made, maker, wanted, locates)
            for rows in replayed_rows(*self._scanned(scanned, locates, spec.typed), make):
                yield from self._chosen(rows, locates, wanted, midnight)
            return
        for batch in self._replayed(scanned, locates, spec.typed):
            yield from self._chosen(maker.apply(batch), locates, wanted, midnight)
        last = maker.finish()
        if last is not None:
            yield from self._chosen(last, locates, wanted, midnight)

    def _chosen(
        self, rows: Table, locates: NDArray[np.uint32] | None, wanted: Wanted, midnight: int
    ) -> Iterator[Table]:
        keep = _inside(rows, rows["ts_event"], locates, wanted, midnight, timed=wanted.table != "bars")
        if wanted.symbols is not None and "stock" in (rows.dtype.names or ()):
            keep &= np.isin(rows["stock"], [name.encode("latin-1", "replace") for name in wanted.symbols])
        rows = rows if keep.all() else take(rows, keep)
        if len(rows):
            yield rows

    def _maker(self, wanted: Wanted, levels: int, bars: str) -> Maker:
        make = TABLES[wanted.table].make
        if make:
            return Stateless(make)
        if wanted.table == "depth":
            return FromRecords(Ladder(self.session, levels))
        if wanted.table == "orders":
            return FromRecords(OrderLives(self.session))
        voids = self.survey.voids
        if wanted.table == "trades":
            return Trades(voids)
        midnight = self.session.midnight_ns()
        start, end = midnight + (wanted.start or 0), _FAR if wanted.end is None else midnight + wanted.end
        return BarsOf(self.session, bars, voids, (start, end))


def _made(
    maker: Stateless | Trades, wanted: Wanted, locates: NDArray[np.uint32] | None, batch: Batch
) -> Table | None:
    """The rows of a batch; None if it can have none."""
    batch = chosen_by(batch, _inside(batch.tops, batch.events["ts"], locates, wanted, 0))
    return maker.apply(batch) if touches(wanted.table, batch) else None


def _inside(
    records: NDArray[Any],
    times: NDArray[Any],
    locates: NDArray[np.uint32] | None,
    wanted: Wanted,
    midnight: int,
    *,
    timed: bool = True,
) -> NDArray[np.bool_]:
    """bool[n]: which records (with a `locate`) at `times` are of these symbols, and in the window."""
    keep = np.ones(len(records), np.bool_) if locates is None else np.isin(records["locate"], locates)
    if timed and wanted.start is not None:
        keep &= times >= midnight + wanted.start
    if timed and wanted.end is not None:
        keep &= times < midnight + wanted.end
    return keep


def _names(symbols: Symbols) -> tuple[str, ...] | None:
    """Symbols as they may be written: none for all, one, several. Raises UsageError for an empty choice."""
    if symbols is None:
        return None
    names = (symbols,) if isinstance(symbols, str) else tuple(symbols)
    if not names or not all(isinstance(name, str) for name in names):
        raise UsageError(f"not symbols: {symbols!r}", hint='write "AAPL", ["AAPL", "MSFT"], or None for all')
    return names


def _clock(at: Clock) -> int:
    """A time of day as ns since midnight. Raises UsageError."""
    if isinstance(at, str):
        return parse_time(at)
    if isinstance(at, dt.time):
        seconds = (at.hour * 60 + at.minute) * 60 + at.second
        return seconds * 1_000_000_000 + at.microsecond * 1000
    if isinstance(at, bool) or not isinstance(at, int | np.integer) or at < 0:
        raise UsageError(f"not a time of day: {at!r}", hint='write "10:31:07.5", or ns since midnight')
    return int(at)
