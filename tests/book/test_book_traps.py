"""Every trap of building books from ITCH, as the smallest story in which it shows."""

from __future__ import annotations

import timeit

import pytest

from trident_core import tables
from trident_core.contracts import TradingState
from trident_core.session import Session


def test_replace_inherits_side_symbol_and_mpid(stream, applied):
    day = applied(stream().add(1, "S", 100, 5000, locate=3, mpid="NITE").replace(1, 2, 60, 5100, locate=3))
    (order,) = day.book.orders(3)
    assert (order["ref"], chr(order["side"]), order["price"], order["qty"]) == (2, "S", 5100, 60)
    assert order["mpid"].tobytes() == b"NITE"
    assert order["ts"] == day.events["ts"][1]
    assert day.effects["mpid"][1].tobytes() == b"NITE"


def test_replace_reports_the_old_order_and_the_new_quantity(stream, applied):
    day = applied(stream().add(1, "B", 100, 5000).execute(1, 30).replace(1, 2, 500, 5100))
    assert day.effect() == (5000, 70, 500, "B", "APPLIED", "LEFT")


def test_replace_goes_to_the_tail_at_the_same_price_too(stream, applied):
    day = applied(stream().add(1, "B", 10, 5000).add(2, "B", 20, 5000).replace(1, 3, 5, 5000))
    assert day.queue() == [(2, "B", 20, 5000), (3, "B", 5, 5000)]


def test_replace_to_the_same_reference_is_no_duplicate(stream, applied):
    day = applied(stream().add(1, "B", 10, 5000).add(2, "B", 20, 5000).replace(1, 1, 5, 5000))
    assert day.queue() == [(2, "B", 20, 5000), (1, "B", 5, 5000)]
    assert day.effect() == (5000, 10, 5, "B", "APPLIED", "LEFT")
    assert day.counts() == {}


def test_replace_of_an_unknown_reference_changes_nothing(stream, applied):
    day = applied(stream().add(2, "B", 20, 5000).replace(1, 2, 5, 6000))
    assert day.queue() == [(2, "B", 20, 5000)]
    assert day.effect() == (0, 0, 0, "", "UNKNOWN_REF", "")
    assert day.counts() == {"unknown_ref": 1}
    assert day.book.anomalies["unknown_ref"].positions == [2]


def test_replace_whose_new_reference_lives_evicts_that_order(stream, applied):
    day = applied(stream().add(1, "B", 10, 5000).add(2, "S", 20, 6000).replace(1, 2, 5, 5100))
    assert day.queue() == [(2, "B", 5, 5100)]
    assert day.effect() == (5000, 10, 5, "B", "DUPLICATE_REF", "LEFT")
    assert day.counts() == {"duplicate_ref": 1}


def test_replace_with_no_shares_ends_the_old_order(stream, applied):
    """Spec 4.4.5: the original order is no longer valid, and nothing takes its place."""
    day = applied(stream().add(1, "B", 10, 5000).replace(1, 2, 0, 5100).delete(2))
    assert day.queue() == []
    assert day.effect(1) == (5000, 10, 0, "B", "REJECTED", "LEFT")
    assert day.counts() == {"rejected_add": 1, "unknown_ref": 1}


def test_replace_with_no_shares_evicts_the_holder_of_its_reference_as_well(stream, applied):
    day = applied(stream().add(1, "B", 10, 5000).add(2, "B", 10, 4000).replace(1, 2, 0, 5100))
    assert day.queue() == []
    assert day.effect()[4] == "REJECTED"
    assert day.counts() == {"duplicate_ref": 1, "rejected_add": 1}


def test_execution_at_a_price_reduces_at_the_display_price(stream, applied):
    day = applied(stream().add(1, "S", 100, 5000).add(2, "S", 50, 4900).execute_at(1, 40, 4900))
    assert day.queue() == [(2, "S", 50, 4900), (1, "S", 60, 5000)]
    assert day.effect() == (5000, 40, 60, "S", "APPLIED", "")
    (trade,) = tables.trades(day.events, day.effects, Session())
    assert (trade["price"], trade["size"]) == (4900, 40)


def test_unprintable_execution_changes_the_book_but_prints_nothing(stream, applied):
    day = applied(stream().add(1, "S", 100, 5000).execute_at(1, 40, 4900, printable=False))
    assert day.queue() == [(1, "S", 60, 5000)]
    assert len(tables.trades(day.events, day.effects, Session())) == 0


def test_execution_prints_at_the_resting_price(stream, applied):
    day = applied(stream().add(1, "S", 100, 5000).execute(1, 40, match=77))
    (trade,) = tables.trades(day.events, day.effects, Session())
    assert trade.tolist()[3:] == (b"E", 5000, 40, b"S", 1, 77, b"N")


@pytest.mark.parametrize("letter", ["execute", "cancel"])
def test_reductions_are_cumulative_and_the_order_leaves_at_zero(stream, applied, letter):
    day = stream().add(1, "B", 100, 5000)
    for qty in (30, 30, 40):
        getattr(day, letter)(1, qty)
    done = applied(day)
    assert done.effects["remaining"].tolist() == [100, 70, 40, 0]
    assert done.effect(2) == (5000, 30, 40, "B", "APPLIED", "")
    assert done.effect(3) == (5000, 40, 0, "B", "APPLIED", "LEFT")
    assert done.queue() == []
    assert done.book.levels(1, "B").tolist() == []


def test_cancel_carries_what_goes_not_what_stays(stream, applied):
    assert applied(stream().add(1, "B", 100, 5000).cancel(1, 10)).queue() == [(1, "B", 90, 5000)]


@pytest.mark.parametrize(
    ("letter", "columns"),
    [
        ("P", {"ref": 1, "side": ord("B"), "qty": 100, "price": 5000, "ref2": 9}),
        ("Q", {"qty": 1 << 40, "price": 5000, "ref2": 9}),
        ("Q", {"qty": 0, "price": 0, "ref2": 9}),
        ("B", {"ref2": 700}),
        ("I", {"qty": 5, "price": 5000, "ref2": 5}),
        ("N", {}),
        ("O", {}),
        ("S", {}),
    ],
)
def test_no_book_effect(stream, applied, letter, columns):
    """P trades against what was never displayed, Q is a cross, B amends the tape: no order moves."""
    start = stream().add(1, "B", 100, 5000).add(2, "S", 100, 5001).execute(1, 10)
    before = applied(start)
    digest, orders = before.book.digest(), before.queue()
    after = applied(start.put(letter, **columns))
    assert (after.book.digest(), after.queue()) == (digest, orders)
    assert after.effect() == (0, 0, 0, "", "NONE", "")
    assert after.flags() == ""
    assert after.tops[-1]["bid_qty"] == 90
    assert after.counts() == {}


def test_broken_trade_amends_the_tape_only(stream, applied):
    day = applied(
        stream()
        .add(1, "B", 100, 5000)
        .execute(1, 10, match=7)
        .execute(1, 20, match=8)
        .put("B", ref2=7)
        .execute(1, 5, match=9)
    )
    trades = tables.trades(day.events, day.effects, Session())
    assert trades["kind"].tolist() == [b"E", b"E", b"B", b"E"]
    assert trades["match_number"].tolist() == [7, 8, 7, 9]
    assert tables.voided(trades).tolist() == [True, False, False, False]
    assert day.queue() == [(1, "B", 65, 5000)]


def test_deletes_after_the_end_of_system_hours_apply(stream, applied):
    day = applied(
        stream().add(1, "B", 100, 5000).put("S", 0, b"E").delete(1).put("B", ref2=7).put("S", 0, b"C")
    )
    assert day.book.live_orders() == 0
    assert day.counts() == {}


def test_duplicate_add_evicts_the_old_order(stream, applied):
    day = applied(stream().add(1, "B", 100, 5000).add(2, "B", 50, 5000).add(1, "S", 20, 5100))
    assert day.queue() == [(2, "B", 50, 5000), (1, "S", 20, 5100)]
    assert day.effect() == (5100, 20, 20, "S", "DUPLICATE_REF", "")
    assert day.book.anomalies["duplicate_ref"].positions == [3]


def test_duplicate_add_evicts_across_symbols(stream, applied):
    """References are unique across symbols: the other symbol's next top shows what changed there."""
    day = applied(
        stream().add(1, "B", 100, 5000, locate=1).add(1, "B", 50, 7000, locate=2).put("I", 1).put("I", 1)
    )
    assert day.queue(1) == []
    assert day.queue(2) == [(1, "B", 50, 7000)]
    assert [day.flags(i) for i in range(4)] == ["CHANGED", "CHANGED", "CHANGED", ""]
    assert day.tops[1]["locate"] == 2
    assert day.tops[2]["bid_count"] == 0


@pytest.mark.parametrize("letter", ["execute", "cancel", "delete", "execute_at"])
def test_unknown_reference_is_counted(stream, applied, letter):
    arguments = {"execute": (9, 10), "cancel": (9, 10), "delete": (9,), "execute_at": (9, 10, 5000)}[letter]
    day = applied(getattr(stream().add(1, "B", 100, 5000), letter)(*arguments))
    assert day.queue() == [(1, "B", 100, 5000)]
    assert day.effect() == (0, 0, 0, "", "UNKNOWN_REF", "")
    assert day.counts() == {"unknown_ref": 1}
    assert day.tops[-1]["locate"] == 1


@pytest.mark.parametrize("letter", ["execute", "cancel", "execute_at"])
def test_taking_too_much_is_clamped_and_counted(stream, applied, letter):
    day = stream().add(1, "B", 100, 5000).add(2, "B", 10, 5000)
    getattr(day, letter)(*((1, 150) if letter != "execute_at" else (1, 150, 4990)))
    done = applied(day)
    assert done.effect() == (5000, 100, 0, "B", "OVER_EXECUTION", "LEFT")
    assert done.queue() == [(2, "B", 10, 5000)]
    assert done.counts() == {"over_execution": 1}
    assert done.book.levels(1, "B").tolist() == [(5000, 10, 1)]


@pytest.mark.parametrize(("side", "qty"), [("X", 10), ("b", 10), ("\0", 10), ("B", 0)])
def test_add_without_a_side_or_shares_is_rejected(stream, applied, side, qty):
    """Also when its reference lives: nothing takes that order's place, so it stays."""
    day = applied(stream().add(1, "B", 100, 5000).add(1, side, qty, 5000))
    assert day.queue() == [(1, "B", 100, 5000)]
    assert day.effect() == (0, 0, 0, "", "REJECTED", "")
    assert day.counts() == {"rejected_add": 1}


def test_add_that_overflows_its_level_is_rejected(stream, applied):
    most = (1 << 64) - 1
    day = applied(stream().add(1, "B", most, 5000).add(2, "B", 1, 5000).add(3, "B", 1, 4999))
    assert day.queue() == [(1, "B", most, 5000), (3, "B", 1, 4999)]
    assert day.counts() == {"rejected_add": 1}


def test_replace_that_overflows_its_level_ends_the_old_order(stream, applied):
    most = (1 << 64) - 1
    day = applied(stream().add(1, "B", most, 5000).add(2, "B", 1, 4999).replace(2, 3, 1, 5000))
    assert day.queue() == [(1, "B", most, 5000)]
    assert day.effect() == (4999, 1, 0, "B", "REJECTED", "LEFT")


def test_replace_may_fill_the_level_that_it_leaves(stream, applied):
    most = (1 << 64) - 1
    day = applied(stream().add(1, "B", most, 5000).replace(1, 2, most, 5000))
    assert day.queue() == [(2, "B", most, 5000)]
    assert day.counts() == {}


@pytest.mark.parametrize("ref", [0, 1, (1 << 63), (1 << 64) - 1])
def test_every_64_bit_number_is_a_reference(stream, applied, ref):
    day = applied(stream().add(ref, "B", 100, 5000).execute(ref, 40))
    assert day.queue() == [(ref, "B", 60, 5000)]
    assert day.counts() == {}


@pytest.mark.parametrize("price", [0, -5000, -(1 << 63), (1 << 63) - 1])
def test_every_price_is_a_price(stream, applied, price):
    """A price of 0 with a count above 0 is a price; other venues have prices below zero."""
    day = applied(stream().add(1, "S", 100, price).add(2, "B", 50, price).execute(1, 40))
    assert day.queue() == [(2, "B", 50, price), (1, "S", 60, price)]
    assert day.flags() == "CHANGED LOCKED"
    assert day.counts() == {}


def test_halt_does_not_stop_order_messages(stream, applied):
    day = applied(stream().add(1, "B", 100, 5000).halt("H").execute(1, 10).add(2, "B", 5, 5001).delete(2))
    assert day.queue() == [(1, "B", 90, 5000)]
    assert day.tops["state"].tolist() == [0, *[ord("H")] * 4]
    assert [day.flags(i) for i in range(5)] == ["CHANGED", "", "CHANGED", "CHANGED", "CHANGED"]


@pytest.mark.parametrize(
    ("letter", "state"),
    [
        ("T", TradingState.TRADING),
        ("H", TradingState.HALTED),
        ("P", TradingState.PAUSED),
        ("Q", TradingState.QUOTATION),
        ("?", TradingState.UNKNOWN),
    ],
)
def test_trading_state(stream, applied, letter, state):
    day = applied(stream().halt("T", locate=7).halt(letter, locate=7))
    assert day.book.state(7) is state
    assert day.tops[-1]["state"] == state
    assert day.book.top(7)[0]["state"] == state


def test_symbol_without_trading_action_is_unknown(stream, applied):
    assert applied(stream().add(1, "B", 1, 1).halt("T", locate=2)).book.state(1) is TradingState.UNKNOWN


def test_operational_halt_of_one_venue_is_not_a_trading_state(stream, applied):
    day = applied(stream().halt("T").put("h", 1, b"QH").add(1, "B", 1, 1))
    assert day.book.state(1) is TradingState.TRADING
    assert day.queue() == [(1, "B", 1, 1)]


def test_execution_behind_the_head_is_counted(stream, applied):
    day = applied(
        stream().add(1, "B", 10, 5000).add(2, "B", 20, 5000).execute(2, 5).execute(1, 10).execute(2, 1)
    )
    assert day.queue() == [(2, "B", 14, 5000)]
    assert day.effect(2) == (5000, 5, 15, "B", "APPLIED", "NOT_AT_HEAD")
    assert day.effect(3)[5] == "LEFT"
    assert day.effect(4)[5] == ""
    assert day.counts() == {"not_at_head": 1}


def test_execution_at_a_price_and_cancels_may_be_anywhere_in_the_queue(stream, applied):
    day = applied(
        stream().add(1, "B", 10, 5000).add(2, "B", 20, 5000).execute_at(2, 5, 4990).cancel(2, 5).delete(2)
    )
    assert day.counts() == {}


def test_crossing_add_never_trades(stream, applied):
    day = applied(stream().halt("T").add(1, "B", 10, 5000).add(2, "S", 10, 4900))
    assert day.queue() == [(1, "B", 10, 5000), (2, "S", 10, 4900)]
    assert day.flags() == "CHANGED CROSSED"
    assert day.book.anomalies["crossed"].positions == [3]


def test_crossed_is_counted_once_until_it_uncrosses(stream, applied):
    day = applied(
        stream()
        .halt("T")
        .add(1, "B", 10, 5000)
        .add(2, "S", 10, 4900)
        .add(3, "S", 10, 4800)
        .delete(3)
        .delete(2)
        .replace(1, 4, 10, 5000)
        .add(5, "S", 10, 4999)
    )
    assert day.book.anomalies["crossed"].positions == [3, 8]


@pytest.mark.parametrize("state", ["", "H", "P", "Q"])
def test_crossed_outside_continuous_trading_is_no_anomaly(stream, applied, state):
    day = stream()
    if state:
        day.halt(state)
    done = applied(day.add(1, "B", 10, 5000).add(2, "S", 10, 4900).halt("T").add(3, "B", 10, 4800))
    assert done.counts() == {}
    assert done.flags() == "CROSSED"


def test_locked_is_flagged_and_no_anomaly(stream, applied):
    day = applied(stream().halt("T").add(1, "B", 10, 5000).add(2, "S", 10, 5000))
    assert day.flags() == "CHANGED LOCKED"
    assert day.counts() == {}


@pytest.mark.parametrize("letter", ["execute", "execute_at", "cancel", "delete", "replace"])
def test_the_order_knows_its_symbol_better_than_the_message(stream, applied, letter):
    arguments = {
        "execute": (1, 40),
        "execute_at": (1, 40, 5000),
        "cancel": (1, 40),
        "delete": (1,),
        "replace": (1, 2, 60, 5000),
    }[letter]
    day = applied(getattr(stream().add(1, "B", 100, 5000, locate=3), letter)(*arguments, locate=4))
    assert sum(order[2] for order in day.queue(3)) == (0 if letter == "delete" else 60)
    assert day.queue(4) == []
    assert "LOCATE_MISMATCH" in day.effect()[5]
    assert day.tops[-1]["locate"] == 3
    assert day.book.locates().tolist() == [3, 4]
    assert day.counts() == {"locate_mismatch": 1}
    assert day.book.top(4)[0]["seq"] == 0


def test_only_f_has_an_mpid(stream, applied):
    day = applied(
        stream().add(1, "B", 1, 1, mpid="ABCD").put("A", aux=b"WXYZ", ref=2, side=ord("B"), qty=1, price=1)
    )
    assert [o["mpid"].tobytes() for o in day.book.orders(1)] == [b"ABCD", b"\0\0\0\0"]


def test_changed_sees_price_quantity_and_count(stream, applied):
    """Two orders of 50 become one of 100 at the same price: only the count tells."""
    day = applied(
        stream()
        .add(1, "B", 50, 5000)  # price
        .add(2, "B", 50, 5000)  # quantity and count
        .add(3, "B", 50, 4999)  # below the touch
        .execute(1, 0)  # nothing
        .replace(1, 2, 100, 5000)  # count alone, for 2 is evicted
    )
    assert [day.flags(i) for i in range(5)] == ["CHANGED", "CHANGED", "", "", "CHANGED"]
    assert day.book.levels(1, "B").tolist() == [(5000, 100, 1), (4999, 50, 1)]


def test_zero_shares_executed_change_nothing(stream, applied):
    day = applied(stream().add(1, "B", 50, 5000).execute(1, 0).cancel(1, 0))
    assert day.queue() == [(1, "B", 50, 5000)]
    assert day.effect(1) == (5000, 0, 50, "B", "APPLIED", "")
    assert day.counts() == {}


def test_the_head_of_a_queue_is_found_at_once(stream, applied):
    """Not by stepping over all that left before it: 200,000 were ahead of the last."""
    n = 200_000
    book = applied(stream().add(1, "B", 1, 5000).add(2, "B", 1, 4000)).book
    short, long = book._orders[1].level, book._orders[2].level
    for ref in range(3, n):
        long.side.join(ref, 4000, 1, 0, 0)
    for ref in range(2, n - 1):
        long.side.leave(long.queue[ref])
    assert long.head().ref == n - 1
    seconds = {level.price: min(timeit.repeat(level.head, number=200, repeat=3)) for level in (short, long)}
    assert seconds[4000] < 50 * seconds[5000]
