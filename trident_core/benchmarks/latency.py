"""The latency of a book, operation by operation: one event at a time, as live trading has them."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.benchmarks.setting import BATCH, Setting
from trident_core.contracts import Book, Kind, TimedBook, Warmable
from trident_core.dtypes import EFFECT, EVENT, TOP, EffectFlag, Effects, Events, Outcome, TopFlag, Tops
from trident_core.measure import Percentiles
from trident_core.session import Session

#: From the middle of the day, for the cost of a call from Python.
PYTHON_CALLS: Final = 50_000

# What an event did, by its type and its effect.
ADD, REDUCE, DELETE, REPLACE, OTHER, ODD = range(6)
OPERATIONS: Final = {
    ADD: "add",
    REDUCE: "reduce",
    DELETE: "delete",
    REPLACE: "replace",
    OTHER: "other types",
    ODD: "odd",
}
EXECUTION, CHANGED, UNCHANGED = "execution", "touch changed", "touch unchanged"
ALL: Final = "all"
MEANING: Final = (
    "add: A F; reduce: E C X, the order stays; delete: D, and E C X that empty an order; replace: U; "
    "execution: E C; odd: unknown references, clamped, rejected"
)


@dataclass
class Latency:
    """Percentiles in ns by operation. `inside`: the book timed itself; else each call was timed from Python.

    `floor`: of the clock used. `batched_ns`: an event's share of a batch. `python`: calls with one event
    from Python, if the book was timed inside.
    """

    title: str
    input: str
    rounds: int
    clock: str
    inside: bool
    floor: Percentiles
    operations: dict[str, Percentiles]
    batched_ns: float
    python: Percentiles | None
    python_floor: Percentiles
    load_average: tuple[float, float]
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        data["batch"] = BATCH
        data["load_average_1m"] = list(data.pop("load_average"))
        return data


def operations_of(events: Events, effects: Effects) -> NDArray[np.uint8]:
    """u8[n]: what each event did, as numbered above. E, C and X that empty an order delete it."""
    by_type = np.full(256, OTHER, np.uint8)
    for letters, operation in (("AF", ADD), ("ECX", REDUCE), ("D", DELETE), ("U", REPLACE)):
        by_type[[ord(letter) for letter in letters]] = operation
    found: NDArray[np.uint8] = by_type[events["type"]]
    found[(found == REDUCE) & (effects["flags"] & EffectFlag.LEFT != 0)] = DELETE
    found[effects["outcome"] > Outcome.APPLIED] = ODD
    return found


def bench_latency(setting: Setting) -> list[Latency]:
    """Each event of the day on its own, and in turn the same day in batches."""
    name, factory = setting.engine(Kind.BOOK)
    events, load = setting.events, os.getloadavg()[0]
    timer, engine = _timer(factory), factory(Session())
    if isinstance(engine, Warmable):
        engine.warm_up()
    nothing = np.zeros(1, np.int64)
    timer.time(engine, np.zeros(1, EVENT), np.zeros(1, TOP), np.zeros(1, EFFECT), nothing)
    rounds: list[dict[str, Percentiles]] = []
    batched = []
    ticks, kinds = np.empty(len(events), np.int64), np.empty(len(events), np.uint8)
    changed = np.empty(len(events), np.bool_)
    for _ in range(setting.rounds):
        book = factory(Session())
        for part, some, tops, effects in _batches(events):
            timer.time(book, some, tops, effects, ticks[part])
            kinds[part] = operations_of(some, effects)
            changed[part] = tops["flags"] & TopFlag.CHANGED != 0
        batched.append(_in_batches(factory, events))
        rounds.append(_percentiles(events, ticks, kinds, changed, 1 / timer.ticks_per_ns()))
    return [
        Latency(
            title=f"latency of {name.removeprefix('trident ')}",
            input=setting.day.describe(live=True),
            rounds=setting.rounds,
            clock=timer.clock,
            inside=timer.inside,
            floor=timer.floor(),
            operations={key: Percentiles.over_rounds([found[key] for found in rounds]) for key in rounds[0]},
            batched_ns=statistics.median(batched),
            python=_python_calls(factory, events) if timer.inside else None,
            python_floor=_PythonTimer().floor(),
            load_average=(round(load, 2), round(os.getloadavg()[0], 2)),
        )
    ]


def _batches(events: Events) -> Iterator[tuple[slice, Events, Tops, Effects]]:
    """Where a batch stands, the batch, and rows for its touches and effects, which the next one reuses."""
    tops, effects = np.zeros(BATCH, TOP), np.zeros(BATCH, EFFECT)
    for start in range(0, len(events), BATCH):
        some = events[start : start + BATCH]
        yield slice(start, start + len(some)), some, tops[: len(some)], effects[: len(some)]


def _in_batches(factory: Any, events: Events) -> float:
    """ns for each event of a pass over the day in batches."""
    book: Book = factory(Session())
    began = time.perf_counter_ns()
    for _, some, tops, effects in _batches(events):
        book.apply(some, tops, effects)
    return (time.perf_counter_ns() - began) / len(events)


def _percentiles(
    events: Events, ticks: NDArray[np.int64], kinds: NDArray[Any], changed: NDArray[np.bool_], scale: float
) -> dict[str, Percentiles]:
    """By operation, by what became of the touch, and of all."""
    in_book = kinds <= REPLACE
    executions = (events["type"] == ord("E")) | (events["type"] == ord("C"))
    groups: dict[str, Any] = {name: kinds == kind for kind, name in OPERATIONS.items()}
    groups[EXECUTION] = in_book & executions
    groups[CHANGED], groups[UNCHANGED] = in_book & changed, in_book & ~changed
    groups[ALL] = slice(None)
    found = {name: ticks[chosen].copy() for name, chosen in groups.items()}
    return {name: Percentiles.of(values, scale) for name, values in found.items() if len(values)}


def _python_calls(factory: Any, events: Events) -> Percentiles:
    """One event for each call from Python, in the middle of the day."""
    book, timer, middle = factory(Session()), _PythonTimer(), len(events) // 2
    for _, some, tops, effects in _batches(events[:middle]):
        book.apply(some, tops, effects)
    chosen = events[middle : middle + PYTHON_CALLS]
    ticks = np.empty(len(chosen), np.int64)
    timer.time(book, chosen, np.zeros(len(chosen), TOP), np.zeros(len(chosen), EFFECT), ticks)
    return Percentiles.of(ticks)


class _PythonTimer:
    """One call from Python for each event."""

    inside = False
    clock = "perf_counter_ns around each call from Python"

    def time(self, book: Any, events: Events, tops: Tops, effects: Effects, ticks: NDArray[np.int64]) -> None:
        """Apply the events one by one; what each took goes to `ticks`."""
        clock, apply = time.perf_counter_ns, book.apply
        for i in range(len(events)):
            one = slice(i, i + 1)
            event, top, effect = events[one], tops[one], effects[one]
            before = clock()
            apply(event, top, effect)
            ticks[i] = clock() - before

    def ticks_per_ns(self) -> float:
        return 1.0

    def floor(self) -> Percentiles:
        """Of the steps between consecutive reads of the clock, in ns."""
        reads = np.array([time.perf_counter_ns() for _ in range(20_000)], np.int64)
        return Percentiles.of(np.diff(reads))


class _InsideTimer(_PythonTimer):
    """The book times itself."""

    inside = True

    def __init__(self) -> None:
        from trident_core import ticks

        self.clock, self._ticks, self._rate = ticks.NAME, ticks, ticks.Rate()

    def time(self, book: Any, events: Events, tops: Tops, effects: Effects, ticks: NDArray[np.int64]) -> None:
        book.time_events(events, tops, effects, ticks)

    def ticks_per_ns(self) -> float:
        return self._rate.ticks_per_ns()

    def floor(self) -> Percentiles:
        return Percentiles.of(self._ticks.floor_ticks(), 1 / self.ticks_per_ns())


def _timer(factory: Any) -> _PythonTimer:
    """A timer in the book, if the engine and the processor have what it takes."""
    if isinstance(factory(Session()), TimedBook):
        from trident_core import ticks

        if ticks.available():
            return _InsideTimer()
    return _PythonTimer()
