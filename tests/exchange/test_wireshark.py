"""Our own sessions as Wireshark sees them, where its `tshark` is installed."""

from __future__ import annotations

import asyncio
import datetime as dt
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trident_exchange import mold, soup
from trident_exchange.client import Client
from trident_exchange.config import Config
from trident_exchange.exchange import Exchange
from trident_exchange.server import Ports, Server
from trident_feed.write import ethernet, pcap, tcp, udp

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed (Debian: apt install tshark)"
)
CLIENT, SERVER, FEED = (b"\x7f\0\0\1", 40_000), (b"\x7f\0\0\1", 26_001), (b"\x7f\0\0\1", 26_400)


class Relay:
    """Passes one connection on, and keeps what went each way, in order."""

    def __init__(self, port: int) -> None:
        self.sent: list[tuple[bool, bytes]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, args=(port,), daemon=True)
        self._thread.start()

    def _run(self, port: int) -> None:
        near, _ = self._listener.accept()
        self._listener.close()
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            back = threading.Thread(target=self._pass, args=(far, near, False), daemon=True)
            back.start()
            self._pass(near, far, True)
            back.join(10)

    def _pass(self, source: socket.socket, target: socket.socket, up: bool) -> None:
        while data := source.recv(1 << 16):
            self.sent.append((up, data))
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

    def finish(self) -> Iterator[tuple[int, bytes]]:
        """The frames of a capture: (ns, frame)."""
        self._thread.join(10)
        numbers = {True: 1, False: 1}
        yield 0, ethernet(tcp(b"", CLIENT, SERVER, 0, 0x02))
        yield 1, ethernet(tcp(b"", SERVER, CLIENT, 0, 0x12))
        for i, (up, data) in enumerate(self.sent):
            for at in range(0, len(data), 1_400):
                part = data[at : at + 1_400]
                ends = (CLIENT, SERVER) if up else (SERVER, CLIENT)
                yield 2 + i, ethernet(tcp(part, *ends, numbers[up]))
                numbers[up] += len(part)


def tshark(path: Path, frames: Any, *options: str) -> list[list[str]]:
    """Rows of fields that tshark finds in a capture of `frames`."""
    path.write_bytes(b"".join(pcap(frames)))
    command = ["tshark", "-r", str(path), "-o", "tcp.check_checksum:FALSE", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def wrong(path: Path, frames: Any, *options: str, also: str = "_ws.malformed") -> list[list[str]]:
    """Numbers of frames that Wireshark complains of."""
    complaints = f"_ws.malformed || _ws.expert.severity >= 8388608 || {also}"
    return tshark(path, frames, *options, "-Y", complaints, "-T", "fields", "-e", "frame.number")


@pytest.fixture
def exchange(tmp_path: Path, make_matcher: Any) -> Iterator[Exchange]:
    config = Config(date=dt.datetime.now(dt.UTC).date() - dt.timedelta(1), symbols=("AAPL",), session="DAY1")
    made = Exchange(tmp_path / "x", config, make_matcher, store="reference")
    yield made
    made.close()


def converse(exchange: Exchange) -> Relay:
    """A session with everything in it, from login to end, by way of a relay."""
    up, made = threading.Event(), {}

    async def run() -> None:
        made["server"], made["loop"] = Server(exchange), asyncio.get_running_loop()
        await made["server"].start(Ports())
        up.set()
        await made["server"].run()

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    assert up.wait(20)
    relay = Relay(made["server"].ports["orders"][0])
    with Client(relay.port, user="ALFA", password="secret") as client:
        for i in range(40):
            client.enter("BS"[i % 2], "AAPL", 10 + i, 10_000 + i % 5)
        client.cancel(1)
        client._send(soup.CLIENT_HEARTBEAT + soup.debug("hello"))
        list(client.messages(0.3))
        made["loop"].call_soon_threadsafe(made["server"].end_day)
        list(client.messages(20))
        assert client.ended
    thread.join(20)
    return relay


def test_our_sessions_are_well_formed_soupbintcp(tmp_path: Path, exchange: Exchange) -> None:
    relay = converse(exchange)
    frames = list(relay.finish())
    names = ("packet_type", "username", "session", "message")
    fields = [option for name in names for option in ("-e", f"soupbintcp.{name}")]
    options = ["-d", f"tcp.port=={SERVER[1]},soupbintcp", "-T", "fields"]
    rows = tshark(tmp_path / "soup.pcap", frames, *options, *fields)
    types = [each.strip("'") for row in rows for each in row[0].split(",") if each]
    ours = [b"", b""]
    for up, data in relay.sent:
        ours[up] += data
    assert ours[True][2:3] == b"L"
    got = soup.ClientEnd().receive(ours[False])
    assert sorted(set(types)) == sorted(
        "LAUSR+Z" + ("H" if "H" in types else "") + ("O" if "O" in types else "")
    )
    sequenced = [each for each in got if isinstance(each, soup.Sequenced)]
    assert types.count("S") == len(sequenced)
    assert types.count("U") == 42
    assert "ALFA" in {row[1].strip() for row in rows}
    assert "DAY1" in {row[2].strip() for row in rows}
    payloads = [bytes.fromhex(each) for row in rows for each in row[3].split(",") if each]
    # Those that look like messages of OUCH 4 go to Wireshark's dissector of that; Accepted does not.
    known = [each.payload for each in sequenced if each.payload[:1] == b"A"]
    assert [each for each in payloads if each in known] == known
    assert wrong(tmp_path / "soup.pcap", frames, *options[:2]) == []


def test_our_datagrams_are_well_formed_moldudp64(tmp_path: Path, exchange: Exchange) -> None:
    converse(exchange)
    feed = exchange.feed
    datagrams, following = [], 1
    while following < feed.next:
        count, blocks = feed.read(following, 1 << 16)
        datagrams += mold.packets("DAY1", following, blocks)
        following += count
    datagrams += [mold.heartbeat("DAY1", following), mold.end_of_session("DAY1", following)]
    frames = [(i, ethernet(udp(each, CLIENT, FEED))) for i, each in enumerate(datagrams)]
    options = ["-d", f"udp.port=={FEED[1]},moldudp64", "-T", "fields"]
    fields = [
        option
        for name in ("session", "sequence", "count", "msgseq")
        for option in ("-e", f"moldudp64.{name}")
    ]
    rows = tshark(tmp_path / "mold.pcap", frames, *options, *fields)
    assert {row[0].strip() for row in rows} == {"DAY1"}
    numbers = [int(each) for row in rows for each in row[3].split(",") if each]
    assert numbers == list(range(1, feed.next))
    assert [row[2] for row in rows[-2:]] == ["0", "65535"]
    for name in ("msglen.invalid", "count.invalid", "end_of_session_extra"):
        assert wrong(tmp_path / "mold.pcap", frames, *options[:2], also=f"moldudp64.{name}") == []
