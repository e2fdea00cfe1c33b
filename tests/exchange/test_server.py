"""The server over real sockets of the loopback interface, in a thread of the test."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trident_core.errors import StoreError, UsageError
from trident_exchange import soup
from trident_exchange.client import Client, FeedClient, LoginError, SoupClient, fetch_snapshot
from trident_exchange.config import Config, Limits
from trident_exchange.exchange import Exchange
from trident_exchange.operating import parse_line
from trident_exchange.ouch import messages as m
from trident_exchange.server import Ports, Server, User

CONFIG = Config(
    date=dt.datetime.now(dt.UTC).date() - dt.timedelta(1), symbols=("AAPL", "MSFT"), session="DAY1"
)
#: Answers are there within this time, on the slowest of machines; seconds.
SOON = 20.0


class Serving:
    """A server in a thread."""

    def __init__(self, folder: Path, make_matcher: Any, ports: Ports | None = None, **options: Any) -> None:
        self.exchange = Exchange(folder, CONFIG, make_matcher, store="reference")
        self.error: BaseException | None = None
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ports or Ports(), options), daemon=True)
        self._thread.start()
        assert self._up.wait(SOON)
        self.ports = self.server.ports
        self.port = self.ports["orders"][0]

    def _run(self, ports: Ports, options: dict[str, Any]) -> None:
        async def run() -> None:
            self.loop = asyncio.get_running_loop()
            self.server = Server(self.exchange, **options)
            await self.server.start(ports)
            self._up.set()
            await self.server.run()

        try:
            asyncio.run(run())
        except BaseException as error:
            self.error = error

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """On the server's thread."""

        async def there() -> Any:
            return function(*arguments)

        return asyncio.run_coroutine_threadsafe(there(), self.loop).result(SOON)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + SOON
        while not self.call(condition):
            assert time.monotonic() < until
            time.sleep(0.01)

    def stop(self, how: str = "stop") -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(getattr(self.server, how))
        self._thread.join(SOON)
        assert not self._thread.is_alive()
        self.exchange.close()


@pytest.fixture
def serve(tmp_path: Path, make_matcher: Any) -> Iterator[Callable[..., Serving]]:
    made: list[Serving] = []

    def start(**options: Any) -> Serving:
        made.append(Serving(tmp_path / f"x{len(made)}", make_matcher, **options))
        return made[-1]

    yield start
    for each in made:
        each.stop()


def names(messages: list[Any]) -> list[str]:
    return [type(each).__name__ for each in messages]


def next_message(client: Client) -> Any:
    return next(iter(client.messages(SOON)))


def test_two_clients_trade_and_one_who_was_away_gets_what_it_missed(serve: Any) -> None:
    serving = serve(ports=Ports(orders=(0, 0)))
    with Client(serving.ports["orders"][1], user="BETA") as beta:
        assert beta.end.session == "DAY1"
        assert names([next_message(beta)]) == ["SystemEvent"]
        with Client(serving.port, user="ALFA") as alfa:
            number = alfa.buy("AAPL", 100, "150.25")
            assert names([next_message(alfa), next_message(alfa)]) == ["SystemEvent", "Accepted"]
            away_since = alfa.next
        beta.sell("AAPL", 60, "150.00")
        assert names([next_message(beta), next_message(beta)]) == ["Accepted", "Executed"]
    with Client(serving.port, user="ALFA", sequence=away_since) as alfa:
        missed = next_message(alfa)
        assert isinstance(missed, m.Executed)
        assert (missed.user_ref_num, missed.quantity, missed.price) == (number, 60, 1_502_500)
        alfa.cancel(number)
        canceled = next_message(alfa)
        assert isinstance(canceled, m.Canceled)
        assert canceled.quantity == 40
    with Client(serving.port, user="ALFA", sequence=1) as alfa:  # all of it, once more
        whole = [next_message(alfa) for _ in range(5)]
        assert names(whole[:3]) == ["SystemEvent", "AccountQueryResponse", "Accepted"]
        assert whole[3:] == [missed, canceled]
        assert list(alfa.messages(0.05)) == []
    with Client(serving.port, user="ALFA", sequence=0) as alfa:  # only what is new
        alfa.send(m.AccountQuery())
        assert next_message(alfa).next_user_ref_num == 2


def test_logins_that_are_refused(serve: Any) -> None:
    serving = serve(users={"ALFA": User("secret", "FIRM")})
    with Client(serving.port, user="ALFA", password="secret", session="DAY1"):
        pass
    for user, password, session, sequence in (
        ("ALFA", "wrong", "", 1), ("NOBODY", "", "", 1), ("ALFA", "secret", "DAY0", 1),
        ("ALFA", "secret", "", 99),
    ):  # fmt: skip
        with pytest.raises(LoginError, match="refused"):
            Client(serving.port, user=user, password=password, session=session, sequence=sequence)
    assert serving.call(lambda: dict(serving.server.refusals)) == {"A": 2, "S": 2}


def test_a_user_who_logs_in_anew_takes_over(serve: Any) -> None:
    serving = serve()
    with Client(serving.port, user="ALFA") as first, Client(serving.port, user="ALFA") as second:
        list(first.messages(SOON))
        assert first.ended
        assert first.debug == ["the user has logged in anew"]
        second.buy("AAPL", 1, "1")
        assert names([next_message(second), next_message(second)])[1] == "Accepted"


def test_heartbeats_go_out_and_silence_is_cut_off(serve: Any) -> None:
    serving = serve(limits=Limits(heartbeat_s=0.05, timeout_s=0.5, login_s=0.5))
    with socket.create_connection(("127.0.0.1", serving.port)) as quiet:
        quiet.settimeout(SOON)
        quiet.sendall(soup.ClientEnd().login("ALFA"))
        data = b""
        while part := quiet.recv(4096):
            data += part
    client = soup.ClientEnd()
    found = client.receive(data)
    assert found.count(soup.Heartbeat()) >= 2
    assert found[-1] == soup.Debug("no heartbeat")
    with socket.create_connection(("127.0.0.1", serving.port)) as silent:
        silent.settimeout(SOON)
        assert silent.recv(4096) == soup.debug("no login")


def test_bytes_that_make_no_sense_end_that_connection_and_no_other(serve: Any) -> None:
    serving = serve()
    with Client(serving.port, user="BETA") as beta:
        for bad, why in (
            (soup.unsequenced(b"Oxx"), "Enter Order is cut in user_ref_num, at offset 3 of the message"),
            (soup.unsequenced(b"?"), "no message of the client has the type"),
            (b"\x00\x01?", "a packet of type b'?'"),
            (soup.unsequenced(b"x" * 2_000), "unsequenced data packet of length 2001"),
        ):
            with Client(serving.port, user="ALFA") as alfa:
                alfa._send(bad)
                list(alfa.messages(SOON))
                assert alfa.ended
                assert why in alfa.debug[0]
        with SoupClient(serving.ports["feed"], user="ALFA") as feed:
            feed._send(soup.unsequenced(b"x"))
            list(feed.payloads(SOON))
            assert "the feed takes no messages" in feed.debug[0]
        beta.buy("AAPL", 1, "1")
        assert names([next_message(beta), next_message(beta)])[1] == "Accepted"


def test_a_reader_who_does_not_read_is_cut_off_and_costs_nobody_anything(serve: Any) -> None:
    serving = serve(limits=Limits(stall_s=0.5, unsent_bytes=1 << 14))
    bulk = b"S" + b"x" * 4_000
    with Client(serving.port, user="SLOW"):
        pass
    serving.call(lambda: serving.exchange.stream(1).append([bulk] * 5_000))  # 20 MB for SLOW
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.connect(("127.0.0.1", serving.port))
        slow.sendall(soup.ClientEnd().login("SLOW"))
        with Client(serving.port, user="FAST") as fast:
            for _ in range(20):
                fast.buy("AAPL", 1, "1")
            assert [type(next_message(fast)).__name__ for _ in range(21)][1:] == ["Accepted"] * 20

        def cut() -> bool:
            return serving.server.refusals.get("slow") == 1

        serving.wait_for(cut)
    with SoupClient(serving.port, user="SLOW") as client:  # who reads gets it all
        assert sum(len(payload) for _, payload in client.payloads(1.0)) > 20_000_000


def test_one_user_may_send_so_many_messages_a_second(serve: Any) -> None:
    serving = serve(limits=Limits(messages_per_s=200, turn_messages=50))
    with Client(serving.port, user="ALFA") as alfa, Client(serving.port, user="BETA") as beta:
        began = time.monotonic()
        for number in range(1, 701):
            alfa.send(m.EnterOrder(number, "B", 1, "AAPL", 10_000, "0", "Y", "A", "N", "N", ""))
        beta.buy("AAPL", 1, "1")
        assert names([next_message(beta), next_message(beta)])[1] == "Accepted"
        accepted = [next_message(alfa) for _ in range(701)]
        assert names(accepted[1:]) == ["Accepted"] * 700
        assert time.monotonic() - began > 2.0  # 200 at once, then 200 a second


def test_orders_go_with_the_connection_where_that_was_asked_for(serve: Any) -> None:
    serving = serve(cancel_on_disconnect=True)
    with Client(serving.port, user="ALFA") as alfa:
        alfa.buy("AAPL", 10, "1")
        assert names([next_message(alfa), next_message(alfa)])[1] == "Accepted"
        following = alfa.next
    with Client(serving.port, user="ALFA", sequence=following) as alfa:
        assert next_message(alfa).reason == "Z"


@pytest.mark.parametrize("host", ["127.0.0.1", "233.252.0.1"])
def test_the_feed_by_every_way_and_the_books_by_a_snapshot(
    serve: Any, host: str, replay: Callable[[bytes, Any], str]
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        address = host, probe.getsockname()[1]
    serving = serve(ports=Ports(to=address))
    with Client(serving.port, user="ALFA") as alfa:
        for i in range(60):
            price = 10_000 + i % 7 * (1 if i % 2 else -1)
            alfa.enter("BS"[i % 2], ("AAPL", "MSFT")[i % 3 % 2], 10 + i, price,
                       display="YA"[i % 5 == 0])  # fmt: skip
        datagrams = FeedClient(
            address, serving.ports["retransmission"]
        )  # late: it must ask for the beginning
        for i in range(60, 120):
            alfa.enter("BS"[i % 2], "AAPL", 10 + i, 10_000 + i % 7 * (1 if i % 2 else -1))
        alfa.send(m.AccountQuery())
        while not (isinstance(last := next_message(alfa), m.AccountQueryResponse) and last[1] == 121):
            pass
    snapshot, following = fetch_snapshot(serving.ports["snapshot"], "ALFA")
    digest = serving.call(serving.exchange.digest)
    by_datagrams: list[bytes] = []
    while len(by_datagrams) < following - 1:
        by_datagrams += datagrams.messages(0.1)
    assert datagrams.requests > 0
    with SoupClient(serving.ports["feed"], user="ALFA") as client:
        feed = client.payloads(SOON)
        by_stream = [next(feed)[1] for _ in range(following - 1)]
        serving.call(serving.server.end_day)
        by_stream += [payload for _, payload in feed]
        assert client.ended
    by_datagrams += datagrams.messages(SOON)
    assert datagrams.reader.ended
    datagrams.close()
    assert by_datagrams == by_stream
    framed = [len(each).to_bytes(2, "big") + each for each in by_stream]
    assert replay(b"".join(framed[: following - 1]), CONFIG.make_session()) == digest
    behind = b"".join(len(each).to_bytes(2, "big") + each for each in snapshot)
    assert replay(behind, CONFIG.make_session()) == digest
    rest = b"".join(framed[following - 1 :])
    assert replay(behind + rest, CONFIG.make_session()) == replay(b"".join(framed), CONFIG.make_session())


def test_the_operator_halts_calls_and_crosses(serve: Any) -> None:
    serving = serve()

    def say(line: str) -> None:
        serving.call(serving.server.operate, parse_line(line, CONFIG.symbols))

    with Client(serving.port, user="ALFA") as alfa, Client(serving.port, user="BETA") as beta:
        for client in (alfa, beta):
            client.new_number()
            next_message(client)
        say("halt AAPL")
        beta.send(m.AccountQuery())
        next_message(beta)
        alfa.buy("AAPL", 10, "1")
        assert next_message(alfa).reason == 7
        alfa.buy("MSFT", 10, "1")
        assert names([next_message(alfa)]) == ["Accepted"]
        say("call aapl")
        say("indicate halt aapl")
        beta.send(m.AccountQuery())
        next_message(beta)
        alfa.buy("AAPL", 10, "1.01")
        assert names([next_message(alfa)]) == ["Accepted"]
        beta.sell("AAPL", 10, "0.99")
        assert names([next_message(beta)]) == ["Accepted"]
        say("cross halt AAPL")
        one, other = next_message(alfa), next_message(beta)
        assert (one.liquidity_flag, one.match_number, one.quantity) == ("H", other.match_number, 10)
    letters = "".join(chr(each[0]) for each in serving.exchange.feed.messages())
    assert "IAACCQH" in letters
    for bad in ("", "buy", "halt IBM", "cross", "end now", "halt AAPL MSFT"):
        with pytest.raises(UsageError, match=r"not a command|no symbol|too much"):
            parse_line(bad, CONFIG.symbols)


def test_the_day_ends_for_whoever_is_there_and_whoever_comes_later(serve: Any, make_matcher: Any) -> None:
    serving = serve()
    with Client(serving.port, user="ALFA") as alfa:
        alfa.buy("AAPL", 10, "1")
        serving.call(serving.server.end_day)
        said = list(alfa.messages(SOON))
        assert [each[1] for each in said[-2:]] == [1, "E"]
        assert alfa.ended
        assert alfa.end.state is soup.State.ENDED
    folder = serving.exchange.folder
    serving._thread.join(SOON)
    serving.exchange.close()
    again = Serving(folder, make_matcher)
    with Client(again.port, user="ALFA") as alfa:
        kept = [each for each in alfa.messages(SOON) if not isinstance(each, m.AccountQueryResponse)]
        assert kept == said
        assert alfa.ended
    again.stop()


def test_a_disk_that_refuses_ends_the_server_and_nothing_is_acknowledged(
    serve: Any, make_matcher: Any
) -> None:
    serving = serve()
    with Client(serving.port, user="ALFA") as alfa:
        alfa.new_number()

        def refuse(records: Any) -> None:
            raise StoreError("the disk is full")

        serving.exchange.journal.append, append = refuse, serving.exchange.journal.append
        alfa.buy("AAPL", 10, "1")
        assert names(list(alfa.messages(SOON))) == ["SystemEvent"]
        assert alfa.ended
    serving._thread.join(SOON)
    assert isinstance(serving.error, StoreError)
    serving.exchange.journal.append = append
    serving.exchange.close()
    again = Serving(serving.exchange.folder, make_matcher)
    with Client(again.port, user="ALFA") as alfa:
        assert alfa.new_number() == 1  # the order never was
    again.stop()


def test_no_more_connections_than_allowed(serve: Any) -> None:
    serving = serve(limits=Limits(connections_max=2))
    with Client(serving.port, user="A"), Client(serving.port, user="B"):
        with pytest.raises(LoginError) as caught:
            Client(serving.port, user="C")
        assert "too many connections" in caught.value.hint
    serving.wait_for(lambda: not serving.server.connections)
    Client(serving.port, user="C").close()
