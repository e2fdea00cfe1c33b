"""Measuring: contenders in turn (A B A B …), medians, ratios, percentiles, the clock's floor, the load."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.footprint import Footprint, footprint

CLOCK: Final = "perf_counter"


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of each round, wall and CPU of this process (all threads)."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.wall)

    @property
    def cpu_median(self) -> float:
        return statistics.median(self.cpu)


@dataclass(slots=True)
class Comparison:
    """Timings by contender over the same `units` of work (messages, events, values …) of `input`.

    `load_average`: of the last minute, at the start and at the end. `memory`: by contender, where measured.
    """

    title: str
    input: str
    unit: str
    units: int
    timings: dict[str, Timing]
    load_average: tuple[float, float]
    clock_floor_ns: int
    memory: dict[str, Footprint] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def ratio(self, ours: str, peer: str) -> float:
        """How many times faster `ours` is than `peer`: the median of the ratios, round by round."""
        pairs = zip(self.timings[peer].wall, self.timings[ours].wall, strict=True)
        return statistics.median(theirs / mine for theirs, mine in pairs)

    def to_json(self) -> dict[str, Any]:
        first = next(iter(self.timings))
        return {
            "title": self.title,
            "input": self.input,
            "unit": self.unit,
            "units": self.units,
            "contenders": {
                name: {
                    "wall_s_median": t.median,
                    "wall_s_min": min(t.wall),
                    "wall_s_max": max(t.wall),
                    "cpu_s_median": t.cpu_median,
                    "per_s": self.units / t.median,
                    "ratio_to_first": self.ratio(name, first),
                    "peak_rss_mb": self.memory[name].peak_mb if name in self.memory else None,
                    "peak_anonymous_mb": self.memory[name].anonymous_mb if name in self.memory else None,
                }
                for name, t in self.timings.items()
            },
            "rounds": len(self.timings[first].wall),
            "load_average_1m": list(self.load_average),
            "clock": CLOCK,
            "clock_floor_ns": self.clock_floor_ns,
            "notes": self.notes,
        }


def clock_floor_ns(samples: int = 2_000) -> int:
    """The median step between two reads of the clock: what no measurement here can be finer than."""
    reads = [time.perf_counter_ns() for _ in range(samples)]
    return int(statistics.median(b - a for a, b in pairwise(reads)))


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of `count` measurements, in one unit. Each is one of them: the least that such a share is not above."""

    count: int
    p50: float
    p90: float
    p99: float
    p99_9: float
    max: float

    @classmethod
    def of(cls, values: NDArray[np.int64], scale: float = 1.0) -> Percentiles:
        """Of `values` (at least one), each times `scale`; partitions them in place."""
        n = len(values)
        ranks = [max(0, -(-n * share // 1000) - 1) for share in (500, 900, 990, 999, 1000)]
        values.partition(sorted(set(ranks)))
        return cls(n, *(float(values[rank]) * scale for rank in ranks))

    @classmethod
    def over_rounds(cls, rounds: list[Percentiles]) -> Percentiles:
        """The median of each over the rounds, but the greatest `max`."""

        def middle(name: str) -> float:
            return float(statistics.median(getattr(found, name) for found in rounds))

        greatest = max(found.max for found in rounds)
        return cls(rounds[0].count, middle("p50"), middle("p90"), middle("p99"), middle("p99_9"), greatest)


def compare(
    title: str,
    contenders: Mapping[str, Callable[[], object]],
    input_: str,
    *,
    unit: str,
    units: int,
    rounds: int = 5,
    notes: list[str] | None = None,
    memory: bool = False,
    prepare: Callable[[], object] = lambda: None,
) -> Comparison:
    """Run every contender once to warm up, then `rounds` times in turn; `memory`: then once more, each in a
    process of its own (see `trident_core.footprint`). `prepare` runs before each round, off the clock."""
    load = os.getloadavg()[0]
    prepare()
    for run in contenders.values():
        run()
    walls: dict[str, list[float]] = {name: [] for name in contenders}
    cpus: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        prepare()
        for name, run in contenders.items():
            cpu, wall = time.process_time(), time.perf_counter()
            run()
            walls[name].append(time.perf_counter() - wall)
            cpus[name].append(time.process_time() - cpu)
    timings = {name: Timing(tuple(walls[name]), tuple(cpus[name])) for name in contenders}
    loads = round(load, 2), round(os.getloadavg()[0], 2)
    footprints = {name: footprint(run) for name, run in contenders.items()} if memory else {}
    return Comparison(
        title, input_, unit, units, timings, loads, clock_floor_ns(), footprints, list(notes or [])
    )
