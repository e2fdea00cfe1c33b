"""LOBSTER's rows: what each message becomes, by hand; and against the plain depth table on simulated days."""

from __future__ import annotations

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core.dtypes import EFFECT, EVENT, TOP, EventFlag
from trident_core.errors import InputError, UsageError
from trident_core.session import Session
from trident_core.tables import lobster as module
from trident_core.tables.lobster import LobsterRows

S = 1_000_000_000
NO_ASK, NO_BID = 9_999_999_999, -9_999_999_999


def event(kind: str, ts: float = 1, **columns):  # type: ignore[no-untyped-def]
    made = np.zeros(1, EVENT)
    made["type"], made["ts"], made["locate"] = ord(kind), int(ts * S), columns.pop("locate", 1)
    aux = columns.pop("aux", "")
    made["aux"][0, : len(aux)] = np.frombuffer(aux.encode(), np.uint8)
    for name, value in columns.items():
        made[name] = ord(value) if isinstance(value, str) else value
    return made


def add(ref: int, side: str, price: int, qty: int, **more):  # type: ignore[no-untyped-def]
    return event("A", ref=ref, side=side, price=price, qty=qty, **more)


def rows_of(events, depth=2, *, since=0, session=None, batch=1 << 20):  # type: ignore[no-untyped-def]
    """(messages, books, counts): lists of the rows, the symbol's locate first in the messages."""
    session = session or Session()
    stream = np.concatenate(events)
    stream["seq"] = np.arange(1, len(stream) + 1)
    book, heads, books = ReferenceBook(session), [], []

    def give(block):  # type: ignore[no-untyped-def]
        heads.append(block.heads[: block.used].copy())
        books.append(block.books[: block.used].copy())
        return block  # as a writer does that is done with it

    rows = LobsterRows(session, depth, give, since=since)
    for start in range(0, len(stream), batch):
        part = stream[start : start + batch]
        tops, effects = np.zeros(len(part), TOP), np.zeros(len(part), EFFECT)
        book.apply(part, tops, effects)
        rows.apply(part, effects, tops)
    rows.finish()
    joined = np.concatenate(heads) if heads else np.zeros((0, 7), np.int64)
    joined[:, 0] = rows.locates()[joined[:, 0]]
    levels = np.concatenate(books) if books else np.zeros((0, 4 * depth), np.int64)
    return joined.tolist(), levels.tolist(), rows.counts()


BID = add(1, "B", 100_0000, 10)
ASK = add(2, "S", 101_0000, 20)


def test_an_order_from_its_submission_to_its_end():
    messages, books, counts = rows_of(
        [BID, ASK, event("X", 2, ref=1, qty=3), event("E", 3, ref=2, qty=20), event("D", 4, ref=1)], 1
    )
    assert messages == [
        [1, 1 * S, 1, 1, 10, 100_0000, 1],
        [1, 1 * S, 1, 2, 20, 101_0000, -1],
        [1, 2 * S, 2, 1, 3, 100_0000, 1],
        [1, 3 * S, 4, 2, 20, 101_0000, -1],
        [1, 4 * S, 3, 1, 7, 100_0000, 1],
    ]
    assert books == [
        [NO_ASK, 0, 100_0000, 10],
        [101_0000, 20, 100_0000, 10],
        [101_0000, 20, 100_0000, 7],
        [NO_ASK, 0, 100_0000, 7],
        [NO_ASK, 0, NO_BID, 0],
    ]
    assert counts == {}


def test_a_replace_is_a_deletion_and_a_submission_with_the_state_between():
    messages, books, _ = rows_of([BID, ASK, event("U", 2, ref=1, ref2=3, price=99_0000, qty=5)], 1)
    assert messages[2:] == [[1, 2 * S, 3, 1, 10, 100_0000, 1], [1, 2 * S, 1, 3, 5, 99_0000, 1]]
    assert books[2:] == [[101_0000, 20, NO_BID, 0], [101_0000, 20, 99_0000, 5]]


def test_what_is_outside_the_depth_is_left_out_and_counted():
    far, farther = add(3, "B", 98_0000, 1), add(4, "B", 97_0000, 1)
    moves_in = event("U", 2, ref=4, ref2=5, price=99_0000, qty=8)
    moves_out = event("U", 3, ref=5, ref2=6, price=90_0000, qty=9)
    messages, books, counts = rows_of([BID, far, farther, moves_in, moves_out], 2)
    assert [m[2:4] for m in messages] == [[1, 1], [1, 3], [1, 5], [3, 5]]
    assert counts == {"outside_depth": 3}
    assert books[2] == [NO_ASK, 0, 100_0000, 10, NO_ASK, 0, 99_0000, 8]
    assert books[3] == [NO_ASK, 0, 100_0000, 10, NO_ASK, 0, 98_0000, 1]  # entered from below, unannounced


def test_an_execution_with_a_price_is_told_at_the_displayed_price():
    silent = event("C", 2, ref=1, qty=4, price=100_5000, flags=EventFlag.NON_PRINTABLE)
    messages, books, counts = rows_of([BID, silent, event("C", 3, ref=1, qty=1, price=100_0000)], 1)
    assert messages[1:] == [[1, 2 * S, 4, 1, 4, 100_0000, 1], [1, 3 * S, 4, 1, 1, 100_0000, 1]]
    assert books[1][2:] == [100_0000, 6]
    assert counts == {"other_price": 1, "not_printable": 1}


def test_a_cancel_of_everything_is_a_deletion_and_of_nothing_is_none():
    messages, _, counts = rows_of([BID, event("X", 2, ref=1, qty=0), event("X", 3, ref=1, qty=10)])
    assert messages[1:] == [[1, 3 * S, 3, 1, 10, 100_0000, 1]]
    assert counts == {"no_shares": 1}


def test_more_than_an_order_has_is_told_as_what_it_had():
    messages, _, _ = rows_of([BID, event("E", 2, ref=1, qty=99)])
    assert messages[1:] == [[1, 2 * S, 4, 1, 10, 100_0000, 1]]


def test_hidden_executions_crosses_and_voids():
    hidden = event("P", 2, side="B", qty=5, price=100_5000)
    crosses = [event("Q", 3, qty=7, price=100_0000, aux=letter) for letter in "OCHI"]
    messages, books, counts = rows_of([BID, hidden, *crosses, event("Q", 4, aux="C"), event("B", 5)], 1)
    assert messages[1] == [1, 2 * S, 5, 0, 5, 100_5000, 1]
    assert [m[2:] for m in messages[2:]] == [[6, n, 7, 100_0000, -1] for n in (-1, -2, -3, -4)]
    assert books[1:] == [books[0]] * 5
    assert counts == {"no_shares": 1, "voids": 1}


def test_halts_and_what_ends_them():
    states = [event("H", n, aux=letter) for n, letter in enumerate("THQTTPT")]
    messages, _, _ = rows_of(states)
    told = [(m[1] // S, m[5]) for m in messages]
    assert told == [(1, -1), (2, 0), (3, 1), (5, -1), (6, 1)]  # a T that ends nothing is none
    assert all((m[2], m[3], m[4], m[6]) == (7, 0, 0, -1) for m in messages)


def test_an_evicted_order_is_told_as_a_deletion_in_its_own_symbol():
    again = add(1, "S", 55_0000, 6, locate=2, ts=2)
    replaced = event("U", 3, ref=2, ref2=1, price=101_0000, qty=4)
    messages, books, counts = rows_of([BID, ASK, again, replaced], 1)
    assert messages[2:] == [
        [1, 2 * S, 3, 1, 10, 100_0000, 1],
        [2, 2 * S, 1, 1, 6, 55_0000, -1],
        [1, 3 * S, 3, 2, 20, 101_0000, -1],
        [2, 3 * S, 3, 1, 6, 55_0000, -1],
        [1, 3 * S, 1, 1, 4, 101_0000, -1],
    ]
    assert books[2] == [101_0000, 20, NO_BID, 0]
    assert counts == {"evictions": 2}


def test_unknown_and_rejected_orders_are_not_told():
    nothing = [event("E", ref=9, qty=1), event("D", ref=9), event("U", ref=9, ref2=8, price=1, qty=1)]
    rejected = [add(5, "X", 1, 1), add(5, "B", 1, 0)]
    assert rows_of([*nothing, *rejected])[0] == []
    messages, _, _ = rows_of([BID, event("U", 2, ref=1, ref2=3, price=1_0000, qty=0)])
    assert [m[2:5] for m in messages] == [[1, 1, 10], [3, 1, 10]]


def test_the_window_begins_with_the_book_as_it_is():
    messages, books, counts = rows_of([BID, ASK, event("B", 1), event("X", 2, ref=2, qty=1)], 1, since=2 * S)
    assert messages == [[1, 2 * S, 2, 2, 1, 101_0000, -1]]
    assert books == [[101_0000, 19, 100_0000, 10]]
    assert counts == {}


def test_prices_of_other_scales():
    two = Session(price_decimals=2)
    assert rows_of([BID], 1, session=two)[0][0][5] == 100_0000 * 100
    nine = Session(price_decimals=9)
    messages, books, _ = rows_of([add(1, "S", 12_345_600_000, 1)], 1, session=nine)
    assert messages[0][5] == books[0][0] == 123_456
    assert books[0][2] == NO_BID
    with pytest.raises(InputError, match="more than 4 decimals"):
        rows_of([add(1, "B", 12_345_600_001, 1)], 1, session=nine)


def test_what_it_cannot_do():
    with pytest.raises(UsageError, match="0 levels"):
        LobsterRows(Session(), 0, lambda block: None)
    with pytest.raises(UsageError, match="8 decimals"):
        LobsterRows(Session(qty_decimals=8), 1, lambda block: None)


def test_any_split_and_any_block_gives_the_same(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(5)
    events = []
    for ref in range(1, 2_500):
        kind = "AAAUXED"[rng.integers(7)]
        events.append(
            event(
                kind, ref, ref=ref if kind == "A" else rng.integers(1, ref + 1), ref2=10_000 + ref,
                side="BS"[rng.integers(2)], qty=rng.integers(1, 9), price=rng.integers(1, 9),
                locate=rng.integers(1, 4),
            )
        )  # fmt: skip
    whole = rows_of(events, 3)
    assert len(whole[0]) > 600
    monkeypatch.setattr(module, "BLOCK_BYTES", 1_000)
    assert rows_of(events, 3, batch=1) == whole
    assert rows_of(events, 3, batch=97) == whole
