"""validate() of the numba book sees damage of every kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trident_book import index, records
from trident_book.numba_book import NumbaBook
from trident_book.records import State
from trident_core.session import Session


@pytest.fixture
def book(stream) -> NumbaBook:
    """Orders in slots 1 to 8 (7 and 8 free), levels in slots 1 to 5 (5 free), symbols 1 and 2.

    The levels of 5000 and 4900 are in their side's window, on bits 47 and 46; 4999 and 4998 stand outside.
    """
    day = (
        stream().add(10, "B", 10, 5000).add(11, "B", 20, 5000).add(12, "B", 5, 4999).add(17, "B", 5, 4900)
        .add(18, "B", 5, 4998)
        .add(13, "S", 7, 6000, locate=70_000).delete(13, locate=70_000)
        .add(14, "B", 1, 5000).add(15, "B", 1, 5000).add(16, "B", 1, 5000).delete(16).delete(15)
    )  # fmt: skip
    made = NumbaBook(Session())
    made.apply(day.events())
    assert made.validate() == []
    assert made.live_orders() == 6
    return made


def put(array: str, at: int, field: str, value: int) -> Callable[[State], None]:
    def damage(st: State) -> None:
        getattr(st, array)[field][at] = value

    return damage


def set_g(at: int, value: int) -> Callable[[State], None]:
    return lambda st: st.g.__setitem__(at, value)


def swap_keys(st: State) -> None:
    start = int(st.sides["start"][2])
    st.keys[start : start + 2] = st.keys[start : start + 2][::-1].copy()


def entry(st: State, order: int) -> int:
    """The position of an order's tag in the index."""
    return int(st.orders["position"][order])


def forget(st: State) -> None:
    st.refs[entry(st, 1)] = 0


def mislead(st: State) -> None:
    st.refs[entry(st, 1) + index.BUCKET] = 8


def twice(st: State) -> None:
    st.refs[entry(st, 1) + index.BUCKET] = 2


def displace(st: State) -> None:
    """Reference 10 to the next bucket, which its own does not know of."""
    at = entry(st, 1)
    there = (at // index.WORDS * index.WORDS + index.WORDS) % len(st.refs) + index.BUCKET - 1
    st.refs[there], st.refs[there + index.BUCKET] = st.refs[at], 1
    st.refs[at], st.orders["position"][1] = 0, there


def retag(st: State) -> None:
    st.refs[entry(st, 1)] ^= 1 << 9


def level_twice(st: State) -> None:
    start = int(st.sides["start"][2])
    st.slots[start] = st.slots[start + 1]


def wild_level(st: State) -> None:
    st.slots[int(st.sides["start"][2])] = 77


def window_twice(st: State) -> None:
    st.window[2 * records.WINDOW + 46] = 1


def no_bit(st: State) -> None:
    st.sides["bits"][2] &= ~np.uint64(1 << 46)


def inside(st: State) -> None:
    st.keys[int(st.sides["start"][2])] = 4800


DAMAGE: dict[str, tuple[Callable[[State], Any], str]] = {
    "total": (put("levels", 1, "qty", 99), "total 99, but the orders sum to 31"),
    "count": (put("levels", 1, "count", 9), "count 9, but there are 3 orders"),
    "tail": (put("levels", 1, "tail", 1), "the tail is said to be in slot 1"),
    "price": (put("levels", 1, "price", 7), "the level at 5000 says it is 7"),
    "side": (put("levels", 1, "side", 3), "side S"),
    "empty level": (put("levels", 2, "head", 0), "empty level"),
    "keys": (swap_keys, "prices are not sorted"),
    "best": (put("sides", 2, "best", 2), "the best level is said to be in slot 2"),
    "level twice": (level_twice, "stands twice"),
    "window level twice": (window_twice, "stands twice"),
    "lost level": (no_bit, "levels are neither free nor in use: slots [3]"),
    "inside": (inside, "the level of key 4800 stands outside its window"),
    "tick": (put("sides", 2, "inverse", 5), "the tick 100 cannot be divided by"),
    "wild level": (wild_level, "a level in slot 77, which is not used"),
    "too many levels": (put("sides", 2, "n", 9), "9 levels in a chunk"),
    "no shares": (put("orders", 1, "qty", 0), "reference 10 has quantity 0"),
    "back link": (put("orders", 2, "prev", 3), "does not lead back"),
    "other level": (put("orders", 2, "level", 2), "reference 11 is queued at a level that is not its own"),
    "wild order": (put("orders", 2, "next", 88), "an order in slot 88, which is not used"),
    "cycle": (put("orders", 2, "next", 1), "reference 10 is queued twice"),
    "forgotten": (forget, "reference 10 is queued, but the index does not lead to it"),
    "misled": (mislead, "is in no queue"),
    "led to twice": (twice, "the index leads to an order twice"),
    "displaced": (displace, "1 buckets of the index miscount"),
    "retagged": (retag, "reference 10 has another reference's entry"),
    "position": (put("orders", 1, "position", 3), "reference 10 is said to have another entry"),
    "live": (set_g(records.LIVE, 5), "6 orders are queued, but 5 are said to live"),
    "no free order": (set_g(records.ORDER_FREE, 0), "orders are neither free nor in use"),
    "free order in use": (set_g(records.ORDER_FREE, 1), "orders are free and in use"),
    "free order not empty": (put("orders", 8, "qty", 3), "the free order in slot 8 is not empty"),
    "no free level": (set_g(records.LEVEL_FREE, 0), "levels are neither free nor in use: slots [5]"),
    "free cycle": (put("levels", 5, "next", 5), "the free levels lead to slot 5"),
    "null": (put("levels", 0, "qty", 1), "a null slot is not empty"),
    "locate": (lambda st: st.near.__setitem__(1, 0), "locate 1 leads to symbol 0 instead of 1"),
    "far locate": (lambda st: st.far.__setitem__(slice(None), 0), "locate 70000 leads to symbol 0"),
    "stray locate": (lambda st: st.near.__setitem__(9, 1), "3 locates lead to 2 symbols"),
    "arena": (set_g(records.CHUNK_END, 64), "the chunks end at 16 instead of 64"),
    "chunks": (put("sides", 4, "cap", 8), "the arena has a gap or an overlap"),
    "pool": (set_g(records.ORDER_END, 1 << 40), "the pool of orders is used to"),
    "index size": (set_g(records.INDEX_BITS, 8), "the index has 128 buckets instead of 2**8"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_seen(book, name):
    damage, says = DAMAGE[name]
    damage(book._state)
    found = book.validate()
    assert any(says in problem for problem in found), found
