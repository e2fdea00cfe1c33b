"""What the Book Protocol promises besides the rules: arrays, errors, readings of nothing."""

from __future__ import annotations

import numpy as np
import pytest

from trident_book.plugin import trident_register_books
from trident_book.reference import ReferenceBook
from trident_core.contracts import Book, TradingState
from trident_core.dtypes import EFFECT, EVENT, LEVEL, ORDER, TOP
from trident_core.errors import UsageError
from trident_core.session import Session


@pytest.fixture
def book():
    return ReferenceBook(Session())


def test_the_plugin_registers_the_reference():
    (spec,) = [spec for spec in trident_register_books() if spec.name == "reference"]
    assert spec.load() is ReferenceBook


def test_it_is_a_book(book):
    checked: Book = book
    assert checked.apply(np.zeros(0, EVENT)) == 0


def test_readings_of_a_symbol_that_never_was(book):
    assert book.top(5).tolist() == [(0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0)]
    assert (book.levels(5, "B").dtype, len(book.levels(5, "B"))) == (LEVEL, 0)
    assert (book.orders(5).dtype, len(book.orders(5))) == (ORDER, 0)
    assert book.state(5) is TradingState.UNKNOWN
    assert (book.locates().dtype, len(book.locates())) == (np.uint32, 0)
    assert book.live_orders() == 0
    assert book.validate() == []
    assert book.locates().tolist() == []


def test_top_has_the_symbols_last_event(stream, applied):
    day = applied(stream().add(1, "B", 10, 5000).add(2, "S", 5, 6000, locate=2).put("I", 1))
    assert day.book.top(1).tolist() == [(3, int(day.events["ts"][2]), 5000, 10, 0, 0, 1, 0, 1, 0, 0)]
    assert day.book.top(2).dtype == TOP


def test_locate_0_belongs_to_no_symbol(stream, applied):
    day = applied(stream().put("S", 0, b"O").add(1, "B", 1, 1, locate=9).put("K", 0))
    assert day.book.locates().tolist() == [9]
    assert day.tops["locate"].tolist() == [0, 9, 0]


def test_levels_are_cut_at_n(stream, applied):
    day = stream()
    for i in range(5):
        day.add(i + 1, "B", 10 + i, 5000 - i).add(i + 100, "S", 20 + i, 5001 + i)
    book = applied(day).book
    assert book.levels(1, "B", 2).tolist() == [(5000, 10, 1), (4999, 11, 1)]
    assert book.levels(1, "S", 2).tolist() == [(5001, 20, 1), (5002, 21, 1)]
    assert len(book.levels(1, "S", 99)) == len(book.levels(1, "S")) == 5


@pytest.mark.parametrize(("side", "n", "says"), [("A", 0, "no side 'A'"), ("B", -1, "-1 levels")])
def test_levels_of_nonsense(book, side, n, says):
    with pytest.raises(UsageError, match=says):
        book.levels(1, side, n)


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((np.zeros(3, TOP),), "events has dtype"),
        ((np.zeros((3, 1), EVENT),), "2 dimensions"),
        ((np.zeros(3, EVENT), np.zeros(3, EFFECT)), "tops has dtype"),
        ((np.zeros(3, EVENT), np.zeros(2, TOP)), "tops has room for 2 of 3 events"),
        ((np.zeros(3, EVENT), None, np.zeros(3, TOP)), "effects has dtype"),
        ((np.zeros(3, EVENT), None, np.zeros(0, EFFECT)), "effects has room for 0 of 3 events"),
        ((np.zeros(3, EVENT), read_only(np.zeros(3, TOP))), "tops is read-only"),
    ],
)
def test_wrong_arrays_are_refused_before_anything_is_applied(book, arguments, says):
    with pytest.raises(UsageError, match=says):
        book.apply(*arguments)
    assert len(book.locates()) == 0
    assert book.anomalies.to_json() == {}


def test_read_only_strided_events_and_longer_outputs(stream):
    events = np.repeat(stream().add(1, "B", 10, 5000).add(2, "S", 10, 6000).events(), 2)
    tops, effects = np.full(9, 255, TOP), np.full(9, 255, EFFECT)
    book = ReferenceBook(Session())
    assert book.apply(read_only(events)[::2], tops, effects) == 2
    assert tops["ask_price"][1] == 6000
    assert effects["price"].tolist()[:3] == [5000, 6000, 255]
    assert tops["seq"].tolist()[2:] == [255] * 7


def test_the_books_of_a_day_can_be_counted_while_it_runs(stream):
    """Anomalies are the engine's own, and keep the first positions only."""
    day = stream()
    for _ in range(20):
        day.execute(1, 1)
    book = ReferenceBook(Session())
    book.apply(day.events())
    assert book.anomalies.to_json() == {"unknown_ref": {"count": 20, "first_at": list(range(1, 9))}}
