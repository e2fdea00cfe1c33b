"""The agents' day as a stream: commands to a matching engine, its reports published, events and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from trident_agents.curves import OPEN
from trident_agents.kernel import begin, step
from trident_agents.layout import (
    CLOSE,
    DROPPED,
    KERNEL_REPORT,
    LIVE_PEAK,
    ORDERS_MAX,
    PARENTS,
    REJECTED,
    TRADES,
)
from trident_agents.spec import AgentSpec
from trident_agents.universe import make_state, make_universe
from trident_core.contracts import Capability, Kind, MarketRules, Matcher, SelfTrade
from trident_core.dtypes import Events, Frames
from trident_core.engines import make_matcher
from trident_core.errors import PluginError
from trident_core.orders import COMMAND, REPORT
from trident_core.plugins import registry
from trident_core.session import Session

#: Rows of reports that are gathered before they are published; a step may add half of it.
ROOM: Final = 1 << 16
RULES: Final = MarketRules(
    stp=SelfTrade.RESTING, ticks=((0, 1), (10_000, 100)), state="Q", max_orders=ORDERS_MAX
)


def select_matcher(session: Session, name: str | None = None) -> tuple[Matcher, str]:
    """A market on the book engine selected (by `name`, or as books are), or, where that was not asked for and does
    not match orders, on the first that does. Raises PluginError when there is none."""
    selection = registry().select(Kind.BOOK, name)
    spec = selection.spec
    if selection.origin == "default" and Capability.MATCH not in spec.capabilities:
        spec = next((s for s in registry().engines(Kind.BOOK) if Capability.MATCH in s.capabilities), spec)
    return make_matcher(spec, session, RULES), spec.name


class Trading:
    """Agents and their market: gives the reports, batch by batch."""

    def __init__(self, spec: AgentSpec, book: str | None = None) -> None:
        self.spec = spec
        self.universe = make_universe(spec)
        self.session = Session(date=spec.date, directory=self.universe.directory())
        self.matcher, self.engine = select_matcher(self.session, book)
        self.state = make_state(spec, self.universe)
        self.commands = 0

    def reports(self) -> Iterator[Any]:
        """REPORT[k]: all of the day, in batches that the next one overwrites."""
        state, matcher = self.state, self.matcher
        rows = np.zeros(ROOM, REPORT)
        heard = rows.view(KERNEL_REPORT)
        commands = state.commands.view(COMMAND)
        begin(state)
        start = filled = 0
        while (made := step(state, heard[start:filled])) >= 0:
            self.commands += made
            if filled > ROOM // 2:
                yield rows[:filled]
                filled = 0
            start = filled
            taken, more = 0, False
            while taken < made or more:
                done = matcher.submit(commands[taken:made], rows[filled:])
                taken, more = taken + done.taken, done.more
                filled += done.written
                if filled > ROOM - 64 and (taken < made or more):
                    raise PluginError("room")
        yield rows[:filled]
