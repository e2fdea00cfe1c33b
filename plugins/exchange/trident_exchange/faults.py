"""Clients and server killed at random, and then every order looked for: `python -m trident_exchange.faults`.

The server is a process, each client too (`trident_exchange.load`); all kills are SIGKILL. A receiver of the
datagrams listens the whole time, and asks for what it missed. At the end the exchange is read from outside,
and opened once more from its journal, and everything must agree.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from trident_exchange.accounting import Ledger, books_agree, heard, two_sides
from trident_exchange.client import FeedClient, SoupClient, fetch_snapshot
from trident_exchange.load import message_of, read_log

SYMBOLS: Final = ("AAPL", "MSFT", "NVDA", "ZVZZT")
#: A first start may compile the matching engine.
_START_S: Final = 600.0


@dataclass(slots=True)
class Outcome:
    """What was done, and what was wrong."""

    orders: int = 0
    accepted: int = 0
    rejected: int = 0
    replaced: int = 0
    executions: int = 0
    open: int = 0
    shares_executed: int = 0
    server_kills: int = 0
    client_kills: int = 0
    feed_messages: int = 0
    feed_requests: int = 0
    restart_s: list[float] = field(default_factory=list)
    replayed: list[int] = field(default_factory=list)
    seconds: float = 0.0
    digest: str = ""
    problems: list[str] = field(default_factory=list)


class ServerProcess:
    """`trident exchange` as a process that can be killed and started again, on the same ports."""

    def __init__(self, folder: Path, feed_to: str, options: Sequence[str] = ()) -> None:
        self.folder, self.feed_to, self.options = folder, feed_to, options
        self.ports: dict[str, Any] = {}
        self.told: dict[str, Any] = {}
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Raises RuntimeError when it does not come up."""
        ports = self.ports
        command = [
            sys.executable, "-m", "trident_core.cli", "exchange", str(self.folder), "--json",
            "--feed-to", self.feed_to, *self.options,
            "--order-port", str(ports["orders"][0] if ports else 0),
            "--feed-port", str(ports.get("feed", 0)), "--snapshot-port", str(ports.get("snapshot", 0)),
            "--retransmission-port", str(ports.get("retransmission", 0)),
        ]  # fmt: skip
        if not ports:
            command += ["--symbols", ",".join(SYMBOLS)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        out = self.process.stdout
        assert out is not None
        ready, _, _ = select.select([out], [], [], _START_S)
        line = out.readline() if ready else ""
        if not line:
            self.kill()
            raise RuntimeError("the exchange did not start")
        self.told = json.loads(line)
        self.ports = self.told["ports"]

    def kill(self, number: int = signal.SIGKILL) -> str:
        """What it still had to say."""
        process = self.process
        if process is None:
            return ""
        process.send_signal(number)
        rest = process.stdout.read() if process.stdout else ""
        process.wait()
        if process.stdout:
            process.stdout.close()
        self.process = None
        return rest


class ClientProcess:
    """One `trident_exchange.load`."""

    def __init__(self, number: int, orders: int, seed: int, folder: Path, port: int) -> None:
        self.user, self.orders, self.seed = f"C{number}", orders, seed * 1_000 + number
        self.log = folder / f"{self.user}.log"
        self._port = port
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen([
            sys.executable, "-m", "trident_exchange.load", "--port", str(self._port), "--user", self.user,
            "--orders", str(self.orders), "--seed", str(self.seed), "--log", str(self.log),
            "--symbols", ",".join(SYMBOLS), "--patience", "180",
        ])  # fmt: skip

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Receiver(threading.Thread):
    """Receives the datagrams of the feed, and asks for what is missing, until it is stopped."""

    def __init__(self, client: FeedClient) -> None:
        super().__init__(daemon=True)
        self.client = client
        self.messages: list[bytes] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            self.messages += self.client.messages(0.2)

    def finish(self, upto: int, seconds: float) -> None:
        """Wait until it has `upto` messages, or so long."""
        until = time.monotonic() + seconds
        while len(self.messages) < upto and time.monotonic() < until:
            time.sleep(0.05)
        self.stopping.set()
        self.join(5)
        self.client.close()


def run(
    folder: Path, *, clients: int, orders: int, server_kills: int, client_kills: int, seed: int,
    options: Sequence[str] = (),
    say: Callable[[str], None] = lambda text: None,
) -> Outcome:  # fmt: skip
    """`orders` in all, by `clients` clients; the kills are spread over the progress by chance. `options`: of
    `trident exchange`."""
    began = time.monotonic()
    outcome = Outcome(orders=orders)
    feed_port = 20_000 + os.getpid() % 20_000
    server = ServerProcess(folder / "exchange", f"127.0.0.1:{feed_port}", options)
    loads: list[ClientProcess] = []
    receiver: Receiver | None = None
    try:
        server.start()
        receiver = Receiver(FeedClient(("127.0.0.1", feed_port), server.ports["retransmission"]))
        receiver.start()
        each = orders // clients
        loads = [ClientProcess(i + 1, each, seed, folder, server.ports["orders"][0]) for i in range(clients)]
        for load in loads:
            load.start()
        _havoc(server, loads, outcome, server_kills, client_kills, random.Random(seed), say)
        _judge(server, loads, receiver, outcome, say)
    finally:
        for load in loads:
            load.kill()
        server.kill()
        if receiver is not None:
            receiver.stopping.set()
    outcome.seconds = round(time.monotonic() - began, 2)
    return outcome


def _havoc(
    server: ServerProcess, loads: list[ClientProcess], outcome: Outcome, server_kills: int, client_kills: int,
    draw: random.Random, say: Callable[[str], None],
) -> None:  # fmt: skip
    """Kill when the logs have reached points drawn by chance; until every client is done."""
    total = sum(load.orders for load in loads)
    plan = sorted([(draw.uniform(0.02, 0.98), "server") for _ in range(server_kills)]
                  + [(draw.uniform(0.02, 0.95), "client") for _ in range(client_kills)])  # fmt: skip
    while any(load.running() for load in loads) or plan:
        done = _progress(loads) / max(1, total)
        while plan and (done >= plan[0][0] or not any(load.running() for load in loads)):
            at, which = plan.pop(0)
            if which == "server":
                time.sleep(draw.uniform(0, 0.05))
                server.kill()
                outcome.server_kills += 1
                server.start()
                outcome.restart_s.append(server.told["replay_s"])
                outcome.replayed.append(server.told["replayed"])
                say(f"at {at:.0%}: server killed, {server.told['replayed']:,} records read again "
                    f"in {server.told['replay_s']:.1f} s")  # fmt: skip
            elif running := [load for load in loads if load.running()]:
                victim = draw.choice(running)
                victim.kill()
                victim.start()
                outcome.client_kills += 1
                say(f"at {at:.0%}: client {victim.user} killed")
        failed = [load for load in loads if load.process and load.process.poll() not in (None, 0)]
        if failed:
            raise RuntimeError(f"client {failed[0].user} failed")
        time.sleep(0.02)


#: Bytes in a client's log for one of its orders, nearly: how far it is.
_LOG_BYTES: Final = 115


def _progress(loads: list[ClientProcess]) -> float:
    return sum(min(load.log.stat().st_size / _LOG_BYTES, load.orders) for load in loads if load.log.exists())


def _judge(
    server: ServerProcess, loads: list[ClientProcess], receiver: Receiver, outcome: Outcome,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Read the exchange from outside and look for every order."""
    say("reading every stream from its first message")
    ledgers = []
    for load in loads:
        with SoupClient(server.ports["orders"][0], user=load.user, sequence=1) as client:
            stream = [payload for _, payload in client.payloads(1.0)]
        outcome.problems += heard(load.user, list(read_log(load.log)), stream)

        def expected(number: int, seed: int = load.seed) -> Any:
            return message_of(seed, number, SYMBOLS)

        ledger = Ledger(load.user).read(stream, expected)
        sent = (expected(number) for number in range(1, load.orders + 1))
        if lost := ledger.unanswered(sent):
            outcome.problems.append(
                f"{load.user}: {len(lost)} orders without an answer, the first #{lost[0]}"
            )
        outcome.problems += ledger.problems
        ledgers.append(ledger)
    outcome.problems += two_sides(ledgers)
    snapshot, following = fetch_snapshot(server.ports["snapshot"], "AUDIT", timeout=60)
    resting = {
        int.from_bytes(a[11:19], "big"): int.from_bytes(a[20:24], "big") for a in snapshot if a[0] in b"AF"
    }
    outcome.problems += books_agree(ledgers, resting)
    with SoupClient(server.ports["feed"], user="AUDIT", sequence=1) as client:
        feed = [payload for _, payload in client.payloads(1.0)]
    if len(feed) != following - 1:
        outcome.problems.append(f"the feed has {len(feed)} messages, the snapshot says {following - 1}")
    receiver.finish(len(feed), 60)
    if receiver.messages != feed:
        outcome.problems.append(
            f"by datagrams {len(receiver.messages)} messages came, or others than {len(feed)}"
        )
    outcome.feed_messages, outcome.feed_requests = len(feed), receiver.client.requests
    for name in ("accepted", "rejected", "replaced", "shares_executed"):
        setattr(outcome, name, sum(getattr(ledger, name) for ledger in ledgers))
    outcome.executions = sum(len(ledger.executions) for ledger in ledgers)
    outcome.open = sum(len(ledger.open) for ledger in ledgers)
    _circle(server, feed, outcome, say)


def _circle(server: ServerProcess, feed: list[bytes], outcome: Outcome, say: Callable[[str], None]) -> None:
    """The books that the feed makes are the exchange's own."""
    say("making the books again from the feed")
    last = json.loads(server.kill(signal.SIGTERM).strip().splitlines()[-1])
    outcome.digest = digest_of_feed(b"".join(len(each).to_bytes(2, "big") + each for each in feed))
    if outcome.digest != last["digest"]:
        outcome.problems.append("the books made from the feed are not the exchange's")


def digest_of_feed(framed: bytes) -> str:
    """SHA-256 of the books that framed ITCH makes, with the selected parser and book."""
    import numpy as np

    from trident_core.contracts import Kind
    from trident_core.dtypes import EVENT
    from trident_core.plugins import registry
    from trident_core.session import Session

    session = Session()
    parser = registry().select(Kind.PARSER).make(session)
    book = registry().select(Kind.BOOK).make(session)
    events = np.zeros(1 << 16, EVENT)
    data = np.frombuffer(framed, np.uint8)
    while len(data):
        consumed, count, _ = parser.parse_into(data, events)
        book.apply(events[:count])
        data = data[consumed:]
    return str(book.digest().hex())


def main(arguments: list[str] | None = None) -> int:
    """0 when every order is accounted for."""
    parser = argparse.ArgumentParser(prog="python -m trident_exchange.faults", description=__doc__)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--orders", type=int, default=100_000, help="of all clients together")
    parser.add_argument("--server-kills", type=int, default=5)
    parser.add_argument("--client-kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--book", default="numba", help="the matching engine")
    parser.add_argument("--store", default="", help="the journal's store engine; else the selected one")
    parser.add_argument("--folder", type=Path, default=None, help="where to work; else a temporary folder")
    asked = parser.parse_args(arguments)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="trident-faults-") as temporary:
        outcome = run(
            asked.folder or Path(temporary), clients=asked.clients, orders=asked.orders,
            server_kills=asked.server_kills, client_kills=asked.client_kills, seed=asked.seed,
            options=["--book", asked.book, *(["--store", asked.store] if asked.store else [])], say=say,
        )  # fmt: skip
    print(json.dumps(asdict(outcome), indent=1))
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
