"""The driver between feed and parser: chunks in, batches of EVENTs out.

It carries a message that is cut by the end of a chunk over to the next, hands the transport's sequence
numbers and offsets to the parser, and counts what is left over at the end. Any chunking gives the same
events, counts and anomalies. Offsets inside a message that one chunk starts and another ends count from its
start.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final

import numpy as np

from trident_core.contracts import Chunk, Parser, Status
from trident_core.dtypes import EVENT, Events, Frames
from trident_core.errors import PluginError, UsageError

#: A longer message cannot be framed: counted `malformed`, reading stops (ITCH needs at most 65,537 bytes).
MESSAGE_BYTES_MAX: Final = 1 << 20

#: The highest number a feed may give: 64 bits then hold all that follow.
SEQ_MAX: Final = 1 << 63
#: A feed this much slower than a batch gives what there is, in seconds.
LINGER_S: Final = 0.05
#: How many bytes of the next chunk a cut message is offered first.
_FIRST_STEP: Final = 64


def decode(
    feed: Iterable[Chunk],
    parser: Parser,
    *,
    batch: int = 65_536,
    on_chunk: Callable[[Chunk], None] | None = None,
    linger_s: float = LINGER_S,
    kept: int = 1,
) -> Iterator[Events]:
    """Parse all chunks of a feed; yield EVENT[1..batch], views of a buffer that are valid until `kept` more
    were asked for.

    Batches are full, but for the last, and for a feed slower than `linger_s` per batch: the first chunk after
    that time releases what there is. If the feed raises, the events before it come first, then the error.
    `on_chunk` is called after each chunk. Memory: `kept` buffers, one chunk, and a cut message of at most
    MESSAGE_BYTES_MAX bytes. A cut message costs time linear in its length, even in chunks of single bytes.

    Counted in `parser.anomalies`, at source offsets: `torn_tail` (a message cut by the end of the input, or
    by a chunk that has a `seq`), `bytes_after_end` (how many bytes follow an end-of-session mark, at the
    first of them), `malformed` (reading stops). Raises UsageError for a batch < 1, PluginError if the parser
    makes no progress or the feed numbers a chunk outside 1 to SEQ_MAX.
    """
    if batch < 1:
        raise UsageError(f"a batch holds at least one event, not {batch}")
    decoder = _Decoder(parser, [np.zeros(batch, EVENT) for _ in range(kept)])
    chunks = iter(feed)
    released = time.monotonic()
    while not decoder.malformed:
        try:
            chunk = next(chunks, None)
        except BaseException:
            yield from decoder.release()
            raise
        if chunk is None:
            break
        for events in decoder.take(chunk):
            yield events
            released = time.monotonic()
        if on_chunk:
            on_chunk(chunk)
        if time.monotonic() - released >= linger_s:
            yield from decoder.release()
            released = time.monotonic()
    decoder.finish()
    yield from decoder.release()


def events_of(data: bytes | bytearray | memoryview | Frames, parser: Parser) -> Events:
    """All events of `data` (framed messages) in one array, EVENT[n], which the caller owns.

    For tests and notebooks: the memory is linear in the input. Starts at `parser.position` and
    `parser.next_seq`; counts what `decode` counts.
    """
    frames = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    batches = [events.copy() for events in decode([Chunk(frames, None, parser.position)], parser)]
    return np.concatenate(batches) if batches else np.zeros(0, EVENT)


class _Decoder:
    """The state between chunks: the events not yet released, and the cut message."""

    def __init__(self, parser: Parser, outs: list[Events]) -> None:
        self.malformed = False
        self._parser = parser
        self._outs = deque(outs)
        self._out = outs[0]
        self._filled = 0
        self._cut = _CutMessage()
        self._ended = False  # by an end-of-session mark, or malformed
        self._bytes_after_end = 0
        self._after_end_offset: int | None = None

    def take(self, chunk: Chunk) -> Iterator[Events]:
        """Parse a chunk; yield the batches that become full."""
        rest = chunk.data
        if chunk.seq is not None and not 0 < chunk.seq <= SEQ_MAX:
            raise PluginError(
                f"the feed numbers a message {chunk.seq} (at offset {chunk.offset})",
                hint=f"numbers are 1 to {SEQ_MAX}; the feed's author should mend it",
            )
        if chunk.seq is not None and not self._ended:
            self._drop_cut()
            self._parser.next_seq = chunk.seq
        if self._cut.size:
            rest = yield from self._complete(rest)
        offset = chunk.offset + len(chunk.data) - len(rest)
        while len(rest) and not self._ended:
            self._parser.position = offset
            consumed, status = yield from self._parse(rest)
            rest = rest[consumed:]
            offset += consumed
            if status is Status.NEED_MORE:
                self._cut.start(rest, offset)
                return
        if not self.malformed:
            self._leave_out(rest, offset)

    def release(self) -> Iterator[Events]:
        """The events parsed so far, if any."""
        if self._filled:
            events = self._out[: self._filled]
            self._filled = 0
            self._outs.rotate(-1)
            self._out = self._outs[0]
            yield events

    def finish(self) -> None:
        """The input is at its end: count what is left over."""
        self._drop_cut()
        self._parser.anomalies.add("bytes_after_end", at=self._after_end_offset, count=self._bytes_after_end)

    def _parse(self, frames: Frames) -> Generator[Events, None, tuple[int, Status]]:
        """Call the parser once; yield the batch if it is full; return what was consumed, and the status."""
        consumed, count, status = self._parser.parse_into(frames, self._out[self._filled :])
        if status is Status.OUT_FULL and consumed == 0 and count == 0:
            raise PluginError(f"the parser makes no progress at offset {self._parser.position}")
        self._filled += count
        if status is Status.END:
            self._ended = True
        elif status is Status.MALFORMED:
            self._fail(self._parser.position)
        if self._filled == len(self._out):
            yield from self.release()
        return consumed, status

    def _complete(self, data: Frames) -> Generator[Events, None, Frames]:
        """Give the cut message what it lacks from the start of `data`; return the rest of `data`.

        The message's length is the parser's secret, so it is offered ever longer starts of `data`: at least
        doubled each time, which keeps the bytes copied linear in the message.
        """
        before = self._cut.size
        used = 0
        while used < len(data):
            step = data[used : used + max(_FIRST_STEP, self._cut.size)]
            self._cut.extend(step)
            used += len(step)
            self._parser.position = self._cut.offset
            consumed, status = yield from self._parse(self._cut.view())
            while status is Status.OUT_FULL and not consumed:  # one message, more events than there was room
                consumed, status = yield from self._parse(self._cut.view())
            if consumed:
                self._cut.size = 0
                return data[consumed - before :]
            if self._ended:
                break
            if self._cut.size > MESSAGE_BYTES_MAX:
                self._fail(self._cut.offset)
                break
        return data[used:]

    def _fail(self, offset: int) -> None:
        self._parser.anomalies.add("malformed", at=offset)
        self._ended = self.malformed = True
        self._cut.size = 0

    def _leave_out(self, data: Frames, offset: int) -> None:
        if len(data) and self._after_end_offset is None:
            self._after_end_offset = offset
        self._bytes_after_end += len(data)

    def _drop_cut(self) -> None:
        if self._cut.size:
            self._parser.anomalies.add("torn_tail", at=self._cut.offset)
            self._cut.size = 0


class _CutMessage:
    """The bytes of a message that a chunk cut, and the offset of its start; the buffer doubles as needed."""

    def __init__(self) -> None:
        self.size = 0
        self.offset = 0
        self._buffer = np.empty(256, np.uint8)

    def start(self, data: Frames, offset: int) -> None:
        self.size, self.offset = 0, offset
        self.extend(data)

    def extend(self, data: Frames) -> None:
        size = self.size + len(data)
        if size > len(self._buffer):
            grown = np.empty(2 * size, np.uint8)
            grown[: self.size] = self.view()
            self._buffer = grown
        self._buffer[self.size : size] = data
        self.size = size

    def view(self) -> Frames:
        return self._buffer[: self.size]
