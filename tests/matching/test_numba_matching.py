"""The numba matching engine against the reference, and what only it has: pools, long lists, exact shares."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from trident_book.matching.numba_matcher import NumbaMatcher
from trident_book.matching.numba_share import portion
from trident_book.matching.reference import ReferenceMatcher
from trident_conformance import orders
from trident_core.contracts import Allocation, MarketRules, Op, OrderFlag, OrderKind, SelfTrade, TimeInForce
from trident_core.contracts.matching import REPORTS_MIN
from trident_core.jit import njit
from trident_core.orders import COMMAND, REPORT, Commands, Reports, submit_all
from trident_core.session import Session

LIMIT, DAY, IOC = int(OrderKind.LIMIT), int(TimeInForce.DAY), int(TimeInForce.IOC)


def both(rules: MarketRules) -> tuple[NumbaMatcher, ReferenceMatcher]:
    return NumbaMatcher(Session(), rules), ReferenceMatcher(Session(), rules)


def new(ids: Any, side: Any, price: Any, qty: Any, **columns: Any) -> Commands:
    commands = np.zeros(len(ids), COMMAND)
    commands["op"], commands["kind"], commands["tif"], commands["locate"] = int(Op.NEW), LIMIT, DAY, 1
    for name, value in {"id": ids, "side": side, "price": price, "qty": qty, **columns}.items():
        commands[name] = value
    return commands


def in_pieces(matcher: NumbaMatcher, commands: Commands, chance: random.Random) -> Reports:
    """Reports of calls with few commands and little room."""
    found, at, more = [], 0, False
    while at < len(commands) or more:
        rows = np.zeros(chance.choice([REPORTS_MIN, REPORTS_MIN + 1, 13, 64]), REPORT)
        taken, written, more = matcher.submit(commands[at : at + chance.choice([1, 2, 9, 100])], rows)
        found.append(rows[:written].copy())
        at += taken
    return np.concatenate(found)


def same(found: Reports, expected: Reports) -> None:
    at = np.flatnonzero(found[: len(expected)] != expected[: len(found)])
    assert not len(at), (found[at[0]], expected[at[0]])
    assert len(found) == len(expected)


def alike(mine: NumbaMatcher, law: ReferenceMatcher) -> None:
    assert mine.validate() == []
    assert mine.live_orders() == law.live_orders()
    assert mine.state_digest() == law.state_digest()
    assert mine.digest() == law.digest()


@pytest.mark.parametrize("flavour", list(orders.FLAVOURS))
@pytest.mark.parametrize("allocation", list(Allocation))
def test_each_command_as_the_reference(flavour: str, allocation: Allocation) -> None:
    chance = random.Random(flavour)
    rules = orders.market(chance.randrange(1_000), allocation=allocation)
    mine, law = both(rules)
    commands = orders.stream(chance.randrange(1_000), 240, flavour)
    for start in range(0, len(commands), 4):
        some = commands[start : start + 4]
        same(in_pieces(mine, some, chance), submit_all(law, some))
        alike(mine, law)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_long_streams_as_the_reference(seed: int) -> None:
    chance = random.Random(seed)
    flavour = list(orders.FLAVOURS)[seed % len(orders.FLAVOURS)]
    mine, law = both(orders.market(seed, allocation=chance.choice(list(Allocation))))
    commands = orders.stream(seed, 2_000, flavour, locates=3, owners=4, spread=chance.choice([4, 12, 60]))
    same(in_pieces(mine, commands, chance), submit_all(law, commands))
    alike(mine, law)


def test_pools_grow_while_commands_run() -> None:
    """Orders, levels, symbols, owners, stops and the index, each beyond its first size."""
    n, chance = 9_000, np.random.default_rng(4)
    mine, law = both(MarketRules())
    ids = np.arange(1, n + 1)
    commands = new(ids, np.where(ids % 2, ord("B"), ord("S")), 0, chance.integers(1, 50, n))
    commands["price"] = np.where(
        ids % 2, 40_000 - 7 * chance.integers(0, 3_000, n), 40_001 + 7 * chance.integers(0, 3_000, n)
    )
    commands["locate"] = np.where(ids % 3, 1, 1 + chance.integers(0, 700, n))
    commands["owner"] = chance.integers(0, 2_000, n)
    stops = ids % 5 == 0
    commands["kind"][stops], commands["stop"][stops] = int(OrderKind.STOP), commands["price"][stops]
    commands["stop"][stops & (ids % 2 == 1)] += 60_000
    commands["trail"][ids % 10 == 0] = 9
    same(submit_all(mine, commands), submit_all(law, commands))
    alike(mine, law)
    end = np.zeros(1, COMMAND)
    end["op"] = int(Op.END_OF_DAY)
    same(submit_all(mine, end, 100), submit_all(law, end))
    alike(mine, law)


def test_memory_is_bounded_by_the_orders_that_live() -> None:
    """Owners, identifiers and prices that never come again leave nothing."""
    mine = NumbaMatcher(Session(), MarketRules())
    sizes = []
    for turn in range(40):
        ids = np.arange(1, 1_001) + 1_000 * turn
        commands = np.concatenate(
            [new(ids, ord("B"), 1 + ids, 5, owner=ids), new(ids, ord("B"), 0, 0, owner=ids)]
        )
        commands["op"][1_000:] = int(Op.CANCEL)
        submit_all(mine, commands)
        assert mine.live_orders() == 0
        st = mine._state
        sizes.append(
            [len(pool) for pool in (st.orders, st.owners, st.book.levels, st.ids.refs, st.book.keys)]
        )
    assert sizes[-1] == sizes[3]
    assert mine.validate() == []


def test_any_identifier_and_owner() -> None:
    ids = np.array([0, 1, 2**32, 2**63, 2**64 - 1, 2**64 - 2, 4, 8], np.uint64)
    commands = new(ids, ord("B"), 10, 5, owner=np.array([0, 2**32 - 1] * 4))
    mine, law = both(MarketRules())
    same(submit_all(mine, commands), submit_all(law, commands))
    commands["op"] = int(Op.CANCEL)
    same(submit_all(mine, commands), submit_all(law, commands))
    alike(mine, law)


def test_an_iceberg_of_many_peaks_goes_on_from_call_to_call() -> None:
    commands = np.concatenate([
        new([1], ord("S"), 10, 5_000, peak=1),
        new([2], ord("S"), 10, 5, flags=int(OrderFlag.HIDDEN)),
        new([3], ord("B"), 10, 5_010, tif=IOC),
    ])  # fmt: skip
    mine, law = both(MarketRules())
    rows = submit_all(mine, commands, REPORTS_MIN)
    assert len(rows) == 10_000 + 6
    same(rows, submit_all(law, commands))
    alike(mine, law)


def test_shares_are_exact() -> None:
    """floor(wanted * size / total) of numbers whose product has more than 64 bits."""

    @njit
    def shares(wanted: Any, size: Any, total: Any) -> Any:
        return portion(wanted, size, total)

    chance = random.Random(8)
    for _ in range(300):
        total = chance.randrange(1, 1 << chance.randrange(1, 63))
        wanted, size = chance.randint(0, total), chance.randint(0, total)
        found = shares(np.uint64(wanted), np.uint64(size), np.uint64(total))
        assert int(found) == wanted * size // total


def test_large_quantities_are_shared_out_as_by_the_reference() -> None:
    rules = MarketRules(allocation=Allocation.PRO_RATA, qty_max=2**50, max_orders=1_000, stp=SelfTrade.BOTH)
    mine, law = both(rules)
    ids = np.arange(1, 41)
    quantities = np.random.default_rng(2).integers(1, 2**50, 40)
    commands = np.concatenate([
        new(ids, ord("B"), 10, quantities, owner=ids % 7),
        new([99], ord("S"), 10, 2**50 - 1, owner=3), new([98], ord("S"), 10, 2**49 + 11),
    ])  # fmt: skip
    same(submit_all(mine, commands, 9), submit_all(law, commands))
    alike(mine, law)


def test_strided_arrays_are_as_good() -> None:
    wide = np.zeros(40, COMMAND)
    wide[::2] = orders.stream(6, 20)
    mine, law = both(MarketRules())
    rows = np.zeros(128, REPORT)
    done = mine.submit(wide[::2], rows[::2])
    expected = submit_all(law, wide[::2].copy())
    same(rows[::2][: done.written], expected)
    assert (rows[1::2] == np.zeros(64, REPORT)).all()


def test_warming_up_leaves_the_market_as_it_is() -> None:
    mine = NumbaMatcher(Session(), MarketRules())
    before = mine.state_digest()
    mine.warm_up()
    assert mine.state_digest() == before
    assert mine.live_orders() == 0


def test_validate_finds_what_is_broken() -> None:
    def market() -> NumbaMatcher:
        made = NumbaMatcher(Session(), MarketRules())
        submit_all(made, orders.stream(12, 300, "everything"))
        submit_all(made, new([9_001, 9_002, 9_003], ord("B"), [2, 2, 3], 7, locate=9))
        assert made.validate() == []
        return made

    def break_qty(st: Any) -> None:
        st.orders["shown"][st.orders["leaves"] == 7] = 9

    def break_link(st: Any) -> None:
        at = np.flatnonzero(st.orders["next"])
        st.orders["next"][at[-1]] = at[-1]

    def break_ref(st: Any) -> None:
        st.orders["ref"][1:] = 5

    def break_owner(st: Any) -> None:
        st.owners["head"] = 0

    def break_index(st: Any) -> None:
        st.ids.refs[:] = 0

    def break_level(st: Any) -> None:
        st.book.levels["count"][1:] += 1

    for damage in (break_qty, break_link, break_ref, break_owner, break_index, break_level):
        broken = market()
        damage(broken._state)
        assert broken.validate(), damage.__name__
