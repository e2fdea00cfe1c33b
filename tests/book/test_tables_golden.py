"""Real data judges: 10,000 messages of AAPL of 2020-01-30, and the tables another engine made of them."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core import tables
from trident_core.decode import events_of
from trident_core.dtypes import EFFECT, TOP, Outcome
from trident_core.session import Session
from trident_parser.reference import ReferenceParser

pytestmark = pytest.mark.shared

AAPL = 13


class Day:
    def __init__(self, path: Path) -> None:
        self.session = Session(date=dt.date(2020, 1, 30))
        self.events = events_of(path.read_bytes(), ReferenceParser(self.session))
        self.tops = np.zeros(len(self.events), TOP)
        self.effects = np.zeros(len(self.events), EFFECT)
        self.book = ReferenceBook(self.session)
        self.book.apply(self.events, self.tops, self.effects)


@pytest.fixture(scope="module")
def day(shared):
    return Day(shared("data", "itch50_runk", "locate-13-10k.bin"))


@pytest.fixture(scope="module")
def golden(shared) -> Callable[[str], list[list[str]]]:
    def read(name: str) -> list[list[str]]:
        with gzip.open(shared("data", "golden_runk_by_itch_book_0.2.1", f"{name}.csv.gz"), "rt") as file:
            return list(csv.reader(file))

    return read


def as_text(table: np.ndarray) -> list[list[str]]:
    """The header and the rows as csv text."""
    rows = [[v.decode() if isinstance(v, bytes) else str(v) for v in row] for row in table.tolist()]
    return [list(table.dtype.names or ()), *rows]


def test_bbo(day, golden):
    """BOOK-40."""
    assert as_text(tables.bbo(day.events, day.tops, day.session)) == golden("bbo")


def test_trades(day, golden):
    """BOOK-41."""
    assert as_text(tables.trades(day.events, day.effects, day.session, day.tops)) == golden("trades")


def test_messages(day, golden):
    """BOOK-42. The other engine numbers MPIDs by first appearance, in a list that is not in the file."""
    header, *rows = as_text(tables.messages(day.events, day.effects, day.session, day.tops))
    numbers = {"": "0"}
    for row in rows:
        row[-1] = numbers.setdefault(row[-1], str(len(numbers)))
    assert [header, *rows] == golden("messages")
    assert len(numbers) == 2


def test_depth(day, golden):
    """BOOK-43."""
    rows = tables.depth(ReferenceBook(day.session), day.events, 10)
    assert as_text(rows) == golden("depth")


def test_the_last_state(day):
    (top,) = day.book.top(AAPL)
    assert (top["bid_price"], top["ask_price"]) == (320_1400, 320_3000)
    assert day.book.live_orders() == len(day.book.orders(AAPL)) == 215
    assert dict(day.book.anomalies) == {}
    assert day.book.validate() == []


def test_modifies_that_come_before_their_adds(shared):
    """The lenient file is a sample with disturbed times: 117 modifies stand before their order's add."""
    data = gzip.decompress(shared("data", "ritch", "ex20101224.TEST_ITCH_50.gz").read_bytes())
    session = Session()
    events = events_of(data, ReferenceParser(session, lenient=True))
    book = ReferenceBook(session)
    effects = np.zeros(len(events), EFFECT)
    book.apply(events, effects=effects)
    unknown = events[effects["outcome"] == Outcome.UNKNOWN_REF]
    adds = events[np.isin(events["type"], list(b"AF"))]
    added_at = dict(zip(adds["ref"].tolist(), adds["seq"].tolist(), strict=True))
    assert len(unknown) == book.anomalies.count("unknown_ref") == 117
    for ref, seq in unknown[["ref", "seq"]].tolist():
        assert added_at[ref] > seq
    known = adds[effects["outcome"][adds["seq"] - 1] == Outcome.APPLIED]
    assert len(known) == len(adds) == 5000
    assert book.validate() == []
