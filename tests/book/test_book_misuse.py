"""Misuse of a book is an error with a hint, the same from both engines."""

from __future__ import annotations

import numpy as np
import pytest

from trident_book.numba_book import NumbaBook
from trident_book.reference import ReferenceBook
from trident_core.contracts import Warmable
from trident_core.dtypes import EVENT
from trident_core.errors import UsageError
from trident_core.session import Session


@pytest.fixture(params=[ReferenceBook, NumbaBook])
def book(request):
    return request.param(Session())


@pytest.mark.parametrize("locate", [-1, 1 << 32, 1 << 40])
def test_what_is_no_locate_is_refused(book, locate):
    for ask in (book.top, book.orders, book.state, lambda n: book.levels(n, "B")):
        with pytest.raises(UsageError, match="is no locate"):
            ask(locate)


def test_what_is_no_array_is_refused(book):
    with pytest.raises(UsageError, match="events is NoneType"):
        book.apply(None)
    with pytest.raises(UsageError, match="tops is list"):
        book.apply(np.zeros(1, EVENT), [])


def test_warming_up_changes_nothing():
    book = NumbaBook(Session())
    assert isinstance(book, Warmable)
    before = book.digest()
    book.warm_up()
    assert (book.digest(), book.live_orders(), len(book.locates()), dict(book.anomalies)) == (
        before,
        0,
        0,
        {},
    )
