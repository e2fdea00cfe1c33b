"""Feeds: bytes of files, captures and streams become chunks of framed messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:  # listing plugins must not wait for numpy
    from trident_core.dtypes import Frames
    from trident_core.stats import Anomalies


class Chunk(NamedTuple):
    """A run of bytes of one feed, in the framing its `protocol` names.

    `data` is read-only u8[n] and stays valid until the next chunk is asked for. `seq` is the sequence number
    of the first message that starts in the chunk, when the transport knows it; None continues the count.
    A chunk with a `seq` starts on a message boundary. `offset` is the position of data[0] in the source after
    decompression (for captures: of the packet that carried it).
    """

    data: Frames
    seq: int | None
    offset: int


class ByteSource(Protocol):
    """Where a feed reads its bytes: a file, standard input or a pipe, decompressed on the way.

    `name` is for messages, `path` the file's path or None. `anomalies` counts what decompression met.
    """

    name: str
    path: Path | None
    anomalies: Anomalies

    def peek(self, n: int) -> bytes:
        """The next up to n bytes (n <= 64 KiB), without consuming them; fewer only at the end."""
        ...

    def read(self, n: int) -> bytes:
        """The next 1 to n bytes; b"" at the end. Bounded memory: never more than n bytes."""
        ...

    def progress(self) -> tuple[int, int | None]:
        """(raw bytes consumed, raw bytes in all or None when unknown), for a progress bar."""
        ...

    def close(self) -> None: ...


@dataclass(slots=True)
class FeedOptions:
    """`lenient`: accept what docs/contracts/feed.md lists. `port`: of a capture, only this UDP/TCP port."""

    lenient: bool = False
    chunk_bytes: int = 1 << 20
    port: int | None = None


class Feed(Protocol):
    """Bytes of one source -> chunks of framed messages.

    Factory: `Feed(source: ByteSource, session: Session, options: FeedOptions)`; it must not read before
    iteration starts. Iterating yields chunks once. `protocol` is the wire format of the chunks
    ("itch50": each message behind a 2-byte big-endian length, whatever the transport was).
    """

    protocol: str
    anomalies: Anomalies

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        """How sure the feed is that `head` (the first up to 64 KiB, decompressed) is its format: 0 to 100.

        Judged from the bytes; `name` may only break ties. The highest answer wins.
        """
        ...

    def __iter__(self) -> Iterator[Chunk]: ...
