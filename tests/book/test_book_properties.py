"""Properties of every stream of events: hypothesis against an oracle more naive than the reference."""

from __future__ import annotations

import hashlib
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_book.reference import ReferenceBook
from trident_core.dtypes import DIGEST_ROW, EFFECT, EVENT, TOP
from trident_core.session import Session

# Few references, prices and locates, so that everything collides with everything.
STEP = st.fixed_dictionaries(
    {
        "letter": st.sampled_from("AAAFEECXDUUUHPB"),
        "ref": st.integers(1, 7),
        "ref2": st.integers(1, 7),
        "price": st.sampled_from([-1, 0, 1, 2, 3]),
        "qty": st.sampled_from([0, 1, 2, 3, 3, 5]),
        "side": st.sampled_from("BBBSSSX"),
        "locate": st.sampled_from([0, 1, 1, 1, 2]),
        "aux": st.sampled_from([b"TTTT", b"HHHH", b"QABC", b"?   "]),
    }
)
STORY = st.lists(STEP, max_size=60)


def events_of(story: list[dict[str, Any]]) -> np.ndarray:
    events = np.zeros(len(story), EVENT)
    for i, step in enumerate(story):
        events[i]["seq"], events[i]["ts"] = 10 + i, 1000 + 7 * i
        events[i]["type"], events[i]["side"] = ord(step["letter"]), ord(step["side"])
        events[i]["aux"][:4] = np.frombuffer(step["aux"], np.uint8)
        for name in ("ref", "ref2", "price", "qty", "locate"):
            events[i][name] = step[name]
    return events


def replay(events: np.ndarray, cuts: tuple[int, ...] = ()) -> tuple[ReferenceBook, np.ndarray, np.ndarray]:
    book = ReferenceBook(Session())
    tops, effects = np.zeros(len(events), TOP), np.zeros(len(events), EFFECT)
    edges = [0, *sorted(cuts), len(events)]
    for start, stop in pairwise(edges):
        assert book.apply(events[start:stop], tops[start:stop], effects[start:stop]) == stop - start
    return book, tops, effects


def counted(book: ReferenceBook) -> dict[str, int]:
    return {name: item.count for name, item in book.anomalies.items()}


@settings(max_examples=200, deadline=None)
@given(story=STORY)
def test_equals_the_naive_book(naive_book, story):
    events = events_of(story)
    book, tops, effects = replay(events)
    naive = naive_book()
    for event, top, effect in zip(events, tops, effects, strict=True):
        expected_top, expected_effect = naive.apply(event)
        assert top.tolist() == expected_top
        price, qty, remaining, mpid, side, outcome, flags = effect.tolist()
        assert (price, qty, remaining, bytes(mpid), side, outcome, flags) == expected_effect
    assert counted(book) == Counter(name for name, _ in naive.counts)
    for name, item in book.anomalies.items():
        assert item.positions == [seq for other, seq in naive.counts if other == name][:8]
    assert book.locates().tolist() == sorted(naive.named - {0})
    assert book.live_orders() == len(naive.orders)
    for locate in (0, 1, 2):
        check_symbol(book, naive, locate)


def check_symbol(book: ReferenceBook, naive: Any, locate: int) -> None:
    assert book.state(locate) == naive.states.get(locate, 0)
    expected = []
    for side, worst_first in (("B", False), ("S", True)):
        prices = sorted(
            {o["price"] for o in naive.orders if o["locate"] == locate and o["side"] == side},
            reverse=not worst_first,
        )
        queues = [naive.level(locate, side, price) for price in prices]
        totals = [(q[0]["price"], sum(o["qty"] for o in q), len(q)) for q in queues]
        assert book.levels(locate, side).tolist() == totals
        assert book.levels(locate, side, 1).tolist() == totals[:1]
        expected += [order for queue in queues for order in queue]
    assert [
        (o["ref"], o["price"], o["qty"], o["ts"], o["locate"], o["mpid"].tobytes(), chr(o["side"]))
        for o in book.orders(locate)
    ] == [tuple(o[k] for k in ("ref", "price", "qty", "ts", "locate", "mpid", "side")) for o in expected]
    assert book.top(locate)[0].tolist()[2:8] == naive.touch(locate)


@settings(max_examples=100, deadline=None)
@given(story=STORY, data=st.data())
def test_any_split_gives_the_same(story, data):
    events = events_of(story)
    cuts = data.draw(st.lists(st.integers(0, len(events)), max_size=8))
    whole, tops, effects = replay(events)
    split, split_tops, split_effects = replay(events, tuple(cuts))
    np.testing.assert_array_equal(tops, split_tops)
    np.testing.assert_array_equal(effects, split_effects)
    assert split.digest() == whole.digest()
    assert split.anomalies.to_json() == whole.anomalies.to_json()


@settings(max_examples=50, deadline=None)
@given(story=STORY, cut=st.integers(0, 60))
def test_outputs_not_asked_for_change_nothing(story, cut):
    events = events_of(story)
    whole, tops, effects = replay(events)
    cut = min(cut, len(events))
    book = ReferenceBook(Session())
    book.apply(events[:cut])
    late_tops, late_effects = np.zeros(len(events) - cut, TOP), np.zeros(len(events) - cut, EFFECT)
    book.apply(events[cut:], late_tops, late_effects)
    np.testing.assert_array_equal(late_tops, tops[cut:])
    np.testing.assert_array_equal(late_effects, effects[cut:])
    assert book.digest() == whole.digest()
    assert book.anomalies.to_json() == whole.anomalies.to_json()


@settings(max_examples=100, deadline=None)
@given(story=STORY)
def test_always_sound(story):
    book = ReferenceBook(Session())
    for event in events_of(story):
        book.apply(np.array([event], EVENT))
        assert book.validate() == []


@settings(max_examples=200, deadline=None)
@given(one=STORY, other=STORY)
def test_digests_are_equal_where_states_are(one, other):
    first, second = (replay(events_of(story))[0] for story in (one, other))
    states = [
        [(o["locate"], o["side"], o["price"], o["ref"], o["qty"]) for n in (0, 1, 2) for o in book.orders(n)]
        for book in (first, second)
    ]
    assert (first.digest() == second.digest()) == (states[0] == states[1])


@settings(max_examples=50, deadline=None)
@given(story=STORY)
def test_digest_tells_the_state_and_not_how_it_came_about(applied, stream, story):
    """Adding what rests, in the order in which it rests, makes an equal book; one share less, another."""
    book, _, _ = replay(events_of(story))
    again = stream()
    for locate in (2, 1, 0):
        for o in book.orders(locate):
            again.add(int(o["ref"]), chr(o["side"]), int(o["qty"]), int(o["price"]), locate=locate)
    assert applied(again).book.digest() == book.digest()
    if book.live_orders():
        assert applied(again.cancel(int(again.events()["ref"][-1]), 1)).book.digest() != book.digest()


@settings(max_examples=50, deadline=None)
@given(story=STORY)
def test_digest_is_sha256_of_29_bytes_an_order(story):
    book, _, _ = replay(events_of(story))
    rows = [
        int(o["locate"]).to_bytes(4, "little")
        + bytes([o["side"]])
        + int(o["price"]).to_bytes(8, "little", signed=True)
        + int(o["ref"]).to_bytes(8, "little")
        + int(o["qty"]).to_bytes(8, "little")
        for locate in (0, 1, 2)
        for o in book.orders(locate)
    ]
    assert DIGEST_ROW.itemsize == 29
    assert book.digest() == hashlib.sha256(b"".join(rows)).digest()


def test_digest_sees_the_order_of_a_queue(stream, applied):
    forth = applied(stream().add(1, "B", 10, 5000).add(2, "B", 10, 5000)).book
    back = applied(stream().add(2, "B", 10, 5000).add(1, "B", 10, 5000)).book
    again = applied(
        stream()
        .halt("H")
        .add(3, "S", 1, 1)
        .add(1, "B", 15, 5000)
        .execute(1, 5)
        .add(2, "B", 10, 5000)
        .delete(3)
    )
    assert forth.digest() != back.digest()
    assert forth.digest() == again.book.digest()


def test_digest_of_nothing_is_sha256_of_nothing():
    assert ReferenceBook(Session()).digest() == hashlib.sha256(b"").digest()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda b: setattr(level(b), "qty", 31), "total 31, but the orders sum to 30"),
        (lambda b: setattr(level(b), "price", 5001), "says it is 5001"),
        (lambda b: setattr(order(b), "qty", 0), "has quantity 0"),
        (lambda b: setattr(order(b), "ref", 9), "queues an order that says 9"),
        (lambda b: level(b).queue.pop(1), "is in the index, but in no queue"),
        (lambda b: level(b).queue.clear(), "empty level"),
        (lambda b: b._orders.pop(1), "the index does not lead to it"),
        (lambda b: b._symbols[1].bids.keys.reverse(), "prices are not sorted"),
        (lambda b: b._symbols[1].bids.keys.pop(), "or are not those of the levels"),
        (lambda b: b._symbols[1].asks.levels.update({7: level(b)}), "the level at key 7 says it is 5000"),
        (lambda b: setattr(b._symbols[1], "locate", 2), "locate 1 holds the book of locate 2"),
        (lambda b: setattr(b._symbols[1].bids, "symbol", None), "belongs to another symbol"),
        (lambda b: level(b, 4999).queue.update({1: order(b)}), "reference 1 is queued twice"),
        (lambda b: setattr(order(b), "qty", 1 << 64), "does not fit 64 bits"),
        (lambda b: setattr(order(b), "level", b._symbols[1].bids.levels[4999]), "says 1 at 4999"),
    ],
)  # fmt: skip
def test_validate_sees_damage(stream, applied, damage, says):
    book = applied(stream().add(1, "B", 10, 5000).add(2, "B", 20, 5000).add(3, "B", 5, 4999)).book
    damage(book)
    assert any(says in problem for problem in book.validate()), book.validate()


def level(book: ReferenceBook, price: int = 5000) -> Any:
    return book._symbols[1].bids.levels[price]


def order(book: ReferenceBook) -> Any:
    return book._orders[1]


def test_a_batch_longer_than_the_inner_slice(chance):
    events = chance(5, 9_000, symbols=3)
    whole, tops, effects = replay(events)
    split, split_tops, split_effects = replay(events, tuple(range(0, len(events), 999)))
    np.testing.assert_array_equal(tops, split_tops)
    np.testing.assert_array_equal(effects, split_effects)
    assert split.digest() == whole.digest()
    assert min(counted(whole)[name] for name in ("unknown_ref", "duplicate_ref", "over_execution")) > 0
