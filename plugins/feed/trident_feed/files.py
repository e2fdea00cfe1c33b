"""The feeds "itch-file" (NASDAQ day files) and "soup-file" (a SoupBinTCP stream in a file)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from trident_core.contracts import ByteSource, Chunk, FeedOptions
from trident_core.errors import InputError
from trident_core.session import Session
from trident_core.stats import Anomalies
from trident_feed.chunks import ChunkBuilder, chunk_limit
from trident_feed.follow import Follower
from trident_feed.itch import Shape, judge
from trident_feed.numbering import Run
from trident_feed.soup import SoupReader, soup_score

_HEAD_BYTES = 1 << 16


class ItchFileFeed:
    """Messages behind 2-byte big-endian lengths, passed through as they stand, without a copy.

    Chunks cut messages anywhere and carry no `seq`. Raises InputError, when iterated, for a file whose length
    prefixes are all zero (unless lenient: the parser then takes lengths from the type), and for ITCH before
    5.0.
    """

    protocol = "itch50"

    def __init__(self, source: ByteSource, session: Session, options: FeedOptions) -> None:
        self.anomalies = Anomalies()
        self._source = source
        self._options = options

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        return judge(head, name).score

    def __iter__(self) -> Iterator[Chunk]:
        limit = chunk_limit(self._options)
        self._check_head()
        offset = 0
        while data := self._source.read(limit):
            yield Chunk(np.frombuffer(data, np.uint8), None, offset)
            offset += len(data)

    def _check_head(self) -> None:
        verdict = judge(self._source.peek(_HEAD_BYTES), self._source.name)
        if verdict.shape is Shape.ZERO_PREFIX and not self._options.lenient:
            raise InputError(
                f"{self._source.name}: every message has the length prefix 0",
                hint="--lenient takes the lengths from the message types",
            )
        if verdict.shape is Shape.OLD:
            raise InputError(
                f"{self._source.name} is {verdict.version}, whose messages differ; only ITCH 5.0 is read",
                hint="the venue has published 5.0 since 2014; its files are named …ITCH50 or …-v50",
            )


class SoupFileFeed:
    """One direction of a SoupBinTCP connection, recorded without the packets around it.

    Numbers come from the login answer, else count from 1. A packet that cannot be framed counts `malformed`
    and ends the reading; a cut last one counts `torn_tail`. `transport` counts the packets by type.

    Iterating raises InputError when no ITCH 5.0 message was found.
    """

    protocol = "itch50"

    def __init__(self, source: ByteSource, session: Session, options: FeedOptions) -> None:
        self.anomalies = Anomalies()
        self.transport: Counter[str] = Counter()
        self._source = source
        self._options = options
        self._follower = Follower(self.anomalies)

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        return soup_score(head)

    def __iter__(self) -> Iterator[Chunk]:
        limit = chunk_limit(self._options)
        chunks = ChunkBuilder(limit, self.anomalies)
        for run in self._runs():
            yield from chunks.add(run)
        yield from chunks.finish()
        if not self._follower.used and not self.transport["SoupBinTCP login accepted"]:
            raise InputError(
                f"{self._source.name}: no ITCH 5.0 message in a SoupBinTCP stream",
                hint="is it of another protocol? leave out --feed soup-file to let the bytes decide",
            )

    def _runs(self) -> Iterator[Run]:
        reader = SoupReader(self.anomalies, self.transport, contiguous=True)
        offset = 0
        while not reader.lost and (data := self._source.read(1 << 16)):
            for messages in reader.push(data, offset):
                yield from self._follower.push("file", messages)
            offset += len(data)
        if reader.lost:
            self.anomalies.add("malformed", at=reader.pending)
        elif reader.pending is not None:
            self.anomalies.add("torn_tail", at=reader.pending)
        yield from self._follower.flush()
