"""The server: sockets of the loopback interface around an exchange, and the loop that makes batches of what
comes.

A batch is what has come while the one before it was made durable: a group commit. Nothing of a batch is
sent before its records are on the disk. If the disk refuses them the server ends, and has acknowledged
nothing of them.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from trident_exchange.config import Limits
from trident_exchange.connections import Connection, Desk, ItchConnection
from trident_exchange.desks import Counter, FeedDesk, OrderDesk, SnapshotDesk
from trident_exchange.exchange import Exchange
from trident_exchange.journal import Record, What
from trident_exchange.open_orders import Account
from trident_exchange.udp import FeedSender, Retransmitter

HOST: Final = "127.0.0.1"
_TICK_S: Final = 0.1
#: How long the last messages may take to leave when the server ends.
_DRAIN_S: Final = 3.0


class User(NamedTuple):
    """Who may log in. `firm`: up to four letters, the user's own name if empty."""

    password: str = ""
    firm: str = ""


@dataclass(slots=True)
class Ports:
    """What to listen on; 0 is any port that is free. `orders` may be several. `to`: where the feed's
    datagrams go."""

    orders: tuple[int, ...] = (0,)
    feed: int = 0
    snapshot: int = 0
    retransmission: int = 0
    to: tuple[str, int] | None = None


@dataclass(slots=True)
class _Waiting:
    """What has to be done between two batches."""

    accounts: deque[tuple[str, Callable[[Account], None]]] = field(default_factory=deque)
    commands: deque[tuple[bytes, Callable[[], None] | None]] = field(default_factory=deque)
    calls: list[Callable[[], None]] = field(default_factory=list)


class Server:
    """Serves `exchange` until `stop` is called. `users`: name -> User; empty: anybody may log in, by any
    name."""

    def __init__(
        self, exchange: Exchange, *, limits: Limits | None = None, users: dict[str, User] | None = None,
        cancel_on_disconnect: bool = False,
    ) -> None:  # fmt: skip
        self.exchange = exchange
        self.limits = limits or Limits()
        self.users = users or {}
        self.cancel_on_disconnect = cancel_on_disconnect
        self.connections: set[Connection] = set()
        self.refusals: dict[str, int] = {}
        self.batches = 0
        self.batch_s = 0.0
        self.ports: dict[str, Any] = {}
        self.sender: FeedSender | None = None
        self.retransmitter = Retransmitter(exchange, self.limits.requests_per_s)
        self._orders, self._feed = OrderDesk(self), FeedDesk(self)
        self._counters: dict[int, Counter] = {}
        self._turn = 0
        self._waiting = _Waiting()
        self._busy = self._stopping = False
        self._awake = asyncio.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="journal")

    # --- life

    async def start(self, ports: Ports) -> dict[str, Any]:
        """Open the sockets; name -> port. Raises OSError for a port that is taken."""
        loop = asyncio.get_running_loop()
        self._servers: list[asyncio.base_events.Server] = []

        async def listen(desk: Desk, kind: type[Connection], port: int) -> int:
            server = await loop.create_server(lambda: kind(desk), HOST, port)
            self._servers.append(server)
            return int(server.sockets[0].getsockname()[1])

        self.ports = {
            "orders": [await listen(self._orders, Connection, port) for port in ports.orders],
            "feed": await listen(self._feed, ItchConnection, ports.feed),
            "snapshot": await listen(SnapshotDesk(self), ItchConnection, ports.snapshot),
        }
        self._datagrams, _ = await loop.create_datagram_endpoint(
            lambda: self.retransmitter, local_addr=(HOST, ports.retransmission)
        )
        self.ports["retransmission"] = self._datagrams.get_extra_info("sockname")[1]
        if ports.to:
            self.sender = FeedSender(self.exchange, ports.to, self.limits.heartbeat_s)
            self.ports["to"] = "{}:{}".format(*ports.to)
        return self.ports

    async def run(self) -> None:
        """Until `stop`. Raises StoreError when the journal cannot be written: then nothing more is said."""
        ticking = asyncio.create_task(self._tick())
        try:
            while not self._stopping:
                await self._awake.wait()
                self._awake.clear()
                if not self._stopping:
                    await self._batch()
            await self._drain()
        finally:
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)
            await self._close()

    def stop(self) -> None:
        """Leave, as if for a moment: the day goes on when the exchange is opened again."""
        self._stopping = True
        self._awake.set()

    def end_day(self) -> None:
        """Cancel what is open, tell everybody that the day is over, and leave."""
        self.operate({"do": "end"}, then=self.stop)

    def operate(self, asked: dict[str, Any], then: Callable[[], None] | None = None) -> None:
        """Carry out an operator's command; `then` is called when all have been told."""
        self._waiting.commands.append((json.dumps(asked).encode(), then))
        self.wake()

    # --- what the desks ask for

    def wake(self) -> None:
        self._awake.set()

    def between_batches(self, call: Callable[[], None]) -> None:
        """Call when the streams have everything that the exchange has done."""
        if self._busy:
            self._waiting.calls.append(call)
        else:
            call()

    def open_account(self, name: str, then: Callable[[Account], None]) -> None:
        self._waiting.accounts.append((name, then))
        self.wake()

    def counter(self, account: Account) -> Counter:
        found = self._counters.get(account.number)
        if found is None:
            found = self._counters[account.number] = Counter(account, self.limits.messages_per_s)
        return found

    def disconnected(self, counter: Counter) -> None:
        """The user has gone, and so do its orders where that was asked for, after the messages that it
        left."""
        if self.exchange.core.cancels_on_disconnect(counter.account) and not self.exchange.core.ended:
            counter.inbox.append((b"", None))
            self.wake()

    # --- batches

    async def _batch(self) -> None:
        calls, self._waiting.calls = self._waiting.calls, []
        records, opened = self._collect(calls)
        if records:
            began = time.perf_counter()
            self._busy = True
            durable = asyncio.get_running_loop().run_in_executor(
                self._pool, self.exchange.journal.append, records
            )
            try:
                self.exchange.core.apply(records)
            finally:
                await durable
            self.exchange.release()
            self._busy = False
            self.batches += 1
            self.batch_s += time.perf_counter() - began
        for name, then in opened:
            account = self.exchange.account(name)
            assert account is not None
            then(account)
        calls += self._waiting.calls
        self._waiting.calls = []
        self._pump(records)
        for call in calls:
            call()

    def _collect(
        self, calls: list[Callable[[], None]]
    ) -> tuple[list[Record], list[tuple[str, Callable[[Account], None]]]]:
        """The records of the next batch: every account has its turn. `calls` gains what is to follow them."""
        ts, now = self.exchange.clock(), time.monotonic()
        records: list[Record] = []
        opened = []
        if self._waiting.accounts:  # one at a time: an account's number follows from those before it
            name, then = self._waiting.accounts.popleft()
            opened.append((name, then))
            if self.exchange.account(name) is None:
                firm = self.users.get(name, User()).firm or name[:4].upper()
                records.append(self.exchange.account_record(name, firm, self.cancel_on_disconnect))
        due = self.exchange.core.next_expiry()
        if due is not None and due <= ts and not self.exchange.core.ended:
            records.append(Record(What.TIME, 0, ts, b""))
        counters = list(self._counters.values())
        self._turn = (self._turn + 1) % max(1, len(counters))
        for counter in counters[self._turn :] + counters[: self._turn]:
            self._take(counter, records, ts, now)
        while self._waiting.commands:
            data, after = self._waiting.commands.popleft()
            records.append(Record(What.COMMAND, 0, ts, data))
            if after:
                calls.append(after)
        if self._waiting.accounts:
            self.wake()
        return records, opened

    def _take(self, counter: Counter, records: list[Record], ts: int, now: float) -> None:
        inbox, limits = counter.inbox, self.limits
        if not inbox:
            return
        wanted = min(len(inbox), limits.turn_messages, limits.batch_messages - len(records))
        number = counter.account.number
        for _ in range(counter.may_take(wanted, now)):
            data, message = inbox.popleft()
            what = What.MESSAGE if data else What.GONE
            records.append(Record(what, number, ts, data, message))
        if inbox and counter.exhausted:
            asyncio.get_running_loop().call_later(0.01, self.wake)
        elif inbox:
            self.wake()
        if counter.held and len(inbox) <= limits.turn_messages:
            counter.held = False
            if counter.connection is not None:
                counter.connection.hold(False)

    def _pump(self, records: list[Record]) -> None:
        """Send what the batch has made."""
        if not records:
            return
        for connection in list(self.connections):
            connection.pump()
        if self.sender is not None:
            self.sender.pump()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            now = time.monotonic()
            for connection in list(self.connections):
                connection.tick(now)
            if self.sender is not None:
                self.sender.tick(now)
            due = self.exchange.core.next_expiry()
            if due is not None and due <= time.time_ns() - self.exchange.session.midnight_ns():
                self.wake()

    async def _drain(self) -> None:
        for server in self._servers:
            server.close()
        until = time.monotonic() + _DRAIN_S
        while self.exchange.core.ended and self.connections and time.monotonic() < until:
            for connection in list(self.connections):
                connection.pump()
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.close()
        until = min(until, time.monotonic() + 0.5)
        while self.connections and time.monotonic() < until:
            await asyncio.sleep(0.01)

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for connection in list(self.connections):
            connection.abort()
        self._datagrams.close()
        if self.sender is not None:
            self.sender.close()
        await asyncio.sleep(0.01)  # for the connections' last calls
        self._pool.shutdown()

    def stats(self) -> dict[str, Any]:
        """What was done since the start, by name."""
        core = self.exchange.core
        return {
            **core.counts, "accounts": len(core.accounts), "connections": len(self.connections),
            "live_orders": core.matcher.live_orders(), "feed_messages": self.exchange.feed.next - 1,
            "journal_rows": self.exchange.journal.rows, "batches": self.batches,
            "batch_s": round(self.batch_s, 3), "refusals": dict(self.refusals),
            "datagrams": self.sender.sent if self.sender else 0,
            "datagrams_lost": self.sender.lost if self.sender else 0,
            "requests_answered": self.retransmitter.answered, "requests_refused": self.retransmitter.refused,
        }  # fmt: skip
