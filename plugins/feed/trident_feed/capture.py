"""The feed "capture": ITCH 5.0 in pcap and pcapng files, over MoldUDP64/UDP or SoupBinTCP/TCP."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from typing import Final
from zoneinfo import ZoneInfo

from trident_core.contracts import ByteSource, Chunk, FeedOptions
from trident_core.errors import InputError
from trident_core.session import Session
from trident_core.stats import Anomalies
from trident_feed import mold
from trident_feed.chunks import ChunkBuilder, chunk_limit
from trident_feed.cursor import Cursor
from trident_feed.follow import Follower
from trident_feed.numbering import Run
from trident_feed.packets import Datagram, Segment, Skipped, decode
from trident_feed.pcap import Packet, is_pcap, read_pcap
from trident_feed.pcapng import is_pcapng, read_pcapng
from trident_feed.soup import Messages
from trident_feed.tcp import Connections, Delivery

#: Packets that show a feed which has nothing to say; a capture of nothing else is no error.
_QUIET: Final = (
    "MoldUDP64 heartbeat",
    "MoldUDP64 end of session",
    "SoupBinTCP server heartbeat",
    "SoupBinTCP login accepted",
    "SoupBinTCP end of session",
)
#: Years in which a capture's clock is believed when it is asked for the session's date; UTC ns.
_CLOCK_SANE_NS: Final = range(
    *(int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp()) * 1_000_000_000 for year in (1995, 2100))
)


class CaptureFeed:
    """Messages of a capture, in order of their numbers, each once. Rules: docs/contracts/feed.md.

    `transport` counts what the capture carried, by kind (heartbeats, packets of other protocols and why).
    When the session has no date, the first packet with messages gives it, in the session's time zone.

    Iterating raises InputError when the capture holds nothing that can be used, and says what it holds.
    """

    protocol = "itch50"

    def __init__(self, source: ByteSource, session: Session, options: FeedOptions) -> None:
        self.anomalies = Anomalies()
        self.transport: Counter[str] = Counter()
        self._source = source
        self._session = session
        self._options = options
        self._iterated = False
        self._packets = 0
        self._follower = Follower(self.anomalies)
        self._connections = Connections(self.anomalies, self.transport)

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        if is_pcap(head):
            return 100 if len(head) >= 24 else 60
        return (100 if len(head) >= 12 else 60) if is_pcapng(head) else 0

    def __iter__(self) -> Iterator[Chunk]:
        if self._iterated:
            return  # chunks come once
        self._iterated = True
        chunks = ChunkBuilder(chunk_limit(self._options), self.anomalies)
        for run in self._all_runs():
            yield from chunks.add(run)
        yield from chunks.finish()
        if not self._follower.used and not self._is_quiet():
            raise self._nothing_usable()

    def _all_runs(self) -> Iterator[Run]:
        for packet in self._read():
            self._packets += 1
            yield from self._runs(packet)
        for delivery in self._connections.finish():
            yield from self._follow(delivery, 0)
        yield from self._follower.flush()

    def _read(self) -> Iterator[Packet]:
        head = self._source.peek(12)
        cursor = Cursor(self._source)
        if is_pcap(head):
            return read_pcap(cursor, self.anomalies)
        if is_pcapng(head):
            return read_pcapng(cursor, self.anomalies)
        raise InputError(f"{self._source.name} is not a pcap or pcapng file", hint="leave out --feed capture")

    def _runs(self, packet: Packet) -> Iterator[Run]:
        carried = decode(packet.link, packet.data, packet.cut)
        if isinstance(carried, Skipped):
            self.transport[carried.reason] += 1
            self.anomalies.add("truncated_packet" if carried.short else "foreign_packet", at=packet.offset)
        elif self._options.port is not None and not _has_port(carried, self._options.port):
            self.transport["packet of another port"] += 1
        elif isinstance(carried, Datagram):
            yield from self._mold(carried, packet)
        else:
            yield from self._soup(carried, packet)

    def _mold(self, datagram: Datagram, packet: Packet) -> Iterator[Run]:
        found = mold.parse(datagram.payload, datagram.cut)
        if found is None:
            self.transport["UDP that is not MoldUDP64"] += 1
            self.anomalies.add("foreign_packet", at=packet.offset)
            return
        if found.missing:
            self.anomalies.add("truncated_packet", at=packet.offset)
        if not found.messages:
            if not found.missing:
                self.transport["MoldUDP64 end of session" if found.end else "MoldUDP64 heartbeat"] += 1
            self._follower.announce(datagram.dst, found.session, found.sequence, packet.offset)
            return
        self.transport["MoldUDP64 messages"] += found.messages
        numbered = found.sequence > 0
        if not numbered and not self._options.lenient:
            self.anomalies.add("unnumbered_messages", at=packet.offset, count=found.messages)
            return
        messages = Messages(found.session, found.sequence if numbered else None, found.blocks, packet.offset)
        yield from self._follow(Delivery(datagram.dst, messages), packet.ts)

    def _soup(self, segment: Segment, packet: Packet) -> Iterator[Run]:
        if segment.cut:
            self.anomalies.add("truncated_packet", at=packet.offset)
        for delivery in self._connections.push(segment, packet.offset):
            yield from self._follow(delivery, packet.ts)

    def _follow(self, delivery: Delivery, ts: int) -> Iterator[Run]:
        runs = self._follower.push(delivery.line, delivery.messages)
        if runs and self._session.date is None and ts in _CLOCK_SANE_NS:
            moment = dt.datetime.fromtimestamp(ts // 1_000_000_000, ZoneInfo(self._session.tz))
            self._session.date = moment.date()
        yield from runs

    def _is_quiet(self) -> bool:
        left_out = any(self.anomalies.count(name) for name in ("other_stream", "unnumbered_messages"))
        return not left_out and any(self.transport[kind] for kind in _QUIET)

    def _nothing_usable(self) -> InputError:
        held = "; ".join(f"{kind}: {count}" for kind, count in self.transport.most_common(3))
        packets = f"{self._packets} packet{'' if self._packets == 1 else 's'}"
        message = f"{self._source.name}: no ITCH 5.0 message in {packets}"
        if self.anomalies.count("unnumbered_messages"):
            hint = "its packet headers are zeroed; --lenient numbers the messages from 1, in file order"
        elif self._options.port is not None and self.transport["packet of another port"]:
            hint = f"does port {self._options.port} carry the feed? without --port every port is looked at"
        elif self.anomalies.count("truncated_packet"):
            hint = "the packets were cut when they were captured; capture whole ones (tcpdump -s 0)"
        elif self.anomalies.count("other_stream"):
            hint = "its messages are of another protocol (OUCH, GLIMPSE, an older ITCH …)"
        else:
            hint = "is it a capture of MoldUDP64 or SoupBinTCP?"
        return InputError(f"{message} ({held})" if held else message, hint=hint)


def _has_port(carried: Datagram | Segment, port: int) -> bool:
    """To that port; of TCP, or from it."""
    return port == carried.dst[1] or (isinstance(carried, Segment) and port == carried.src[1])
