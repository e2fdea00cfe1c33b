"""Options that several commands share, and the making of engines from them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from trident_core.contracts import Book, ByteSource, Feed, FeedOptions, Kind, Parser
from trident_core.errors import PluginError, UsageError
from trident_core.feeds import open_feed
from trident_core.plugins import registry
from trident_core.session import Session, parse_time

Input = Annotated[
    str, typer.Argument(metavar="FILE", help="A day file or a capture, compressed or not; - is stdin.")
]
StorePath = Annotated[Path, typer.Argument(metavar="STORE", help="The folder of a store.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
FeedName = Annotated[
    str | None, typer.Option("--feed", help="Feed to use instead of the one the bytes suggest.")
]
ParserName = Annotated[str | None, typer.Option("--parser", help="Parser engine.")]
BookName = Annotated[str | None, typer.Option("--book", help="Book engine.")]
StoreName = Annotated[str | None, typer.Option("--store", help="Store engine.")]
QueryName = Annotated[str | None, typer.Option("--query", help="Query engine.")]
Date = Annotated[
    str | None,
    typer.Option("--date", help="The session's date, YYYY-MM-DD; else taken from the file's name."),
]
Lenient = Annotated[
    bool, typer.Option("--lenient", help="Accept zeroed lengths (files) and zeroed headers (captures).")
]
Port = Annotated[
    int | None, typer.Option("--port", min=1, max=65_535, help="Of a capture, only this UDP or TCP port.")
]
Symbols = Annotated[str, typer.Option("--symbols", help="Only these symbols: AAPL,MSFT,…")]
At = Annotated[str | None, typer.Option("--at", help="Stop at this time of day: 10:31:07.5")]


Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(slots=True)
class Opened:
    """An input with the engines for it."""

    feed: Feed
    source: ByteSource
    session: Session
    parser: Parser
    book: Book | None
    engines: dict[str, str]

    def close(self) -> None:
        self.source.close()


def open_input(
    file: str,
    *,
    feed: str | None = None,
    parser: str | None = None,
    book: str | None = None,
    date: str | None = None,
    lenient: bool = False,
    port: int | None = None,
    with_book: bool = True,
) -> Opened:
    """Open `file` and make the parser and the book selected for it."""
    made_feed, source, session = open_feed(
        file, feed=feed, date=parse_date(date), options=FeedOptions(lenient=lenient, port=port)
    )
    try:
        made_parser, parser_name = _make_parser(session, parser, lenient)
        engines = {"parser": parser_name}
        made_book: Book | None = None
        if with_book:
            selection = registry().select(Kind.BOOK, book)
            made_book = selection.load()(session)
            engines["book"] = selection.spec.name
    except BaseException:
        source.close()
        raise
    return Opened(made_feed, source, session, made_parser, made_book, engines)


def _make_parser(session: Session, flag: str | None, lenient: bool) -> tuple[Parser, str]:
    """The parser selected, or, when none was asked for, the first that reads the feed's protocol."""
    selection = registry().select(Kind.PARSER, flag)
    spec = selection.spec
    if session.protocol not in spec.protocols:
        fitting = [s for s in registry().engines(Kind.PARSER) if session.protocol in s.protocols]
        if selection.origin != "default" or not fitting:
            raise PluginError(
                f"parser {spec.name!r} (by {selection.origin}) does not read {session.protocol}",
                hint=f"parsers that do: {', '.join(s.name for s in fitting) or 'none installed'}",
            )
        spec = fitting[0]
    made: Any = spec.load()
    return made(session, lenient=lenient), spec.name


def parse_date(text: str | None) -> dt.date | None:
    if text is None:
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"not a date: {text!r}", hint="write 2019-12-30") from None


def parse_symbols(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def choice(kind: type[Choice], text: str, option: str) -> Choice:
    """The member of `kind` that `text` names. Raises UsageError with all of them."""
    try:
        return kind(text)
    except ValueError:
        raise UsageError(
            f"no {option} {text!r}", hint=f"--{option} takes {', '.join(each.value for each in kind)}"
        ) from None


def parse_at(text: str | None) -> int | None:
    return None if text is None else parse_time(text)
