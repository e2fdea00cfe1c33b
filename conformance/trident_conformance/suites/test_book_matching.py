"""Books that declare the capability match, against docs/matching.md. The ids of rules (MATCH-n) stand with
the vectors and tests that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from trident_conformance import matching, orders, streams, vectors
from trident_conformance.engines import Engine, reference
from trident_conformance.ledger import Ledger
from trident_core.contracts import Allocation, Capability, Kind, MarketRules, Matcher
from trident_core.contracts.matching import REPORTS_MIN
from trident_core.dtypes import EVENT, LEVEL, ORDER, TOP
from trident_core.engines import make_matcher
from trident_core.errors import UsageError
from trident_core.orders import COMMAND, REPORT, Commands
from trident_core.publication import events_of
from trident_core.session import Session

pytestmark = pytest.mark.needs_capability(Capability.MATCH)

VECTORS = vectors.load("matching")
FLAVOURS = [*orders.FLAVOURS]


def market(engine: Engine, rules: MarketRules | None = None) -> Matcher:
    return make_matcher(engine.spec, Session(), rules or MarketRules())


def as_the_law(
    engine: Engine, rules: MarketRules, commands: Commands, sizes: list[int], room: int = 500
) -> None:
    """Reports in any split, and all that can be read at the end."""
    law, mine = market(reference(Kind.BOOK), rules), market(engine, rules)
    expected = matching.submit(law, commands)
    matching.alike(mine, matching.submit(mine, commands, sizes, room), law, expected)


@pytest.mark.parametrize("vector", VECTORS, ids=[v.label for v in VECTORS])
class TestMatchingVectors:
    """One vector or more for each rule; its reason is in its file."""

    def test_one_by_one(self, book_engine: Engine, vector: vectors.Vector) -> None:
        matching.hold(market(book_engine, matching.rules(vector.data)), vector.data)

    def test_all_at_once_with_little_room(self, book_engine: Engine, vector: vectors.Vector) -> None:
        """MATCH-1, 2."""
        mine = market(book_engine, matching.rules(vector.data))
        matching.hold(mine, vector.data, room=REPORTS_MIN, whole=True)


class TestMatchingAnyStream:
    @pytest.mark.parametrize("flavour", FLAVOURS)
    def test_as_the_reference(self, book_engine: Engine, flavour: str, prove: Any) -> None:
        """MATCH-1, 2 and all that the reference does: any commands, in any split, of any market."""

        def check(rules: MarketRules, commands: Commands, sizes: list[int], room: int) -> None:
            as_the_law(book_engine, rules, commands, sizes, room)

        sizes = st.lists(st.integers(1, 9), min_size=1, max_size=4)
        rooms = st.sampled_from([500, REPORTS_MIN, REPORTS_MIN + 1])
        chosen = {"rules": orders.markets(), "commands": orders.streams(flavour)}
        prove(check, **chosen, sizes=sizes, room=rooms, examples=15)

    def test_any_bytes(self, book_engine: Engine, prove: Any) -> None:
        """MATCH-2, 4: whatever is in its columns, a command is carried out or rejected."""

        def check(commands: Commands) -> None:
            as_the_law(book_engine, MarketRules(), commands, [3])

        prove(check, commands=orders.wild(), examples=25)

    @pytest.mark.parametrize("flavour", FLAVOURS)
    @pytest.mark.parametrize("allocation", list(Allocation))
    def test_a_busy_market(
        self, book_engine: Engine, flavour: str, allocation: Allocation, quick: bool
    ) -> None:
        """MATCH-1, 2: longer streams, in which orders rest, wait and meet."""
        rules = orders.market(len(flavour), allocation=allocation)

        def check(commands: Commands) -> None:
            as_the_law(book_engine, rules, commands, [1, 7, 64, 500], 64)

        streams.shrunk(check, orders.stream(len(flavour), 300 if quick else 900, flavour))

    def test_many_prices_and_symbols(self, book_engine: Engine, quick: bool) -> None:
        """MATCH-10, 13: prices far apart, many levels, deep queues."""
        commands = orders.stream(5, 600 if quick else 1_500, "plain", locates=5, owners=9, spread=4_000)
        as_the_law(book_engine, MarketRules(), commands, [200], 1_000)


class TestMatchingLedger:
    @pytest.mark.parametrize("flavour", FLAVOURS)
    def test_accounts_that_know_no_engine(self, book_engine: Engine, flavour: str, quick: bool) -> None:
        """MATCH-5, 6, 12, 13, 40, 60: bought is sold, what comes in is filled, cancelled or rests; no limit
        is broken, no better price, no earlier order is passed over, no book stays crossed, no stop triggers
        twice."""
        for allocation in Allocation:
            rules = orders.market(len(flavour) + 1, allocation=allocation)
            mine, accounts = market(book_engine, rules), Ledger(rules)
            commands = orders.stream(len(flavour) + 20, 100 if quick else 250, flavour)
            for at in range(len(commands)):
                accounts.enter(commands[at], matching.submit(mine, commands[at : at + 1]))
            accounts.close(mine)


class TestMatchingPublished:
    @pytest.mark.parametrize("flavour", FLAVOURS)
    def test_a_book_that_replays_has_the_markets_digest(self, book_engine: Engine, flavour: str) -> None:
        """MATCH-80, 11: at every point, for any split; no anomaly but what is none to the market."""
        for allocation in Allocation:
            mine = market(book_engine, MarketRules(allocation=allocation))
            book = reference(Kind.BOOK).make(Session())
            commands = orders.stream(9, 400, flavour)
            for start in range(0, len(commands), 40):
                book.apply(events_of(matching.submit(mine, commands[start : start + 40])))
                assert book.digest() == mine.digest()
            shared_out = {"not_at_head"} if allocation is not Allocation.FIFO else set()
            held_apart = {"crossed"} if flavour in ("blocks", "auctions", "everything") else set()
            assert set(book.anomalies) <= shared_out | held_apart


class TestMatchingArrays:
    COMMANDS = orders.stream(3, 200)

    def test_wrong_arrays(self, book_engine: Engine) -> None:
        """MATCH-2: UsageError, and nothing is carried out."""
        mine = market(book_engine)
        locked = np.zeros(9, REPORT)
        locked.flags.writeable = False
        for commands, reports in (
            (self.COMMANDS, np.zeros(REPORTS_MIN - 1, REPORT)),
            (self.COMMANDS, np.zeros(9, COMMAND)),
            (self.COMMANDS, np.zeros((9, 9), REPORT)),
            (np.zeros(3, EVENT), np.zeros(9, REPORT)),
            (np.zeros((3, 3), COMMAND), np.zeros(9, REPORT)),
            (self.COMMANDS, locked),
        ):
            with pytest.raises(UsageError):
                mine.submit(commands, reports)
        assert mine.live_orders() == len(mine.locates()) == 0

    def test_no_view_is_kept(self, book_engine: Engine) -> None:
        """MATCH-2: the caller uses its arrays again, also while a command has more to report."""
        law, mine = market(reference(Kind.BOOK)), market(book_engine)
        expected = matching.submit(law, self.COMMANDS)
        wide = np.zeros(2 * len(self.COMMANDS), COMMAND)
        wide[::2] = self.COMMANDS
        rest, found, more = wide[::2], [], True
        while len(rest) or more:
            reports = np.zeros(REPORTS_MIN, REPORT)
            given = rest[:5].copy() if len(rest) > 5 else rest
            taken, written, more = mine.submit(given, reports)
            found.append(reports[:written].copy())
            reports.view(np.uint8)[:] = 0xFF
            if given is not rest:
                given.view(np.uint8)[:] = 0xFF
            rest = rest[taken:]
        matching.alike(mine, np.concatenate(found), law, expected)

    def test_what_is_read_is_the_callers(self, book_engine: Engine) -> None:
        """MATCH-90: reading changes nothing, and dtypes are those of the records."""
        mine = market(book_engine)
        matching.submit(mine, self.COMMANDS)
        before = mine.state_digest(), mine.digest()
        for locate in mine.locates():
            for found, dtype in (
                (mine.levels(int(locate), "B"), LEVEL), (mine.orders(int(locate)), ORDER),
                (mine.top(int(locate)), TOP),
            ):  # fmt: skip
                assert found.dtype == dtype
                found.view(np.uint8)[:] = 0xFF
            full = mine.levels(int(locate), "S")
            assert mine.levels(int(locate), "S", 1).tolist() == full[:1].tolist()
        assert (mine.state_digest(), mine.digest()) == before
        with pytest.raises(UsageError):
            mine.levels(1, "X")
        with pytest.raises(UsageError):
            mine.levels(1, "B", -1)

    def test_markets_share_nothing(self, book_engine: Engine) -> None:
        """MATCH-1: two markets of one factory, turn and turn about."""
        first, second = market(book_engine), market(book_engine)
        law = market(reference(Kind.BOOK))
        expected = matching.submit(law, self.COMMANDS)
        halves: tuple[list[Any], list[Any]] = ([], [])
        for start in range(0, len(self.COMMANDS), 20):
            for mine, found in zip((first, second), halves, strict=True):
                found.append(matching.submit(mine, self.COMMANDS[start : start + 20]))
        for mine, found in zip((first, second), halves, strict=True):
            matching.alike(mine, np.concatenate(found), law, expected)
