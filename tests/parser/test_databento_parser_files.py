"""MBO files of real venues to EVENTs, against what Databento's own decoder reads in them."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core.decode import decode
from trident_core.dtypes import EFFECT, TOP
from trident_core.feeds import open_feed
from trident_core.tables import databento as names
from trident_core.tables.ladder import Ladder
from trident_parser.databento import DatabentoParser

dbn = pytest.importorskip("databento_dbn")


def theirs_of(path: Path) -> list[Any]:
    """The records as Databento's own decoder reads them."""
    import zstandard

    raw = path.read_bytes()
    if raw[:4] == b"\x28\xb5\x2f\xfd":
        raw = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(raw), read_across_frames=True).read()
    decoder = dbn.DBNDecoder()
    decoder.write(raw)
    records: list[Any] = decoder.decode()[1:]
    return records


def read(path: Path):  # type: ignore[no-untyped-def]
    """(events, tops, effects, session, book, anomalies) of a file."""
    feed, source, session = open_feed(path)
    parser = DatabentoParser(session)
    try:
        events = np.concatenate([batch.copy() for batch in decode(feed, parser)])
    finally:
        source.close()
    book = ReferenceBook(session)
    tops, effects = np.zeros(len(events), TOP), np.zeros(len(events), EFFECT)
    book.apply(events, tops, effects)
    return events, tops, effects, session, book, parser.anomalies


def as_rows(table: Any) -> list[tuple[Any, ...]]:
    return [
        (
            int(r["ts_event"]), int(r["instrument_id"]), r["action"].decode(), r["side"].decode(),
            int(r["price"]), int(r["size"]), int(r["order_id"]), int(r["flags"]), int(r["sequence"]),
        )
        for r in table
    ]  # fmt: skip


def as_theirs(records: list[Any]) -> list[tuple[Any, ...]]:
    return [
        (
            r.ts_event, r.instrument_id, str(r.action), str(r.side), r.price, r.size, r.order_id,
            int(r.flags), r.sequence,
        )
        for r in records
    ]  # fmt: skip


CME = ("data", "databento_dbn", "orderbooks_mbo_2024-05-08T00-00-00_2024-05-08T00-00-02.dbn.zst")


def test_two_seconds_of_the_cme_come_back_record_for_record(shared: Callable[..., Path]) -> None:
    """A snapshot of 13,600 orders, then what happened. All but the clear comes back. Of the five executions,
    trade and fill move to the record that takes the shares away and have its sequence; where that is a
    modify, the trade has its order id. One cancel stood between a fill and its modify."""
    path = shared(*CME)
    events, tops, effects, session, book, anomalies = read(path)
    assert not book.anomalies
    assert {name: item.count for name, item in anomalies.items()} == {"before_session": 13_600}
    theirs = as_theirs(theirs_of(path))
    assert [r[2] for r in theirs].count("R") == 1
    theirs = [r for r in theirs if r[2] != "R"]
    mine = as_rows(names.mbo(events, effects, tops, session))
    assert len(mine) == 13_795
    assert [r for r in mine if r[2] not in "TF"] == [r for r in theirs if r[2] not in "TF"]
    for letter, fields in (("T", slice(0, 6)), ("F", slice(0, 8))):
        ours, others = ([r for r in rows if r[2] == letter] for rows in (mine, theirs))
        assert [r[fields] for r in ours] == [r[fields] for r in others]
        assert [m[8] - t[8] for m, t in zip(ours, others, strict=True)] == [1, 1, 1, 0, 1]
    assert sum(m[6] != t[6] for m, t in zip(mine, theirs, strict=True) if m[2] == t[2] == "T") == 2
    moved = [n for n, (m, t) in enumerate(zip(mine, theirs, strict=True)) if m[2] != t[2]]
    assert [theirs[n][2] for n in moved] == ["T", "F", "C"]


def test_the_book_of_the_cme_is_that_of_databentos_rules(shared: Callable[..., Path]) -> None:
    """Only A, C, M and R touch the book; a modified order keeps its place if it only gets smaller."""
    path = shared(*CME)
    queues: dict[tuple[str, int], dict[int, int]] = {}
    where: dict[int, tuple[str, int]] = {}
    for r in theirs_of(path):
        action, level = str(r.action), (str(r.side), r.price)
        if action == "R":
            queues, where = {}, {}
        elif action in "AM":
            old = where.get(r.order_id)
            if old == level and queues[level][r.order_id] >= r.size:
                queues[level][r.order_id] = r.size
                continue
            if old:
                del queues[old][r.order_id]
            where[r.order_id] = level
            queues.setdefault(level, {})[r.order_id] = r.size
        elif action == "C":
            queue = queues[where[r.order_id]]
            queue[r.order_id] -= r.size
            if not queue[r.order_id]:
                del queue[r.order_id], where[r.order_id]
    book = read(path)[4]
    mine: dict[tuple[str, int], dict[int, int]] = {}
    for order in book.orders(5602):
        level = ("B" if order["side"] == ord("B") else "A", int(order["price"]))
        mine.setdefault(level, {})[int(order["ref"])] = int(order["qty"])
    expected = {level: queue for level, queue in queues.items() if queue}
    assert mine == expected
    assert all(list(mine[level]) == list(expected[level]) for level in expected)
    assert len(where) > 13_000


def test_nasdaqs_orders_make_databentos_own_levels(shared: Callable[..., Path]) -> None:
    """mbo, mbp-1 and mbp-10 of one instrument and time: ours of their orders against theirs. Their side of
    these old files is N throughout."""
    folder = shared("data", "databento_dbn", "XNAS.ITCH")
    events, tops, effects, session, _, anomalies = read(folder / "test_data.mbo.dbn.zst")
    assert (session.venue, str(session.date), session.tz) == ("XNAS", "2020-12-28", "America/New_York")
    assert session.directory.symbol(6155) == "NVDA"
    assert not anomalies
    records = theirs_of(folder / "test_data.mbo.dbn.zst")
    assert as_rows(names.mbo(events, effects, tops, session)) == as_theirs(records)
    depth = Ladder(session, 10).apply(events, effects, tops)
    for schema, mine, n, alike in (
        ("mbp-1", names.mbp_1(events, effects, tops, session), 1, 3),  # the fourth is later than the orders
        ("mbp-10", names.mbp_n(depth, 10, events, effects, tops, session), 10, 4),
    ):
        theirs = theirs_of(folder / f"test_data.{schema}.dbn.zst")
        columns = [
            f"{side}_{what}_{level:02d}"
            for level in range(n)
            for side in ("bid", "ask")
            for what in ("px", "sz", "ct")
        ]
        for m, t in zip(mine, theirs[:alike], strict=False):
            for name in ("ts_event", "instrument_id", "depth", "price", "size", "sequence"):
                assert int(m[name]) == int(getattr(t, name)), (schema, name)
            assert (m["action"].decode(), int(m["flags"])) == (str(t.action), int(t.flags))
            for column in columns:
                level = t.levels[int(column[-2:])]
                assert int(m[column]) == int(getattr(level, column[:-3])), (schema, column)
        assert len(mine) == (4 if schema == "mbp-10" else 3)


@pytest.mark.parametrize("name", ["test_data.mbo.dbn", "test_data.mbo.v1.dbn.zst", "test_data.mbo.v2.dbn.zst",
                                  "test_data.mbo.v3.dbn", "test_data.mbo.v3.dbn.zst"])  # fmt: skip
def test_every_version_is_read_alike(shared: Callable[..., Path], name: str) -> None:
    """Two cancels of orders from before: whose book it was is not in the file, and the book counts them."""
    path = shared("data", "databento_dbn", "dbn_rs", name)
    events, _, _, session, book, anomalies = read(path)
    theirs = theirs_of(path)
    assert (events["type"] == ord("X")).all()
    assert (events["side"] == ord("S")).all()
    columns = [events[name].tolist() for name in ("ref", "ref2", "price", "qty")]
    assert list(zip(*columns, strict=True)) == [(t.order_id, 0, t.price, t.size) for t in theirs]
    assert (session.directory.symbol(5482), session.venue, str(session.date)) == (
        "ESH1",
        "GLBX",
        "2020-12-28",
    )
    assert [int(ts) + session.midnight_ns() for ts in events["ts"]] == [t.ts_event for t in theirs]
    assert book.anomalies.count("unknown_ref") == 2
    assert not anomalies
