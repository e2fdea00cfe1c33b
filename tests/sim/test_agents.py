"""Days of agents: the same with every matching engine, replayed by any book, zero-sum, golden."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from trident_agents.day import AgentDay
from trident_agents.files import earned, parents
from trident_agents.kernel import begin, step
from trident_agents.layout import DROPPED, INSTITUTION, KERNEL_REPORT, LIVE, LIVE_ORDERS, TICK
from trident_agents.spec import AgentSpec
from trident_book.numba_book import NumbaBook
from trident_book.reference import ReferenceBook
from trident_core.contracts import Capability, Kind
from trident_core.decode import events_of
from trident_core.dtypes import EVENT, TOP, Events, TopFlag
from trident_core.errors import UsageError
from trident_core.orders import COMMAND, REPORT, submit_all
from trident_core.plugins import registry
from trident_core.session import Session
from trident_parser.reference import ReferenceParser
from trident_sim.command import simulate

SPEC = AgentSpec(messages=6_000, symbols=3, minutes=20, seed=5, parent=1_000)
#: Of SPEC's bytes, with every engine on every machine. It changes with the model only: then print it anew,
#: and say so in CHANGELOG.md.
GOLDEN = "e4be88b5fb188735eaddec9201813da6dacc12427b0a405e171b20de85fe9bf9"
MATCHERS = [s.name for s in registry().engines(Kind.BOOK) if Capability.MATCH in s.capabilities]


class Made:
    """A day that is over: its bytes, and itself."""

    def __init__(self, spec: AgentSpec, book: str) -> None:
        self.day = AgentDay(spec, book)
        self.data = b"".join(chunk.tobytes() for chunk in self.day.frames())
        self.parser = ReferenceParser(Session())
        self.events: Events = events_of(self.data, self.parser)


@pytest.fixture(scope="module")
def made() -> Made:
    return Made(SPEC, "reference")


@pytest.mark.parametrize("book", MATCHERS)
def test_every_matching_engine_gives_the_golden_day(book: str, made: Made) -> None:
    data = made.data if book == "reference" else Made(SPEC, book).data
    assert hashlib.sha256(data).hexdigest() == GOLDEN


def test_the_events_are_those_of_the_bytes(made: Made) -> None:
    again = np.concatenate(list(AgentDay(SPEC, "reference").batches()))
    assert not made.parser.anomalies
    assert again.dtype == EVENT
    assert again.tobytes() == made.events.tobytes()
    assert made.parser.session.directory == made.day.session.directory
    assert np.array_equal(made.parser.counts, made.day.counts)


def test_the_day_has_what_an_exchange_publishes(made: Made) -> None:
    counts = made.day.counts
    assert {chr(k) for k in np.flatnonzero(counts)} == set("SRHAFECXDUPQI")
    assert counts[ord("R")] == 3
    assert counts[ord("Q")] == 6  # an opening and a closing cross each
    assert made.events[made.events["type"] == ord("Q")]["qty"].all()
    assert abs(int(counts.sum()) - SPEC.messages) < SPEC.messages // 4
    assert np.all(np.diff(made.events["ts"].astype(np.int64)) >= 0)
    assert made.day.state.g[DROPPED] == 0


@pytest.mark.parametrize("book", [ReferenceBook, NumbaBook])
def test_any_book_replays_it_to_the_exchanges_own(book: type[ReferenceBook], made: Made) -> None:
    replayed = book(made.parser.session)
    tops = np.zeros(len(made.events), TOP)
    replayed.apply(made.events, tops)
    assert not replayed.anomalies
    assert replayed.digest() == made.day.matcher.digest()
    assert replayed.live_orders() == made.day.live > 0
    trading = tops[tops["state"] == ord("T")]
    assert len(trading) > SPEC.messages // 2
    assert not np.any(trading["flags"] & (TopFlag.CROSSED | TopFlag.LOCKED))


def test_indications_tell_the_far_price(made: Made) -> None:
    rows = ReferenceParser(Session()).parse_tables(np.frombuffer(made.data, np.uint8))["I"]
    assert np.count_nonzero(rows["near_price"]) > 10
    assert np.count_nonzero(rows["far_price"]) > 5
    assert np.isin(rows["cross_type"], [b"O", b"C"]).all()


def test_nothing_is_made_or_lost_in_trading(made: Made) -> None:
    agents = made.day.state.agents
    assert int(np.abs(agents["inventory"]).sum()) > 0
    assert int(agents["inventory"].sum()) == 0
    assert int(agents["cash"].sum()) == 0
    assert sum(kind["earned"] for kind in earned(made.day).values()) == pytest.approx(0, abs=1e-6)


def test_the_large_parent_order_is_worked(made: Made) -> None:
    largest = next(parent for parent in parents(made.day) if parent["shares"] == SPEC.parent)
    assert largest["style"] == "VWAP"
    assert 0 < largest["filled"] <= 1_000
    assert 0 < largest["of_volume"] <= 1
    assert abs(largest["cost_bp"]) < 500
    none = AgentSpec(messages=6_000, symbols=3, minutes=20, seed=5, parent=0)
    agents = AgentDay(none, "reference").state.agents
    assert agents["d"][agents["kind"] == INSTITUTION].sum() == 0


def test_what_the_agents_see_is_the_public_book() -> None:
    day = AgentDay(AgentSpec(messages=6_000, symbols=2, minutes=20, seed=8), "reference")
    state, heard = day.state, np.zeros(0, REPORT)
    begin(state)
    looked = 0
    for k in range(3_000):
        made = step(state, heard.view(KERNEL_REPORT))
        if k % 500 == 499:  # all reports are heard, the new commands not yet sent
            looked += _compare(day)
        heard = submit_all(day.matcher, state.commands[:made].view(COMMAND))
    assert looked > 50


def _compare(day: AgentDay) -> int:
    """Ladders and touch of all symbols against the matcher's; how many levels there were."""
    state, levels = day.state, 0
    for s in range(1, len(state.symbols)):
        symbol = state.symbols[s]
        for side, letter in enumerate("BS"):
            theirs = day.matcher.levels(s, letter)
            at = int(symbol["level"]) + side * int(symbol["width"])
            mine = state.ladder[at : at + int(symbol["width"])]
            prices = np.flatnonzero(mine)[:: 1 if side else -1]
            assert (prices * TICK).tolist() == theirs["price"].tolist()
            assert mine[prices].tolist() == theirs["qty"].tolist()
            assert symbol["ask" if side else "bid"] == (prices[0] if len(prices) else 0)
            levels += len(prices)
    rest = np.count_nonzero(state.slots["life"] == LIVE)  # others wait for a cross, or are on their way
    assert rest <= day.matcher.live_orders() <= state.g[LIVE_ORDERS]
    return levels


def test_another_seed_is_another_day(made: Made) -> None:
    other = AgentDay(AgentSpec(messages=6_000, symbols=3, minutes=20, seed=6, parent=1_000), "reference")
    assert next(other.frames()).tobytes() != made.data


@pytest.mark.parametrize(
    "wrong",
    [
        {"symbols": 0}, {"symbols": 1_001}, {"messages": 1_999, "symbols": 2}, {"messages": 1 << 29},
        {"minutes": 0}, {"minutes": 391}, {"seed": -1}, {"seed": 1 << 64}, {"parent": -1},
    ],
    ids=str,
)  # fmt: skip
def test_impossible_days_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        AgentSpec(**wrong)


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.command()(simulate)
    return made


def test_the_command_writes_the_golden_day(app: typer.Typer, made: Made, tmp_path: Path) -> None:
    out = tmp_path / "day.itch"
    options = "--agents -n 6000 -s 3 --minutes 20 --seed 5 --parent 1000 --book reference --json"
    done = CliRunner().invoke(app, [str(out), *options.split()])
    assert done.exit_code == 0, done.output
    assert out.read_bytes() == made.data
    told = json.loads(done.stdout)
    assert told["digest"] == made.day.matcher.digest().hex()
    assert told["messages"] == len(made.events)
    assert told["engine"] == "reference"
    assert {"makers", "institutions"} < told["agents"].keys()
    assert any(parent["shares"] == 1_000 for parent in told["parents"])
    assert told["live_orders"] == made.day.live


@pytest.mark.parametrize("options", ["--agents --anomalies 0.1", "--minutes 5", "--parent 5", "--book numba"])
def test_options_of_the_other_model_are_refused(app: typer.Typer, tmp_path: Path, options: str) -> None:
    done = CliRunner().invoke(app, [str(tmp_path / "day"), *options.split()])
    assert isinstance(done.exception, UsageError)
    assert done.exception.hint
    assert not list(tmp_path.iterdir())
