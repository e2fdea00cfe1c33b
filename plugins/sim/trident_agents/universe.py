"""The symbols that are traded, and who trades them: drawn from the seed, integers only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_agents.curves import OPEN, make_tables
from trident_agents.floor import EXPIRY_NS
from trident_agents.layout import (
    AGENT,
    CLOSE,
    COMMANDS_MAX,
    END,
    INSTITUTION,
    KERNEL_COMMAND,
    MAKER,
    MOMENTUM,
    ORDERS_MAX,
    OWNERS,
    PACE,
    PARENT,
    PARENTS_MAX,
    QUOTES,
    SLICE,
    SLOT,
    SLOTS_FREE,
    SYMBOL,
    TIMER,
    VALUE,
    WANTED,
    State,
)
from trident_agents.spec import AgentSpec
from trident_core.session import Directory, Instrument
from trident_sim.rng import RNG, Stream
from trident_sim.spec import SYMBOLS_MIN, SimSpec
from trident_sim.world import TEST_ISSUE, make_world

NS: Final = 1_000_000_000
#: The least time between what an agent sees and what it does about it.
SLICE_NS: Final = 1_000_000
#: Owners of the crowd's orders; agents of a kind are owners of their own above.
CROWD_OWNERS: Final = 64
#: Messages that one arrival of the crowd leads to, at the start; the pace corrects it.
MESSAGES_PER_ARRIVAL: Final = 9
#: Spread that makers ask for, and a quarter second's move of the fair value, in 1/10^6 of the price.
UNIT_PPM, VOL_PPM = 800, 18
#: Opening prices in dollars, log-uniform.
_PRICES: Final = (8, 16, 32, 64, 128, 256, 512)

#: kind, how many for each symbol.
_POPULATION: Final = ((MAKER, 5), (VALUE, 2), (MOMENTUM, 3), (INSTITUTION, 2))


@dataclass(frozen=True, slots=True)
class Universe:
    """Symbols by locate - 1: names, activity, opening price in ticks, and typed rows of R without times."""

    names: list[str]
    weights: NDArray[np.int64]
    ticks: NDArray[np.int64]
    rows: NDArray[Any]

    def directory(self) -> Directory:
        """The session's directory, as a parser would fill it from the R messages."""
        skipped = {"seq", "stock_locate", "tracking_number", "timestamp", "stock"}
        fields = [name for name in self.rows.dtype.names or () if name not in skipped]
        return Directory(
            Instrument(locate, name, {field: _plain(row[field]) for field in fields})
            for locate, (name, row) in enumerate(zip(self.names, self.rows, strict=True), start=1)
        )


def _plain(value: Any) -> str | int:
    return value.decode("latin-1").rstrip() if isinstance(value, bytes) else int(value)


def make_universe(spec: AgentSpec) -> Universe:
    """The most active symbols of the flow model's world of this seed, without its test issue."""
    n = max(spec.symbols + 1, SYMBOLS_MIN)
    world = make_world(SimSpec(messages=10_000 + 16 * n, symbols=n, seed=spec.seed))
    chosen = [k for k in np.argsort(world.rank, kind="stable") if world.names[k] != TEST_ISSUE][
        : spec.symbols
    ]
    chosen.sort()
    draw = Stream(spec.seed, 21)
    octave, within = draw.below(spec.symbols, len(_PRICES) - 1), draw.bits31(spec.symbols)
    low = np.array(_PRICES)[octave] * 100
    rows = world.directory_rows[chosen].copy()
    rows["stock_locate"] = np.arange(1, spec.symbols + 1)
    return Universe(
        names=[world.names[k] for k in chosen],
        weights=10**12 // (world.rank[chosen] + 4),
        ticks=low + (low * within >> 31),
        rows=rows,
    )


def make_state(spec: AgentSpec, universe: Universe) -> State:
    """The state before the first command."""
    n = spec.symbols
    g = np.zeros(64, np.int64)
    g[RNG] = Stream(spec.seed, 22).seed()
    g[SLOTS_FREE], g[OWNERS], g[SLICE], g[PACE] = -1, CROWD_OWNERS, SLICE_NS, 1024
    g[CLOSE] = OPEN + spec.minutes * 60 * NS
    g[END] = g[CLOSE] + EXPIRY_NS + NS
    g[WANTED] = spec.messages
    symbols = _symbols(spec, universe)
    agents = _agents(spec, universe, symbols)
    orders = min(ORDERS_MAX, 4096 + spec.messages // 8)
    return State(
        g=g,
        symbols=symbols,
        ladder=np.zeros(int(2 * symbols["width"].sum()), np.int64),
        slots=np.zeros(orders, SLOT),
        agents=agents,
        quotes=np.full((len(agents), QUOTES), -1, np.int64),
        timers=np.zeros(2 * orders + 64 * n + len(agents), TIMER),
        commands=np.zeros(COMMANDS_MAX, KERNEL_COMMAND),
        tables=make_tables(),
        parents=np.zeros(PARENTS_MAX, PARENT),
    )


def _symbols(spec: AgentSpec, universe: Universe) -> NDArray[Any]:
    n, ticks = spec.symbols, universe.ticks
    symbols = np.zeros(n + 1, SYMBOL)
    rows = symbols[1:]
    rows["open"] = ticks
    rows["fair"] = ticks << 12
    rows["width"] = 2 * ticks + 1024
    rows["level"] = 2 * (np.cumsum(rows["width"]) - rows["width"])
    idle = 100 + 100 * np.argsort(np.argsort(-universe.weights, kind="stable")) // n  # percent
    rows["unit"] = np.maximum(1, ticks * UNIT_PPM * idle // 100_000_000)
    rows["vol"] = np.maximum(1, (ticks << 12) * VOL_PPM // 1_000_000)
    rows["lot"] = 100
    share = universe.weights * 1_000_000 // int(universe.weights.sum())  # parts per million
    messages = np.maximum(1, spec.messages * share // 1_000_000)
    rows["wait"] = spec.minutes * 60 * NS * MESSAGES_PER_ARRIVAL // messages
    return symbols


def _agents(spec: AgentSpec, universe: Universe, symbols: NDArray[Any]) -> NDArray[Any]:
    """Agent 0 is the crowd; the others by symbol, makers first."""
    each = sum(count for _, count in _POPULATION)
    agents = np.zeros(1 + each * spec.symbols, AGENT)
    draw = Stream(spec.seed, 23)
    a = 1
    for s in range(1, spec.symbols + 1):
        symbols["agents"][s], symbols["makers"][s] = a, _POPULATION[0][1]
        for kind, count in _POPULATION:
            for k in range(count):
                agent = agents[a]
                agent["kind"], agent["symbol"], agent["owner"] = kind, s, CROWD_OWNERS + a
                _dispose(agent, kind, k, [int(x) for x in draw.bits31(4)])
                a += 1
        symbols["agents_end"][s] = a
    busiest = int(np.argmax(universe.weights)) + 1
    first = int(symbols["agents_end"][busiest]) - _POPULATION[-1][1]
    agents["d"][first] = _big_parent(spec, universe)
    agents["b"][first] = 60 * NS
    return agents


def _big_parent(spec: AgentSpec, universe: Universe) -> int:
    if spec.parent is not None:
        return spec.parent
    share = int(universe.weights.max()) * 1000 // int(universe.weights.sum())
    return max(
        100, spec.messages * share // 1000 // 200 * 100
    )  # a trade of 100 for 20 messages, a tenth of it


def _dispose(agent: Any, kind: int, k: int, draw: list[int]) -> None:
    """The habits of one agent, k-th of its kind for its symbol (trident_agents.makers, .traders)."""
    if kind == MAKER:
        agent["b"] = 1_500_000 << (k % 5)  # 1.5 to 24 ms
        agent["c"] = (12, 16, 20, 28, 40)[k % 5]
        agent["d"] = (1, 2, 2, 3, 3)[k % 5]
        agent["e"] = 2 + 2 * k
        agent["f"] = 1_000 + 100 * (draw[0] % 20)
    elif kind == VALUE:
        agent["b"] = 2_000_000 + draw[0] % 40_000_000
        agent["c"] = 6 + 8 * k
        agent["f"] = 20_000
    elif kind == MOMENTUM:
        agent["a"] = k
        agent["b"] = 5_000_000 + draw[0] % 100_000_000
        agent["c"] = (16, 32, 64)[k]
        agent["f"] = 500 + 100 * (draw[1] % 10)
    else:
        agent["b"] = (1200 + draw[0] % 2400) * NS // 4
        agent["c"] = (5 + draw[1] % 30) * NS
