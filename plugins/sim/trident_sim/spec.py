"""What to simulate: the parameters of one day and their limits."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from trident_core.errors import UsageError

#: The anomalies that can be injected, by the names that books count them under; bit k of the kernel's mask.
ANOMALY_KINDS: Final = ("unknown_ref", "duplicate_ref", "over_execution")

MESSAGES_MAX: Final = 1 << 30
SYMBOLS_MIN: Final = 6  # a test issue, an IPO, a direct listing, a halt, a pause, and one that just trades
SYMBOLS_MAX: Final = 60_000  # locates have 16 bits

#: A day needs this many messages for each symbol (directory, trading state, crosses, imbalances, …) and in
#: all.
MESSAGES_PER_SYMBOL_MIN: Final = 16
MESSAGES_FIXED_MIN: Final = 600


@dataclass(frozen=True, slots=True)
class SimSpec:
    """One simulated day; equal specs give equal bytes, on every machine and in every run.

    `messages` counts every message of the day, `symbols` includes the test issue ZXZZT. `anomalies` is the
    share of messages (0 to 0.2) that are made wrong on purpose, of the `anomaly_kinds`. `date` goes to the
    session only: ITCH carries none. Raises UsageError for values outside the limits of this module.
    """

    messages: int = 1_000_000
    symbols: int = 200
    seed: int = 1
    date: dt.date | None = None
    anomalies: float = 0.0
    anomaly_kinds: tuple[str, ...] = ANOMALY_KINDS

    def __post_init__(self) -> None:
        if not SYMBOLS_MIN <= self.symbols <= SYMBOLS_MAX:
            raise UsageError(
                f"{self.symbols} symbols cannot be simulated", hint=f"from {SYMBOLS_MIN} to {SYMBOLS_MAX:,}"
            )
        least = MESSAGES_FIXED_MIN + MESSAGES_PER_SYMBOL_MIN * self.symbols
        if not least <= self.messages <= MESSAGES_MAX:
            raise UsageError(
                f"a day of {self.symbols} symbols cannot have {self.messages} messages",
                hint=f"from {least:,} (fewer with fewer symbols) to {MESSAGES_MAX:,}",
            )
        if not 0 <= self.seed < 1 << 64:
            raise UsageError(f"the seed {self.seed} is not a number of 64 bits", hint="from 0 to 2**64 - 1")
        if not 0.0 <= self.anomalies <= 0.2:
            raise UsageError(f"a share of {self.anomalies} anomalies is not possible", hint="from 0 to 0.2")
        unknown = sorted(set(self.anomaly_kinds) - set(ANOMALY_KINDS))
        if unknown or not self.anomaly_kinds:
            raise UsageError(
                f"no such kind of anomaly: {', '.join(unknown) or 'none given'}",
                hint=f"kinds: {', '.join(ANOMALY_KINDS)}",
            )

    @property
    def anomaly_mask(self) -> int:
        return sum(1 << ANOMALY_KINDS.index(kind) for kind in set(self.anomaly_kinds))
