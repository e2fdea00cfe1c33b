"""LOBSTER message files: csv lines, one symbol, one day (lobsterdata.com, "Output Structure").

The name of a file, `TICKER_YYYY-MM-DD_START_END_message_LEVEL.csv`, is the only place that tells the symbol.
LOBSTER ships it in a zip, beside its orderbook file; `trident_core.source` finds the member.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

import numpy as np

from trident_core.contracts import ByteSource, Chunk, FeedOptions
from trident_core.errors import InputError
from trident_core.session import Instrument, Session
from trident_core.stats import Anomalies
from trident_feed.chunks import chunk_limit

#: The one symbol of a file has this locate.
LOCATE: Final = 1

_NAME: Final = re.compile(r"(?i)^(.+?)_\d{4}-\d\d-\d\d_\d+_\d+_message_\d+\.csv")
_LINE: Final = re.compile(rb"\d{1,5}(\.\d{1,18})?,[1-7],-?\d{1,20},\d{1,20},-?\d{1,20},-?1\r?")
_ROW: Final = re.compile(rb"-?\d{1,20}(,-?\d{1,20})+\r?")
_PEEKED_BYTES: Final = 1 << 14
#: Of the last line, as much is looked at; a line that is longer is no message.
_LINE_BYTES_MAX: Final = 128
#: Lines that `detect` looks at.
_LINES_JUDGED: Final = 64


class LobsterFeed:
    """The bytes of a message csv as they are; protocol "lobster-csv": lines that end in a newline.

    A last line that is whole but for its newline is given one; a cut one is not: it becomes a `torn_tail`.
    The symbol (locate 1) and the price scale go into the session; a name of another shape leaves the symbol
    unknown. Memory: one chunk. `lenient` changes nothing. Raises InputError for LOBSTER's orderbook files.
    """

    protocol = "lobster-csv"

    def __init__(self, source: ByteSource, session: Session, options: FeedOptions) -> None:
        self.anomalies = Anomalies()
        self._source = source
        self._chunk_bytes = chunk_limit(options)
        session.price_decimals = 4
        match = _NAME.match(PurePath(source.name).name)
        if match:
            session.directory.put(Instrument(LOCATE, match[1]))

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        """By the first lines: six columns of numbers, type 1 to 7, direction 1 or -1. See `contracts.Feed`.

        A header may stand before them, and one line in eight may be damaged. An orderbook file is recognised
        too, faintly, to say what it is.
        """
        if _is_orderbook(head):
            return 5
        whole = head.split(b"\n")
        lines = [line for line in (whole[:-1] or whole)[:_LINES_JUDGED] if line]
        good = [_LINE.fullmatch(line) is not None for line in lines]
        bad = len(good) - sum(good)
        if not any(good[:2]) or bad > 1 + len(good) // 8:
            return 0
        return (90 if sum(good) >= 3 else 70) - 10 * min(bad, 3)

    def __iter__(self) -> Iterator[Chunk]:
        if _is_orderbook(self._source.peek(_PEEKED_BYTES)):
            raise InputError(
                f"{self._source.name} looks like LOBSTER's orderbook file: levels, not messages",
                hint="name the message file of the same day, …_message_….csv",
            )
        offset, tail = 0, b""
        while data := self._source.read(self._chunk_bytes):
            yield Chunk(np.frombuffer(data, np.uint8), None, offset)
            offset += len(data)
            tail = (tail + data[-_LINE_BYTES_MAX:])[-_LINE_BYTES_MAX:]
        if _LINE.fullmatch(tail[tail.rfind(b"\n") + 1 :]):
            yield Chunk(np.frombuffer(b"\n", np.uint8), None, offset)


def _is_orderbook(head: bytes) -> bool:
    """Four integers for each level; with LOBSTER's 200 levels, the first line is well within the head."""
    line, end, _ = head.partition(b"\n")
    return bool(end) and _ROW.fullmatch(line) is not None and (line.count(b",") + 1) % 4 == 0
