"""`trident replay FILE`: rebuild the books and show them, at the end or at a time of day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import coloured, emit, number, print_notices, progress, render_run, table
from trident_core.inputs import open_input
from trident_core.session import format_price

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from trident_core.contracts import Book
    from trident_core.dtypes import Levels
    from trident_core.session import Session

#: A feed's book is never crossed for long in continuous trading: what is shown then is not the market's.
CROSSED_NOTE = (
    "crossed books: the input lacks a part of the order flow (LOBSTER files do: docs/lobster.md), "
    "or there is no continuous trading at this time"
)
#: Rows of the touch table when no symbols are named: those with the most live orders.
TOUCH_ROWS = 20


def replay(
    file: common.Input,
    symbols: common.Symbols = "",
    at: common.At = None,
    depth: Annotated[int, typer.Option("--depth", min=1, max=50, help="Levels shown for each symbol.")] = 5,
    feed: common.FeedName = None,
    parser: common.ParserName = None,
    book: common.BookName = None,
    date: common.Date = None,
    lenient: common.Lenient = False,
    port: common.Port = None,
    threads: common.Threads = 1,
    json: common.Json = False,
) -> None:
    """Rebuild the books of FILE; show statistics, the touch, and the depth of the symbols named."""
    from trident_core.pipeline import Line, LineOptions

    wanted = common.parse_symbols(symbols)
    options = LineOptions(symbols=wanted, until=common.parse_at(at))
    opened = open_input(
        file, feed=feed, parser=parser, book=book, date=common.parse_date(date), lenient=lenient, port=port,
        threads=threads,
    )  # fmt: skip
    made = opened.book
    assert made is not None
    try:
        with progress("replaying", quiet=json) as advance:
            line = Line(opened.feed, opened.source, opened.parser, made, options=options, progress=advance)
            stats = line.run()
    finally:
        opened.close()
    opened.tell(stats)
    session = opened.session
    missing = [name for name in wanted if name not in session.directory.symbols()]
    if missing and len(missing) == len(wanted):
        session.directory.locate(missing[0])  # raises, with the nearest names
    locates = [session.directory.locate(name) for name in wanted if name not in missing]

    def render(out: Console) -> None:
        render_run(out, stats)
        _render_touch(out, made, session, locates or _busiest(made))
        for locate in locates:
            bids, asks = made.levels(locate, "B", depth), made.levels(locate, "S", depth)
            title = f"{session.directory.symbol(locate)} depth"
            out.print(depth_table(title, bids, asks, session.price_decimals))
        if missing:
            out.print(f"not in this input: {', '.join(missing)}")

    shown = locates or [int(locate) for locate in made.locates()]
    data = stats.to_json() | {
        "price_decimals": session.price_decimals,
        "books": {session.directory.symbol(n) or str(n): _book_json(made, n, depth) for n in shown},
        "missing": missing,
    }
    print_notices(stats)
    emit(data, as_json=json, render=render)
    if stats.interrupted:
        raise typer.Exit(130)


def _busiest(book: Book) -> list[int]:
    """The locates with the most live orders, at most TOUCH_ROWS of them."""
    sizes = {}
    for locate in map(int, book.locates()):
        sizes[locate] = sum(int(book.levels(locate, side)["count"].sum()) for side in "BS")
    return sorted(sizes, key=lambda n: (-sizes[n], n))[:TOUCH_ROWS]


def _book_json(book: Book, locate: int, depth: int) -> dict[str, Any]:
    """Touch and depth of one symbol; prices are integer mantissas at the session's scale."""
    names = ("price", "qty", "count")
    sides = {
        name: [dict(zip(names, map(int, level), strict=False)) for level in book.levels(locate, side, depth)]
        for name, side in (("bids", "B"), ("asks", "S"))
    }
    return {"locate": locate, "state": book.state(locate).name, **sides}


def _render_touch(out: Console, book: Book, session: Session, locates: list[int]) -> None:
    if not locates:
        out.print("no book has an order")
        return
    rows = table("touch", "symbol", "state", ">orders", ">qty", ">bid", ">ask", ">qty", ">orders")
    any_crossed = False
    for locate in locates:
        top = book.top(locate)[0]
        bid = format_price(top["bid_price"], session.price_decimals) if top["bid_count"] else "-"
        ask = format_price(top["ask_price"], session.price_decimals) if top["ask_count"] else "-"
        both = top["bid_count"] and top["ask_count"]
        crossed = bool(both and top["bid_price"] > top["ask_price"])
        any_crossed |= crossed
        state = coloured(("crossed", "red")) if crossed else book.state(locate).name.lower()
        rows.add_row(
            session.directory.symbol(locate) or f"locate {locate}", state,
            number(top["bid_count"]), number(top["bid_qty"]), bid, ask,
            number(top["ask_qty"]), number(top["ask_count"]),
        )  # fmt: skip
    out.print(rows)
    if any_crossed:
        out.print(CROSSED_NOTE)


def depth_table(title: str, bids: Levels, asks: Levels, decimals: int) -> Table:
    """Bids on the left, asks on the right, best first."""
    rows = table(title, ">orders", ">qty", ">bid", ">ask", ">qty", ">orders")
    for n in range(max(len(bids), len(asks))):
        left: list[str | Text] = ["", "", ""]
        right: list[str | Text] = ["", "", ""]
        if n < len(bids):
            price = coloured((format_price(bids["price"][n], decimals), "green"))
            left = [number(bids["count"][n]), number(bids["qty"][n]), price]
        if n < len(asks):
            price = coloured((format_price(asks["price"][n], decimals), "red"))
            right = [price, number(asks["qty"][n]), number(asks["count"][n])]
        rows.add_row(*left, *right)
    return rows
