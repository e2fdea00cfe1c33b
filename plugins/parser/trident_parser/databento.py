"""Databento's MBO records (DBN, versions 1 to 3) -> EVENTs. What becomes what: docs/databento.md."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import ParseResult, Status
from trident_core.dtypes import EVENT, Events, Frames
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.stats import POSITIONS_KEPT, Anomalies
from trident_core.tables import refs
from trident_parser import dbn_kernel as k

#: Names of the kernel's notes in `anomalies`.
NOTES: Final = {
    k.OTHER_RECORD: "other_record",
    k.OTHER_PUBLISHER: "other_stream",
    k.NOT_AN_ORDER: "not_an_order",
    k.NO_VALUE: "undefined_value",
    k.MODIFIED_UNKNOWN: "modified_unknown",
    k.UNCHANGED: "unchanged",
    k.FILL_APART: "fill_apart",
    k.NO_ACTION: "no_action",
    k.BAD_ACTION: "unknown_type",
    k.BEFORE_SESSION: "before_session",
    k.AFTER_SESSION: "after_session",
    k.MAYBE_BAD_BOOK: "maybe_bad_book",
}


class DatabentoParser:
    """MBO records -> EVENTs. Satisfies `contracts.Parser`; protocol "dbn-mbo".

    Not one EVENT for each record: a fill is told by the record that takes its shares away, a clear is a
    deletion of each order of the instrument, and a trade waits for the record after it. `seq` numbers the
    EVENTs from 1; `counts` counts records by their action, the skipped ones of other schemas not. Records of
    one publisher are used, the first one's. Memory: 88 bytes for each live order, at most doubled by growth,
    and a copy of `frames`.

    There is no lenient mode: `lenient` is accepted and changes nothing.
    """

    def __init__(self, session: Session, *, lenient: bool = False) -> None:
        self.session = session
        self.lenient = lenient
        self.anomalies = Anomalies()
        self.counts: NDArray[np.uint64] = np.zeros(256, np.uint64)
        self.position = 0
        self._state = np.zeros(k.STATE_SLOTS, np.int64)
        self._state[k.SEQ], self._state[k.PUBLISHER], self._state[k.CLEARED] = 1, -1, -1
        self._state[k.HELD] = -1
        self._held = np.zeros(k.MBO_WORDS, np.uint32)
        self._keys, self._slots = refs.empty()
        self._live = np.full((0, k.LIVE_COLUMNS), k.UNKNOWN, np.int64)
        self._free: NDArray[np.int32] = np.zeros(0, np.int32)
        self._clearing: NDArray[np.int64] | None = None
        self._found = np.zeros(k.NOTE_COUNT, np.int64)
        self._places = np.zeros((k.NOTE_COUNT, POSITIONS_KEPT), np.int64)

    @property
    def next_seq(self) -> int:
        return int(self._state[k.SEQ])

    @next_seq.setter
    def next_seq(self, seq: int) -> None:
        self._state[k.SEQ] = seq

    def warm_up(self) -> None:
        """See `trident_core.contracts.Warmable`."""
        spare = DatabentoParser(Session())
        record = np.zeros(k.MBO_WORDS, np.uint32)
        record[0] = k.MBO_WORDS | k.MBO_RTYPE << 8
        records = [record.copy() for _ in range(2)]
        for made, action in zip(records, "AR", strict=True):
            made[8], made[9] = 1, ord(action) << 16 | ord("B") << 24
        out = np.zeros(4, EVENT)
        spare.parse_into(np.concatenate(records).view(np.uint8), out)
        refs.warm_up()

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        """See `trident_core.contracts.Parser`."""
        _check_arrays(frames, out)
        size = len(frames) // k.WORD_BYTES
        words = frames[: size * k.WORD_BYTES].copy().view(np.uint32)  # aligned, and never read-only
        self._make_room(size // k.MBO_WORDS + 1)
        state, midnight = self._state, self.session.midnight_ns()
        state[k.AT] = state[k.COUNT] = 0
        rows = out.view(np.int64).reshape(-1, 8)
        pools = (self._live, self._free, self._keys, self._slots, state, midnight, self.position)
        while True:
            answer = int(k.CLEAR)
            if self._clearing is None:
                answer = k.resolve(words, rows, *pools, self._found, self._places, self.counts, self._held)
                if answer != k.CLEAR:
                    break
                self._clearing = self._orders_of(int(state[k.CLEARED]))
            done = k.clear(words, self._clearing, rows, *pools, self._found, self._places)
            if done < len(self._clearing):
                self._clearing = self._clearing[done:]
                answer = int(Status.OUT_FULL)
                break
            self._clearing = None
        self._tell()
        consumed = int(state[k.AT]) * k.WORD_BYTES
        if answer == Status.OK and consumed < len(frames):
            answer = int(Status.NEED_MORE)
        self.position += consumed
        return ParseResult(consumed, int(state[k.COUNT]), Status(answer))

    def _orders_of(self, instrument: int) -> NDArray[np.int64]:
        """The references of an instrument's live orders, ascending."""
        chosen = (self._live[:, k.INSTRUMENT] == instrument) & (self._live[:, k.SIZE] > 0)
        return np.sort(self._live[chosen, k.REF].view(np.uint64)).view(np.int64)

    def _make_room(self, records: int) -> None:
        state = self._state
        living, kept = int(state[k.LIVING]), int(state[k.FREE])
        self._keys, self._slots = refs.grown(self._keys, self._slots, living + records)
        if kept >= records:
            return
        old = len(self._live)
        size = max(2 * old, living + records)
        live = np.full((size, k.LIVE_COLUMNS), k.UNKNOWN, np.int64)
        live[:old] = self._live
        free = np.zeros(size, np.int32)
        free[: size - old] = np.arange(old, size)
        free[size - old : size - old + kept] = self._free[:kept]
        self._live, self._free = live, free
        state[k.FREE] += size - old

    def _tell(self) -> None:
        """The kernel's notes into `anomalies`."""
        for what in np.flatnonzero(self._found).tolist():
            count = int(self._found[what])
            for place in self._places[what, : min(count, POSITIONS_KEPT)].tolist():
                self.anomalies.add(NOTES[what], at=place)
            self.anomalies.add(NOTES[what], count=count - min(count, POSITIONS_KEPT))
        self._found[:] = 0


def _check_arrays(frames: Frames, out: Events) -> None:
    if frames.dtype != np.uint8 or frames.ndim != 1 or not frames.flags.c_contiguous:
        raise UsageError("frames must be a contiguous u8[n]")
    if out.dtype != EVENT or out.ndim != 1 or not out.flags.c_contiguous or not out.flags.writeable:
        raise UsageError("parse_into needs a writable, contiguous EVENT[m] to write to")
    if len(out) == 0:
        raise UsageError("parse_into needs room for at least one event")
