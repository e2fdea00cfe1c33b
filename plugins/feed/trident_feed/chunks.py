"""Runs of messages joined to chunks, for feeds whose transport has packets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trident_core.contracts import Chunk, FeedOptions
from trident_core.errors import UsageError
from trident_core.stats import Anomalies
from trident_feed.numbering import Run


class ChunkBuilder:
    """Joins runs with consecutive numbers to chunks of at most `limit` bytes (but at least one message).

    Every chunk has a `seq`, and holds whole messages. Messages of length 0 take a number and count
    `empty_message`; in a chunk they would read as the end of the session.
    """

    def __init__(self, limit: int, anomalies: Anomalies) -> None:
        self._limit = limit
        self._anomalies = anomalies
        self._data = bytearray()
        self._start = self._end = 0
        self._offset = 0

    def add(self, run: Run) -> Iterator[Chunk]:
        if not run.data:
            self._anomalies.add("empty_message", at=run.offset, count=run.end - run.start)
            return
        if self._data and (run.start != self._end or len(self._data) + len(run.data) > self._limit):
            yield self._chunk()
        while len(run.data) > self._limit and run.end - run.start > 1:
            head, run = _split(run, self._limit)
            self._put(head)
            yield self._chunk()
        self._put(run)

    def finish(self) -> Iterator[Chunk]:
        if self._data:
            yield self._chunk()

    def _put(self, run: Run) -> None:
        if not self._data:
            self._start, self._offset = run.start, run.offset
        self._data += run.data
        self._end = run.end

    def _chunk(self) -> Chunk:
        data = np.frombuffer(self._data, np.uint8)
        data.flags.writeable = False
        self._data = bytearray()
        return Chunk(data, self._start, self._offset)


def _split(run: Run, limit: int) -> tuple[Run, Run]:
    """`run` in two: as many messages as fit into `limit` bytes, at least one and not all; and the others."""
    at = count = 0
    while count < run.end - run.start - 1:
        after = at + 2 + (run.data[at] << 8 | run.data[at + 1])
        if count and after > limit:
            break
        at, count = after, count + 1
    cut = run.start + count
    return Run(run.start, cut, run.data[:at], run.offset), Run(cut, run.end, run.data[at:], run.offset)


def chunk_limit(options: FeedOptions) -> int:
    """`options.chunk_bytes`, checked. Raises UsageError."""
    if options.chunk_bytes < 1:
        raise UsageError(
            f"chunk_bytes is {options.chunk_bytes}", hint="a chunk holds at least one byte; 1048576 is usual"
        )
    return options.chunk_bytes
