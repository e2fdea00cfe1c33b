"""An agents' day as a file, and what became of the agents."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from trident_agents.day import AgentDay, warm
from trident_agents.layout import (
    CROWD,
    INSTITUTION,
    MAKER,
    MOMENTUM,
    PARENTS,
    POV,
    REJECTED,
    TICK,
    TRADES,
    TWAP,
    VALUE,
    VWAP,
)
from trident_agents.spec import AgentSpec
from trident_core.session import format_time
from trident_sim.files import Progress, check_path, write_frames

_KINDS: Final = {
    CROWD: "crowd", MAKER: "makers", VALUE: "value traders", MOMENTUM: "momentum traders",
    INSTITUTION: "institutions",
}  # fmt: skip
_STYLES: Final = {TWAP: "TWAP", VWAP: "VWAP", POV: "POV"}


@dataclass(frozen=True, slots=True)
class AgentsWritten:
    """What `write_agents_day` wrote. `digest`: of the public book at the end, by the matching engine; any
    book that replays the file has the same. `agents`: by kind, how many and what they earned, in dollars at
    the last price (all kinds together: 0, a zero-sum game). `parents`: the institutions' parent orders, by
    their start."""

    path: str
    file_bytes: int
    bytes: int
    messages: int
    symbols: int
    minutes: int
    seed: int
    date: str | None
    counts: dict[str, int]
    live_orders: int
    live_orders_peak: int
    engine: str
    commands: int
    rejected: int
    trades: int
    shares: int
    digest: str
    agents: dict[str, dict[str, float]]
    parents: list[dict[str, Any]]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"messages_per_second": int(self.messages / max(self.seconds, 1e-9))}


def write_agents_day(
    path: Path,
    spec: AgentSpec,
    *,
    book: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> AgentsWritten:
    """Let the agents of `spec` trade on the book engine `book` into the file `path`, compressed as its suffix
    says.

    Raises UsageError as `trident_sim.files.write_day` does, PluginError as `day.select_matcher` does.
    """
    path = Path(path)
    check_path(path, force)
    day = AgentDay(spec, book)
    warm(book)  # so that `seconds` never holds a compilation
    started = time.perf_counter()

    def advance() -> None:
        if progress:
            done = int(day.counts.sum())
            progress(done, max(done, spec.messages))

    size = write_frames(path, day.frames(), advance)
    g, symbols = day.state.g, day.state.symbols
    return AgentsWritten(
        path=str(path),
        file_bytes=path.stat().st_size,
        bytes=size,
        messages=int(day.counts.sum()),
        symbols=spec.symbols,
        minutes=spec.minutes,
        seed=spec.seed,
        date=spec.date.isoformat() if spec.date else None,
        counts={chr(letter): int(n) for letter, n in enumerate(day.counts) if n},
        live_orders=day.live,
        live_orders_peak=day.live_peak,
        engine=day.engine,
        commands=day.commands,
        rejected=int(g[REJECTED]),
        trades=int(g[TRADES]),
        shares=int(symbols["volume"].sum()),
        digest=day.matcher.digest().hex(),
        agents=earned(day),
        parents=parents(day),
        seconds=round(time.perf_counter() - started, 3),
    )


def earned(day: AgentDay) -> dict[str, dict[str, float]]:
    """Kind -> how many agents, and dollars earned at the last price of each symbol."""
    agents, last = day.state.agents, day.state.symbols["last"]
    worth = agents["cash"] + agents["inventory"] * last[agents["symbol"]] * TICK
    found = {}
    for kind, name in _KINDS.items():
        if kind != CROWD:
            chosen = agents["kind"] == kind
            found[name] = {"agents": int(chosen.sum()), "earned": int(worth[chosen].sum()) / 10_000}
    return {"crowd": {"agents": 1, "earned": -sum(each["earned"] for each in found.values())}} | found


def parents(day: AgentDay) -> list[dict[str, Any]]:
    """Each parent order: what it was, how much of it was done, at which average price against that on arrival
    (`cost_bp`: positive when it was dearer), and its share of what was traded meanwhile."""
    found = []
    for row in day.state.parents[: int(day.state.g[PARENTS])]:
        filled, arrival = int(row["filled"]), int(row["arrival"])
        average = int(row["value"]) / filled if filled else 0.0
        sign = -1 if row["side"] else 1
        traded = max(int(row["market_volume"]), 1)
        found.append(
            {
                "symbol": day.session.directory.symbol(int(row["locate"])),
                "side": "S" if row["side"] else "B",
                "style": _STYLES[int(row["style"])],
                "from": format_time(int(row["start"])),
                "to": format_time(int(row["end"])),
                "shares": int(row["shares"]),
                "filled": filled,
                "arrival": arrival / 10_000,
                "average": round(average / 10_000, 4),
                "cost_bp": round(sign * (average / arrival - 1) * 10_000, 2) if filled else None,
                "of_volume": round(filled / traded, 4),
            }
        )
    return sorted(found, key=lambda parent: str(parent["from"]))
