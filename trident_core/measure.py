"""Measuring: contenders in turn (A B A B …), medians, ratios, the clock's own floor and the load."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any


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
    """Timings by contender over the same `units` of work (messages, events, values …)."""

    title: str
    unit: str
    units: int
    timings: dict[str, Timing]
    load_average: float
    clock_floor_ns: int
    peak_rss_mb: float
    notes: list[str] = field(default_factory=list)

    def ratio(self, ours: str, peer: str) -> float:
        """How many times faster `ours` is than `peer`: the median of the ratios, round by round."""
        pairs = zip(self.timings[peer].wall, self.timings[ours].wall, strict=True)
        return statistics.median(theirs / mine for theirs, mine in pairs)

    def to_json(self) -> dict[str, Any]:
        first = next(iter(self.timings))
        return {
            "title": self.title,
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
                }
                for name, t in self.timings.items()
            },
            "rounds": len(self.timings[first].wall),
            "load_average_1m": self.load_average,
            "clock_floor_ns": self.clock_floor_ns,
            "peak_rss_mb": self.peak_rss_mb,
            "notes": self.notes,
        }


def clock_floor_ns(samples: int = 2_000) -> int:
    """The median step between two reads of the clock: what no measurement here can be finer than."""
    reads = [time.perf_counter_ns() for _ in range(samples)]
    return int(statistics.median(b - a for a, b in pairwise(reads)))


def peak_rss_mb() -> float:
    """Peak resident memory of this process so far, in MB (10^6 bytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def compare(
    title: str,
    contenders: Mapping[str, Callable[[], object]],
    *,
    unit: str,
    units: int,
    rounds: int = 5,
    notes: list[str] | None = None,
) -> Comparison:
    """Run every contender once to warm up, then `rounds` times in turn."""
    load = os.getloadavg()[0]
    for run in contenders.values():
        run()
    walls: dict[str, list[float]] = {name: [] for name in contenders}
    cpus: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            cpu, wall = time.process_time(), time.perf_counter()
            run()
            walls[name].append(time.perf_counter() - wall)
            cpus[name].append(time.process_time() - cpu)
    timings = {name: Timing(tuple(walls[name]), tuple(cpus[name])) for name in contenders}
    return Comparison(
        title, unit, units, timings, round(load, 2), clock_floor_ns(), round(peak_rss_mb(), 1), notes or []
    )
