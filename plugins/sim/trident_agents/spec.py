"""What the agents' day is: its parameters and their limits."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from trident_core.errors import UsageError

SYMBOLS_MAX: Final = 1_000  # each has ladders of all of its prices, about 0.5 MiB
MESSAGES_MAX: Final = 1 << 28
MINUTES_MAX: Final = 390  # 09:30 to 16:00
#: The least for each symbol: directory, states, indications and crosses take some hundred.
MESSAGES_PER_SYMBOL_MIN: Final = 1_000


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One day. Equal specs give equal bytes on every machine, and with every matching engine.

    `messages` is what the agents' pace aims at; the day has about as many. Trading lasts `minutes` from
    09:30. `parent`: shares of the large order that an institution works all day in the most active symbol;
    None: about a tenth of what is traded in it. `date` goes to the session only. Raises UsageError for
    values outside the limits of this module.
    """

    messages: int = 1_000_000
    symbols: int = 10
    minutes: int = MINUTES_MAX
    seed: int = 1
    parent: int | None = None
    date: dt.date | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.symbols <= SYMBOLS_MAX:
            raise UsageError(f"agents cannot trade {self.symbols} symbols", hint=f"from 1 to {SYMBOLS_MAX:,}")
        least = MESSAGES_PER_SYMBOL_MIN * self.symbols
        if not least <= self.messages <= MESSAGES_MAX:
            raise UsageError(
                f"agents cannot trade {self.symbols} symbols in {self.messages} messages",
                hint=f"from {least:,} (fewer with fewer symbols) to {MESSAGES_MAX:,}",
            )
        if not 1 <= self.minutes <= MINUTES_MAX:
            raise UsageError(f"trading cannot last {self.minutes} minutes", hint=f"from 1 to {MINUTES_MAX}")
        if not 0 <= self.seed < 1 << 64:
            raise UsageError(f"the seed {self.seed} is not a number of 64 bits", hint="from 0 to 2**64 - 1")
        if self.parent is not None and not 0 <= self.parent <= 1 << 40:
            raise UsageError(
                f"a parent order of {self.parent} shares is not possible", hint="0 for none, up to 2^40"
            )
