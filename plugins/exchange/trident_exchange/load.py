"""A client that sends orders as fast as they are taken, and can be killed at any moment: `python -m
trident_exchange.load`.

Its message number k is a function of its seed and k, and has the UserRefNum k. All that it is told goes
into a log; when it is started again it goes on with the message after the log's last, and sends on from the
number that the exchange says is free. So whatever is killed, the log must be the beginning of the account's
stream.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from trident_exchange import soup
from trident_exchange.client import HOST
from trident_exchange.ouch import encode
from trident_exchange.ouch import messages as m
from trident_exchange.ouch.layout import OUTBOUND_BY_TYPE

#: Messages between two questions of how far the exchange is; two questions may be open.
CHUNK: Final = 256
_PRICE, _TICK = 1_000_000, 100
_QUERY: Final = soup.unsequenced(encode(m.AccountQuery()))
_QUERY_ANSWER: Final = OUTBOUND_BY_TYPE[ord("Q")].packer


def message_of(seed: int, number: int, symbols: tuple[str, ...]) -> m.Inbound:
    """The message with the UserRefNum `number`: 85 % orders near the money, 5 % of them at once or not at
    all, 15 % replaces of a recent number."""
    draw = random.Random(seed << 32 | number)
    kind = draw.random()
    quantity = draw.randint(1, 400)
    price = _PRICE + draw.randint(-20, 20) * _TICK
    if kind < 0.85 or number < 3:
        side = draw.choice("BS")
        tif = "3" if kind < 0.05 else "0"
        symbol = draw.choice(symbols)
        return m.EnterOrder(number, side, quantity, symbol, price, tif, "Y", "P", "N", "N", f"{number}")
    old = max(1, number - draw.randint(1, 60))
    return m.ReplaceOrder(old, number, quantity, price, "0", "Y", "N", f"{number}")


def cancel_of(seed: int, number: int) -> m.CancelOrder | None:
    """The cancel that is sent behind message `number`, of 45 % of them."""
    draw = random.Random(seed << 33 | number)
    if draw.random() >= 0.45:
        return None
    return m.CancelOrder(
        max(1, number - draw.randint(5, 80)), 0 if draw.random() < 0.8 else draw.randint(1, 300)
    )


def read_log(path: Path) -> Iterator[bytes]:
    """The messages of a log: each behind its 2-byte length. A torn last one is left out."""
    data = path.read_bytes() if path.exists() else b""
    at = 0
    while at + 2 <= len(data):
        end = at + 2 + (data[at] << 8 | data[at + 1])
        if end > len(data):
            break
        yield data[at + 2 : end]
        at = end


class Load:
    """One client. `port` is the exchange's order port."""

    def __init__(
        self,
        port: int,
        user: str,
        orders: int,
        seed: int,
        log: Path,
        symbols: tuple[str, ...],
        patience_s: float,
    ) -> None:
        self.port, self.user, self.orders, self.seed = port, user, orders, seed
        self.symbols, self.patience_s = symbols, patience_s
        known = list(read_log(log))
        self.following = len(known) + 1
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(self._log, sum(2 + len(each) for each in known))
        self.free = 0
        self.sent = 0
        self.asked = 0
        self.round_trips: list[float] = []
        self._times: list[float] = []

    def run(self) -> None:
        """Until the exchange has taken every message. Raises OSError when no connection has brought anything
        for `patience_s`, however long the last one that did had lasted."""
        until = time.monotonic() + self.patience_s
        while True:
            before = self.following
            try:
                with socket.create_connection((HOST, self.port), timeout=5) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    if self._converse(connection):
                        return
            except OSError:
                if self.following == before and time.monotonic() > until:
                    raise
            if self.following > before:
                until = time.monotonic() + self.patience_s
            time.sleep(0.05)

    def _converse(self, connection: socket.socket) -> bool:
        """One connection; whether all is done."""
        end = soup.ClientEnd()
        connection.sendall(end.login(self.user, sequence=self.following))
        connection.setblocking(False)
        self.free = self.asked = self.sent = 0
        self._times.clear()
        out = bytearray()
        while True:
            if end.state is soup.State.OPEN:
                if not self.asked:
                    self._ask(out)
                elif self.free > self.orders and not self._times and not out:
                    connection.setblocking(True)
                    connection.sendall(soup.LOGOUT)
                    return True
                elif len(out) < 1 << 15 and len(self._times) < 2 and self.free and self.sent <= self.orders:
                    self._chunk(out)
            ready, writable, _ = select.select([connection], [connection] if out else [], [], 1.0)
            if not ready and not writable:
                out += soup.CLIENT_HEARTBEAT
            if writable:
                del out[: connection.send(out)]
            if ready:
                data = connection.recv(1 << 18)
                if not data:
                    return False
                self._take(end.receive(data))
                if end.state is soup.State.ENDED:
                    return False

    def _ask(self, out: bytearray) -> None:
        out += _QUERY
        self.asked += 1
        self._times.append(time.perf_counter())

    def _chunk(self, out: bytearray) -> None:
        for number in range(self.sent, min(self.sent + CHUNK, self.orders + 1)):
            out += soup.unsequenced(encode(message_of(self.seed, number, self.symbols)))
            cancel = cancel_of(self.seed, number)
            if cancel is not None:
                out += soup.unsequenced(encode(cancel))
        self.sent = min(self.sent + CHUNK, self.orders + 1)
        self._ask(out)

    def _take(self, found: list[Any]) -> None:
        log = bytearray()
        for each in found:
            if isinstance(each, soup.Sequenced):
                payload = each.payload
                log += len(payload).to_bytes(2, "big") + payload
                self.following += 1
                if payload[0] == 81:  # Q
                    self.free = _QUERY_ANSWER.unpack_from(payload)[1]
                    if self._times:  # else it answers a question of a connection that is gone
                        self.round_trips.append(time.perf_counter() - self._times.pop(0))
                    self.sent = max(self.sent, self.free)
        if log:
            os.write(self._log, log)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trident_exchange.load", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--user", required=True)
    parser.add_argument("--orders", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--log", type=Path, required=True, help="what the exchange said; read first if it is there"
    )
    parser.add_argument("--symbols", default="AAPL,MSFT", help="by comma")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds to try to connect")
    asked = parser.parse_args(arguments)
    load = Load(
        asked.port,
        asked.user,
        asked.orders,
        asked.seed,
        asked.log,
        tuple(asked.symbols.split(",")),
        asked.patience,
    )
    with suppress(KeyboardInterrupt):
        load.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
