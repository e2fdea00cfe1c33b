"""`trident exchange` and `trident order` as a user has them; kills, in small."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trident_core.errors import TridentError, UsageError
from trident_core.stores import reading
from trident_exchange import faults
from trident_exchange.accounting import Ledger, books_agree, heard, two_sides
from trident_exchange.client import Client, price_of
from trident_exchange.command import exchange
from trident_exchange.exchange import Exchange, select_matcher
from trident_exchange.order_command import order
from trident_exchange.ouch import encode
from trident_exchange.ouch import messages as m
from trident_exchange.udp import parse_address


def trident(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trident_core.cli", *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)


class Running:
    """`trident exchange … --json`, started and stopped."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [
            sys.executable,
            "-m",
            "trident_core.cli",
            "exchange",
            str(folder),
            "--json",
            "--feed-to",
            "none",
        ]
        self.process = subprocess.Popen(
            [*command, "--book", "reference", "--store", "reference", *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.told: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.port = str(self.told["ports"]["orders"][0])

    def end(self, number: int) -> dict[str, Any]:
        self.process.send_signal(number)
        out, self.errors = self.process.communicate(timeout=60)
        return json.loads(out.strip().splitlines()[-1]) if out.strip() else {}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Any]:
    made: list[Running] = []

    def start(*options: str) -> Running:
        made.append(Running(tmp_path / "x", *options))
        return made[-1]

    yield start
    for each in made:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


def test_an_exchange_from_its_first_order_to_the_end_of_its_day(running: Any, tmp_path: Path) -> None:
    served = running("--symbols", "AAPL,ZVZZT", "--operate", "--keep-feed")
    said = trident("order", "-p", served.port, "-u", "ALFA", "buy", "100", "aapl", "150.25", "show=30")
    assert said.returncode == 0, said.stderr
    assert "#1 accepted: buy 100 AAPL at 150.25, reference 1" in said.stdout
    lines = (
        "sell 40 AAPL 150\nsell 1 IBM 1\nnonsense\n\nbuy 10 ZVZZT 9.5 ioc\nreplace 1 50 151\nquery\nmass\n"
    )
    said = trident("order", "-p", served.port, "-u", "BETA", "--wait", "2", text=lines)
    assert "#1 executed 30 at 150.25 (removed), match 1" in said.stdout
    assert "#2 rejected: Invalid symbol" in said.stdout
    assert "#3 canceled 10: immediate or cancel" in said.stdout
    assert "error: not an order: 'nonsense'" in said.stderr
    said = trident("order", "-p", served.port, "-u", "ALFA", "--since", "1", "--json", "cancel", "1")
    answers = [json.loads(line) for line in said.stdout.splitlines()]
    assert [each["type"] for each in answers] == [
        "SystemEvent", "AccountQueryResponse", "Accepted", "Executed", "Restated", "Executed", "Canceled",
    ]  # fmt: skip
    served.process.stdin.write("halt AAPL\nbad\n")
    served.process.stdin.flush()
    last = served.end(signal.SIGINT)
    assert served.process.returncode == 0
    assert "error: not a command: 'bad'" in served.errors
    assert (last["orders"], last["live_orders"], last["accounts"]) == (4, 0, 2)
    with reading(tmp_path / "x" / "feed") as (store, _):
        letters = b"".join(bytes(events["type"]) for events in store.snapshot().scan()).decode()
    assert letters.startswith("SRRHHSSAE")
    assert "AEAE" in letters  # the second A is what the order showed next
    again = Exchange(tmp_path / "x", None, select_matcher("reference")[1])
    assert again.core.ended
    again.close()


def test_what_a_kill_leaves_and_what_is_told_of_it(running: Any) -> None:
    served = running("--user", "ALFA:secret")
    with Client(int(served.port), user="ALFA", password="secret") as client:
        client.buy("AAPL", 10, "1")
        said = [next(client.messages(30)) for _ in range(2)]
        following = client.next
    assert served.end(signal.SIGKILL) == {}
    served = running("--user", "ALFA:secret")
    assert served.told["replayed"] == 4  # the opening, the account, its question, its order
    with Client(int(served.port), user="ALFA", password="secret") as client:
        again = [next(client.messages(30)) for _ in range(3)]
        assert [again[0], again[2]] == said
        assert client.next == following
        assert client.new_number() == 2
    last = served.end(signal.SIGTERM)
    assert last["live_orders"] == 1  # SIGTERM does not end the day


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"symbols": "A,A"}, "named twice"),
        ({"book": "nobody"}, "no book engine named"),
        ({"feed_to": "8.8.8.8:1"}, "does not go to"),
        ({"user": ["MUCHTOOLONG"]}, "not a user"),
        ({"ticks": "1:0.01"}, "ticks"),
        ({"allocation": "lifo"}, "no allocation"),
        ({"date": "today"}, "not a date"),
    ],
)
def test_wrong_usage(options: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(TridentError, match=why):
        exchange(tmp_path / "x", **options)
    assert not (tmp_path / "x").exists()
    with pytest.raises(UsageError, match="which port"):
        order(["buy", "1", "A"])


def test_prices_and_addresses() -> None:
    assert (price_of("150.25"), price_of(7), price_of(None)) == (1_502_500, 7, 0x7FFFFFFF)
    assert parse_address("127.0.0.1:26400") == ("127.0.0.1", 26_400)
    for bad in ("x", "0", "1.00001", "-1", "NaN", "1e9"):
        with pytest.raises(UsageError):
            price_of(bad)
    for bad in ("localhost:1", "127.0.0.1", "127.0.0.1:0", "10.0.0.1:5"):
        with pytest.raises(UsageError):
            parse_address(bad)


# --- the accounting itself


def _stream(*messages: m.Outbound) -> list[bytes]:
    return [encode(each) for each in messages]


def _accepted(number: int, quantity: int, reference: int) -> m.Accepted:
    return m.Accepted(0, number, "B", quantity, "A", 1, "0", "Y", reference, "A", "N", "N", "L", "")


def test_the_accounting_finds_what_does_not_add_up() -> None:
    good = Ledger("A").read(_stream(_accepted(1, 10, 5), m.Executed(0, 1, 4, 1, "A", 9)))
    assert good.problems == []
    assert good.open == {1: [5, 6]}
    assert books_agree([good], {5: 6}) == []
    assert books_agree([good], {5: 7}) != []
    assert books_agree([good], {}) != []
    other = Ledger("B").read(_stream(_accepted(1, 4, 6), m.Executed(0, 1, 4, 1, "R", 9)))
    assert two_sides([good, other]) == []
    assert len(two_sides([good])) == 1
    assert len(two_sides([good, good, other])) == 1
    assert Ledger("A").read(_stream(_accepted(1, 10, 5), m.Executed(0, 1, 11, 1, "A", 9))).problems
    assert Ledger("A").read(_stream(_accepted(1, 10, 5), _accepted(1, 10, 6))).problems
    assert Ledger("A").read(_stream(_accepted(1, 1, 5)), lambda number: _order(number, 2)).problems
    assert good.unanswered([_order(1, 10), _order(2, 10)]) == [2]
    assert heard("A", [b"1", b"2"], [b"1", b"2", b"3"]) == []
    assert heard("A", [b"1", b"3"], [b"1", b"2", b"3"]) != []
    assert heard("A", [b"1", b"2"], [b"1"]) != []


def _order(number: int, quantity: int) -> m.EnterOrder:
    return m.EnterOrder(number, "B", quantity, "A", 1, "0", "Y", "A", "N", "N", "")


# --- kills


@pytest.mark.slow
def test_clients_and_server_are_killed_and_every_order_is_accounted_for(tmp_path: Path) -> None:
    """A modest count; the whole one is `python -m trident_exchange.faults --orders 1000000`. Another count
    and engine: TRIDENT_FAULT_ORDERS, TRIDENT_FAULT_BOOK."""
    outcome = faults.run(
        tmp_path, clients=3, orders=int(os.environ.get("TRIDENT_FAULT_ORDERS", "3000")), server_kills=2,
        client_kills=2, seed=7,
        options=["--store", "reference", "--book", os.environ.get("TRIDENT_FAULT_BOOK", "reference")],
    )  # fmt: skip
    assert outcome.problems == []
    assert outcome.server_kills == 2
    assert outcome.accepted + outcome.rejected > 0.8 * outcome.orders
    assert outcome.executions > 0
