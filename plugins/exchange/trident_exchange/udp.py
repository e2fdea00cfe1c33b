"""The feed over MoldUDP64: datagrams to one address, unicast or multicast, and a service that sends them
again."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from contextlib import suppress
from typing import Any, Final, cast

from trident_core.errors import UsageError
from trident_exchange import mold
from trident_exchange.exchange import Exchange

#: Bytes of the stream that are read at a time.
_CHUNK: Final = 1 << 16
#: Addresses whose requests are counted at a time.
_ADDRESSES_MAX: Final = 1_024


def parse_address(text: str) -> tuple[str, int]:
    """'127.0.0.1:26400' as (host, port). Raises UsageError for what is neither loopback nor multicast."""
    host, _, port = text.rpartition(":")
    try:
        address = ipaddress.IPv4Address(host)
        number = int(port)
    except ValueError:
        raise UsageError(
            f"not an address: {text!r}", hint="write 127.0.0.1:26400 or 233.252.0.1:26400"
        ) from None
    if not (address.is_loopback or address.is_multicast) or not 0 < number < 65_536:
        raise UsageError(
            f"the feed does not go to {text}", hint="a loopback or a multicast address, port 1 to 65535"
        )
    return host, number


class FeedSender:
    """Sends what the feed has gained. A datagram that the socket does not take is lost, as on any network:
    the next ones tell its receivers that it is missing."""

    def __init__(self, exchange: Exchange, to: tuple[str, int], heartbeat_s: float) -> None:
        self.to = to
        self.sent = self.lost = 0
        self._exchange = exchange
        self._heartbeat_s = heartbeat_s
        self._next = exchange.feed.next
        self._last = time.monotonic()
        self._ended = False
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 0)  # never beyond this host
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))

    def pump(self) -> None:
        """Send the messages that are new; when the day is over, its end."""
        feed, session = self._exchange.feed, self._exchange.config.session
        while self._next < feed.next:
            count, data = feed.read(self._next, _CHUNK)
            for datagram in mold.packets(session, self._next, data):
                self._send(datagram)
            self._next += count
        if self._exchange.core.ended and not self._ended:
            self._ended = True
            self._send(mold.end_of_session(session, self._next))

    def tick(self, now: float) -> None:
        """A heartbeat, or the end of the session once more, when nothing was sent for a while."""
        if now - self._last >= self._heartbeat_s:
            session = self._exchange.config.session
            make = mold.end_of_session if self._ended else mold.heartbeat
            self._send(make(session, self._next))

    def close(self) -> None:
        self._socket.close()

    def _send(self, datagram: bytes) -> None:
        self._last = time.monotonic()
        try:
            self._socket.sendto(datagram, self.to)
            self.sent += 1
        except OSError:  # full, or nobody there: the receivers ask for it
            self.lost += 1


class Retransmitter(asyncio.DatagramProtocol):
    """Answers each request with one datagram of the messages asked for, as many as fit; none for what has
    not been published. Of one address `requests_per_s` are answered, the others are left out and
    counted."""

    def __init__(self, exchange: Exchange, requests_per_s: int) -> None:
        self.answered = self.refused = 0
        self._exchange = exchange
        self._limit = requests_per_s
        self._second = 0
        self._asked: dict[Any, int] = {}
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        second = int(time.monotonic())
        if second != self._second:
            self._second = second
            self._asked.clear()
        asked = self._asked.get(addr, 0)
        if asked >= self._limit or len(self._asked) >= _ADDRESSES_MAX:
            self.refused += 1
            return
        self._asked[addr] = asked + 1
        try:
            request = mold.decode_request(data)
        except mold.MoldError:
            self.refused += 1
            return
        session, feed = self._exchange.config.session, self._exchange.feed
        if request.session != session or self._transport is None:
            self.refused += 1
            return
        _, blocks = feed.read(request.sequence, mold.DATAGRAM_MAX - 20)
        found = mold.packets(session, request.sequence, _first(blocks, request.count))
        if found:
            self.answered += 1
            with suppress(OSError):
                self._transport.sendto(found[0], addr)


def _first(blocks: bytes, count: int) -> bytes:
    at = 0
    for _ in range(count):
        if at >= len(blocks):
            break
        at += 2 + (blocks[at] << 8 | blocks[at + 1])
    return blocks[:at]
