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
from trident_core.session import Instrument, Session
from trident_core.stats import Anomalies

#: The one symbol of a file has this locate.
LOCATE: Final = 1

_NAME: Final = re.compile(r"(?i)^(.+?)_\d{4}-\d\d-\d\d_\d+_\d+_message_\d+\.csv")
_LINE: Final = re.compile(rb"\d{1,5}(\.\d+)?,[1-7],-?\d{1,20},\d{1,20},-?\d{1,20},-?1\r?")
#: Lines that `detect` looks at.
_LINES_JUDGED: Final = 64


class LobsterFeed:
    """The bytes of a message csv as they are; protocol "lobster-csv": lines that end in a newline.

    A newline that the last line lacks is supplied. The symbol (locate 1) and the price scale go into the
    session; a name of another shape leaves the symbol unknown. Memory: one chunk. `lenient` changes nothing.
    """

    protocol = "lobster-csv"

    def __init__(self, source: ByteSource, session: Session, options: FeedOptions) -> None:
        self.anomalies = Anomalies()
        self._source = source
        self._chunk_bytes = options.chunk_bytes
        session.price_decimals = 4
        match = _NAME.match(PurePath(source.name).name)
        if match:
            session.directory.put(Instrument(LOCATE, match[1]))

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        """By the first lines: six columns of numbers, type 1 to 7, direction 1 or -1. See `contracts.Feed`.

        A header may stand before them, and one line in eight may be damaged.
        """
        whole = head.split(b"\n")
        lines = [line for line in (whole[:-1] or whole)[:_LINES_JUDGED] if line]
        good = [_LINE.fullmatch(line) is not None for line in lines]
        bad = len(good) - sum(good)
        if not any(good[:2]) or bad > 1 + len(good) // 8:
            return 0
        return (90 if sum(good) >= 3 else 70) - 10 * min(bad, 3)

    def __iter__(self) -> Iterator[Chunk]:
        offset, last = 0, b"\n"
        while data := self._source.read(self._chunk_bytes):
            yield Chunk(np.frombuffer(data, np.uint8), None, offset)
            offset += len(data)
            last = data[-1:]
        if last != b"\n":
            yield Chunk(np.frombuffer(b"\n", np.uint8), None, offset)
