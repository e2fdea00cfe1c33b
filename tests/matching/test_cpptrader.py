"""The scripts of data/cpptrader_matching end in the books that their comments describe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trident_conformance.engines import Engine, select
from trident_conformance.orders import to_commands
from trident_core.contracts import Capability, Kind, MarketRules, Matcher, Op, OrderFlag, Reason, ReportKind
from trident_core.engines import make_matcher
from trident_core.orders import Reports, submit_all
from trident_core.session import Session

pytestmark = pytest.mark.shared

ENGINES = [engine for engine in select(Kind.BOOK) if engine.declares(Capability.MATCH)]
_KINDS = {"limit": "L", "market": "M", "stop": "S", "stop-limit": "T"}


def command(words: list[str]) -> dict[str, Any] | None:
    """A line of a script; None for what has no counterpart: symbols and books are there once they are named.

    `add [aon|ioc|slippage] KIND SIDE id symbol [price] quantity [slippage]`, `modify order id price
    quantity`, `replace order id new price quantity`, `reduce order id quantity`, `delete order id`.
    """
    verb, *rest = words
    if rest[0] in ("matching", "symbol", "book"):
        return None
    if verb == "add":
        marks = [word for word in rest if word in ("aon", "ioc", "slippage")]
        kind, side, *numbers = [word for word in rest if word not in marks]
        values = [int(number) for number in numbers]
        row = {"op": Op.NEW, "kind": ord(_KINDS[kind]), "side": ord(side[0].upper()), "tif": ord("D")}
        row |= {"id": values[0], "locate": values[1] + 1}
        row["price"], row["qty"] = values[2:4] if kind == "limit" else (0, values[2])
        if "aon" in marks:
            row["flags"] = OrderFlag.AON
        if "slippage" in marks:
            row |= {"flags": OrderFlag.SLIPPAGE, "slip": values[3]}
        return row | ({"tif": ord("I")} if "ioc" in marks else {})
    values = [int(number) for number in rest[1:]]
    if verb == "replace":
        return {"op": Op.REPLACE, "id": values[0], "id2": values[1], "price": values[2], "qty": values[3]}
    if verb == "modify":
        return {"op": Op.REPLACE, "id": values[0], "price": values[1], "qty": values[2]}
    if verb == "reduce":
        return {"op": Op.REDUCE, "id": values[0], "qty": values[1]}
    return {"op": Op.CANCEL, "id": values[0]}


def run(engine: Engine, shared: Any, number: int, lines: int | None = None) -> tuple[Matcher, Reports]:
    """The script, or its first commands."""
    text = Path(shared(f"data/cpptrader_matching/scenario-{number:02}.txt")).read_text()
    words = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    commands = to_commands([row for row in map(command, words) if row is not None][:lines])
    market = make_matcher(engine.spec, Session(), MarketRules())
    reports = submit_all(market, commands)
    assert not (reports["kind"] == ReportKind.REJECTED).any()
    assert market.validate() == []
    return market, reports


def book(market: Matcher) -> dict[str, list[tuple[int, list[int]]]]:
    """Each side from the best price on: the price, and quantities in queue order. Symbol 0 is locate 1."""
    found: dict[str, list[tuple[int, list[int]]]] = {"B": [], "S": []}
    for order in market.orders(1):
        levels = found[chr(order["side"])]
        if not levels or levels[-1][0] != order["price"]:
            levels.append((int(order["price"]), []))
        levels[-1][1].append(int(order["qty"]))
    return found


def fills(reports: Reports) -> list[tuple[int, int]]:
    """Price and quantity of each trade."""
    rows = reports[(reports["kind"] == ReportKind.FILL) & (reports["flags"] & 16 == 0)]
    return [(int(row["price"]), int(row["qty"])) for row in rows]


EMPTY: dict[str, list[Any]] = {"B": [], "S": []}
ASKS = [(40, [30, 20, 10]), (50, [30, 20, 10]), (60, [30, 20, 10])]
BIDS = [(30, [10, 20, 30]), (20, [10, 20, 30]), (10, [10, 20, 30])]


@pytest.mark.parametrize("engine", ENGINES, ids=[engine.label for engine in ENGINES])
class TestScripts:
    def test_symbols_and_books_come_and_go(self, engine: Engine, shared: Any) -> None:
        for number in (1, 2):
            market, reports = run(engine, shared, number)
            assert len(reports) == 0
            assert market.live_orders() == 0

    def test_reduce_modify_replace_delete(self, engine: Engine, shared: Any) -> None:
        """MATCH-30, 33, 34."""
        states = [[(10, [10])], [(10, [5])], [(20, [20])], [(30, [30])], []]
        for lines, bids in enumerate(states, 1):
            assert book(run(engine, shared, 3, lines)[0]) == {"B": bids, "S": []}

    def test_orders_will_be_fully_matched(self, engine: Engine, shared: Any) -> None:
        """MATCH-12, 17."""
        for number in (4, 5):
            market, reports = run(engine, shared, number)
            assert fills(reports) == [(10, 10)]
            assert book(market) == EMPTY
            assert market.live_orders() == 0

    def test_a_buy_matches_half_of_the_sales(self, engine: Engine, shared: Any) -> None:
        """MATCH-13: 100 at up to 50 takes the 60 at 40, then 30 and 10 of the 20 at 50."""
        assert book(run(engine, shared, 6, 18)[0]) == {"B": BIDS, "S": ASKS}
        market, reports = run(engine, shared, 6)
        assert fills(reports) == [(40, 30), (40, 20), (40, 10), (50, 30), (50, 10)]
        assert book(market) == {"B": BIDS, "S": [(50, [10, 10]), (60, [30, 20, 10])]}

    def test_slippage_stops_at_20(self, engine: Engine, shared: Any) -> None:
        """MATCH-20: it slips down to best bid - 10."""
        market, reports = run(engine, shared, 7)
        assert fills(reports) == [(30, 10), (30, 20), (30, 30), (20, 10), (20, 20), (20, 30)]
        assert book(market) == {"B": [(10, [10, 20, 30])], "S": ASKS}
        assert (reports[-1]["reason"], reports[-1]["qty"]) == (Reason.PROTECTION, 1000 - 120)

    def test_complex_matching_of_all_or_none_orders(self, engine: Engine, shared: Any) -> None:
        """MATCH-60: no matching although best bid and ask are equal, until 15 more make 45 of both."""
        market, reports = run(engine, shared, 8, 6)
        assert fills(reports) == []
        assert market.live_orders() == 6
        assert book(market) == {"B": [(10, [5])], "S": [(10, [5])]}  # the others are not displayed
        market, reports = run(engine, shared, 8)
        assert sum(qty for _, qty in fills(reports)) == 45
        assert {price for price, _ in fills(reports)} == {10}
        assert book(market) == EMPTY
        assert market.live_orders() == 0

    def test_immediate_or_cancel(self, engine: Engine, shared: Any) -> None:
        """MATCH-17."""
        market, reports = run(engine, shared, 9)
        assert fills(reports) == [(30, 30), (20, 20), (10, 10)]
        assert book(market) == EMPTY
        assert (reports[-1]["reason"], reports[-1]["qty"]) == (Reason.IOC, 40)
