"""The account of shares against the reference book: the same orders rest, the same events are odd."""

from __future__ import annotations

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core.dtypes import EVENT, ORDER, Events
from trident_core.ledger import Account, Ledger
from trident_core.session import Session


def random_events(seed: int, count: int, refs: int) -> Events:
    rng = np.random.default_rng(seed)
    events = np.zeros(count, EVENT)
    events["seq"] = np.arange(1, count + 1)
    events["type"] = rng.choice(np.frombuffer(b"AFECXDUPAA", np.uint8), count)
    events["side"] = rng.choice(np.frombuffer(b"BSBS\x01", np.uint8), count)
    for column, low, high in (("ref", 0, refs), ("ref2", 0, refs), ("qty", 0, 20), ("locate", 1, 4)):
        events[column] = rng.integers(low, high, count)
    events["price"] = rng.integers(1, 9, count)
    return events


@pytest.mark.parametrize("seed", range(4))
def test_as_the_book_has_it(seed: int) -> None:
    events = random_events(seed, 4_000, 300)
    book, ledger = ReferenceBook(Session()), Ledger()
    book.apply(events)
    for start in range(0, len(events), 777):
        ledger.apply(events[start : start + 777])
    orders = np.concatenate([np.zeros(0, ORDER), *(book.orders(int(each)) for each in book.locates())])
    orders = orders[np.argsort(orders["ref"])]
    refs, shares = ledger.resting()
    assert refs.tolist() == orders["ref"].tolist()
    assert shares.tolist() == orders["qty"].tolist()
    assert ledger.problem() == ""
    for account, anomaly in ((Account.UNKNOWN, "unknown_ref"), (Account.OVER, "over_execution"),
                             (Account.REJECTED, "rejected_add")):  # fmt: skip
        assert ledger.totals[account] == book.anomalies.count(anomaly)
    letters, counts = np.unique(events["type"], return_counts=True)
    assert ledger.types() == {chr(each): n for each, n in zip(letters, counts.tolist(), strict=True)}


def test_it_grows_and_forgets() -> None:
    ledger, count = Ledger(), 100_000
    events = np.zeros(count, EVENT)
    events["type"], events["side"], events["qty"] = ord("A"), ord("B"), 3
    events["ref"] = np.arange(count) * 977
    ledger.apply(events)
    assert (ledger.totals[Account.ORDERS], ledger.totals[Account.ADDED]) == (count, 3 * count)
    events["type"] = ord("D")
    ledger.apply(events)
    assert len(ledger.resting()[0]) == 0
    assert ledger.totals[Account.DELETED] == 3 * count
    assert ledger.problem() == ""


def test_a_share_that_vanishes_is_noticed() -> None:
    ledger = Ledger()
    ledger.apply(random_events(9, 500, 40))
    ledger.totals[Account.EXECUTED] -= np.uint64(1)
    assert "shares were added" in ledger.problem()
