"""The tables as functions of arrays: batches, errors, time, voids, depth."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core import tables
from trident_core.dtypes import EFFECT, EVENT, TOP
from trident_core.errors import UsageError
from trident_core.session import Session


def test_tables_of_batches_are_the_table_of_the_day(chance, applied):
    """BOOK-44."""
    day = applied(chance(1, 800, anomalies=0.3))
    events, tops, effects, session = day.events, day.tops, day.effects, Session()
    cuts = [0, 1, 2, 100, 333, 800]
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    for whole, pieces in (
        (tables.bbo(events, tops, session), [tables.bbo(events[s], tops[s], session) for s in parts]),
        (
            tables.trades(events, effects, session, tops),
            [tables.trades(events[s], effects[s], session, tops[s]) for s in parts],
        ),
        (
            tables.messages(events, effects, session),
            [tables.messages(events[s], effects[s], session) for s in parts],
        ),
    ):
        np.testing.assert_array_equal(np.concatenate(pieces), whole)
        assert len(whole) > 100
    chunked = tables.DepthTable(ReferenceBook(session), 2)
    np.testing.assert_array_equal(
        np.concatenate([chunked.apply(events[s]) for s in parts]),
        tables.depth(ReferenceBook(session), events, 2),
    )


@pytest.mark.parametrize(
    ("date", "offset_h"), [(dt.date(2020, 1, 30), 5), (dt.date(2020, 7, 1), 4), (dt.date(2019, 3, 10), 5)]
)
def test_midnight_is_new_yorks(stream, applied, date, offset_h):
    day = applied(stream().add(1, "B", 10, 5000))
    (row,) = tables.bbo(day.events, day.tops, Session(date=date))
    midnight = dt.datetime.combine(date, dt.time(offset_h), tzinfo=dt.UTC)
    assert row["ts_event"] == int(midnight.timestamp()) * 10**9 + day.events["ts"][0]


def test_without_a_date_times_count_from_midnight(stream, applied):
    day = applied(stream().add(1, "B", 10, 5000))
    assert tables.bbo(day.events, day.tops, Session())["ts_event"].tolist() == day.events["ts"].tolist()


def test_locate_of_an_execution_is_its_orders_when_tops_are_given(stream, applied):
    day = applied(stream().add(1, "B", 10, 5000, locate=3).execute(1, 4, locate=9).put("P", 9, ref2=1))
    session = Session()
    assert tables.trades(day.events, day.effects, session)["locate"].tolist() == [9, 9]
    assert tables.trades(day.events, day.effects, session, day.tops)["locate"].tolist() == [3, 9]
    assert tables.messages(day.events, day.effects, session)["locate"].tolist() == [3, 9]
    assert tables.messages(day.events, day.effects, session, day.tops)["locate"].tolist() == [3, 3]


def test_messages_of_what_the_book_refused(stream, applied):
    """BOOK-42."""
    day = applied(
        stream()
        .add(1, "B", 10, 5000)
        .delete(9)
        .execute(9, 5)
        .replace(9, 10, 7, 5100)
        .add(2, "B", 0, 5000)
        .replace(1, 3, 0, 5200)
    )
    rows = tables.messages(day.events, day.effects, Session())
    columns = ["type", "action", "side", "price", "size", "remaining", "order_id", "old_order_id"]
    assert rows[columns].tolist() == [
        (b"A", b"A", b"B", 5000, 10, 10, 1, 0),
        (b"D", b"C", b"N", 0, 0, 0, 9, 0),
        (b"E", b"F", b"N", 0, 5, 0, 9, 0),
        (b"U", b"M", b"N", 5100, 7, 0, 10, 9),
        (b"A", b"A", b"B", 5000, 0, 0, 2, 0),
        (b"U", b"M", b"B", 5200, 0, 0, 3, 1),
    ]


def test_mpids_stand_on_f_rows_without_their_padding(stream, applied):
    day = applied(stream().add(1, "B", 9, 1, mpid="XY  ").execute(1, 1).replace(1, 2, 5, 1).add(3, "B", 1, 1))
    assert tables.messages(day.events, day.effects, Session())["mpid"].tolist() == [b"XY", b"", b"", b""]


def test_executions_of_unknown_orders_do_not_print(stream, applied):
    day = applied(stream().execute(9, 10).execute_at(9, 10, 5000))
    assert len(tables.trades(day.events, day.effects, Session())) == 0
    assert day.counts() == {"unknown_ref": 2}


def test_size_is_the_messages_and_not_clamped(stream, applied):
    day = applied(
        stream().add(1, "B", 10, 5000).execute(1, 25).put("Q", 1, b"C", qty=1 << 40, price=7, ref2=5)
    )
    rows = tables.trades(day.events, day.effects, Session())
    assert rows["size"].tolist() == [25, 1 << 40]
    assert rows["cross_type"].tolist() == [b"N", b"C"]


def test_voids_of_unknown_trades_void_nothing(stream, applied):
    """BOOK-41."""
    day = applied(stream().add(1, "B", 10, 5000).execute(1, 1, match=5).put("B", ref2=6).put("B", ref2=6))
    assert tables.voided(tables.trades(day.events, day.effects, Session())).tolist() == [False] * 3


def test_depth_has_a_row_for_each_change_within_n_levels(stream, applied):
    day = (
        stream()
        .add(1, "B", 10, 5000)
        .add(2, "B", 10, 4990)
        .add(3, "B", 10, 4980)  # third level: not seen at n = 2
        .execute(3, 5)
        .add(4, "S", 7, 5010)
        .put("I", 1)
        .delete(1)  # the third comes up
    )
    rows = tables.depth(ReferenceBook(Session()), day.events(), 2)
    assert rows["seq"].tolist() == [1, 2, 5, 7]
    assert rows.dtype.names is not None
    assert rows.dtype.names[3:] == tuple(
        f"{side}_{name}_{level}"
        for level in ("00", "01")
        for side in ("bid", "ask")
        for name in ("px", "sz", "ct")
    )
    assert rows[-1].tolist()[3:] == (4990, 10, 1, 5010, 7, 1, 4980, 5, 1, 0, 0, 0)


def test_depth_may_start_on_a_book_in_the_middle_of_its_day(stream):
    events = stream().add(1, "B", 10, 5000).put("I", 1).delete(1).events()
    book = ReferenceBook(Session())
    book.apply(events[:1])
    assert tables.depth(book, events[1:], 2)["seq"].tolist() == [3]


@pytest.mark.parametrize("n", [0, -1, 101])
def test_depth_of_nonsense(n):
    with pytest.raises(UsageError, match="levels"):
        tables.depth(ReferenceBook(Session()), np.zeros(0, EVENT), n)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tables.bbo(np.zeros(2, EVENT), np.zeros(2, EFFECT), Session()),
        lambda: tables.bbo(np.zeros(2, EVENT), np.zeros(3, TOP), Session()),
        lambda: tables.bbo(np.zeros(2, TOP), np.zeros(2, TOP), Session()),
        lambda: tables.trades(np.zeros(2, EVENT), np.zeros(1, EFFECT), Session()),
        lambda: tables.trades(np.zeros(2, EVENT), np.zeros(2, EFFECT), Session(), np.zeros(1, TOP)),
        lambda: tables.messages(np.zeros((2, 1), EVENT), np.zeros(2, EFFECT), Session()),
        lambda: tables.depth(ReferenceBook(Session()), np.zeros(2, TOP)),
    ],
    ids=[
        "dtype",
        "short tops",
        "events",
        "short effects",
        "short tops of trades",
        "shape",
        "events of depth",
    ],
)
def test_wrong_arrays_are_refused(call):
    with pytest.raises(UsageError):
        call()


def test_empty_batches_make_empty_tables():
    events, session = np.zeros(0, EVENT), Session()
    assert tables.bbo(events, np.zeros(0, TOP), session).dtype == tables.BBO
    assert tables.trades(events, np.zeros(0, EFFECT), session).dtype == tables.TRADE
    assert tables.messages(events, np.zeros(0, EFFECT), session).dtype == tables.MESSAGE
    assert tables.depth(ReferenceBook(session), events, 1).dtype == tables.depth_dtype(1)
