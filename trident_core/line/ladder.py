"""The degradation ladder: what is put off as the ring fills, and when it is taken up again.

A state machine without threads, clocks or rings: it is told how full the ring is and what time it is.

    Normal ──► ShedSync ──► ShedIndex ──► RawSpill
           ◄──          ◄──           ◄──

Up at once, over several rungs if need be. Down one rung at a time, when the ring has stayed below that
rung's lower threshold for a while, so that the ladder does not flutter; and never off RawSpill while
something is spilled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from trident_core.contracts import Pressure
from trident_core.errors import UsageError

#: Names in reports.
NAMES: Final = ("Normal", "ShedSync", "ShedIndex", "RawSpill")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Shares of the ring, for ShedSync, ShedIndex and RawSpill. `up`: this full, and the ladder goes to that
    rung. `down`: less full than this for `calm_s` seconds, and it leaves that rung again. Each `down` is
    below its `up`, and both rise. Raises UsageError."""

    up: tuple[float, float, float] = (0.25, 0.50, 0.75)
    down: tuple[float, float, float] = (0.10, 0.25, 0.50)
    calm_s: float = 0.050

    def __post_init__(self) -> None:
        rising = all(list(each) == sorted(each) for each in (self.up, self.down))
        apart = all(0 <= low < high <= 1 for low, high in zip(self.down, self.up, strict=True))
        if not (rising and apart and self.calm_s >= 0):
            raise UsageError(
                f"thresholds {self.up} up and {self.down} down make no ladder",
                hint="shares of the ring from 0 to 1, rising; each one down is below its one up",
            )


@dataclass(slots=True)
class Rung:
    """What happened on one rung: how often the ladder came up to it, how often it left it downwards, and for
    how many seconds it stood there."""

    name: str
    entered: int = 0
    returned: int = 0
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "level": self.name, "entered": self.entered, "returned": self.returned,
            "seconds": round(self.seconds, 6),
        }  # fmt: skip


class Ladder:
    """Where the ladder stands, and the census of its steps. `highest`: no rung above this is used."""

    def __init__(
        self, now: float, thresholds: Thresholds | None = None, *, highest: Pressure = Pressure.RAW_SPILL
    ) -> None:
        self.level = Pressure.NORMAL
        self.rungs = [Rung(name) for name in NAMES]
        self._thresholds, self._highest = thresholds or Thresholds(), highest
        self._since = now  # on this rung
        self._calm_since: float | None = None

    def begin(self, now: float) -> None:
        """Time is counted from `now` on."""
        self._since = now

    def look(self, fill: float, now: float, *, spilled: bool = False) -> Pressure:
        """The level, now that the ring is `fill` full (0 to 1). `spilled`: the spill has events."""
        self._count_time(now)
        wanted = min(sum(fill >= share for share in self._thresholds.up), self._highest)
        if wanted > self.level:
            self._climb(Pressure(wanted))
        elif self._may_leave(fill, spilled):
            if self._calm_since is None:
                self._calm_since = now
            if now - self._calm_since >= self._thresholds.calm_s:
                self._descend(now)
        else:
            self._calm_since = None
        return self.level

    def finish(self, now: float) -> None:
        """The run is over: all that was put off is done, so the ladder stands at Normal."""
        self._count_time(now)
        while self.level:
            self._descend(now)

    def census(self) -> Iterator[dict[str, Any]]:
        """What happened on each rung, from Normal up."""
        return (rung.to_json() for rung in self.rungs)

    def _may_leave(self, fill: float, spilled: bool) -> bool:
        if not self.level or (self.level is Pressure.RAW_SPILL and spilled):
            return False
        return fill < self._thresholds.down[self.level - 1]

    def _climb(self, wanted: Pressure) -> None:
        for level in range(self.level + 1, wanted + 1):
            self.rungs[level].entered += 1
        self.level, self._calm_since = wanted, None

    def _descend(self, now: float) -> None:
        self.rungs[self.level].returned += 1
        self.level, self._calm_since = Pressure(self.level - 1), now

    def _count_time(self, now: float) -> None:
        self.rungs[self.level].seconds += max(now - self._since, 0.0)
        self._since = now
