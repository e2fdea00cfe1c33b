"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from trident_core.errors import UsageError
from trident_core.session import parse_time

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
SequenceName = Annotated[str | None, typer.Option("--sequence", help="Engine of --where and --match.")]
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
Threads = Annotated[
    int, typer.Option("--threads", min=1, max=64, help="Threads for the books: symbols are dealt over them.")
]
At = Annotated[str | None, typer.Option("--at", help="Stop at this time of day: 10:31:07.5")]


Choice = TypeVar("Choice", bound=StrEnum)


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
