"""Engines that are wrong in one way each, and one right engine of each kind as the control.

`test_rejected.py` gives them to the suite by factory and wants every wrong one rejected for its own fault.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from trident_book.reference import ReferenceBook
from trident_core.contracts import ParseResult
from trident_core.dtypes import EVENT, Effects, Events, Frames, Tops
from trident_core.session import Session
from trident_parser.reference import ReferenceParser
from trident_query.reference import ReferenceProgram, ReferenceQuery
from trident_store.filesystem import OsFileSystem
from trident_store.logfiles import LogPart
from trident_store.reference import ReferenceStore
from trident_store.snapshot import LogSnapshot

# --- controls -----------------------------------------------------------------------------------------------


class RightBook(ReferenceBook):
    """A book of a stranger who made no mistake."""


class RightParser(ReferenceParser):
    """A parser without a mistake."""


class RightStore(ReferenceStore):
    """A store without a mistake."""


class RightQuery(ReferenceQuery):
    """A query engine without a mistake."""


# --- books --------------------------------------------------------------------------------------------------


class KeepsPriority(ReferenceBook):
    """Leaves an order that is replaced at its own price where it was in the queue."""

    def _replace(self, row: Any) -> Any:
        old = self._orders.get(row[2])
        level = old.level if old else None
        order = list(level.queue) if level else []
        found = super()._replace(row)
        if level and row[2] != row[3] and level.price == row[4] and row[3] in level.queue and level.queue:
            place = order.index(row[2])
            rest = [ref for ref in level.queue if ref != row[3]]
            for ref in [*rest[:place], row[3], *rest[place:]]:
                level.queue.move_to_end(ref)
        return found


class CancelsToTheRest(ReferenceBook):
    """Reads X as the shares that remain."""

    def _reduce(self, row: Any) -> Any:
        order = self._orders.get(row[2])
        if row[7] == ord("X") and order is not None:
            row = (*row[:5], max(order.qty - row[5], 0), *row[6:])
        return super()._reduce(row)


class PrintsAtTheMessagesPrice(ReferenceBook):
    """Gives C's own price as the price of the level it took shares from."""

    def _reduce(self, row: Any) -> Any:
        symbol, effect = super()._reduce(row)
        return symbol, (row[4], *effect[1:]) if row[7] == ord("C") and effect[5] == 1 else effect


class DropsThePartialBatch(ReferenceBook):
    """A kernel that works on blocks of four and forgets what does not fill the last one."""

    def apply(self, events: Events, tops: Tops | None = None, effects: Effects | None = None) -> int:
        whole = len(events) if len(events) < 4 else len(events) // 4 * 4
        super().apply(events[:whole], tops, effects)
        return len(events)


class TakesUnknownsInSilence(ReferenceBook):
    """Does not count messages for unknown orders."""

    def _unknown_ref(self, seq: int, locate: int) -> Any:
        before = self.anomalies
        self.anomalies = copy.deepcopy(before)
        found = super()._unknown_ref(seq, locate)
        self.anomalies = before
        return found


class StopsInAHalt(ReferenceBook):
    """Ignores orders of a halted symbol."""

    def _add(self, row: Any) -> Any:
        if self.state(row[6]) == ord("H"):
            return self._no_effect(row)
        return super()._add(row)


# --- parsers ------------------------------------------------------------------------------------------------


class ReadsPastTheEnd(ReferenceParser):
    """Loads eight bytes at a time, the last of them beyond the input."""

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        if len(frames):
            beyond = np.lib.stride_tricks.as_strided(frames, (len(frames) + 8,))
            int(beyond[-8:].sum())
        return super().parse_into(frames, out)


class WritesBeyondTheCount(ReferenceParser):
    """Clears the row behind the last one."""

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        result = super().parse_into(frames, out)
        if result.count < len(out):
            out[result.count] = np.zeros(1, EVENT)[0]
        return result


class NumbersOnlyWhatItKnows(ReferenceParser):
    """Gives no sequence number to a message that it skips."""

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        first, skipped = self.next_seq, self._skipped()
        result = super().parse_into(frames, out)
        if self._skipped() > skipped:
            out["seq"][: result.count] = np.arange(first, first + result.count)
            self.next_seq = first + result.count
        return result

    def _skipped(self) -> int:
        return self.anomalies.count("unknown_type") + self.anomalies.count("wrong_length")


class ForgetsWhereItIs(ReferenceParser):
    """Reports offsets within the chunk instead of the source."""

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        position, self.position = self.position, 0
        result = super().parse_into(frames, out)
        self.position = position + result.consumed
        return result


# --- stores -------------------------------------------------------------------------------------------------


class _Unchecked(LogPart):
    def payload(self, frame: Any, file: Any) -> Any:
        raw = os.pread(file.handle, frame.payload_bytes, frame.offset + 64)
        return np.frombuffer(raw, np.uint8).copy()


class ForgetsACrc(ReferenceStore):
    """Checks the headers of frames, not what they hold."""

    def snapshot(self) -> LogSnapshot:
        made = super().snapshot()
        made._log = _Unchecked(*made._log)
        return made


class _Growing:
    def __init__(self, store: ReferenceStore, first: LogSnapshot) -> None:
        self._store, self._first = store, first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._first, name)

    def scan(self, **filters: Any) -> Iterator[Events]:
        now = self._first if self._store._closed else ReferenceStore.snapshot(self._store)
        return now.scan(**filters)


class ShowsWhatCameLater(ReferenceStore):
    """A snapshot that is only a window."""

    def snapshot(self) -> Any:
        return _Growing(self, super().snapshot())


class _NoLock(OsFileSystem):
    def lock(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT)


class DiesOfDamage(ReferenceStore):
    """A library that ends the process where it should raise."""

    def __init__(self, path: Path, mode: str, session: Session | None = None, **options: Any) -> None:
        if mode == "read" and (path / "00000000.seg").stat().st_size % 4096:
            os.abort()
        super().__init__(path, mode, session, **options)


class LetsTwoWrite(ReferenceStore):
    """Takes no lock."""

    def __init__(self, path: Path, mode: str, session: Session | None = None, **options: Any) -> None:
        super().__init__(path, mode, session, filesystem=_NoLock(), **options)


class LosesTheLateSymbols(ReferenceStore):
    """Writes the directory once."""

    def __init__(self, path: Path, mode: str, session: Session | None = None, **options: Any) -> None:
        super().__init__(path, mode, copy.deepcopy(session), **options)


# --- queries ------------------------------------------------------------------------------------------------


class OffByOne(ReferenceQuery):
    """{n,m} up to m - 1 times."""

    def compile(self, pattern: str, **options: Any) -> ReferenceProgram:
        def less(found: re.Match[str]) -> str:
            low, high = int(found[1]), int(found[2])
            return f"{{{low},{max(low, high - 1)}}}"

        program = super().compile(re.sub(r"\{(\d+),(\d+)\}", less, pattern), **options)
        program.pattern = pattern
        return program


class SeesThePadding(ReferenceQuery):
    """Always raw."""

    def compile(self, pattern: str, **options: Any) -> ReferenceProgram:
        return super().compile(pattern, **{**options, "raw": True})


class _FirstBranch(ReferenceProgram):
    def spans(self, data: bytes, limit: int = 0) -> list[tuple[int, int]]:
        try:
            found = [match.span() for match in re.finditer(self.pattern.encode(), data)]
        except re.error:
            return super().spans(data, limit)
        return found[: limit or None]


class TakesTheFirstBranch(ReferenceQuery):
    """Leftmost-first, as Perl and Python do."""

    def compile(self, pattern: str, *, flags: str = "", full: bool = False, raw: bool = False) -> Any:
        return _FirstBranch(pattern, flags=flags, full=full, raw=raw)
