"""A server in the foreground: where it listens, a line that tells how it goes, signals, an operator's
lines."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Final

from trident_core.cli.output import console, number, print_error, table
from trident_core.errors import TridentError
from trident_exchange.operating import parse_line
from trident_exchange.server import Ports, Server

_SHOWN_S: Final = 1.0


async def serve(server: Server, ports: Ports, *, engine: str, as_json: bool, operate: bool) -> None:
    """Run `server` until Ctrl-C, which ends the day, or SIGTERM, which does not."""
    loop = asyncio.get_running_loop()
    where = await server.start(ports)
    loop.add_signal_handler(signal.SIGINT, server.end_day)
    loop.add_signal_handler(signal.SIGTERM, server.stop)
    _tell(server, where, engine, as_json)
    if operate:
        threading.Thread(target=_read_operator, args=(server, loop), daemon=True).start()
    showing = asyncio.create_task(_show(server)) if sys.stderr.isatty() and not as_json else None
    try:
        await server.run()
    finally:
        for number_ in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number_)
        if showing:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)


def _tell(server: Server, where: dict[str, Any], engine: str, as_json: bool) -> None:
    exchange = server.exchange
    if as_json:
        told = {
            "event": "listening", "ports": where, "session": exchange.config.session, "engine": engine,
            "date": exchange.config.date.isoformat(), "replayed": exchange.replayed,
            "replay_s": round(exchange.replay_s, 3), "torn_rows": exchange.journal.torn_rows,
            "ended": exchange.core.ended,
        }  # fmt: skip
        print(json.dumps(told), flush=True)
        return
    rows = table(f"exchange in {exchange.folder}, session {exchange.config.session}", "service", "~where")
    rows.add_row(
        "orders: OUCH 5.0 over SoupBinTCP", ", ".join(f"127.0.0.1:{port}" for port in where["orders"])
    )
    rows.add_row("feed: ITCH 5.0 over SoupBinTCP", f"127.0.0.1:{where['feed']}")
    rows.add_row("feed: ITCH 5.0 over MoldUDP64", where.get("to", "none"))
    rows.add_row("retransmission: MoldUDP64", f"127.0.0.1:{where['retransmission']}")
    rows.add_row("snapshots: GLIMPSE 5.0", f"127.0.0.1:{where['snapshot']}")
    rows.add_row("symbols", f"{len(exchange.config.symbols)}: {', '.join(exchange.config.symbols[:8])}")
    rows.add_row("matching", f"{engine}, {exchange.config.rules.allocation}")
    out = console()
    out.print(rows)
    if exchange.replayed:
        out.print(f"read again: {number(exchange.replayed)} records in {exchange.replay_s:.1f} s")
    if exchange.core.ended:
        out.print("the day of this folder is over: streams and snapshots are served, no orders are taken")
    out.print(f"try: trident order --port {where['orders'][0]} buy 100 {exchange.config.symbols[0]} 150.25")
    out.print("Ctrl-C ends the day")


async def _show(server: Server) -> None:
    """One line on the terminal, anew every second."""
    counts, before = server.exchange.core.counts, time.monotonic()
    orders, messages = counts["orders"], counts["messages"]
    with suppress(OSError):
        while True:
            await asyncio.sleep(_SHOWN_S)
            now = time.monotonic()
            rate = (counts["orders"] - orders) / (now - before)
            busy = (counts["messages"] - messages) / (now - before)
            orders, messages, before = counts["orders"], counts["messages"], now
            text = (
                f"{rate:,.0f} orders/s, {busy:,.0f} messages/s; {counts['orders']:,} orders, "
                f"{server.exchange.core.matcher.live_orders():,} live; "
                f"{len(server.connections)} connections; feed at {server.exchange.feed.next:,}"
            )
            print(f"\r\x1b[K{text[:120]}", end="", file=sys.stderr, flush=True)


def _read_operator(server: Server, loop: asyncio.AbstractEventLoop) -> None:
    """Lines of standard input, in a thread of their own."""
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            asked = parse_line(line, server.exchange.config.symbols)
        except TridentError as error:
            print_error(error)
            continue
        end = server.stop if asked["do"] == "end" else None
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(server.operate, asked, end)
