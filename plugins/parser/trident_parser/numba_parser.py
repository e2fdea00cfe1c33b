"""The numba parser: the reference's rules at the speed of memory. The work is in `kernels.py`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import ParseResult, Status
from trident_core.dtypes import Events, Frames
from trident_core.session import Session
from trident_core.stats import Anomalies
from trident_parser import kernels as k
from trident_parser.directory import teach
from trident_parser.encode import encode_events, encode_rows
from trident_parser.itch50 import LENGTHS, STOCK_OFFSETS
from trident_parser.typed import check_frames, check_out, typed_rows

_LOCATES: Final = 1 << 16
_BLANK: Final = int.from_bytes(b" " * 8, "big")
_SKIPPED: Final = ("unknown_type", "wrong_length")  # by kernels.UNKNOWN_TYPE, WRONG_LENGTH

#: Messages looked at by one kernel call of `parse_tables`.
_INDEX_SLOTS: Final = 1 << 16


class NumbaParser:
    """ITCH 5.0 -> EVENTs and typed tables, and back. Satisfies Parser, TableParser and Encoder.

    Equal to `ReferenceParser` in every event, count, anomaly and directory entry. Memory: 0.6 MB, constant in
    the input, but for `parse_tables`, which is linear.
    """

    def __init__(self, session: Session, *, lenient: bool = False) -> None:
        self.session = session
        self.lenient = lenient
        self.anomalies = Anomalies()
        self.counts: NDArray[np.uint64] = np.zeros(256, np.uint64)
        self.next_seq = 1
        self.position = 0
        self._state: NDArray[np.int64] = np.zeros(8, np.int64)
        self._learn: NDArray[np.int64] = np.zeros(k.LEARN_SLOTS, np.int64)
        self._issues: NDArray[np.int64] = np.zeros((k.ISSUE_SLOTS, 2), np.int64)
        self._skipped: NDArray[np.int64] = np.zeros(2, np.int64)
        self._agreed: NDArray[np.uint64] = np.zeros(_LOCATES, np.uint64)
        self._agreed_version = -1
        self._index: NDArray[np.uint64] | None = None

    def warm_up(self) -> None:
        """See `trident_core.contracts.Warmable`."""
        rows = np.zeros((1, 8), np.uint64)
        for writeable in (False, True):  # a chunk and a cut message: each a type of its own for a kernel
            nothing = np.zeros(0, np.uint8)
            nothing.flags.writeable = writeable
            self._run(nothing, rows, index=False)

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        """See `trident_core.contracts.Parser`."""
        check_frames(frames)
        check_out(out)
        count, status = self._run(frames, out.view(np.uint64).reshape(-1, 8), index=False)
        return ParseResult(int(self._state[k.AT]), count, status)

    def parse_tables(self, frames: Frames, types: str = "") -> dict[str, NDArray[Any]]:
        """See `trident_core.contracts.TableParser` and `ReferenceParser.parse_tables`."""
        check_frames(frames)
        if self._index is None:
            self._index = np.zeros((_INDEX_SLOTS, 8), np.uint64)
        found: list[NDArray[np.uint64]] = []
        start, position = 0, self.position
        wanted = np.full(256, not types)
        wanted[[ord(letter) for letter in types]] = True
        while True:
            part = frames[start:]
            count, status = self._run(part, self._index, index=True)
            rows = self._index[:count, :3]  # seq, start of the frame, type
            rows = rows[wanted[rows[:, 2]]]
            rows[:, 1] += np.uint64(start)
            found.append(rows)
            start += int(self._state[k.AT])
            if status is not Status.OUT_FULL:
                break
        self.position = position + start
        index = np.concatenate(found)
        letters = np.unique(index[:, 2])
        return {
            chr(letter): typed_rows(frames, chr(letter), rows[:, 0], rows[:, 1].astype(np.int64))
            for letter in map(int, letters)
            for rows in (index[index[:, 2] == letter],)
        }

    def encode_events(self, events: Events) -> Frames:
        """See `trident_parser.encode.encode_events`."""
        return encode_events(events, self.session)

    def encode_rows(self, type_letter: str, rows: NDArray[Any]) -> Frames:
        """See `trident_parser.encode.encode_rows`."""
        return encode_rows(type_letter, rows)

    def _run(self, frames: Frames, words: NDArray[np.uint64], *, index: bool) -> tuple[int, Status]:
        """Kernel calls until the bytes or the room end; the count of rows, and why it stopped."""
        if self._agreed_version != self.session.directory.version:
            self._read_directory()
        state = self._state
        # seq is a u64 that travels in an i64 slot.
        state[:] = 0
        state[k.SEQ] = np.array(self.next_seq, np.uint64).view(np.int64)
        state[k.LENIENT], state[k.INDEX] = self.lenient, index
        self._skipped[:] = 0
        while True:
            k.parse(
                frames, words, state, LENGTHS, STOCK_OFFSETS, self.counts, self._agreed, self._learn,
                self._issues, self._skipped,
            )  # fmt: skip
            self._teach(frames.data)
            if state[k.STATUS] != k.LEARN_FULL:
                break
        self._report()
        self.next_seq = int(state[k.SEQ : k.SEQ + 1].view(np.uint64)[0])
        self.position += int(state[k.AT])
        return int(state[k.COUNT]), Status(int(state[k.STATUS]))

    def _read_directory(self) -> None:
        """Fill `agreed` from the directory, as the feed would pad it."""
        self._agreed[:] = 0
        for locate, instrument in self.session.directory.as_mapping().items():
            symbol = instrument.symbol
            if not symbol or not 0 < locate < _LOCATES:
                continue
            stock = symbol.encode("latin-1", "replace").ljust(8)
            fits = len(stock) == 8 and stock.decode("latin-1").rstrip(" \0") == symbol
            # A symbol that no stock field can spell agrees with nothing: blanks, which the rules pass over.
            self._agreed[locate] = int.from_bytes(stock, "big") if fits else _BLANK
        self._agreed_version = self.session.directory.version

    def _teach(self, data: memoryview) -> None:
        """Tell the directory the symbols that the kernel set aside, in their order."""
        count = int(self._state[k.LEARNED])
        for at in self._learn[:count].tolist():
            stock = teach(self.session, self.anomalies, data, at, self.position + at)
            if stock:
                self._agreed[data[at + 3] << 8 | data[at + 4]] = int.from_bytes(stock, "big")
        self._state[k.LEARNED] = 0
        self._agreed_version = self.session.directory.version

    def _report(self) -> None:
        """Move the kernel's counts of skipped messages, and their first positions, to `anomalies`."""
        if not self._skipped.any():
            return
        noted = self._issues[: int(self._state[k.ISSUES])]
        for kind, name in enumerate(_SKIPPED):
            positions = noted[noted[:, 0] == kind, 1].tolist()
            for at in positions:
                self.anomalies.add(name, at=self.position + at)
            self.anomalies.add(name, count=int(self._skipped[kind]) - len(positions))
