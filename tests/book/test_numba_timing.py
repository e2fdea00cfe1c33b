"""The numba book that times itself does what it does otherwise; every event has a time."""

from __future__ import annotations

import numpy as np
import pytest

from trident_book.numba_book import NumbaBook
from trident_book.reference import ReferenceBook
from trident_core import ticks
from trident_core.benchmarks.latency import ADD, DELETE, ODD, OTHER, REDUCE, REPLACE, operations_of
from trident_core.contracts import TimedBook
from trident_core.dtypes import EFFECT, EVENT, TOP, EffectFlag
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_sim.spec import SimSpec
from trident_sim.stream import simulate_events

pytestmark = pytest.mark.skipif(not ticks.available(), reason="this processor has no time-stamp counter")


def test_timed_events_are_applied_as_others_are() -> None:
    events, _ = simulate_events(SimSpec(messages=150_000, symbols=60, anomalies=0.05))
    plain, timed = NumbaBook(Session()), NumbaBook(Session())
    rows = [(np.zeros(len(events), TOP), np.zeros(len(events), EFFECT)) for _ in range(2)]
    took, peak = np.zeros(len(events), np.int64), 0
    for start in range(0, len(events), 50_000):
        part = slice(start, start + 50_000)
        plain.apply(events[part], rows[0][0][part], rows[0][1][part])
        peak = max(peak, plain.live_orders())
        timed.time_events(events[part], rows[1][0][part], rows[1][1][part], took[part])
    assert peak > 1 << 12  # the pools grew on the way
    assert timed.digest() == plain.digest()
    assert timed.anomalies == plain.anomalies
    assert timed.validate() == []
    for one, other in zip(*rows, strict=True):
        assert one.tobytes() == other.tobytes()
    assert (took >= ticks.floor_ticks(1_000).min()).all()
    assert took.max() > 20 * np.median(took)  # the growth of a pool is in the time of its event


def test_the_reference_does_not_time_itself() -> None:
    assert isinstance(NumbaBook(Session()), TimedBook)
    assert not isinstance(ReferenceBook(Session()), TimedBook)


def test_wrong_arrays_are_refused() -> None:
    book, two = NumbaBook(Session()), np.zeros(2, EVENT)
    tops, effects = np.zeros(2, TOP), np.zeros(2, EFFECT)
    with pytest.raises(UsageError, match="ticks"):
        book.time_events(two, tops, effects, np.zeros(1, np.int64))
    with pytest.raises(UsageError, match="ticks"):
        book.time_events(two, tops, effects, np.zeros(2, np.float64))  # type: ignore[arg-type]


def test_operations_are_told_by_type_and_effect() -> None:
    events, effects = np.zeros(9, EVENT), np.zeros(9, EFFECT)
    events["type"] = list(b"AFEXCDUSE")
    effects["outcome"] = [1, 1, 1, 1, 1, 1, 1, 0, 2]
    effects["flags"][[3, 4, 5, 6]] = EffectFlag.LEFT
    assert operations_of(events, effects).tolist() == [
        ADD, ADD, REDUCE, DELETE, DELETE, DELETE, REPLACE, OTHER, ODD
    ]  # fmt: skip
