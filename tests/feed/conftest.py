"""Reading feeds over bytes in memory, and messages that tell who they are."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest

from trident_core.contracts import FeedOptions
from trident_core.session import Session
from trident_core.source import Source
from trident_feed.capture import CaptureFeed
from trident_feed.files import ItchFileFeed, SoupFileFeed
from trident_feed.write import ethernet, mold_packet, pcap, split_messages, udp

FEEDS = (CaptureFeed, ItchFileFeed, SoupFileFeed)


@dataclass
class Reading:
    """What a feed gave: messages with their numbers, the counts, the session."""

    numbered: list[tuple[int, bytes]] = field(default_factory=list)
    anomalies: dict[str, int] = field(default_factory=dict)
    transport: dict[str, int] = field(default_factory=dict)
    session: Session = field(default_factory=Session)
    chunk_sizes: list[int] = field(default_factory=list)

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.numbered]

    @property
    def messages(self) -> list[bytes]:
        return [message for _, message in self.numbered]


def _read(
    data: bytes | Source, feed: type = CaptureFeed, *, lenient: bool = False, chunk: int = 1 << 20,
    port: int | None = None,
) -> Reading:  # fmt: skip
    source = data if isinstance(data, Source) else Source(io.BytesIO(data), "in memory")
    reading = Reading()
    made = feed(source, reading.session, FeedOptions(lenient=lenient, chunk_bytes=chunk, port=port))
    number, rest = 1, b""
    for part in made:
        assert not part.data.flags.writeable
        reading.chunk_sizes.append(len(part.data))
        if part.seq is not None:
            assert not rest, "a chunk with a seq starts on a message boundary"
            number = part.seq
        rest += part.data.tobytes()
        while len(rest) >= 2 and len(rest) >= 2 + int.from_bytes(rest[:2], "big"):
            end = 2 + int.from_bytes(rest[:2], "big")
            reading.numbered.append((number, rest[2:end]))
            rest = rest[end:]
            number += 1
    reading.anomalies = {name: item.count for name, item in made.anomalies.items()}
    reading.transport = dict(getattr(made, "transport", {}))
    return reading


@pytest.fixture(scope="session")
def read() -> Callable[..., Reading]:
    """`read(data, feed=CaptureFeed, lenient=, chunk=, port=)` runs a feed to its end."""
    return _read


def _message(number: int) -> bytes:
    """A D (order delete) whose reference is `number`."""
    return b"D" + bytes(10) + number.to_bytes(8, "big")


@pytest.fixture(scope="session")
def message() -> Callable[[int], bytes]:
    return _message


@pytest.fixture(scope="session")
def mold() -> Callable[..., bytes]:
    """`mold(first, last)` is a frame with messages first..last, numbered so; see the keywords."""

    def frame(
        first: int, last: int, *, session: bytes = b"SESSION", number: int | None = None,
        count: int | None = None, **headers: object,
    ) -> bytes:  # fmt: skip
        messages = [_message(each) for each in range(first, last + 1)]
        packet = mold_packet(session, first if number is None else number, messages, count)
        return ethernet(udp(packet, **headers))  # type: ignore[arg-type]

    return frame


@pytest.fixture(scope="session")
def capture() -> Callable[..., bytes]:
    """`capture(frames, link=, order=, nanoseconds=)` is a pcap of them, a microsecond apart."""

    def build(frames: Iterable[bytes], **layout: object) -> bytes:
        timed = [(1_700_000_000_000_000_000 + 1000 * i, frame) for i, frame in enumerate(frames)]
        return b"".join(pcap(timed, **layout))  # type: ignore[arg-type]

    return build


@pytest.fixture(scope="session")
def split() -> Callable[[bytes], list[bytes]]:
    return lambda framed: list(split_messages(framed))
