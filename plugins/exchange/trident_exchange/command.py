"""`trident exchange FOLDER`: serve an exchange on the loopback interface until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import console, number, table
from trident_core.errors import UsageError

if TYPE_CHECKING:
    from trident_exchange.config import Config
    from trident_exchange.exchange import Exchange
    from trident_exchange.server import Ports, Server, User

_SYMBOLS_HELP = "Symbols by comma, or a file with one in a line. Else eight well-known ones."
_USER_HELP = "NAME:PASSWORD or NAME:PASSWORD:FIRM, may be repeated. Without: anybody, by any name."
_TICKS_HELP = "Ticks by price: 0.0001, or 0:0.0001,1:0.01 (from price:tick)."
_PORT: Any = {"min": 0, "max": 65_535}
_FEED_HELP = "Where the feed's datagrams go: a loopback or multicast address; none for no datagrams."


def exchange(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The exchange's folder; made if not there.")
    ],
    symbols: Annotated[str, typer.Option("--symbols", help=_SYMBOLS_HELP)] = "",
    date: common.Date = None,
    ticks: Annotated[str, typer.Option("--ticks", help=_TICKS_HELP)] = "",
    allocation: Annotated[str, typer.Option("--allocation", help="fifo, pro_rata or size_time.")] = "",
    protection: Annotated[
        str, typer.Option("--protection", help="How far from the touch a market order may go, as a price.")
    ] = "",
    call: Annotated[bool, typer.Option("--call", help="Begin in a call phase, not in trading.")] = False,
    user: Annotated[list[str] | None, typer.Option("--user", help=_USER_HELP)] = None,
    cancel_on_disconnect: Annotated[
        bool, typer.Option("--cancel-on-disconnect", help="Orders go when their user's connection does.")
    ] = False,
    order_port: Annotated[
        list[int] | None, typer.Option("--order-port", help="OUCH over SoupBinTCP; may be repeated.", **_PORT)
    ] = None,
    feed_port: Annotated[int, typer.Option("--feed-port", help="ITCH over SoupBinTCP.", **_PORT)] = 0,
    snapshot_port: Annotated[
        int, typer.Option("--snapshot-port", help="GLIMPSE over SoupBinTCP.", **_PORT)
    ] = 0,
    retransmission_port: Annotated[
        int, typer.Option("--retransmission-port", help="Requests of MoldUDP64.", **_PORT)
    ] = 0,
    feed_to: Annotated[str, typer.Option("--feed-to", help=_FEED_HELP)] = "127.0.0.1:26400",
    messages_per_s: Annotated[
        int, typer.Option("--messages-per-s", min=1, help="Of one user; more wait in its socket.")
    ] = 100_000,
    keep_feed: Annotated[
        bool, typer.Option("--keep-feed", help="Keep the published feed in the store FOLDER/feed.")
    ] = False,
    operate: Annotated[
        bool, typer.Option("--operate", help="Read an operator's commands from standard input.")
    ] = False,
    book: common.BookName = None,
    store: common.StoreName = None,
    json: common.Json = False,
) -> None:
    """Serve an exchange on 127.0.0.1: OUCH 5.0 over SoupBinTCP in; ITCH 5.0 over MoldUDP64 and SoupBinTCP
    out.

    Ports are 0, any free one, unless given; they are printed. What FOLDER holds already is gone on with:
    after Ctrl-C the day is over; after a kill, or SIGTERM, everything is as it was. docs/exchange.md
    """
    from trident_exchange.config import Limits
    from trident_exchange.exchange import Exchange, select_matcher
    from trident_exchange.server import Ports
    from trident_exchange.udp import parse_address

    config = _config(symbols, date, ticks, allocation, protection, call)
    to = None if feed_to == "none" else parse_address(feed_to)
    ports = Ports(tuple(order_port or [0]), feed_port, snapshot_port, retransmission_port, to)
    options = {
        "users": _users(user or []), "limits": Limits(messages_per_s=messages_per_s),
        "cancel_on_disconnect": cancel_on_disconnect,
    }  # fmt: skip
    name, make_matcher = select_matcher(book)
    made = Exchange(folder, config, make_matcher, store=store, keep_feed=keep_feed)
    _run(made, ports, options, name, json, operate)


def _run(
    made: Exchange, ports: Ports, options: dict[str, Any], engine: str, as_json: bool, operate: bool
) -> None:
    import asyncio

    from trident_exchange.server import Server
    from trident_exchange.serving import serve

    async def run() -> Server:
        server = Server(made, **options)
        await serve(server, ports, engine=engine, as_json=as_json, operate=operate)
        return server

    try:
        _summary(asyncio.run(run()), as_json)
    finally:
        made.close()


def _config(
    symbols: str, date: str | None, ticks: str, allocation: str, protection: str, call: bool
) -> Config | None:
    """The configuration that the options name; None when they name none, and the folder's own counts."""
    from trident_core.contracts.matching import Allocation, MarketRules
    from trident_exchange.client import price_of
    from trident_exchange.config import DEFAULT_SYMBOLS, Config
    from trident_exchange.exchange import today

    if not (symbols or date or ticks or allocation or protection or call):
        return None
    rules = MarketRules(
        allocation=common.choice(Allocation, allocation or "fifo", "allocation"),
        ticks=_ticks(ticks) if ticks else ((0, 1),),
        protection=price_of(protection) if protection else 0,
        state="Q" if call else "T",
    )
    return Config(common.parse_date(date) or today(), _symbols(symbols) or DEFAULT_SYMBOLS, rules)


def _symbols(text: str) -> tuple[str, ...]:
    path = Path(text)
    if text and path.is_file():
        text = ",".join(path.read_text(encoding="utf-8").split())
    return common.parse_symbols(text)


def _ticks(text: str) -> tuple[tuple[int, int], ...]:
    from trident_exchange.client import price_of

    bands = []
    for part in common.parse_symbols(text):
        start, _, tick = part.rpartition(":")
        bands.append((0 if start in ("", "0") else price_of(start), price_of(tick)))
    return tuple(bands)


def _users(texts: list[str]) -> dict[str, User]:
    from trident_exchange.server import User

    users = {}
    for text in texts:
        name, _, rest = text.partition(":")
        password, _, firm = rest.partition(":")
        if not 1 <= len(name) <= 6 or len(password) > 10 or len(firm) > 4:
            raise UsageError(
                f"not a user: {text!r}", hint="NAME:PASSWORD[:FIRM] of up to 6, 10 and 4 characters"
            )
        users[name] = User(password, firm)
    return users


def _summary(server: Server, as_json: bool) -> None:
    import json

    stats: dict[str, Any] = server.stats()
    stats["digest"] = server.exchange.digest()
    if as_json:
        print(json.dumps({"event": "ended", **stats}), flush=True)
        return
    rows = table("exchange", "what", ">count")
    for name in ("orders", "executed", "rejected", "ignored", "live_orders", "accounts", "feed_messages",
                 "journal_rows", "batches"):  # fmt: skip
        rows.add_row(name.replace("_", " "), number(stats[name]))
    console().print(rows)
