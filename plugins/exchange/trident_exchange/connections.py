"""Connections of SoupBinTCP: login, heartbeats, time-outs, and a stream that is sent as fast as its reader
reads.

What is sent is read from a `Stream`, from where the reader is, while the socket takes it: a reader who is
slow makes nobody wait and takes no memory, and one who takes nothing for `stall_s` seconds is cut off.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from trident_core.errors import TridentError
from trident_exchange import soup
from trident_exchange.config import Limits
from trident_exchange.stream import Stream
from trident_feed.write import soup_packet

_CHUNK: Final = 1 << 16


class Desk:
    """What a connection asks of the server it belongs to."""

    limits: Limits
    session: str
    connections: set[Connection]
    refusals: dict[str, int]

    def login(self, connection: Connection, login: soup.Login) -> None:
        """Sooner or later call `connection.attach` or `connection.refuse`."""
        raise NotImplementedError

    def received(self, connection: Connection, payloads: list[bytes]) -> None:
        """Messages of a client who has logged in. Raises TridentError for one that makes no sense."""
        raise NotImplementedError

    def gone(self, connection: Connection) -> None:
        """The connection is no more."""
        raise NotImplementedError

    def ended(self, connection: Connection) -> bool:
        """Whether its stream is complete."""
        raise NotImplementedError


class Connection(asyncio.Protocol):
    """One client's connection. `stream` and `next`: what it reads, and the number of the next message for
    it."""

    #: Whether messages stand in the stream as packets already; else they are ITCH messages to be wrapped.
    packets = True

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.end = soup.ServerEnd()
        self.user = ""
        self.peer = ""
        self.stream: Stream | None = None
        self.next = 0
        self.account: Any = None
        self._transport: asyncio.Transport | None = None
        self._paused = False
        self._logout = False
        self._refused = ""
        limits = desk.limits
        self._clock = soup.Clock(time.monotonic(), limits.heartbeat_s, limits.timeout_s)
        self._progress = self._clock.sent

    # --- asyncio's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.peer = "{}:{}".format(*(transport.get_extra_info("peername") or ("?", "?"))[:2])
        if len(self.desk.connections) >= self.desk.limits.connections_max:
            self._refused = "too many connections"  # told when the login has been read: else it may be lost
            asyncio.get_running_loop().call_later(self.desk.limits.login_s, self.close)
            return
        transport.set_write_buffer_limits(high=self.desk.limits.unsent_bytes)
        self.desk.connections.add(self)

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._clock.received = time.monotonic()
        if self._refused:
            self.close(self._refused)
            return
        try:
            found = self.end.receive(data)
            payloads = []
            for each in found:
                if isinstance(each, soup.Unsequenced):
                    payloads.append(each.payload)
                elif isinstance(each, soup.Login):
                    self.user = each.user
                    self.desk.login(self, each)
                elif isinstance(each, soup.Logout):
                    self._logout = True
            if payloads:
                self.desk.received(self, payloads)
        except TridentError as error:
            self.close(f"{error.message}; {error.hint}")
            return
        if self._logout:
            self.close()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self.pump()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self in self.desk.connections:
            self.desk.connections.discard(self)
            self.desk.gone(self)

    # --- the server's calls

    def attach(self, stream: Stream, sequence: int) -> None:
        """The login is good: send the stream from `sequence` on; 0 means from now on."""
        if self._transport is None or self._transport.is_closing():
            return
        self.stream = stream
        self.next = sequence or stream.next
        if self.next > stream.next:
            self.refuse("S")
            return
        self._write(self.end.accept(self.desk.session, self.next))
        self.pump()

    def refuse(self, code: str) -> None:
        """The login is not: "A" not authorized, "S" no such session or number."""
        self.stream = None
        self.desk.refusals[code] = self.desk.refusals.get(code, 0) + 1
        self._write(self.end.refuse(code))
        self.close()

    def pump(self) -> None:
        """Send what the socket takes of what there is."""
        stream = self.stream
        if stream is None or self._transport is None or self.end.state is not soup.State.OPEN:
            return
        while not self._paused and self.next < stream.next:
            count, data = stream.read(self.next, _CHUNK)
            self._write(data if self.packets else _wrapped(data))
            self.next += count
            self._progress = self._clock.sent
        if self.next == stream.next and self.desk.ended(self):
            self._write(self.end.end())
            self.close()

    def tick(self, now: float) -> None:
        """Heartbeats and time-outs."""
        if self._transport is None:
            return
        if self.end.state is soup.State.LOGIN:
            if now - self._clock.received > self.desk.limits.login_s:
                self.close("no login")
        elif self._clock.lost(now):
            self.close("no heartbeat")
        elif self._paused and now - self._progress > self.desk.limits.stall_s:
            self._cut()
        elif not self._paused and self._clock.heartbeat_due(now):
            self._write(soup.SERVER_HEARTBEAT)

    def hold(self, held: bool) -> None:
        """Whether what the client sends is to stay in its socket for now."""
        if self._transport is not None and not self._transport.is_closing():
            if held:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def close(self, why: str = "") -> None:
        """Send what waits in the socket's buffer, and go. `why` is told in a debug packet."""
        if self._transport is not None and not self._transport.is_closing():
            if why:
                self._write(soup.debug(why))
            self._transport.close()

    def abort(self) -> None:
        """Go at once, whatever waits."""
        if self._transport is not None:
            self._transport.abort()

    def _cut(self) -> None:
        """A reader who does not read: nothing waits for it."""
        self.desk.refusals["slow"] = self.desk.refusals.get("slow", 0) + 1
        self.abort()

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)
        self._clock.sent = time.monotonic()


class ItchConnection(Connection):
    """A connection on which the feed, or a snapshot, is sent."""

    packets = False


def _wrapped(data: bytes) -> bytes:
    """Messages behind their lengths as sequenced data packets."""
    out, at = [], 0
    while at < len(data):
        end = at + 2 + (data[at] << 8 | data[at + 1])
        out.append(soup_packet("S", data[at + 2 : end]))
        at = end
    return b"".join(out)
