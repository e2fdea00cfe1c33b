"""An input with the engines that read it: what commands, conversions and days begin with."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trident_core.contracts import Book, ByteSource, Capability, EngineSpec, Feed, FeedOptions, Kind, Parser
from trident_core.engines import make
from trident_core.errors import PluginError
from trident_core.feeds import Primed, open_feed
from trident_core.plugins import registry
from trident_core.session import Session
from trident_core.sharding import ShardedBook, check_threads, make_books
from trident_core.stats import RunStats

if TYPE_CHECKING:
    from trident_core.tables.tap import TappedParser


@dataclass(slots=True)
class Opened:
    """An opened input with its engines. `engines` has their names by kind, for the statistics, and `notices`
    what is done otherwise than asked: `tell` gives them both."""

    feed: Feed
    source: ByteSource
    session: Session
    parser: Parser
    book: Book | None
    engines: dict[str, str]
    lenient: bool = False
    notices: tuple[str, ...] = ()

    def tap(self, types: str) -> TappedParser | None:
        """The parser with a tap for the typed rows of `types`; None if the engine makes no typed rows."""
        from trident_core.tables.tap import TappedParser

        spec = registry().select(Kind.PARSER, self.engines["parser"]).spec
        if Capability.TABLES not in spec.capabilities:
            return None
        beside = Session(venue=self.session.venue, protocol=self.session.protocol)
        return TappedParser(self.parser, make(spec, beside, lenient=self.lenient), types)

    def tell(self, stats: RunStats) -> None:
        """Put the engines' names, and what is done otherwise than asked, into the statistics of a run."""
        stats.engines = self.engines
        stats.notices[:0] = self.notices

    def close(self) -> None:
        """Close the input, and end the threads of the book; it can still be read."""
        self.source.close()
        if isinstance(self.book, ShardedBook):
            self.book.close()


def open_input(
    path: str,
    *,
    feed: str | None = None,
    parser: str | None = None,
    book: str | None = None,
    date: dt.date | None = None,
    lenient: bool = False,
    port: int | None = None,
    with_book: bool = True,
    threads: int = 1,
) -> Opened:
    """Open `path` ("-" is standard input) and make the parser and the book selected for it, for `threads`.

    The first chunk is read: what the format tells of the session is known then. Raises InputError as
    `open_feed` and the feed do, PluginError for engines that are not there or do not fit,
    UsageError for a number of threads that makes no sense.
    """
    check_threads(threads)
    made_feed, source, session = open_feed(
        path, feed=feed, date=date, options=FeedOptions(lenient=lenient, port=port)
    )
    try:
        spec = _parser_for(session.protocol, parser)
        made_feed = Primed(made_feed)  # some formats carry the date, the time zone, the symbols
        made_parser: Parser = make(spec, session, lenient=lenient)
        engines = {"parser": spec.name}
        made_book: Book | None = None
        if with_book:
            selection = registry().select(Kind.BOOK, book)
            made_book = make_books(selection.spec, session, threads)
            engines["book"] = selection.spec.name
    except BaseException:
        source.close()
        raise
    notices: tuple[str, ...] = ()
    if threads > 1 and not isinstance(made_book, ShardedBook) and with_book:
        notices = (f"book {engines['book']!r} is not made for several threads: it has one",)
    return Opened(made_feed, source, session, made_parser, made_book, engines, lenient, notices)


def _parser_for(protocol: str, flag: str | None) -> EngineSpec:
    """The parser selected, or, when none was asked for, the first that reads the feed's protocol."""
    selection = registry().select(Kind.PARSER, flag)
    if protocol in selection.spec.protocols:
        return selection.spec
    fitting = [spec for spec in registry().engines(Kind.PARSER) if protocol in spec.protocols]
    if selection.origin == "default" and fitting:
        return fitting[0]
    raise PluginError(
        f"parser {selection.spec.name!r} (by {selection.origin}) does not read {protocol}",
        hint=f"parsers that do: {', '.join(spec.name for spec in fitting) or 'none installed'}",
    )
