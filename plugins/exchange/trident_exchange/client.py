"""Clients: orders by OUCH, the feed by MoldUDP64 or SoupBinTCP, snapshots by GLIMPSE. With plain, blocking
sockets.

    with Client(port=26001, user="ALFA") as client:
        number = client.buy("AAPL", 100, "150.25")
        for message in client.messages(wait=1.0):
            print(message)

`Client.next` is the number of the next message of the account: give it to the next login, and nothing is
missed.
"""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from types import TracebackType
from typing import Any, Final

from trident_core.errors import InputError, UsageError
from trident_exchange import glimpse, mold, soup
from trident_exchange.ouch import decode_outbound, encode
from trident_exchange.ouch import messages as m
from trident_exchange.ouch.codes import MARKET_PRICE

HOST: Final = "127.0.0.1"
_CHUNK: Final = 1 << 16


class LoginError(InputError):
    """The login was refused, or nobody answered it."""


def price_of(price: str | int | None) -> int:
    """'150.25' as 1502500; an int is taken as it is, None is a market order. Raises UsageError."""
    if price is None:
        return MARKET_PRICE
    if isinstance(price, int):
        return price
    try:
        value = Decimal(price) * 10_000
    except InvalidOperation:
        raise UsageError(f"not a price: {price!r}", hint="write 150.25") from None
    if value != value.to_integral_value() or not 0 < value < MARKET_PRICE:
        raise UsageError(f"not a price: {price!r}", hint="more than 0, at most 4 decimals")
    return int(value)


class SoupClient:
    """One connection of SoupBinTCP. Heartbeats are sent whenever it is used; use it at least every 15 s."""

    def __init__(
        self, port: int, *, user: str, password: str = "", host: str = HOST, sequence: int = 1,
        session: str = "", timeout: float = 5.0,
    ) -> None:  # fmt: skip
        """Connect and log in. Raises LoginError, OSError."""
        self.end = soup.ClientEnd()
        self.ended = False
        self.debug: list[str] = []
        self._found: deque[tuple[int, bytes]] = deque()
        self._sent = time.monotonic()
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._send(self.end.login(user, password, session, sequence))
            self._await_login(timeout)
        except BaseException:
            self.socket.close()
            raise

    def _await_login(self, timeout: float) -> None:
        until = time.monotonic() + timeout
        while self.end.state is soup.State.LOGIN:
            left = until - time.monotonic()
            if left <= 0 or self.ended:
                raise LoginError(
                    "no answer to the login", hint="; ".join(self.debug) or "is that the right port?"
                )
            self._receive(left)

    @property
    def next(self) -> int:
        """The number of the message that `payloads` gives next."""
        return self._found[0][0] if self._found else self.end.next

    def payloads(self, wait: float = 0.0) -> Iterator[tuple[int, bytes]]:
        """(number, message) of what has come, and comes within `wait` seconds of the last one."""
        until = time.monotonic() + wait
        while True:
            while self._found:
                yield self._found.popleft()
                until = time.monotonic() + wait
            if self.ended:
                return
            self._receive(max(0.0, until - time.monotonic()))
            if not self._found and time.monotonic() >= until:
                return

    def close(self, *, logout: bool = True) -> None:
        if logout and not self.ended:
            with suppress(OSError):
                self.socket.sendall(soup.LOGOUT)
        self.socket.close()

    def _send(self, data: bytes) -> None:
        self.socket.sendall(data)
        self._sent = time.monotonic()

    def _receive(self, wait: float) -> None:
        """Read once, unless nothing comes in time."""
        until = time.monotonic() + wait
        while True:
            if time.monotonic() - self._sent > soup.HEARTBEAT_S and not self.ended:
                self._send(soup.CLIENT_HEARTBEAT)
            left = max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self.socket], [], [], min(left, soup.HEARTBEAT_S))
            if ready:
                break
            if time.monotonic() >= until:
                return
        try:
            data = self.socket.recv(_CHUNK)
        except ConnectionResetError:
            data = b""
        if not data:
            self.ended = True
        for each in self.end.receive(data):
            if isinstance(each, soup.Sequenced):
                self._found.append((each.sequence, each.payload))
            elif isinstance(each, soup.Debug):
                self.debug.append(each.text)
            elif isinstance(each, soup.Refused):
                why = {"A": "not authorized", "S": "no such session, or number of a message"}.get(
                    each.code, each.code
                )
                raise LoginError(f"the login was refused: {why}", hint="user, password, session, sequence?")
            elif isinstance(each, soup.EndOfSession):
                self.ended = True

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Client(SoupClient):
    """Orders by OUCH 5.0. Numbers (UserRefNum) are counted from what the exchange says is free."""

    def __init__(self, port: int, *, user: str, **options: Any) -> None:
        super().__init__(port, user=user, **options)
        self._free = 0
        self._early: deque[m.Outbound] = deque()

    def send(self, message: m.Inbound) -> None:
        """Any message of OUCH. Raises OuchError for what the wire cannot hold."""
        self._send(soup.unsequenced(encode(message)))

    def messages(self, wait: float = 0.0) -> Iterator[m.Outbound]:
        """What the exchange has said, and says within `wait` seconds of the last message."""
        while self._early:
            yield self._early.popleft()
        for _, payload in self.payloads(wait):
            yield decode_outbound(payload)

    def new_number(self) -> int:
        """A UserRefNum that is free. The first time the exchange is asked for it."""
        if not self._free:
            self.send(m.AccountQuery())
            for _, payload in self.payloads(5.0):
                message = decode_outbound(payload)
                if isinstance(message, m.AccountQueryResponse):
                    self._free = message.next_user_ref_num
                    break
                self._early.append(message)
            else:
                raise InputError("the exchange does not say which number is free", hint="is it up?")
        self._free += 1
        return self._free - 1

    def buy(self, symbol: str, quantity: int, price: str | int | None = None, **changes: Any) -> int:
        """Enter an order to buy; its number. `changes`: fields of `messages.EnterOrder`."""
        return self.enter("B", symbol, quantity, price, **changes)

    def sell(self, symbol: str, quantity: int, price: str | int | None = None, **changes: Any) -> int:
        return self.enter("S", symbol, quantity, price, **changes)

    def enter(
        self, side: str, symbol: str, quantity: int, price: str | int | None = None, **changes: Any
    ) -> int:
        number = self.new_number()
        order = m.EnterOrder(number, side, quantity, symbol, price_of(price), "0", "Y", "A", "N", "N", "")
        self.send(order._replace(**changes) if changes else order)
        return number

    def replace(self, number: int, quantity: int, price: str | int, **changes: Any) -> int:
        """Replace an order; the heir's number. `quantity` counts what was executed already."""
        new = self.new_number()
        request = m.ReplaceOrder(number, new, quantity, price_of(price), "0", "Y", "N", "")
        self.send(request._replace(**changes) if changes else request)
        return new

    def cancel(self, number: int, quantity: int = 0) -> None:
        """Cancel what rests of an order, or leave `quantity` of it, executions included."""
        self.send(m.CancelOrder(number, quantity))


class FeedClient:
    """The feed by MoldUDP64: all messages in order, gaps filled by the retransmission service."""

    def __init__(
        self, address: tuple[str, int], retransmission: int, *, following: int = 1, session: str = ""
    ) -> None:
        import ipaddress

        self.reader = mold.MoldReader(session, following)
        self.requests = 0
        self._asks = (HOST, retransmission)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.bind(address)
        if ipaddress.IPv4Address(address[0]).is_multicast:
            group = socket.inet_aton(address[0]) + socket.inet_aton(HOST)
            self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        self._rewinder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._rewinder.bind((HOST, 0))
        self._asked = 0.0

    def messages(self, wait: float = 0.0) -> Iterator[bytes]:
        """ITCH messages that have come, and come within `wait` seconds of the last datagram."""
        until = time.monotonic() + wait
        while not self.reader.ended:
            ready, _, _ = select.select([self.socket, self._rewinder], [], [], min(wait, 0.1))
            for each in ready:
                yield from self.reader.receive(each.recv(_CHUNK))
            if ready:
                until = max(until, time.monotonic() + wait)
            answered = self._rewinder in ready
            gap = self.reader.missing()
            if gap is not None and (answered or time.monotonic() - self._asked > 0.2):
                self._rewinder.sendto(mold.encode_request(gap), self._asks)
                self._asked = time.monotonic()
                self.requests += 1
            elif not ready and time.monotonic() >= until:
                return

    def close(self) -> None:
        self.socket.close()
        self._rewinder.close()


def fetch_snapshot(
    port: int, user: str, password: str = "", timeout: float = 10.0
) -> tuple[list[bytes], int]:
    """(ITCH messages, number of the feed's next message) by GLIMPSE. Raises InputError for an incomplete
    one."""
    with SoupClient(port, user=user, password=password, timeout=timeout) as client:
        found = [payload for _, payload in client.payloads(timeout)]
    if not found or found[-1][:1] != b"G":
        raise InputError("the snapshot is not complete", hint="ask again")
    return found[:-1], glimpse.decode_snapshot_end(found[-1])
