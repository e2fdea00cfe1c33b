"""`trident bench matching`: orders a second through a matching engine, beside engines from PyPI; the latency
of one order that takes; the cost of a command, and memory, as the book grows."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.benchmarks.matching_data import ADDS, CANCELS, TAKES, Mix
from trident_core.benchmarks.matching_peers import PEERS
from trident_core.benchmarks.setting import Setting
from trident_core.contracts import Capability, Kind, MarketRules, Matcher
from trident_core.contracts.matching import ReportKind
from trident_core.engines import make_matcher
from trident_core.measure import Percentiles, clock_floor_ns
from trident_core.orders import REPORT, Commands, submit_all
from trident_core.plugins import registry
from trident_core.session import Session

#: Commands in a call of `submit`, and room for their reports.
BATCH: Final = 4_096
_ROWS: Final = 8 * BATCH
#: Resting orders of the first figure, and of the peers'.
RESTING: Final = 10_000
#: Sizes of the book for the cost of a command.
SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
_PEER_RESTING, _PEER_COMMANDS = 300, 1_000
_TIMED: Final = 20_000
#: A small day is for a quick look: no book has more orders than so many times its messages.
_SIZES_SHARE: Final = 5


@dataclass
class Matching:
    """What was measured. Seconds and nanoseconds are medians of `rounds`.

    `orders_per_s`: commands of the mix, in batches, RESTING orders in the book. `growing`: by resting
    orders, ns a command. `peers`: by name, commands a second and how many times as fast the engine is on the
    peer's commands. `inside`: one IOC order in the kernel, by the processor's counter, if the engine times
    itself; `python`: by a call of `submit` from Python.
    """

    title: str
    mix: str
    commands: int
    rounds: int
    orders_per_s: float
    rejected: float
    growing: dict[int, float]
    bytes_per_order: float
    inside: Percentiles | None
    inside_floor: Percentiles | None
    python: Percentiles
    python_floor_ns: int
    load_average: tuple[float, float]
    peers: dict[str, dict[str, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        data["batch"] = BATCH
        data["load_average_1m"] = list(data.pop("load_average"))
        return data


def bench_matching(setting: Setting) -> Sequence[Matching]:
    """The selected book engine, or where it does not match the first that does. The day is not used, but for
    its size: as many commands as it has messages, at most a million.

    Raises PluginError where no engine matches.
    """
    spec, notes = registry().select(Kind.BOOK, setting.engines.get(Kind.BOOK)).spec, []
    if Capability.MATCH not in spec.capabilities:
        notes = [f"book engine {spec.name} does not match orders"]
        spec = next((s for s in registry().engines(Kind.BOOK) if Capability.MATCH in s.capabilities), spec)
    load = os.getloadavg()[0]

    def make() -> Matcher:
        return make_matcher(spec, Session(), MarketRules())

    n = min(setting.day.messages, 1_000_000)
    first = _Run(make, RESTING, n)
    first.seconds()  # the first call may compile
    walls = [first.seconds() for _ in range(setting.rounds)]
    inside, inside_floor = _inside(make)
    result = Matching(
        title=f"matching with trident book {spec.name}",
        mix=f"{ADDS // 10} % add, {CANCELS // 10} % cancel, {TAKES // 10} % take; {RESTING:,} resting",
        commands=n,
        rounds=setting.rounds,
        orders_per_s=n / statistics.median(walls),
        rejected=first.rejected(),
        growing=_growing(make, n, setting.rounds),
        bytes_per_order=_bytes_per_order(make, _sizes(n)[-1]),
        inside=inside,
        inside_floor=inside_floor,
        python=_from_python(make),
        python_floor_ns=clock_floor_ns(),
        load_average=(0.0, 0.0),
        notes=notes,
    )
    _beside(make, result)
    result.load_average = (round(load, 2), round(os.getloadavg()[0], 2))
    return [result]


class _Run:
    """The same commands, on a new market each time that was filled before."""

    def __init__(self, make: Callable[[], Matcher], resting: int, n: int) -> None:
        self.make = make
        mix = Mix(make())
        self.before, self.commands = mix.fill(resting), mix.mixed(n)

    def market(self) -> Matcher:
        matcher = self.make()
        submit_all(matcher, self.before)
        return matcher

    def seconds(self) -> float:
        """Of the commands, in batches, on a market that was filled before."""
        return _seconds(self.market(), self.commands)

    def rejected(self) -> float:
        """The share of commands that were rejected: cancels of orders just gone."""
        rows = submit_all(self.market(), self.commands)
        return float((rows["kind"] == ReportKind.REJECTED).sum() / len(self.commands))


def _seconds(matcher: Matcher, commands: Commands) -> float:
    rows, at, more = np.zeros(_ROWS, REPORT), 0, False
    began = time.perf_counter()
    while at < len(commands) or more:
        taken, _, more = matcher.submit(commands[at : at + BATCH], rows)
        at += taken
    return time.perf_counter() - began


def _growing(make: Callable[[], Matcher], n: int, rounds: int) -> dict[int, float]:
    """ns a command by resting orders."""
    found = {}
    for resting in _sizes(n):
        run = _Run(make, resting, min(n, 200_000))
        walls = [run.seconds() for _ in range(min(rounds, 3))]
        found[resting] = 1e9 * statistics.median(walls) / len(run.commands)
    return found


def _sizes(n: int) -> list[int]:
    return [size for size in SIZES if size <= _SIZES_SHARE * n]


def _bytes_per_order(make: Callable[[], Matcher], resting: int) -> float:
    """Resident memory that so many resting orders take, by the order."""
    orders = Mix(make()).fill(resting)
    before = _resident()
    matcher = make()
    submit_all(matcher, orders, BATCH)
    taken = _resident() - before
    return taken / matcher.live_orders()


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- one order at a time ------------------------------------------------------------------------------------


def _takes(make: Callable[[], Matcher]) -> tuple[Matcher, Commands]:
    """A market of RESTING orders, and orders that take one order each, each followed by one that refills."""
    mix = Mix(make())
    matcher = make()
    submit_all(matcher, mix.fill(RESTING))
    return matcher, mix.takes(_TIMED)


def _inside(make: Callable[[], Matcher]) -> tuple[Percentiles | None, Percentiles | None]:
    from trident_core import ticks

    matcher, commands = _takes(make)
    time_commands = getattr(matcher, "time_commands", None)
    if time_commands is None or not ticks.available():
        return None, None
    found = np.zeros(len(commands), np.int64)
    time_commands(commands[:2], np.zeros(64, REPORT), found[:2])
    rate = ticks.Rate()
    time_commands(commands[2:], np.zeros(64, REPORT), found[2:])
    scale = 1 / rate.ticks_per_ns()
    return Percentiles.of(found[2::2], scale), Percentiles.of(ticks.floor_ticks(), scale)


def _from_python(make: Callable[[], Matcher]) -> Percentiles:
    matcher, commands = _takes(make)
    rows, clock, submit = np.zeros(64, REPORT), time.perf_counter_ns, matcher.submit
    found: NDArray[np.int64] = np.zeros(len(commands), np.int64)
    for i in range(len(commands)):
        one = commands[i : i + 1]
        before = clock()
        submit(one, rows)
        found[i] = clock() - before
    return Percentiles.of(found[::2])


# --- peers --------------------------------------------------------------------------------------------------


def _beside(make: Callable[[], Matcher], result: Matching) -> None:
    """Each peer on fewer commands of the same mix, and the engine on these."""
    run = _Run(make, _PEER_RESTING, min(_PEER_COMMANDS, max(result.commands // 200, 1)))
    ours = statistics.median(run.seconds() for _ in range(max(result.rounds, 3)))
    for name, seconds in PEERS.items():
        try:
            theirs, note = seconds(run.before, run.commands)
        except ImportError:
            result.notes.append(f"{name} is not installed: pip install {name}")
            continue
        except Exception as error:  # of its own code: no reason to keep ours to ourselves
            result.notes.append(f"{name} raised {type(error).__name__}: {error}")
            continue
        result.notes += [note] if note else []
        result.peers[name] = {"orders_per_s": len(run.commands) / theirs, "times_as_fast": theirs / ours}
    if result.peers:
        result.notes.append(
            f"peers: {len(run.commands):,} commands of the mix, {_PEER_RESTING:,} resting; "
            "IOC as an order and a cancel"
        )
