"""`trident query STORE`: events by patterns on symbol, MPID and type."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import console, emit, number, progress, table
from trident_core.contracts import Kind
from trident_core.dtypes import EventFlag
from trident_core.errors import UsageError
from trident_core.plugins import registry
from trident_core.session import format_price, format_time
from trident_core.stores import select_store

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.cli.output import Advance
    from trident_core.contracts import Snapshot
    from trident_core.dtypes import Events
    from trident_core.search import Search
    from trident_core.session import Session

DEFAULT_LIMIT = 20
#: Groups that --count prints in a table.
COUNT_ROWS = 40
#: Types whose events have a price (docs/contracts/parser.md); for the others it is null.
PRICED = frozenset(b"AFCUPQIKJVO")
#: A search tells its progress so many times.
SCAN_STEPS = 50
NUMBERS = ("seq", "price", "qty", "ref", "ref2")


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
    count: Annotated[bool, typer.Option("--count", help="Only count them.")] = False,
    by: Annotated[
        str | None, typer.Option("--by", help="With --count: by symbol or by type (the default).")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Show this many; else 20, with --json all.")
    ] = None,
    store_engine: common.StoreName = None,
    engine: common.QueryName = None,
    json: common.Json = False,
) -> None:
    """Find events whose symbol, MPID and type match all the patterns given (docs/dialect.md).

    With --json and without --count: one JSON object a line, and all of them unless --limit says otherwise.
    """
    from trident_core.search import find

    if by and not count:
        raise UsageError("--by groups counts", hint="add --count")
    if limit is None:
        limit = 0 if json else DEFAULT_LIMIT

    made_store = select_store(store, store_engine).load()(store, "read")
    try:
        snapshot = made_store.snapshot()
        compiler = registry().select(Kind.QUERY, engine).load()()
        with progress("searching", quiet=json, start="") as advance:
            search = find(
                Watched(snapshot, advance), compiler, symbol=symbol, mpid=mpid, types=type_, flags=flags,
                limit=limit, ts=_times(since, until),
            )  # fmt: skip
            for note in search.notes:
                print(f"note: {note}", file=sys.stderr)
            if count:
                groups = search.counts_by(by or "type")
            elif json:
                _stream(search, snapshot.session)
            else:
                rows = [row for events in search for row in event_rows(events, snapshot.session)]
        if count:
            _print_counts(groups, by or "type", as_json=json)
        elif not json:
            _print_events(rows, limit)
    finally:
        made_store.close()


def _times(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    low, high = common.parse_at(since), common.parse_at(until)
    if low is not None and high is not None and low > high:
        raise UsageError(f"--from {since} is later than --to {until}")
    return low, high


class Watched:
    """A snapshot whose scans go by steps of the sequence numbers and tell how far they are.

    Sequence numbers grow, so the steps give the same events in the same order as one scan.
    """

    def __init__(self, snapshot: Snapshot, advance: Advance) -> None:
        self.session, self.count, self.last_seq = snapshot.session, snapshot.count, snapshot.last_seq
        self._snapshot, self._advance = snapshot, advance

    def scan(self, *, seq: tuple[int | None, int | None] = (None, None), **filters: Any) -> Iterator[Events]:
        low = seq[0] or 0
        high = self.last_seq if seq[1] is None else min(seq[1], self.last_seq)
        step = max(high - low, 0) // SCAN_STEPS + 1  # a range past the end has no step at all
        for start in range(low, high + 1, step):
            end = min(start + step - 1, high)
            yield from self._snapshot.scan(seq=(start, end), **filters)
            self._advance(end - low, high - low, end - low)

    def get(self, ref: int) -> Events:
        return self._snapshot.get(ref)

    def close(self) -> None:
        self._snapshot.close()


def _stream(search: Search, session: Session) -> None:
    """One JSON object a line."""
    for events in search:
        for row in event_rows(events, session):
            print(jsonlib.dumps(row))


def _print_counts(groups: dict[str, int], by: str, *, as_json: bool) -> None:
    total = sum(groups.values())

    def render(out: Console) -> None:
        rows = table(f"{number(total)} events", by, ">count")
        for name, n in list(groups.items())[:COUNT_ROWS]:
            rows.add_row(name or "(none)", number(n))
        out.print(rows)
        if len(groups) > COUNT_ROWS:
            out.print(f"the first {COUNT_ROWS} of {number(len(groups))}; --json prints all")

    emit({"count": total, f"by_{by}": groups}, as_json=as_json, render=render)


def _print_events(rows: list[dict[str, Any]], limit: int) -> None:
    out = console()
    if not rows:
        out.print("no event matches")
        return
    # A column that is empty in every row only costs width.
    names = [name for name in rows[0] if any(row[name] not in ("", 0, None) for row in rows)]
    shown = table("", *(f">{name}" if name in NUMBERS else name for name in names), gap=0)
    for row in rows:
        shown.add_row(*("" if row[name] in (0, None) else str(row[name]) for name in names))
    out.print(shown)
    if len(rows) >= limit:
        out.print(f"stopped at --limit {limit}; --count counts them all")


def event_rows(events: Events, session: Session) -> list[dict[str, Any]]:
    """Events as dictionaries for people: symbol, clock time and decimal prices."""
    rows = []
    for e in events:
        aux = e["aux"].tobytes().rstrip(b"\x00 ")
        price = format_price(e["price"], 8 if e["flags"] & EventFlag.PRICE_8DP else session.price_decimals)
        rows.append(
            {
                "seq": int(e["seq"]),
                "time": format_time(e["ts"]),
                "type": chr(e["type"]),
                "symbol": session.directory.symbol(int(e["locate"])),
                "side": chr(e["side"]) if e["side"] else "",
                "price": price if e["type"] in PRICED or e["price"] else None,
                "qty": int(e["qty"]),
                "ref": int(e["ref"]),
                "ref2": int(e["ref2"]),
                "aux": aux.decode("ascii", "backslashreplace"),
            }
        )
    return rows
