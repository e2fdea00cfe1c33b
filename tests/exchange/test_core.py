"""The exchange without a network: what each message of OUCH is answered with, and that a journal says it
all again."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trident_core.contracts.matching import MarketRules
from trident_core.errors import UsageError
from trident_exchange.config import Config
from trident_exchange.exchange import Exchange
from trident_exchange.journal import Record, What
from trident_exchange.ouch import Tag, decode_outbound, encode
from trident_exchange.ouch import messages as m
from trident_exchange.ouch.codes import MARKET_PRICE, Reject

CONFIG = Config(date=dt.date(2026, 11, 30), symbols=("AAPL", "MSFT"))
_SECOND = 1_000_000_000


class Market:
    """An exchange and two users, driven by hand."""

    def __init__(self, folder: Path, make_matcher: Any, cancel_on_disconnect: bool = False) -> None:
        self.exchange = Exchange(folder, CONFIG, make_matcher, store="reference")
        self.seen = {1: 0, 2: 0}
        for name in ("ALFA", "BETA"):
            self.run([self.exchange.account_record(name, name, cancel_on_disconnect)])
        self.ts = self.exchange.core.now

    def run(self, records: list[Record]) -> None:
        self.exchange.journal.append(records)
        self.exchange.core.apply(records)
        self.exchange.release()

    def send(self, account: int, *messages: m.Message) -> list[m.Outbound]:
        self.ts += 1_000
        self.run([Record(What.MESSAGE, account, self.ts, encode(each)) for each in messages])
        return self.news(account)

    def news(self, account: int) -> list[m.Outbound]:
        """What the account has not been shown yet."""
        found = [
            decode_outbound(each[1:])
            for each in self.exchange.stream(account).messages(1 + self.seen[account])
        ]
        self.seen[account] += len(found)
        return found


@pytest.fixture
def market(tmp_path: Path, make_matcher: Any) -> Iterator[Market]:
    made = Market(tmp_path / "x", make_matcher)
    assert [[each[1:] for each in made.news(n)] for n in (1, 2)] == [[("S",)]] * 2
    yield made
    made.exchange.close()


def order(
    number: int, side: str = "B", quantity: int = 100, price: int = 1_000_000, **changes: Any
) -> m.EnterOrder:
    made = m.EnterOrder(number, side, quantity, "AAPL", price, "0", "Y", "A", "N", "N", f"id{number}")
    return made._replace(**changes)


def test_an_order_is_accepted_executed_and_both_sides_are_told(market: Market) -> None:
    (accepted,) = market.send(1, order(1, "B", 100))
    assert isinstance(accepted, m.Accepted)
    assert accepted[1:8] == (1, "B", 100, "AAPL", 1_000_000, "0", "Y")
    assert (accepted.order_state, accepted.cl_ord_id) == ("L", "id1")
    taken, executed = market.send(2, order(1, "S", 40, 990_000))
    assert isinstance(taken, m.Accepted)
    assert isinstance(executed, m.Executed)
    assert (executed.quantity, executed.price, executed.liquidity_flag) == (40, 1_000_000, "R")
    (other,) = market.news(1)
    assert isinstance(other, m.Executed)
    assert (other.quantity, other.liquidity_flag, other.match_number) == (40, "A", executed.match_number)


def test_a_cancel_says_what_is_to_be_left_executions_included(market: Market) -> None:
    market.send(1, order(1, "B", 100))
    market.send(2, order(1, "S", 30))
    market.news(1)
    assert market.send(1, m.CancelOrder(1, 100)) == []
    (some,) = market.send(1, m.CancelOrder(1, 50))
    assert isinstance(some, m.Canceled)
    assert (some.quantity, some.reason) == (50, "U")
    (rest,) = market.send(1, m.CancelOrder(1, 0))
    assert isinstance(rest, m.Canceled)
    assert rest.quantity == 20
    assert market.send(1, m.CancelOrder(1, 0), m.CancelOrder(77, 0)) == []
    assert not market.exchange.core.orders


def test_a_replace_counts_what_was_executed_and_uses_a_number(market: Market) -> None:
    market.send(1, order(1, "B", 100))
    market.send(2, order(1, "S", 30))
    market.news(1)
    request = m.ReplaceOrder(1, 2, 80, 1_010_000, "0", "Y", "N", "new")
    (replaced,) = market.send(1, request)
    assert isinstance(replaced, m.Replaced)
    assert replaced[1:8] == (1, 2, "B", 50, "AAPL", 1_010_000, "0")
    assert replaced.cl_ord_id == "new"
    assert market.send(1, request) == []  # sent again: the number is used
    assert market.send(1, m.ReplaceOrder(1, 3, 80, 1, "0", "Y", "N", "x")) == []  # 1 is gone
    (fewer,) = market.send(1, m.ReplaceOrder(2, 4, 30, 1_010_000, "0", "Y", "N", "x"))
    assert isinstance(fewer, m.Canceled)  # 30 were executed: nothing is left
    assert (fewer.user_ref_num, fewer.quantity) == (2, 50)
    assert not market.exchange.core.orders


def test_a_replace_that_is_refused_leaves_the_order(market: Market) -> None:
    market.send(1, order(1))
    cases = [
        (m.ReplaceOrder(1, 2, 100, 0, "0", "Y", "N", "x"), Reject.INVALID_PRICE),
        (m.ReplaceOrder(1, 3, 100, 1_000_000, "0", "N", "N", "x"), Reject.INVALID_DISPLAY),
        (m.ReplaceOrder(1, 4, 100, MARKET_PRICE, "0", "Y", "N", "x"), Reject.REPLACE_NOT_ALLOWED),
        (m.ReplaceOrder(1, 5, 100, 1_000_000, "3", "Y", "N", "x"), Reject.REPLACE_NOT_ALLOWED),
        (m.ReplaceOrder(1, 6, 100, 1_000_000, "0", "Y", "N", "x", ((Tag.SIDE, "S"),)), Reject.INVALID_SIDE),
    ]
    for request, reason in cases:
        assert market.send(1, request) == [m.Rejected(market.ts, request.user_ref_num, reason, "x")]
    (canceled,) = market.send(1, m.ReplaceOrder(1, 7, 0, 1_000_000, "0", "Y", "N", "x"))
    assert isinstance(canceled, m.Canceled)
    assert canceled.user_ref_num == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"symbol": "IBM"}, Reject.INVALID_SYMBOL),
        ({"side": "X"}, Reject.INVALID_SIDE),
        ({"quantity": 0}, Reject.INVALID_QUANTITY),
        ({"quantity": 1_000_000}, Reject.INVALID_QUANTITY),
        ({"price": 0}, Reject.INVALID_PRICE),
        ({"price": 2_000_000_000}, Reject.INVALID_PRICE),
        ({"display": "?"}, Reject.INVALID_DISPLAY),
        ({"capacity": "?"}, Reject.OTHER),
        ({"time_in_force": "?"}, Reject.OTHER),
        ({"time_in_force": "6"}, Reject.OTHER),
        ({"cross_type": "?"}, Reject.INVALID_CROSS_ORDER),
        ({"cross_type": "O", "time_in_force": "3"}, Reject.INVALID_CROSS_ORDER),
        ({"options": ((Tag.PEG_OFFSET, 1),)}, Reject.PEGGING_NOT_ALLOWED),
        ({"options": ((Tag.PRICE_TYPE, "M"),)}, Reject.INVALID_PEG_TYPE),
        ({"options": ((Tag.ROUTE, "SCAN"),)}, Reject.ROUTING_NOT_ALLOWED),
        ({"options": ((Tag.FIRM, "BETA"),)}, Reject.FIRM_NOT_AUTHORIZED),
        ({"options": ((200, b"?"),)}, Reject.OTHER),
    ],
)
def test_orders_that_are_refused(market: Market, changes: dict[str, Any], reason: Reject) -> None:
    assert market.send(1, order(1, **changes)) == [m.Rejected(market.ts, 1, reason, "id1")]
    assert market.send(1, order(1)) == []  # the number is used up
    assert isinstance(market.send(1, order(2))[0], m.Accepted)


def test_numbers_are_counted_on_each_channel(market: Market) -> None:
    tag = ((Tag.USER_REF_IDX, 7),)
    assert len(market.send(1, order(5), order(5), order(4), order(1, options=tag))) == 2
    assert market.send(1, m.AccountQuery()) == [m.AccountQueryResponse(market.ts, 6)]
    assert market.send(1, m.AccountQuery(tag)) == [m.AccountQueryResponse(market.ts, 2, tag)]


def test_modify_keeps_the_order_and_says_modified(market: Market) -> None:
    market.send(1, order(1, "S", 100))
    (changed,) = market.send(1, m.ModifyOrder(1, "T", 100))
    assert changed == m.Modified(market.ts, 1, "T", 100)
    (fewer,) = market.send(1, m.ModifyOrder(1, "E", 60))
    assert fewer == m.Modified(market.ts, 1, "E", 60)
    assert (
        market.send(1, m.ModifyOrder(1, "B", 60), m.ModifyOrder(1, "S", 61), m.ModifyOrder(9, "S", 1)) == []
    )


def test_mass_cancel_disable_and_enable(market: Market) -> None:
    group = ((Tag.GROUP_ID, 9),)
    market.send(1, order(1), order(2, symbol="MSFT"), order(3, options=group), order(4, "S", price=2_000_000))
    said = market.send(1, m.MassCancel(5, "ALFA", "AAPL", ((Tag.SIDE, "S"),)))
    assert [type(each).__name__ for each in said] == ["Canceled", "MassCancelResponse"]
    said = market.send(1, m.MassCancel(6, "ALFA", "", group))
    assert [each[1] for each in said] == [3, 6]
    assert [each[1] for each in market.send(1, m.MassCancel(7, "", ""))] == [1, 2, 7]
    assert len(market.send(1, m.MassCancel(8, "BETA", ""))) == 1
    assert market.send(1, m.DisableOrderEntry(9, "ALFA")) == [
        m.DisableOrderEntryResponse(market.ts, 9, "ALFA")
    ]
    (refused,) = market.send(1, order(10))
    assert isinstance(refused, m.Rejected)
    assert refused.reason == Reject.FIRM_NOT_AUTHORIZED
    assert market.send(1, m.EnableOrderEntry(11, "ALFA")) == [
        m.EnableOrderEntryResponse(market.ts, 11, "ALFA")
    ]
    assert isinstance(market.send(1, order(12))[0], m.Accepted)


def test_an_order_that_is_good_till_a_time_goes_when_it_comes(market: Market) -> None:
    market.send(1, order(1, time_in_force="6", options=((Tag.EXPIRE_TIME, 2),)))
    due = market.exchange.core.next_expiry()
    assert due == market.ts + 2 * _SECOND
    market.run([Record(What.TIME, 0, due - 1, b"")])
    assert market.news(1) == []
    market.run([Record(What.TIME, 0, due, b"")])
    assert market.news(1) == [m.Canceled(due, 1, 100, "T")]


def test_orders_go_with_the_connection_where_that_was_asked_for(tmp_path: Path, make_matcher: Any) -> None:
    market = Market(tmp_path / "x", make_matcher, cancel_on_disconnect=True)
    market.send(1, order(1), order(2))
    market.send(2, order(1, price=900_000))
    market.run([Record(What.GONE, 1, market.ts, b"")])
    assert [(each[1], each.reason) for each in market.news(1)] == [(1, "Z"), (2, "Z")]  # type: ignore[union-attr]
    assert len(market.exchange.core.orders) == 1
    market.exchange.close()


def test_the_day_ends_for_everybody(market: Market) -> None:
    market.send(1, order(1))
    market.run([Record(What.COMMAND, 0, market.ts + 5, b'{"do": "end"}')])
    assert market.news(1) == [m.Canceled(market.ts + 5, 1, 100, "E"), m.SystemEvent(market.ts + 5, "E")]
    assert market.news(2) == [m.SystemEvent(market.ts + 5, "E")]
    assert market.send(1, order(2)) == []
    assert [chr(each[0]) for each in market.exchange.feed.messages()][-3:] == ["D", "S", "S"]


def flow(seed: int, n: int) -> list[tuple[int, m.Message]]:
    """Two users' messages, valid ones and others."""
    draw = random.Random(seed)
    used = {1: 0, 2: 0}
    out: list[tuple[int, m.Message]] = []
    for _ in range(n):
        who = draw.randint(1, 2)
        kind = draw.random()
        old = draw.randint(1, used[who] + 1)
        used[who] += 1
        number = used[who]
        if kind < 0.6:
            changes = draw.choice([{}, {}, {}, {"symbol": "MSFT"}, {"symbol": "?"}, {"time_in_force": "3"},
                                   {"quantity": 0}, {"price": MARKET_PRICE}])  # fmt: skip
            price = draw.randint(95, 105) * 10_000
            out.append(
                (who, order(number, draw.choice("BST"), draw.randint(1, 300), price)._replace(**changes))
            )
        elif kind < 0.75:
            quantity, price = draw.randint(0, 300), draw.randint(0, 11) * 100_000
            out.append((who, m.ReplaceOrder(old, number, quantity, price, "0", "Y", "N", "r")))
        elif kind < 0.9:
            out.append((who, m.CancelOrder(old, draw.choice([0, 0, 50]))))
        elif kind < 0.95:
            out.append((who, m.ModifyOrder(old, draw.choice("STEB"), draw.randint(0, 200))))
        elif kind < 0.97:
            out.append((who, m.MassCancel(number, "", draw.choice(["", "AAPL"]))))
        else:
            out.append((who, m.AccountQuery()))
    return out


def everything(exchange: Exchange) -> list[list[bytes]]:
    return [list(exchange.stream(n).messages()) for n in (1, 2)] + [list(exchange.feed.messages())]


@pytest.mark.parametrize("seed", range(2))
def test_any_batches_and_a_journal_read_again_say_the_same(
    tmp_path: Path, make_matcher: Any, seed: int
) -> None:
    messages = flow(seed, 200)
    found = []
    for batch in (3, 200):
        market = Market(tmp_path / f"b{batch}", make_matcher)
        core = market.exchange.core
        for at in range(0, len(messages), batch):
            part = messages[at : at + batch]
            records = [Record(What.MESSAGE, who, core.now, encode(each)) for who, each in part]
            market.run(records)
        # A message's time, behind its packet type and its own, differs between the runs; nothing else does.
        said = [[each[1:2] + each[10:] for each in stream] for stream in everything(market.exchange)[:2]]
        found.append((said, market.exchange.digest(), market.exchange.feed.next))
        before = everything(market.exchange), market.exchange.digest()
        market.exchange.close()
        again = Exchange(tmp_path / f"b{batch}", None, make_matcher)
        assert (everything(again), again.digest()) == before
        again.close()
    assert found[0] == found[1]


def test_the_feed_makes_the_books_again(market: Market, replay: Callable[[bytes, Any], str]) -> None:
    records = []
    for who, message in flow(11, 500):
        records.append(Record(What.MESSAGE, who, market.ts, encode(message)))
    market.run(records)
    framed = b"".join(len(each).to_bytes(2, "big") + each for each in market.exchange.feed.messages())
    assert replay(framed, market.exchange.config.make_session()) == market.exchange.digest()


def test_an_exchange_keeps_its_symbols_and_rules(tmp_path: Path, make_matcher: Any) -> None:
    rules = MarketRules(ticks=((0, 100),), protection=5_000)
    config = Config(date=dt.date(2026, 11, 30), symbols=("A", "B"), rules=rules, session="X1")
    Exchange(tmp_path / "x", config, make_matcher).close()
    again = Exchange(tmp_path / "x", None, make_matcher)
    assert again.config == config
    again.close()
    with pytest.raises(UsageError, match="has other symbols"):
        Exchange(tmp_path / "x", CONFIG, make_matcher)


@pytest.mark.parametrize(
    "changes",
    [{"symbols": ()}, {"symbols": ("A", "A")}, {"symbols": ("TOOLONGNAME",)}, {"symbols": ("A B",)},
     {"session": "much too long"}],
)  # fmt: skip
def test_configurations_that_make_no_sense(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Config(**{"date": dt.date(2026, 11, 30), **changes})
