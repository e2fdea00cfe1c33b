"""The three services over SoupBinTCP: orders, the feed, snapshots of the books."""

from __future__ import annotations

import hmac
from collections import deque
from typing import TYPE_CHECKING, Any

from trident_exchange import soup
from trident_exchange.connections import Connection, Desk
from trident_exchange.open_orders import Account
from trident_exchange.ouch import decode_inbound
from trident_exchange.snapshot import take_snapshot

if TYPE_CHECKING:
    from trident_exchange.server import Server


class _Desk(Desk):
    def __init__(self, server: Server) -> None:
        self.server = server
        self.limits = server.limits
        self.session = server.exchange.config.session
        self.connections = server.connections
        self.refusals = server.refusals

    def allowed(self, login: soup.Login) -> str:
        """Why a login is refused, or nothing."""
        users = self.server.users
        known = users.get(login.user)
        if not login.user or (users and known is None):
            return "A"
        if known is not None and not hmac.compare_digest(known.password.encode(), login.password.encode()):
            return "A"
        return "" if login.session in ("", self.session) else "S"

    def received(self, connection: Connection, payloads: list[bytes]) -> None:
        raise soup.SoupError(
            "the feed takes no messages", offset=connection.end.offset, hint="log in and read"
        )

    def gone(self, connection: Connection) -> None:
        if connection.stream is not None:
            connection.stream = None

    def ended(self, connection: Connection) -> bool:
        return self.server.exchange.core.ended


class FeedDesk(_Desk):
    """ITCH 5.0 over SoupBinTCP, from any number on."""

    def login(self, connection: Connection, login: soup.Login) -> None:
        if code := self.allowed(login):
            connection.refuse(code)
        else:
            connection.attach(self.server.exchange.feed, login.sequence)


class SnapshotDesk(_Desk):
    """GLIMPSE: each login gets a snapshot of its own, and then the end of the session."""

    def login(self, connection: Connection, login: soup.Login) -> None:
        code = self.allowed(login)
        if code or login.sequence not in (0, 1):  # GLIMPSE, section 2: log in for number 1
            connection.refuse(code or "S")
        else:
            self.server.between_batches(lambda: self._snapshot(connection))

    def _snapshot(self, connection: Connection) -> None:
        stream = take_snapshot(self.server.exchange)
        connection.attach(stream, 1)
        if connection.stream is not stream:  # it has gone meanwhile
            stream.close()

    def gone(self, connection: Connection) -> None:
        if connection.stream is not None:
            connection.stream.close()
            connection.stream = None

    def ended(self, connection: Connection) -> bool:
        return True


class Counter:
    """One account at the order desk: its messages that wait, and the connection it has, if any."""

    def __init__(self, account: Account, messages_per_s: int) -> None:
        self.account = account
        self.inbox: deque[tuple[bytes, Any]] = deque()
        self.connection: Connection | None = None
        self.held = False
        self._rate = messages_per_s
        self._tokens = float(messages_per_s)
        self._filled = 0.0

    def may_take(self, wanted: int, now: float) -> int:
        """How many messages may be taken now; they are counted."""
        self._tokens = min(self._tokens + (now - self._filled) * self._rate, float(self._rate))
        self._filled = now
        taken = min(wanted, int(self._tokens))
        self._tokens -= taken
        return taken

    @property
    def exhausted(self) -> bool:
        """Its messages of this second are used up."""
        return self._tokens < 1


class OrderDesk(_Desk):
    """OUCH 5.0: one account for each user, whatever port it comes by."""

    def login(self, connection: Connection, login: soup.Login) -> None:
        code = self.allowed(login)
        account = self.server.exchange.account(login.user)
        if (
            not code
            and account is None
            and len(self.server.exchange.core.accounts) >= self.limits.accounts_max
        ):
            code = "A"
        if code:
            connection.refuse(code)
        elif account is None:
            self.server.open_account(
                login.user, lambda opened: self._attach(connection, opened, login.sequence)
            )
        else:
            self._attach(connection, account, login.sequence)

    def _attach(self, connection: Connection, account: Account, sequence: int) -> None:
        counter = self.server.counter(account)
        before, counter.connection = counter.connection, connection
        connection.account = counter
        if before is not None:
            before.account = None
            before.close("the user has logged in anew")
        connection.hold(counter.held)
        connection.attach(self.server.exchange.stream(account.number), sequence)

    def received(self, connection: Connection, payloads: list[bytes]) -> None:
        counter = connection.account
        if counter is None or self.server.exchange.core.ended:
            return
        for payload in payloads:
            counter.inbox.append((payload, decode_inbound(payload)))
        if len(counter.inbox) > 2 * self.limits.turn_messages and not counter.held:
            counter.held = True
            connection.hold(True)
        self.server.wake()

    def gone(self, connection: Connection) -> None:
        counter = connection.account
        if counter is not None and counter.connection is connection:
            counter.connection = None
            self.server.disconnected(counter)
