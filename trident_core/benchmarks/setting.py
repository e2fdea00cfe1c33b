"""What benchmarks run on: a simulated day, engines by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from trident_core.contracts import Kind
from trident_core.decode import decode, events_of
from trident_core.dtypes import Events, Frames
from trident_core.inputs import open_input
from trident_core.plugins import registry
from trident_core.session import Session

BATCH: Final = 4_096

#: Days by name: messages, symbols. `wide` has the symbols of a real day, and more than 400,000 live orders.
DAYS: Final[Mapping[str, tuple[int, int]]] = {
    "quick": (200_000, 200),
    "narrow": (1_000_000, 200),
    "wide": (10_000_000, 8_900),
}


@dataclass
class SimulatedDay:
    """A day file, raw (not compressed), that the simulator made; `name` as in DAYS, "" for another."""

    path: Path
    name: str
    messages: int
    symbols: int

    @cached_property
    def live_orders_peak(self) -> int:
        """The most orders that rested at once, by the default book, looked at every BATCH messages."""
        opened = open_input(str(self.path))
        assert opened.book is not None
        peak = 0
        try:
            for events in decode(opened.feed, opened.parser, batch=BATCH):
                opened.book.apply(events)
                peak = max(peak, opened.book.live_orders())
        finally:
            opened.close()
        return peak

    def describe(self, *, live: bool = False) -> str:
        """The input, for the heading of a table; `live`: with the peak of live orders, which takes a pass."""
        words = f"simulated {self.name} day".replace("  ", " ")
        words = f"{words}: {self.messages:,} messages, {self.symbols:,} symbols"
        return f"{words}, {self.live_orders_peak:,} live orders at the peak" if live else words


@dataclass
class Setting:
    """What a benchmark runs on: a day on disk and in memory, engines by kind (None: selected), rounds."""

    day: SimulatedDay
    engines: Mapping[Kind, str | None]
    rounds: int = 5
    folder: Path = Path()
    session: Session = field(default_factory=Session)

    def engine(self, kind: Kind) -> tuple[str, Any]:
        selection = registry().select(kind, self.engines.get(kind))
        return f"trident {kind} {selection.spec.name}", selection.load()

    @cached_property
    def frames(self) -> Frames:
        return np.fromfile(self.day.path, np.uint8)

    @cached_property
    def events(self) -> Events:
        """All events of the day, with the session's directory filled."""
        _, factory = self.engine(Kind.PARSER)
        return events_of(self.frames, factory(self.session))
