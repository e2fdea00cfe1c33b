"""`trident convert FILE OUT`: a day into tables for research."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.convert_lobster import LOBSTER, lobster_run
from trident_core.cli.output import coloured, emit, number, print_notices, progress, render_anomalies, table
from trident_core.errors import UsageError
from trident_core.inputs import Opened, open_input
from trident_core.session import parse_time

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.convert import Converted, ConvertOptions

_DEFAULT_TABLES = {"trident": "bbo,trades", "databento": "mbp-1,trades"}


def convert(
    file: common.Input,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the tables; made if need be.")],
    tables: Annotated[
        str, typer.Option("--tables", help="Which, by comma, or all: see docs/tables.md. [bbo,trades]")
    ] = "",
    form: Annotated[
        str, typer.Option("--format", help="parquet, arrow (IPC file), csv or lobster.")
    ] = "parquet",
    price: Annotated[
        str, typer.Option("--price", help="fixed (integers, scale in the metadata), decimal or float.")
    ] = "fixed",
    naming: Annotated[
        str, typer.Option("--naming", help="trident, or databento: mbo, mbp-1, mbp-10, trades, ohlcv-1m.")
    ] = "trident",
    symbols: common.Symbols = "",
    by_symbol: Annotated[
        bool, typer.Option("--by-symbol", help="TABLE/symbol=AAPL/part-….parquet instead of one file.")
    ] = False,
    start: Annotated[str | None, typer.Option("--from", help="Rows from this time of day on.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Stop after this time of day.")] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, max=50, help="Levels: of depth, of LOBSTER.")] = 10,
    bars: Annotated[
        str, typer.Option("--bars", help="1s, 5m, 1h, 100trades, 10000shares, 1000000usd, by comma.")
    ] = "1m",
    md5: Annotated[bool, typer.Option("--md5/--no-md5", help="MD5 of FILE into the metadata.")] = True,
    feed: common.FeedName = None,
    parser: common.ParserName = None,
    book: common.BookName = None,
    date: common.Date = None,
    lenient: common.Lenient = False,
    port: common.Port = None,
    threads: common.Threads = 1,
    json: common.Json = False,
) -> None:
    """Turn FILE into tables: quotes, prints, depth, orders, auctions, halts, bars.

    Files appear in OUT when all are complete, in place of older ones of the same names; when interrupted,
    none does. OUT/trident.json says what they are made of. --format lobster makes no tables but LOBSTER's
    message and orderbook csv of each symbol, from 09:30 to 16:00 unless told otherwise.
    """
    if form == LOBSTER:
        refused = {"--tables": tables, "--price": price != "fixed", "--by-symbol": by_symbol,
                   "--naming": naming != "trident", "--bars": bars != "1m"}  # fmt: skip
        run = lobster_run(symbols, start, until, refused=refused, depth=depth, md5=md5)
    else:
        run = _table_run(
            tables, form, price, naming, symbols, start, until, bars,
            by_symbol=by_symbol, depth=depth, md5=md5,
        )  # fmt: skip
    opened = open_input(
        file, feed=feed, parser=parser, book=book, date=common.parse_date(date), lenient=lenient, port=port,
        threads=threads,
    )  # fmt: skip
    done, render = _run(opened, file, out, run, quiet=json)
    print_notices(done.stats)
    emit(done.to_json(), as_json=json, render=render)
    if done.stats.interrupted:
        raise typer.Exit(130)


def _run(opened: Opened, file: str, out: Path, run: Any, *, quiet: bool) -> Any:
    """What `run` returns of the opened input, which is closed then. Raises UsageError without a date."""
    try:
        if opened.session.date is None:
            raise UsageError(
                f"the session's date is not in the name {file}", hint="give it: --date 2019-12-30"
            )
        with progress("converting", quiet=quiet) as advance:
            return run(opened, out, advance)
    finally:
        opened.close()


def _table_run(*args: Any, **rest: Any) -> Any:
    """What converts an opened input to tables, and returns the outcome and what prints it."""
    from trident_core.export import need_pyarrow

    need_pyarrow()
    from trident_core.convert import run_convert

    options = _options(*args, **rest)

    def run(opened: Opened, out: Path, advance: Any) -> tuple[Converted, Callable[[Console], None]]:
        done = run_convert(opened, out, options, advance=advance)
        return done, lambda console: _render(console, done)

    return run


def _options(
    tables: str, form: str, price: str, naming: str, symbols: str, start: str | None, until: str | None,
    bars: str, **rest: Any,
) -> ConvertOptions:  # fmt: skip
    """The options as their types. Raises UsageError, with the choices, for a word that is none of them."""
    from trident_core.convert import ConvertOptions
    from trident_core.export.columns import Prices
    from trident_core.export.files import Format
    from trident_core.tables.catalog import DATABENTO_TABLES, TABLES, Naming

    names = common.choice(Naming, naming, "naming")
    known = TABLES if names is Naming.TRIDENT else DATABENTO_TABLES
    chosen = common.parse_symbols(tables or _DEFAULT_TABLES[names])
    return ConvertOptions(
        tables=tuple(known) if chosen == ("all",) else tuple(dict.fromkeys(chosen)),
        form=common.choice(Format, form, "format"),
        prices=common.choice(Prices, price, "price"),
        naming=names,
        symbols=common.parse_symbols(symbols),
        start=parse_time(start) if start else 0,
        until=parse_time(until) if until else None,
        bars=common.parse_symbols(bars),
        **rest,
    )


def _render(out: Console, done: Converted) -> None:
    from trident_core.session import format_time

    stats = done.stats
    if stats.interrupted:
        out.print(coloured(("interrupted: no table was written", "yellow")))
        return
    rows = table(f"{stats.source} → {done.folder}", "table", ">rows", ">MB", "~file")
    for name, count in done.rows.items():
        rows.add_row(name, number(count), f"{done.bytes[name] / 1e6:,.1f}", done.where(name))
    out.print(rows)
    seconds = stats.wall_s or 1e-9
    out.print(
        f"{number(stats.events)} messages, {format_time(stats.first_ts)} to {format_time(stats.last_ts)}, "
        f"in {seconds:.1f} s: {stats.events / seconds / 1e6:.2f} M messages/s"
    )
    out.print(", ".join(f"{kind} {name}" for kind, name in stats.engines.items()))
    if done.missing:
        out.print(f"not in this input: {', '.join(done.missing)}")
    render_anomalies(out, stats.anomalies.to_json())
