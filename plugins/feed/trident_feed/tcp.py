"""TCP streams out of captured segments, and the SoupBinTCP packets in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Final, NamedTuple

from trident_core.stats import Anomalies
from trident_feed.numbering import Reorder, Run
from trident_feed.packets import Address, Segment
from trident_feed.soup import Messages, SoupReader, starts_packet

#: Directions of connections that are followed at once (each holds back at most HELD_BYTES_MAX). When one more
#: appears, the least recently used that has carried no message makes room; if all have, the new one is left
#: out.
DIRECTIONS_MAX: Final = 32

_SYN: Final = 2
_RST: Final = 4
_WRAP: Final = 1 << 32

#: A direction of a connection: from, to.
Line = tuple[Address, Address]


class Delivery(NamedTuple):
    """Messages, and the line (of TCP: the connection's direction) that carried them."""

    line: Hashable
    messages: Messages


class _Direction:
    """One direction of one connection. `synced`: the reader stands where the last packet told."""

    def __init__(self, anomalies: Anomalies, transport: Counter[str]) -> None:
        self.order = Reorder(lambda data, count: data[count:], self._report)
        self.reader = SoupReader(anomalies, transport, contiguous=False)
        self.synced = False
        self.useful = False
        self.opened_at: int | None = None  # number of the SYN
        self._delivered: int | None = None  # number of the byte after the last one read
        self._anomalies = anomalies
        self._transport = transport

    def open(self, seq: int) -> None:
        """A SYN with number `seq`: the stream's first byte has the next one."""
        self.opened_at = seq
        self.order.next = self._delivered = (seq + 1) % _WRAP
        self.synced = True

    def segment(self, seq: int, payload: bytes, offset: int) -> list[Messages]:
        if self.order.next is None and not starts_packet(payload):
            self._anomalies.add("foreign_packet", at=offset)
            return []
        start = self._unwrap(seq)
        return self._deliver(self.order.push(Run(start, start + len(payload), payload, offset)))

    def finish(self) -> list[Messages]:
        out = self._deliver(self.order.flush())
        if self.reader.pending is not None:
            self._anomalies.add("torn_tail", at=self.reader.pending)
        return out

    def _deliver(self, runs: list[Run]) -> list[Messages]:
        out: list[Messages] = []
        for run in runs:
            self.synced = self.synced and run.start == self._delivered
            self._delivered = run.end
            if not self.synced:
                if not starts_packet(run.data):
                    self._anomalies.add("foreign_packet", at=run.offset)
                    continue
                self.reader.resume()
                self.synced = True
            out += self.reader.push(run.data, run.offset)
            self.synced = not self.reader.lost
            if self.reader.lost:
                self._anomalies.add("foreign_packet", at=run.offset)
        self.useful = self.useful or bool(out)
        return out

    def _unwrap(self, seq: int) -> int:
        """The 32-bit number as one that never wraps: the nearest to what is expected."""
        expected = self.order.next
        if expected is None:
            return seq + _WRAP
        return expected + (seq - expected + _WRAP // 2) % _WRAP - _WRAP // 2

    def _report(self, kind: str, count: int, offset: int) -> None:
        if kind == "gap":
            self._anomalies.add("gap_bytes", at=offset, count=count)
        else:
            self._transport["TCP bytes sent again"] += count


class Connections:
    """All connections of a capture, by direction."""

    def __init__(self, anomalies: Anomalies, transport: Counter[str]) -> None:
        self._anomalies = anomalies
        self._transport = transport
        self._directions: dict[Line, _Direction] = {}

    def push(self, segment: Segment, offset: int) -> list[Delivery]:
        line = segment.src, segment.dst
        out: list[Delivery] = []
        direction = self._directions.pop(line, None)
        if segment.flags & _SYN and direction and direction.opened_at != segment.seq:
            out += _deliveries(line, direction.finish())
            direction = None
        if direction is None:
            if not (segment.flags & _SYN or segment.payload):
                return out
            if not self._make_room(out):
                self._anomalies.add("foreign_packet", at=offset)
                return out
            direction = _Direction(self._anomalies, self._transport)
            if segment.flags & _SYN:
                direction.open(segment.seq)
        if segment.payload:
            seq = segment.seq + bool(segment.flags & _SYN)
            out += _deliveries(line, direction.segment(seq, segment.payload, offset))
        if segment.flags & _RST:
            out += _deliveries(line, direction.finish())
        else:
            self._directions[line] = direction
        return out

    def finish(self) -> list[Delivery]:
        """The capture is at its end: what the directions still hold."""
        out: list[Delivery] = []
        for line, direction in self._directions.items():
            out += _deliveries(line, direction.finish())
        return out

    def _make_room(self, out: list[Delivery]) -> bool:
        if len(self._directions) < DIRECTIONS_MAX:
            return True
        idle = next((line for line, each in self._directions.items() if not each.useful), None)
        if idle is None:
            return False
        out += _deliveries(idle, self._directions.pop(idle).finish())
        return True


def _deliveries(line: Line, messages: list[Messages]) -> list[Delivery]:
    return [Delivery(line, each) for each in messages]
