"""Which of a capture's streams is the feed, and its one numbering."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from trident_core.stats import Anomalies
from trident_feed.itch import LENGTHS
from trident_feed.mold import cut_messages
from trident_feed.numbering import Reorder, Run
from trident_feed.soup import Messages

#: Lines (destinations, connections) that may carry the followed session, and sessions remembered as over.
LINES_MAX: Final = 64
SESSIONS_KEPT: Final = 64
#: No number goes beyond this, whatever a packet says.
NUMBER_MAX: Final = 1 << 63

_NAMES: Final = {"gap": "gap_messages", "duplicate": "duplicate_messages", "late": "late_messages"}


class Follower:
    """Follows the first session whose messages look like ITCH 5.0, on every line that carries it.

    A feed is one stream of rising numbers, and locates and references of two venues must not mix. So: other
    lines with the same session (the B line, a retransmission, a second connection) are merged, each message
    once. Other lines with other sessions count `other_stream`. A new session on a followed line ends the old
    one (`session_changes`); its number n then becomes "last number so far" + n.
    """

    def __init__(self, anomalies: Anomalies) -> None:
        self.used = 0
        self._anomalies = anomalies
        self._session: Hashable = None
        self._lines: set[Hashable] = set()
        self._over: dict[Hashable, None] = {}
        self._base = 0
        self._order = self._new_order()

    def push(self, line: Hashable, messages: Messages) -> list[Run]:
        """What becomes available: runs of messages in order."""
        count = sum(number for number, _ in messages.blocks)
        out: list[Run] = []
        refusal = self._refuse(line, messages, out)
        start = self._order.next or self._base + 1
        if messages.start is not None:
            start = self._base + messages.start
        if not refusal and start + count >= NUMBER_MAX:
            refusal = "foreign_packet"
        if refusal:
            self._anomalies.add(refusal, at=messages.offset, count=count)
            return out
        for number, data in messages.blocks:
            out += self._order.push(Run(start, start + number, data, messages.offset))
            start += number
        self.used += len(out)
        return out

    def announce(self, line: Hashable, session: bytes, following: int, offset: int) -> None:
        """A heartbeat or the end of the session: message `following` comes next."""
        if following and self._session == _key(line, session) and self._base + following < NUMBER_MAX:
            self._order.announce(self._base + following, offset)

    def flush(self) -> list[Run]:
        """The input is at its end."""
        out = self._order.flush()
        self.used += len(out)
        return out

    def _refuse(self, line: Hashable, messages: Messages, out: list[Run]) -> str:
        """The anomaly that the messages are, or "". Changes the session when they begin one."""
        session = _key(line, messages.session)
        if session == self._session:
            if line not in self._lines and len(self._lines) == LINES_MAX:
                return "other_stream"
            self._lines.add(line)
            return ""
        if session in self._over:
            return "late_messages"
        if self._session is not None and line not in self._lines:
            return "other_stream"
        if not any(_has_itch(data) for _, data in messages.blocks):
            return "other_stream"
        if self._session is not None:
            self._change(out, messages.offset)
        self._session = session
        self._lines.add(line)
        return ""

    def _change(self, out: list[Run], offset: int) -> None:
        self._anomalies.add("session_changes", at=offset)
        out += self.flush()
        self._base = (self._order.next or self._base + 1) - 1
        self._order = self._new_order()
        self._over[self._session] = None
        if len(self._over) > SESSIONS_KEPT:
            del self._over[next(iter(self._over))]

    def _new_order(self) -> Reorder:
        return Reorder(cut_messages, self._report)

    def _report(self, kind: str, count: int, offset: int) -> None:
        self._anomalies.add(_NAMES[kind], at=offset, count=count)


def _key(line: Hashable, session: bytes) -> Any:
    """The session; or, when it is blank or not known, the line in its place."""
    return session if session.strip(b" \0") else line


def _has_itch(data: bytes) -> bool:
    """Is any of the messages one of ITCH 5.0?"""
    at = 0
    while at + 3 <= len(data):
        length = data[at] << 8 | data[at + 1]
        if LENGTHS.get(data[at + 2]) == length:
            return True
        at += 2 + length
    return False
