"""The day as a stream: events in batches, and the bytes of the feed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events, Frames
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_parser.encode import encode_events, encode_rows
from trident_parser.itch50 import BY_LETTER, LENGTHS, TABLE_DTYPES, framed_at
from trident_sim.kernel import STEP_MAX, run
from trident_sim.layout import DONE, LIVE, LIVE_PEAK, OUT, make_plan, make_state
from trident_sim.schedule import make_schedule
from trident_sim.spec import ANOMALY_KINDS, SimSpec
from trident_sim.timetable import make_timetable
from trident_sim.world import make_world

#: Messages in one batch: the stream is the same for any size.
BATCH: Final = 1 << 18


class Day:
    """One simulated day, to be read once: by `batches` (EVENTs) or by `frames` (bytes).

    After that, or on the way: `counts` u64[256] of messages by type byte, `anomalies` i64[k, 2] of (seq,
    index in ANOMALY_KINDS), `live` and `live_peak` orders, `session` with its directory. Memory is bounded
    by the number of symbols and of live orders, not of messages (trident_sim.layout). Raises UsageError for
    a `batch` that is too small.
    """

    def __init__(self, spec: SimSpec, batch: int = BATCH) -> None:
        if batch <= STEP_MAX:
            raise UsageError(f"a batch of {batch} messages is too small", hint=f"more than {STEP_MAX}")
        self.spec = spec
        self.world = make_world(spec)
        self.session = Session(date=spec.date, directory=self.world.directory())
        self.counts = np.zeros(256, np.uint64)
        schedule = make_schedule(spec, self.world)
        timetable = make_timetable(spec, spec.messages - schedule.messages)
        self._plan = make_plan(schedule.items, timetable)
        self._state = make_state(spec, self.world, timetable.live_peak, batch)
        self._rows = schedule.rows
        self._rows_used = dict.fromkeys(schedule.rows, 0)
        self._log: list[NDArray[np.int64]] = []

    @property
    def live(self) -> int:
        return int(self._state.g[LIVE])

    @property
    def live_peak(self) -> int:
        return int(self._state.g[LIVE_PEAK])

    @property
    def anomalies(self) -> NDArray[np.int64]:
        return np.concatenate([np.empty((0, 2), np.int64), *self._log])

    def anomaly_counts(self) -> dict[str, int]:
        """How many anomalies of each kind were made."""
        made = np.bincount(self.anomalies[:, 1], minlength=len(ANOMALY_KINDS))
        return {kind: int(made[k]) for k, kind in enumerate(ANOMALY_KINDS) if made[k]}

    def batches(self) -> Iterator[Events]:
        """EVENT[k] of up to a batch, `seq` from 1; a view that the next batch overwrites."""
        state = self._state
        while not state.g[DONE]:
            run(state, self._plan)
            count = int(state.g[OUT])
            events = state.out[:count].view(EVENT)
            self.counts += np.bincount(events["type"], minlength=256).astype(np.uint64)
            if self.spec.anomalies:
                self._note_anomalies(events)
            if count:
                yield events

    def _note_anomalies(self, events: Events) -> None:
        extra = self._state.extra[: len(events)]
        made = np.flatnonzero((extra != 0) & (events["type"] != ord("I")))
        self._log.append(
            np.stack((events["seq"][made].astype(np.int64), extra[made].astype(np.int64) - 1), axis=1)
        )

    def frames(self) -> Iterator[Frames]:
        """u8[n], framed ITCH 5.0 with 2-byte lengths; every chunk holds whole messages and is the
        caller's."""
        for events in self.batches():
            yield self._encode(events)

    def _encode(self, events: Events) -> Frames:
        """Encode all events, then lay the typed rows over the messages that EVENT has no room for."""
        data = encode_events(events, self.session)
        ends = np.cumsum(LENGTHS[events["type"]].astype(np.int64) + 2)
        for letter in ("I", *self._rows):
            index = np.flatnonzero(events["type"] == ord(letter))
            if not len(index):
                continue
            rows = self._imbalances(events, index) if letter == "I" else self._take_rows(letter, len(index))
            if letter != "I":
                rows["timestamp"] = events["ts"][index]
            size = BY_LETTER[letter].length + 2
            framed_at(data, letter)[ends[index] - size] = encode_rows(letter, rows).view(f"V{size}")
        return data

    def _take_rows(self, letter: str, n: int) -> NDArray[Any]:
        start = self._rows_used[letter]
        self._rows_used[letter] = start + n
        return self._rows[letter][start : start + n].copy()

    def _imbalances(self, events: Events, index: NDArray[np.int64]) -> NDArray[Any]:
        chosen = events[index]
        rows = np.zeros(len(index), TABLE_DTYPES["I"])
        rows["stock_locate"] = chosen["locate"]
        rows["timestamp"] = chosen["ts"]
        rows["paired_shares"] = chosen["qty"]
        rows["imbalance_shares"] = chosen["ref2"]
        rows["imbalance_direction"] = chosen["side"].view("S1")
        rows["stock"] = self._symbols()[chosen["locate"]]
        rows["far_price"] = self._state.extra[index]
        rows["near_price"] = np.ascontiguousarray(chosen["aux"][:, 4:]).view("<u4")[:, 0]
        rows["current_reference_price"] = chosen["price"]
        rows["cross_type"] = np.ascontiguousarray(chosen["aux"][:, 0]).view("S1")
        rows["price_variation_indicator"] = np.ascontiguousarray(chosen["aux"][:, 1]).view("S1")
        return rows

    def _symbols(self) -> NDArray[Any]:
        """S8[symbols + 1], index = locate, padded."""
        return np.array([b" " * 8, *(name.ljust(8).encode() for name in self.world.names)], "S8")


def warm() -> None:
    """Compile the kernel, or load it from the cache, by simulating the smallest day."""
    for _ in Day(SimSpec(messages=700, symbols=6)).frames():
        pass


def iter_frames(spec: SimSpec) -> Iterator[Frames]:
    """The bytes of the day in chunks of whole messages, about BATCH messages each."""
    return Day(spec).frames()


def simulate_bytes(messages: int = 20_000, symbols: int = 20, seed: int = 1, **options: Any) -> bytes:
    """A whole (small) day as bytes; `options` are the other fields of SimSpec."""
    spec = SimSpec(messages=messages, symbols=symbols, seed=seed, **options)
    return b"".join(chunk.tobytes() for chunk in iter_frames(spec))


def simulate_events(spec: SimSpec) -> tuple[Events, Session]:
    """A whole day as EVENT[messages] (64 bytes each) and its session, ready for a book or a store."""
    day = Day(spec)
    return np.concatenate([batch.copy() for batch in day.batches()]), day.session
