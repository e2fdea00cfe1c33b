"""Prints of a day, kept until it is known which of them were voided."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.tables.common import Table
from trident_core.tables.prints import TRADE

#: A row of `trades` with the mark that only the whole day can give.
TRADE_OF_DAY: Final = np.dtype([*[(name, TRADE[name]) for name in TRADE.names or ()], ("voided", "?")])

#: Prints stay in memory up to this many bytes, then go to a temporary file.
MEMORY_MAX: Final = 1 << 26
#: What an array of few rows takes besides.
_ARRAY_BYTES: Final = 256


class PrintLog:
    """Takes the `trades` of each batch and gives all of them back, marked, when the day is over.

    A B (spec 4.5.3) may void a print of hours before, so the marks, and bars, must wait for the end. Memory:
    MEMORY_MAX, then a temporary file without a name in `folder` (67 bytes a print); and 8 bytes for each B.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = None if folder is None else str(folder)
        self._kept: list[Table] = []
        self._kept_bytes = 0
        self._file: IO[bytes] | None = None
        self._voids: list[NDArray[np.uint64]] = []
        self.rows = 0
        self.voided = 0

    def append(self, trades: Table) -> None:
        """Keep TRADE[k], the array itself."""
        if not len(trades):
            return
        self._voids.append(trades["match_number"][trades["kind"] == b"B"])
        self.rows += len(trades)
        self._kept.append(trades)
        self._kept_bytes += trades.nbytes + _ARRAY_BYTES
        if self._kept_bytes > MEMORY_MAX:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  # closed by `close`
            for rows in self._kept:
                self._file.write(rows.tobytes())
            self._kept.clear()
            self._kept_bytes = 0

    def read(self, batch: int = 1 << 17) -> Iterator[Table]:
        """TRADE_OF_DAY[1..batch], in order: all that was appended. Counts `voided`."""
        voids = np.unique(np.concatenate([*self._voids, np.zeros(0, np.uint64)]))
        self.voided = 0
        for trades in self._batches(batch):
            rows = np.zeros(len(trades), TRADE_OF_DAY)
            for name in TRADE.names or ():
                rows[name] = trades[name]
            if len(voids):
                rows["voided"] = np.isin(trades["match_number"], voids) & (trades["kind"] != b"B")
                self.voided += int(np.count_nonzero(rows["voided"]))
            yield rows

    def _batches(self, batch: int) -> Iterator[Table]:
        if self._file is not None:
            self._file.seek(0)
            while data := self._file.read(batch * TRADE.itemsize):
                yield np.frombuffer(data, TRADE)
        for trades in self._kept:
            for start in range(0, len(trades), batch):
                yield trades[start : start + batch]

    def close(self) -> None:
        """Forget everything."""
        self._kept.clear()
        if self._file is not None:
            self._file.close()
