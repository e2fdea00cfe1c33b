"""Group commit: when a store syncs by itself. What is acknowledged is always what is durable."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from trident_core.dtypes import EVENT
from trident_core.errors import UsageError

POLICIES: Final = ("never", "always", "group", "interval")


@dataclass(frozen=True, slots=True)
class CommitPolicy:
    """When to sync without being asked.

    `never`: only `sync` and `close` do. `always`: before each append returns. `group`: as soon as `events`
    events or `nbytes` bytes wait, or the first of them has waited `seconds`. `interval`: as soon as the first
    event that waits has waited `seconds`. Time is kept by the store's own thread, so it also passes while
    nothing is appended.
    """

    name: str = "never"
    events: int = 4_096
    nbytes: int = 1 << 20
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in POLICIES:
            raise UsageError(f"no such commit policy: {self.name!r}", hint=", ".join(POLICIES))
        if self.events < 1 or self.nbytes < 1 or not 0 < self.seconds <= 86_400:
            raise UsageError(
                f"a commit of {self.events} events, {self.nbytes} bytes, {self.seconds} s",
                hint="at least 1 event and 1 byte, more than 0 s and at most a day",
            )

    @property
    def timed(self) -> bool:
        return self.name in ("group", "interval")


class CommitClock:
    """How many events wait for a sync, and since when."""

    def __init__(self, policy: CommitPolicy) -> None:
        self.policy = policy
        self._waiting = 0
        self._since: float | None = None

    def waiting(self, events: int) -> bool:
        """Note that so many events wait; True when a sync is due now."""
        self._waiting = events
        if not events:
            self._since = None
            return False
        if self._since is None:
            self._since = time.monotonic()
        policy = self.policy
        if policy.name == "group" and (events >= policy.events or events * EVENT.itemsize >= policy.nbytes):
            return True
        return policy.name == "always" or self.seconds_left() == 0

    def seconds_left(self) -> float | None:
        """Until a sync is due by the time that has passed; None when none ever will be."""
        if self._since is None or not self.policy.timed:
            return None
        return max(self._since + self.policy.seconds - time.monotonic(), 0.0)
