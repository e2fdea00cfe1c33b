"""The agents' day as a stream: commands to a matching engine, its reports published, events and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_agents.curves import OPEN
from trident_agents.kernel import begin, step
from trident_agents.layout import CLOSE, END, KERNEL_REPORT, LIVE_PEAK, ORDERS_MAX
from trident_agents.spec import AgentSpec
from trident_agents.universe import NS, Universe, make_state, make_universe
from trident_core.contracts import Capability, Kind, MarketRules, Matcher, ReportKind, SelfTrade
from trident_core.decode import events_of as parsed
from trident_core.dtypes import EVENT, Events, Frames
from trident_core.engines import make, make_matcher
from trident_core.orders import COMMAND, REPORT, Reports
from trident_core.plugins import registry
from trident_core.publication import events_of
from trident_core.session import Session
from trident_parser.encode import encode_events, encode_rows
from trident_parser.itch50 import LENGTHS, WIRE_DTYPES, framed_at

#: Rows of reports that are gathered before they are published.
ROOM: Final = 1 << 16
RULES: Final = MarketRules(
    stp=SelfTrade.RESTING, ticks=((0, 1), (10_000, 100)), state="Q", max_orders=ORDERS_MAX
)
#: Time of the messages that open and close the day, seconds: S 'O', the directory, S 'S'.
_BEGINS, _DIRECTORY, _HOURS_BEGIN = 3 * 3600, 3 * 3600 + 300, 4 * 3600


def select_matcher(session: Session, name: str | None = None) -> tuple[Matcher, str]:
    """A market, and the name of its engine: that of the book engine selected; where none was asked for and
    the default does not match orders, of the first that does. Raises PluginError when there is none."""
    selection = registry().select(Kind.BOOK, name)
    spec = selection.spec
    if selection.origin == "default" and Capability.MATCH not in spec.capabilities:
        spec = next((s for s in registry().engines(Kind.BOOK) if Capability.MATCH in s.capabilities), spec)
    return make_matcher(spec, session, RULES), spec.name


class AgentDay:
    """One day of agents, to be read once: by `batches` (EVENTs) or by `frames` (bytes).

    `book`: the engine that matches. After that, or on the way: `counts` u64[256] of messages by type byte,
    `commands` sent, `matcher`, `state`, `live` orders of the public book, `session` with its directory.
    Memory is that of the symbols' ladders and of live orders (trident_agents.layout), and of the matcher.
    """

    def __init__(self, spec: AgentSpec, book: str | None = None) -> None:
        self.spec = spec
        self.universe = make_universe(spec)
        self.session = Session(date=spec.date, directory=self.universe.directory())
        self.matcher, self.engine = select_matcher(self.session, book)
        self.state = make_state(spec, self.universe)
        self.counts = np.zeros(256, np.uint64)
        self.commands = 0
        self._far: NDArray[np.uint64] = np.zeros(0, np.uint64)

    @property
    def live(self) -> int:
        """Orders of the public book now."""
        return sum(len(self.matcher.orders(int(locate))) for locate in self.matcher.locates())

    @property
    def live_peak(self) -> int:
        """Most orders alive at once, hidden ones and those on their way included."""
        return int(self.state.g[LIVE_PEAK])

    def reports(self) -> Iterator[Reports]:
        """REPORT[k]: all that the exchange reports, in batches that the next one overwrites. Not beside
        `batches`."""
        state, matcher = self.state, self.matcher
        rows = np.zeros(ROOM, REPORT)
        heard = rows.view(KERNEL_REPORT)
        commands = state.commands.view(COMMAND)
        begin(state)
        start = filled = 0
        while (made := step(state, heard[start:filled])) >= 0:
            self.commands += made
            if filled > len(rows) // 2:
                yield rows[:filled]
                filled = 0
            start = filled
            taken, more = 0, False
            while taken < made or more:
                if filled > len(rows) - 64:  # one batch of commands with a great many reports
                    rows = np.concatenate([rows, np.zeros(len(rows), REPORT)])
                    heard = rows.view(KERNEL_REPORT)
                done = matcher.submit(commands[taken:made], rows[filled:])
                taken, more, filled = taken + done.taken, done.more, filled + done.written
        yield rows[:filled]

    def batches(self) -> Iterator[Events]:
        """EVENT[k], `seq` from 1: what the public sees, with the messages that open and close the day."""
        prepared, seq = _prepared(self.universe, self.state.g), 1
        for reports in self.reports():
            events = events_of(reports)
            self._far = reports["ref2"][reports["kind"] == ReportKind.INDICATIVE]
            due = np.searchsorted(prepared["ts"], events["ts"][-1], side="right") if len(events) else 0
            places = np.searchsorted(events["ts"], prepared["ts"][:due], side="left")
            yield self._numbered(np.insert(events, places, prepared[:due]), seq)
            seq, prepared = seq + len(events) + due, prepared[due:]
        self._far = self._far[:0]
        yield self._numbered(prepared, seq)

    def _numbered(self, events: Events, seq: int) -> Events:
        events["seq"] = np.arange(seq, seq + len(events), dtype=np.uint64)
        self.counts += np.bincount(events["type"], minlength=256).astype(np.uint64)
        return events

    def frames(self) -> Iterator[Frames]:
        """u8[n], framed ITCH 5.0 with 2-byte lengths; every chunk holds whole messages and is the
        caller's."""
        rows = _directory_rows(self.universe)
        for events in self.batches():
            data = encode_events(events, self.session)
            starts = np.cumsum(LENGTHS[events["type"]].astype(np.int64) + 2)
            starts -= LENGTHS[events["type"]] + 2
            chosen = starts[events["type"] == ord("R")]
            if len(chosen):  # EVENT has no room for all of these two
                framed_at(data, "R")[chosen] = encode_rows("R", rows).view(f"V{WIRE_DTYPES['R'].itemsize}")
            chosen = starts[events["type"] == ord("I")]
            if len(chosen):
                wire = framed_at(data, "I")[chosen].view(WIRE_DTYPES["I"])
                wire["far_price"] = self._far
                framed_at(data, "I")[chosen] = wire.view(f"V{wire.itemsize}")
            yield data


def _directory_rows(universe: Universe) -> NDArray[Any]:
    rows = universe.rows.copy()
    rows["timestamp"] = _DIRECTORY * NS + 10_000 * np.arange(len(rows))
    return rows


def _prepared(universe: Universe, g: NDArray[np.int64]) -> Events:
    """EVENT[k], by time: the system's messages and the directory."""
    market_ends, ends = int(g[CLOSE]), int(g[END])
    times = {
        "O": _BEGINS * NS, "S": _HOURS_BEGIN * NS, "Q": OPEN, "M": market_ends, "E": ends, "C": ends + 60 *
        NS, }  # fmt: skip
    system = np.zeros(len(times), EVENT)
    system["type"] = ord("S")
    system["ts"] = list(times.values())
    system["aux"][:, 0] = [ord(code) for code in times]
    parser = make(registry().select(Kind.PARSER, "reference").spec, Session())
    directory = parsed(encode_rows("R", _directory_rows(universe)), parser)
    events = np.concatenate([system, directory])
    return events[np.argsort(events["ts"], kind="stable")]


def simulate_events(spec: AgentSpec, book: str | None = None) -> tuple[Events, AgentDay]:
    """A whole day as EVENT[n], and the day, whose matcher has the books at its end."""
    day = AgentDay(spec, book)
    return np.concatenate(list(day.batches())), day


def warm(book: str | None = None) -> None:
    """Compile the kernels, or load them from the cache, by simulating a minute."""
    for _ in AgentDay(AgentSpec(messages=1_000, symbols=1, minutes=1), book).frames():
        pass
