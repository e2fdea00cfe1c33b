"""A feed read by a thread of its own: decompression goes on while the line works on the chunks before."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterator
from typing import Final

import numpy as np

from trident_core.contracts import Chunk, Feed
from trident_core.dtypes import Frames
from trident_core.stats import Anomalies

#: Chunks read and not yet taken.
AHEAD: Final = 8


class ReadAhead:
    """A Feed with the chunks of another, up to AHEAD chunks early. Chunks are copied, for a feed may use its
    buffer again; the copies are valid until the next chunk is asked for. `anomalies` are the inner feed's and
    complete when the iteration has ended; the source's `progress` runs ahead by the same chunks. Ending the
    iteration early waits for the thread to have read its chunk: a matter for files, not for pipes that may
    stall. Memory: AHEAD + 2 of the longest chunks.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self.protocol = feed.protocol
        self.anomalies: Anomalies = feed.anomalies

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        """No format of its own: never chosen by its bytes."""
        return 0

    def __iter__(self) -> Iterator[Chunk]:
        items: queue.Queue[Chunk | BaseException | None] = queue.Queue(AHEAD)
        spare: deque[Frames] = deque()  # buffers to be used again: fresh memory costs more than the copy
        stop = threading.Event()
        thread = threading.Thread(
            target=self._read, args=(items, spare, stop), name="trident-read", daemon=True
        )
        thread.start()
        try:
            while (item := items.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
                spare.append(item.data)
        finally:
            stop.set()
            while thread.is_alive():  # it may wait for room
                try:
                    items.get(timeout=0.02)
                except queue.Empty:
                    continue

    def _read(
        self, items: queue.Queue[Chunk | BaseException | None], spare: deque[Frames], stop: threading.Event
    ) -> None:
        try:
            for chunk in self._feed:
                items.put(chunk._replace(data=_copied(chunk.data, spare)))
                if stop.is_set():
                    return
        except BaseException as error:  # raised by the thread that iterates
            items.put(error)
        else:
            items.put(None)


def _copied(data: Frames, spare: deque[Frames]) -> Frames:
    """A copy, in a spare buffer if there is one that is long enough."""
    room = spare.popleft() if spare else np.empty(0, np.uint8)
    buffer: Frames = room if room.base is None else room.base  # the whole of it, not what was used last
    if len(buffer) < len(data):
        buffer = np.empty(len(data), np.uint8)
    copy = buffer[: len(data)]
    copy[:] = data
    return copy
