"""Typed rows beside EVENTs, in one pass over the input: for tables whose fields EVENT has no room for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Parser, ParseResult, TableParser, Warmable
from trident_core.dtypes import Events, Frames
from trident_core.session import Session
from trident_core.stats import Anomalies
from trident_core.tables.common import Table, is_any


class TappedParser:
    """A Parser that keeps, of each batch it parses, the typed rows of some types.

    `parser` makes the events; `rows` is a second parser of the same engine with a session of its own, which
    is given exactly the bytes that `parser` consumed, so that both see the same messages under the same
    numbers. It is asked only when a message of `types` is among the events: other batches cost nothing.
    Memory: the rows since the last `take`.
    """

    def __init__(self, parser: Parser, rows: Any, types: str) -> None:
        self._parser = parser
        self._rows: Parser = rows
        self._tables: TableParser = rows
        self._types = types
        self.session: Session = parser.session
        self.anomalies: Anomalies = parser.anomalies
        self.counts: NDArray[np.uint64] = parser.counts
        self._kept: dict[str, list[Table]] = {}

    @property
    def next_seq(self) -> int:
        return self._parser.next_seq

    @next_seq.setter
    def next_seq(self, seq: int) -> None:
        self._parser.next_seq = seq

    @property
    def position(self) -> int:
        return self._parser.position

    @position.setter
    def position(self, offset: int) -> None:
        self._parser.position = offset

    def warm_up(self) -> None:
        """See `trident_core.contracts.Warmable`; for the parser that may be asked for typed rows, too."""
        for parser in (self._parser, self._rows):
            if isinstance(parser, Warmable):
                parser.warm_up()

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        """See `trident_core.contracts.Parser`."""
        seq = self._parser.next_seq
        result = self._parser.parse_into(frames, out)
        if is_any(out["type"][: result.count], self._types).any():
            self._rows.next_seq = seq
            for letter, rows in self._tables.parse_tables(frames[: result.consumed], self._types).items():
                self._kept.setdefault(letter, []).append(rows)
        return result

    def take(self) -> dict[str, Table]:
        """Type letter -> rows, by `seq`: all since the last call."""
        taken = {letter: np.concatenate(rows) for letter, rows in self._kept.items()}
        self._kept.clear()
        return taken
