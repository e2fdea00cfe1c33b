"""SoupBinTCP 4.0 (and 3.00) as two state machines, one for each end, without sockets and without a clock.

Bytes go in by `receive`, what they mean comes out; what is to be sent comes out of the other methods as
bytes. Framing is the feed's own (`trident_feed.soup`, `trident_feed.write`).

Source: SoupBinTCP specification, sections 1 (protocol flow) and 2 (packet types).
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from trident_core.errors import InputError
from trident_feed.soup import PACKETS, packet_end
from trident_feed.write import soup_login, soup_packet

#: Each end sends a heartbeat when it has sent nothing for so long (1.2).
HEARTBEAT_S: Final = 1.0
#: The other end is taken for lost when nothing has come for so long (1.2).
TIMEOUT_S: Final = 15.0
#: Longest packet that is taken from a client, its length field apart: a login, or a message with its options.
CLIENT_PACKET_MAX: Final = 1_024
#: Longest that is taken from a server: what the length field can say.
SERVER_PACKET_MAX: Final = 0xFFFF
_USER, _PASSWORD, _SESSION, _NUMBER = 6, 10, 10, 20
_FROM_SERVER: Final = b"+AJSHZ"
_FROM_CLIENT: Final = b"+LURO"


class SoupError(InputError):
    """Bytes that the other end may not send. `offset` is that of the packet in the connection's stream."""

    def __init__(self, message: str, *, offset: int, hint: str = "") -> None:
        super().__init__(f"{message}, at offset {offset} of the connection", hint=hint)
        self.offset = offset


class State(Enum):
    """Of a connection, as either end sees it."""

    LOGIN = "login"  # no login was answered yet
    OPEN = "open"
    ENDED = "ended"  # rejected, logged out, or the session is at its end: nothing follows


class Login(NamedTuple):
    """L: `sequence` is the number that the client wants next; 0: only what comes from now on."""

    user: str
    password: str
    session: str
    sequence: int


class Accepted(NamedTuple):
    """A: the session, and the number of the message that comes next."""

    session: str
    sequence: int


class Refused(NamedTuple):
    """J: "A" not authorized, "S" no such session."""

    code: str


class Sequenced(NamedTuple):
    """S: a message of the session, with the number that is counted for it."""

    sequence: int
    payload: bytes


class Unsequenced(NamedTuple):
    """U: a message of the client."""

    payload: bytes


class Debug(NamedTuple):
    """+: for people."""

    text: str


class Heartbeat(NamedTuple):
    """H or R."""


class Logout(NamedTuple):
    """O: the client is going."""


class EndOfSession(NamedTuple):
    """Z: no message of the session is left, and none will come."""


FromClient = Login | Unsequenced | Debug | Heartbeat | Logout
FromServer = Accepted | Refused | Sequenced | Debug | Heartbeat | EndOfSession


class Clock:
    """Heartbeats due and the other end's silence, in seconds of whatever clock the caller reads."""

    def __init__(self, now: float, heartbeat_s: float = HEARTBEAT_S, timeout_s: float = TIMEOUT_S) -> None:
        self.heartbeat_s, self.timeout_s = heartbeat_s, timeout_s
        self.sent = self.received = now

    def heartbeat_due(self, now: float) -> bool:
        return now - self.sent >= self.heartbeat_s

    def lost(self, now: float) -> bool:
        return now - self.received > self.timeout_s


class _End:
    """What both ends do alike: packets out of a stream of bytes, with their offsets."""

    def __init__(self, allowed: bytes, packet_max: int) -> None:
        self.state = State.LOGIN
        self.offset = 0
        self._allowed = allowed
        self._packet_max = packet_max
        self._part = b""

    def _packets(self, data: bytes) -> list[tuple[int, bytes]]:
        """(type, payload) of the packets that `data` completes. `offset` is then that of the first byte that
        was not used. Raises SoupError; the packets before the one refused are lost, for the connection is."""
        if self._part:
            data = self._part + data
        at, out = 0, []
        while at + 3 <= len(data):
            end = packet_end(data, at)
            if end is None or end - at - 2 > self._packet_max or data[at + 2] not in self._allowed:
                raise self._bad(data, at)
            if end > len(data):
                break
            out.append((data[at + 2], data[at + 3 : end]))
            at = end
        self._part = data[at:]
        self.offset += at
        return out

    def _bad(self, data: bytes, at: int) -> SoupError:
        length, kind = data[at] << 8 | data[at + 1], data[at + 2]
        where = self.offset + at
        if kind not in self._allowed:
            sender = "client" if self._allowed is _FROM_CLIENT else "server"
            return SoupError(
                f"a packet of type {bytes((kind,))!r}", offset=where,
                hint=f"a {sender} sends {', '.join(self._allowed.decode())}",
            )  # fmt: skip
        name, must = PACKETS[kind]
        hint = f"{name} has the length {must}" if must else f"the length is 1 to {self._packet_max}"
        return SoupError(f"a {name} packet of length {length}", offset=where, hint=hint)


class ServerEnd(_End):
    """The server's end of one connection. `asked`: a login was received."""

    def __init__(self) -> None:
        super().__init__(_FROM_CLIENT, CLIENT_PACKET_MAX)
        self.asked = False

    def receive(self, data: bytes) -> list[FromClient]:
        """What the client's next bytes mean. Raises SoupError for what it may not send, here or now."""
        out: list[FromClient] = []
        where = self.offset
        for kind, payload in self._packets(data):
            if kind == 0x55 and self.state is State.OPEN:  # U, nearly always
                out.append(Unsequenced(payload))
            elif kind == ord("L"):
                if self.asked or self.state is not State.LOGIN:
                    raise SoupError("a second login", offset=where, hint="one login for each connection")
                self.asked = True
                out.append(_login(payload, where))
            elif kind == ord("R"):
                out.append(Heartbeat())
            elif kind == ord("O"):
                out.append(Logout())
            elif kind == ord("+"):
                out.append(Debug(_shown(payload)))
            else:
                raise SoupError("data before the login was accepted", offset=where, hint="log in, wait for A")
            where += 3 + len(payload)
        return out

    def accept(self, session: str, sequence: int) -> bytes:
        """Login accepted: the messages from number `sequence` on follow."""
        self.state = State.OPEN
        return soup_login(session.encode("ascii"), sequence)

    def refuse(self, code: str) -> bytes:
        self.state = State.ENDED
        return soup_packet("J", code.encode("ascii"))

    def end(self) -> bytes:
        self.state = State.ENDED
        return END_OF_SESSION


class ClientEnd(_End):
    """The client's end. `next` is the number of the sequenced message that comes next; 0 before the login."""

    def __init__(self) -> None:
        super().__init__(_FROM_SERVER, SERVER_PACKET_MAX)
        self.session = ""
        self.next = 0

    def login(self, user: str, password: str = "", session: str = "", sequence: int = 1) -> bytes:
        """Raises SoupError for what the packet has no room for."""
        fields = (("user", user, _USER), ("password", password, _PASSWORD), ("session", session, _SESSION))
        for name, text, width in fields:
            if len(text) > width or not (text.isascii() and text.isprintable()):
                raise SoupError(f"{name} {text!r}", offset=0, hint=f"up to {width} ASCII characters")
        if not 0 <= sequence < 10**_NUMBER:
            raise SoupError(f"sequence number {sequence}", offset=0, hint=f"0 to {_NUMBER} digits")
        text = f"{user:<{_USER}}{password:<{_PASSWORD}}{session:>{_SESSION}}{sequence:>{_NUMBER}}"
        return soup_packet("L", text.encode("ascii"))

    def receive(self, data: bytes) -> list[FromServer]:
        """What the server's next bytes mean. Raises SoupError."""
        out: list[FromServer] = []
        where = self.offset
        for kind, payload in self._packets(data):
            if kind == 0x53 and self.state is State.OPEN:  # S, nearly always
                out.append(Sequenced(self.next, payload))
                self.next += 1
            elif kind == ord("H"):
                out.append(Heartbeat())
            elif kind == ord("+"):
                out.append(Debug(_shown(payload)))
            elif kind == ord("A") and self.state is State.LOGIN:
                self.state = State.OPEN
                self.session = _text(payload[:_SESSION], "session", where)
                self.next = _number(payload[_SESSION:], where)
                out.append(Accepted(self.session, self.next))
            elif kind == ord("J") and self.state is State.LOGIN:
                self.state = State.ENDED
                out.append(Refused(_shown(payload)))
            elif kind == ord("Z"):
                self.state = State.ENDED
                out.append(EndOfSession())
            else:
                raise SoupError(f"a {PACKETS[kind][0]} packet out of turn", offset=where)
            where += 3 + len(payload)
        return out


#: Packets that are always the same.
SERVER_HEARTBEAT: Final = soup_packet("H")
CLIENT_HEARTBEAT: Final = soup_packet("R")
LOGOUT: Final = soup_packet("O")
END_OF_SESSION: Final = soup_packet("Z")


def debug(text: str) -> bytes:
    """A debug packet; what is not ASCII is shown as escapes."""
    return soup_packet("+", text.encode("ascii", "backslashreplace")[:512])


def unsequenced(payload: bytes) -> bytes:
    return soup_packet("U", payload)


def _login(payload: bytes, offset: int) -> Login:
    if len(payload) not in (
        46,
        51,
    ):  # 51: version 4.1 has the heartbeat time-out behind, which is the server's here
        raise SoupError(f"a login of {len(payload)} bytes", offset=offset, hint="it has 46")
    end = _USER + _PASSWORD
    return Login(
        _text(payload[:_USER], "user", offset),
        _text(payload[_USER:end], "password", offset),
        _text(payload[end : end + _SESSION], "session", offset),
        _number(payload[end + _SESSION : end + _SESSION + _NUMBER], offset),
    )


def _text(raw: bytes, name: str, offset: int) -> str:
    text = raw.decode("latin-1")
    if not (text.isascii() and text.isprintable()):
        raise SoupError(f"the {name} is {raw!r}", offset=offset, hint="printable ASCII, padded with spaces")
    return text.strip(" ")


def _number(raw: bytes, offset: int) -> int:
    digits = raw.strip(b" ")
    if not digits.isdigit():
        raise SoupError(
            f"the sequence number is {raw!r}", offset=offset, hint="digits, padded with spaces on the left"
        )
    return int(digits)


def _shown(raw: bytes) -> str:
    return raw.decode("ascii", "backslashreplace")
