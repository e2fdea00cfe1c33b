"""The contract's own suite, and what is this book's own."""

import subprocess
import sys

import numpy as np

from trident_book_sorted.book import SortedBook
from trident_core.dtypes import EVENT
from trident_core.session import Session


def test_the_contract():
    command = [sys.executable, "-m", "trident_core.cli", "conform", "--book", "sorted", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_validate_finds_what_is_wrong():
    events = np.zeros(2, EVENT)
    events["seq"], events["ref"], events["locate"] = (1, 2), (1, 2), 7
    events["type"], events["side"], events["price"], events["qty"] = ord("A"), ord("B"), 1000, 5
    book = SortedBook(Session())
    book.apply(events)
    assert book.validate() == []
    book._orders[1].qty = 6
    assert book.validate() == ["locate 7 B 1000: the total is not that of its orders"]
