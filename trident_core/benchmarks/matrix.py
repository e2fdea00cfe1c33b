"""A benchmark of many contenders on many patterns: seconds, counts and times to compile, cell by cell."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trident_core.footprint import Footprint
from trident_core.measure import CLOCK, clock_floor_ns

#: A contender that takes long runs fewer rounds: as many as fit into so many seconds, and one at least.
SLOW_S: Final = 1.5


@dataclass(slots=True)
class Contender:
    """`run` answers a pattern's count over `units` of work. `compile_ms`: to be ready, if that can be told;
    `load_ms`: where a second process finds what was compiled. `exact`: its count must equal the others'."""

    run: Callable[[], int]
    units: int
    compile_ms: float | None = None
    load_ms: float | None = None
    expected: int | None = None


@dataclass(slots=True)
class Cell:
    """What one contender did with one pattern. `expected`: the count it should have come to."""

    seconds: list[float]
    units: int
    count: int
    expected: int
    compile_ms: float | None
    load_ms: float | None

    @property
    def median_s(self) -> float:
        return statistics.median(self.seconds)

    def ns_per_unit(self) -> float:
        return 1e9 * self.median_s / self.units

    def to_json(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "seconds_median": self.median_s,
            "units": self.units,
            "ns_per_unit": self.ns_per_unit(),
            "gb_per_s": self.units / self.median_s / 1e9,
            "count": self.count,
            "expected": self.expected,
            "compile_ms": self.compile_ms,
            "cached_load_ms": self.load_ms,
        }


@dataclass(slots=True)
class Matrix:
    """Contenders by patterns, over the same `units` of `input`. `rows[contender][label]`; `floors`: what the
    machine takes for less (a copy of the bytes), in seconds. `scale`: what the tables show, "ns" a unit or
    "GB/s". `disagreements`: counts that are not what they should be, in words; empty when all agree."""

    title: str
    input: str
    unit: str
    units: int
    scale: str
    patterns: dict[str, str]
    rows: dict[str, dict[str, Cell]] = field(default_factory=dict)
    floors: dict[str, float] = field(default_factory=dict)
    memory: dict[str, Footprint] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)
    load_average: tuple[float, float] = (0.0, 0.0)
    clock_floor_ns: int = 0

    def measure(self, label: str, contenders: Mapping[str, Contender], rounds: int) -> None:
        """Warm up, then take turns; the first contender's count is what the others' must be."""
        began = os.getloadavg()[0]
        counts: dict[str, int] = {}
        turns: dict[str, int] = {}
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for name, contender in contenders.items():
            start = time.perf_counter()
            counts[name] = contender.run()
            spent = time.perf_counter() - start
            turns[name] = max(1, min(rounds, int(SLOW_S / max(spent, 1e-9))))
        for turn in range(rounds):
            for name, contender in contenders.items():
                if turn < turns[name]:
                    start = time.perf_counter()
                    contender.run()
                    seconds[name].append(time.perf_counter() - start)
        law = next(iter(counts.values()))
        for name, contender in contenders.items():
            expected = law if contender.expected is None else contender.expected
            cell = Cell(
                seconds[name], contender.units, counts[name], expected, contender.compile_ms,
                contender.load_ms,
            )  # fmt: skip
            self.rows.setdefault(name, {})[label] = cell
            if cell.count != expected:
                self.disagreements.append(f"{name}, {label}: {cell.count:,} instead of {expected:,}")
        loads = round(began, 2), round(os.getloadavg()[0], 2)
        self.load_average = (self.load_average[0] or loads[0], loads[1])
        self.clock_floor_ns = self.clock_floor_ns or clock_floor_ns()

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "input": self.input,
            "unit": self.unit,
            "units": self.units,
            "patterns": self.patterns,
            "contenders": {
                name: {label: cell.to_json() for label, cell in cells.items()}
                for name, cells in self.rows.items()
            },
            "floors_s": self.floors,
            "memory_mb": {name: found._asdict() for name, found in self.memory.items()},
            "counts_agree": not self.disagreements,
            "disagreements": self.disagreements,
            "load_average_1m": list(self.load_average),
            "clock": CLOCK,
            "clock_floor_ns": self.clock_floor_ns,
            "notes": self.notes,
        }
