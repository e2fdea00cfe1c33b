"""Feeds that are wrong in one way each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trident_core.contracts import Chunk
from trident_feed.files import ItchFileFeed


class RightFeed(ItchFileFeed):
    """A feed without a mistake."""


class KnowsEverything(ItchFileFeed):
    """Is sure of any bytes."""

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        return 100


class ReadsAtOnce(ItchFileFeed):
    """Looks at the input before it is asked to."""

    def __init__(self, source: Any, session: Any, options: Any) -> None:
        source.peek(4)
        super().__init__(source, session, options)


class DropsAShortChunk(ItchFileFeed):
    """Gives only whole blocks of eight bytes of each read."""

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in super().__iter__():
            whole = chunk.data[: len(chunk.data) // 8 * 8] if len(chunk.data) > 8 else chunk.data
            yield Chunk(whole, chunk.seq, chunk.offset)


class HandsOutWhatItMayBeWrittenTo(ItchFileFeed):
    """Chunks that may be written to."""

    def __iter__(self) -> Iterator[Chunk]:
        for chunk in super().__iter__():
            yield Chunk(chunk.data.copy(), chunk.seq, chunk.offset)
