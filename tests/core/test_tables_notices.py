"""Tables of the venue's notices, against itch-book and against typed rows; and the tap that brings those."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import numpy as np
import pytest

from trident_core import tables
from trident_core.contracts import Chunk
from trident_core.decode import decode
from trident_core.dtypes import EFFECT, EVENT, TOP
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.tables.catalog import TABLES, Batch
from trident_core.tables.tap import TappedParser
from trident_parser.reference import ReferenceParser
from trident_sim.spec import SimSpec
from trident_sim.stream import Day

DATE = dt.date(2019, 12, 30)
NOTICES = [name for name, spec in TABLES.items() if spec.make and name not in ("bbo", "messages")]


def made(data: bytes, cuts: list[int], batch: int = 1000) -> dict[str, np.ndarray]:
    """Every notice table of the bytes, cut into chunks, through a tapped parser."""
    session = Session(date=DATE)
    tap = TappedParser(ReferenceParser(session), ReferenceParser(Session()), "IVKOR")
    frames = np.frombuffer(data, np.uint8)
    chunks = [Chunk(frames[a:b], None, a) for a, b in pairwise([0, *cuts, len(data)])]
    found: dict[str, list[np.ndarray]] = {name: [] for name in NOTICES}
    for events in decode(chunks, tap, batch=batch, linger_s=9):
        nothing = np.zeros(len(events), TOP), np.zeros(len(events), EFFECT)
        one = Batch(session, events, *nothing, tap.take())
        for name in NOTICES:
            make = TABLES[name].make
            assert make is not None
            found[name].append(make(one))
    return {name: np.concatenate(parts) for name, parts in found.items()}


@pytest.fixture(scope="module")
def data() -> bytes:
    return b"".join(part.tobytes() for part in Day(SimSpec(messages=5_000, symbols=12, seed=6)).frames())


@pytest.fixture(scope="module")
def whole(data) -> dict[str, np.ndarray]:
    return made(data, [])


def test_every_message_has_its_row(data, whole):
    parser = ReferenceParser(Session())
    parser.parse_tables(np.frombuffer(data, np.uint8))
    for name in NOTICES:
        wanted = sum(int(parser.counts[ord(letter)]) for letter in TABLES[name].types)
        assert len(whole[name]) == wanted > 0, name


@pytest.mark.parametrize("batch", [1, 7, 5_000])
def test_any_chunks_and_batches_give_the_same_rows(data, whole, batch):
    cuts = sorted(np.random.default_rng(batch).integers(0, len(data), 40).tolist())
    for name, rows in made(data, cuts, batch).items():
        np.testing.assert_array_equal(rows, whole[name])


def test_fields_that_an_event_lacks_come_from_the_typed_rows(data, whole):
    typed = ReferenceParser(Session()).parse_tables(np.frombuffer(data, np.uint8))
    assert (whole["noii"]["far_px"] == typed["I"]["far_price"]).all()
    assert (whole["noii"]["near_px"] == typed["I"]["near_price"]).all()
    declines = whole["mwcb"][whole["mwcb"]["kind"] == b"V"]
    assert (declines["level_3"] == typed["V"]["level_3"]).all()
    assert declines["level_3"].all()
    assert (whole["ipo"]["stock"] == np.strings.rstrip(typed["K"]["stock"])).all()
    assert (whole["direct_listing"]["max_px"] == typed["O"]["maximum_allowable_price"]).all()
    assert (whole["directory"]["luld_tier"] == typed["R"]["luld_reference_price_tier"]).all()
    assert (whole["luld"]["lower_px"] == typed["J"]["lower_auction_collar_price"]).all()
    assert (whole["participants"]["mpid"] == np.strings.rstrip(typed["L"]["mpid"])).all()
    releases = whole["ipo"]["release_ts"]
    seconds = np.where(releases, (releases - Session(date=DATE).midnight_ns()) // 10**9, 0)
    assert (seconds == typed["K"]["ipo_quotation_release_time"]).all()


def test_equal_to_itch_book(tmp_path, data, whole):
    itch_book = pytest.importorskip("itch_book")
    (tmp_path / "day").write_bytes(data)
    names = ("noii", "halts", "reg_sho", "luld", "system_events", "symbols")
    feed = itch_book.open(str(tmp_path / "day"), date=DATE, price_type="fixed")
    theirs: dict[str, dict[str, list[object]]] = {name: {} for name in names}
    for batch in feed.batches(tables=names):
        for name in names:
            for column, values in getattr(batch, name).items():
                theirs[name].setdefault(column, []).extend(np.asarray(values).tolist())
    for name in ("noii", "halts", "reg_sho", "luld"):
        ours = whole[name]
        assert list(ours.dtype.names) == list(theirs[name])
        for column in ours.dtype.names:
            assert ours[column].tolist() == [_same(value) for value in theirs[name][column]], (name, column)
    assert whole["system"]["event"].tolist() == theirs["system_events"]["event"]
    assert whole["system"]["ts_event"].tolist() == theirs["system_events"]["ts_event"]
    stocks = [stock.decode() for stock in whole["directory"]["stock"]]
    assert stocks == theirs["symbols"]["symbol"]
    assert whole["directory"]["locate"].tolist() == theirs["symbols"]["locate"]
    assert whole["directory"]["round_lot_size"].tolist() == theirs["symbols"]["round_lot_size"]


def _same(value: object) -> object:
    return value.rstrip(b" \0") if isinstance(value, bytes) and len(value) > 1 else value


def test_without_their_typed_rows_tables_refuse():
    event = np.zeros(1, EVENT)
    event["type"], event["seq"] = ord("I"), 5
    with pytest.raises(UsageError, match="from number 5 on"):
        tables.noii(event, None, Session())
    with pytest.raises(UsageError, match="no typed rows"):
        tables.noii(event, np.zeros(1, [("seq", "u8"), ("far_price", "u4")]), Session())
    assert len(tables.noii(event[:0], None, Session())) == 0
