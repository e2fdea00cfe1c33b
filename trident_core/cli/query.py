"""`trident query STORE`: events by patterns on symbol, MPID and type."""

from __future__ import annotations

import json as jsonlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, number, table
from trident_core.contracts import Kind
from trident_core.plugins import registry
from trident_core.session import format_price, format_time

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.dtypes import Events
    from trident_core.search import Search
    from trident_core.session import Session

DEFAULT_LIMIT = 20


def query(
    store: common.StorePath,
    symbol: Annotated[
        str | None, typer.Option("--symbol", metavar="RE", help="Pattern on the symbol.")
    ] = None,
    mpid: Annotated[
        str | None, typer.Option("--mpid", metavar="RE", help="Pattern on the MPID (F, L).")
    ] = None,
    type_: Annotated[str | None, typer.Option("--type", metavar="RE", help="Pattern on the type.")] = None,
    flags: Annotated[str, typer.Option("--flags", help="Pattern flags, of i s m x.")] = "",
    since: Annotated[str | None, typer.Option("--from", help="From this time of day: 09:30.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Up to this time of day.")] = None,
    count: Annotated[bool, typer.Option("--count", help="Only count, by type.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show this many events.")] = DEFAULT_LIMIT,
    store_engine: common.StoreName = None,
    engine: common.QueryName = None,
    json: common.Json = False,
) -> None:
    """Find events whose symbol, MPID and type match all the patterns given (docs/dialect.md).

    With --json and without --count: one JSON object a line.
    """
    from trident_core.search import find

    made_store = registry().select(Kind.STORE, store_engine).load()(store, "read")
    try:
        snapshot = made_store.snapshot()
        compiler = registry().select(Kind.QUERY, engine).load()()
        search = find(
            snapshot, compiler, symbol=symbol, mpid=mpid, types=type_, flags=flags,
            ts=(common.parse_at(since), common.parse_at(until)),
        )  # fmt: skip
        if count:
            _count(search, as_json=json)
        else:
            _show(search, snapshot.session, limit, as_json=json)
    finally:
        made_store.close()


def _count(search: Search, *, as_json: bool) -> None:
    by_type: dict[str, int] = {}
    for events in search:
        for letter in set(events["type"].tolist()):
            by_type[chr(letter)] = by_type.get(chr(letter), 0) + int((events["type"] == letter).sum())
    total = sum(by_type.values())

    def render(out: Console) -> None:
        rows = table(f"{number(total)} events", "type", ">count")
        for letter, n in sorted(by_type.items(), key=lambda item: -item[1]):
            rows.add_row(letter, number(n))
        out.print(rows)

    emit({"count": total, "by_type": by_type}, as_json=as_json, render=render)


def _show(search: Search, session: Session, limit: int, *, as_json: bool) -> None:
    rows = table("", "seq", "time", "type", "symbol", "side", ">price", ">qty", ">ref", ">ref2", "aux")
    shown = 0
    for events in search:
        part = events[: limit - shown]
        shown += len(part)
        for row in event_rows(part, session):
            if as_json:
                print(jsonlib.dumps(row))
            else:
                rows.add_row(*(str(value) for value in row.values()))
        if shown >= limit:
            break
    if not as_json:
        from trident_core.cli.output import console

        console().print(rows if shown else "no event matches")
        if shown >= limit:
            console().print(f"stopped at --limit {limit}; --count counts them all")


def event_rows(events: Events, session: Session) -> list[dict[str, Any]]:
    """Events as dictionaries for people: symbol, clock time and decimal prices."""
    rows = []
    for e in events:
        aux = e["aux"].tobytes().rstrip(b"\x00 ")
        rows.append(
            {
                "seq": int(e["seq"]),
                "time": format_time(e["ts"]),
                "type": chr(e["type"]),
                "symbol": session.directory.symbol(int(e["locate"])),
                "side": chr(e["side"]) if e["side"] else "",
                "price": format_price(e["price"], 8 if e["flags"] & 2 else session.price_decimals),
                "qty": int(e["qty"]),
                "ref": int(e["ref"]),
                "ref2": int(e["ref2"]),
                "aux": aux.decode("ascii", "backslashreplace"),
            }
        )
    return rows
