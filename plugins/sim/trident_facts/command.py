"""`trident facts DAY …`: the known facts of order books, one column for each symbol of each source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, progress, table
from trident_core.errors import UsageError
from trident_core.session import format_time

if TYPE_CHECKING:
    from rich.console import Console

    from trident_facts.track import Track

Measured = list[tuple["Track", dict[str, float | None]]]


def facts(
    days: Annotated[
        list[str],
        typer.Argument(metavar="DAY", help="Day files, captures, or LOBSTER days (message files, zips)."),
    ],
    symbols: common.Symbols = "",
    busiest: Annotated[
        int,
        typer.Option(
            "--busiest", min=1, max=50, help="Without --symbols: so many of each day, by order events."
        ),
    ] = 1,
    start: Annotated[
        str | None, typer.Option("--from", help="From this time of day; else 09:30 if there.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Up to this time of day; else 16:00 if there.")
    ] = None,
    feed: common.FeedName = None,
    parser: common.ParserName = None,
    book: common.BookName = None,
    lenient: common.Lenient = False,
    port: common.Port = None,
    json: common.Json = False,
) -> None:
    """Measure spread, depth, lives of orders, trades, clustering and returns of each DAY, side by side.

    Definitions and their sources: docs/facts.md. What an input does not tell is left blank.
    """
    from trident_facts.measure import Options, measure_files

    options = Options(
        symbols=common.parse_symbols(symbols),
        busiest=busiest,
        start=common.parse_at(start),
        end=common.parse_at(end),
        engines={"feed": feed, "parser": parser, "book": book, "lenient": lenient, "port": port},
    )
    if options.start is not None and options.end is not None and options.end <= options.start:
        raise UsageError("no time between --from and --to", hint="give --from before --to")
    with progress("measuring", quiet=json) as advance:
        measured = measure_files(days, options, advance)
    emit(as_json(measured), as_json=json, render=lambda console: render(console, measured))


def as_json(measured: Measured) -> dict[str, Any]:
    from trident_facts.catalog import FACTS

    return {
        "facts": {fact.key: f"{fact.group}: {fact.label}" for fact in FACTS},
        "days": [
            {"source": track.source, "symbol": track.symbol, "from": format_time(track.start),
             "to": format_time(track.end), "tick": track.tick, "values": values}
            for track, values in measured
        ],
    }  # fmt: skip


def render(console: Console, measured: Measured) -> None:
    from trident_facts.catalog import FACTS

    rows = table("", "~", *(f">{name}" for name in _names(measured)))
    group = ""
    for fact in FACTS:
        if fact.group != group:
            group = fact.group
            rows.add_row(group.upper() if not rows.row_count else f"\n{group.upper()}".strip())
        rows.add_row(f"  {fact.label}", *(_shown(values[fact.key], fact.digits) for _, values in measured))
    console.print(rows)


def _names(measured: Measured) -> list[str]:
    """Symbol and file, a short name for each column."""
    return [f"{track.symbol} {_short(track.source)}" for track, _ in measured]


def _short(source: str) -> str:
    name = Path(source).name
    return name if len(name) <= 24 else f"{name[:11]}…{name[-12:]}"


def _shown(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"
