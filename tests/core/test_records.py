"""Records, sessions, errors and statistics: the small things everything else stands on."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_core import dtypes
from trident_core.errors import DamagedStoreError, PatternError, TridentError, UsageError
from trident_core.session import Directory, Instrument, Session, format_price, format_time, parse_time
from trident_core.stats import POSITIONS_KEPT, Anomalies


def test_event_is_a_cache_line_with_the_documented_offsets() -> None:
    offsets = {name: field[1] for name, field in dtypes.EVENT.fields.items()}  # type: ignore[union-attr]
    assert dtypes.EVENT.itemsize == 64
    assert offsets == {
        "seq": 0, "ts": 8, "ref": 16, "ref2": 24, "price": 32, "qty": 40, "locate": 48,
        "type": 52, "side": 53, "flags": 54, "aux": 56,
    }  # fmt: skip


def test_the_layout_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    for bad, reason in (
        (np.dtype([("a", "<u4")]), "bytes instead of"),
        (np.dtype([("a", ">u8")] * 1 + [("b", "<u8")]), "big-endian"),
        (np.dtype([("a", "u1"), ("b", "<u8"), ("c", "V7")]), "not aligned"),
    ):
        size = 8 if reason.startswith("bytes") else 16
        monkeypatch.setattr(dtypes, "_SIZES", {"BAD": (bad, size)})
        with pytest.raises(ImportError, match=reason):
            dtypes._check_layouts()


def test_midnight_is_new_yorks_with_daylight_saving() -> None:
    winter = Session(date=dt.date(2020, 1, 30)).midnight_ns()
    summer = Session(date=dt.date(2020, 7, 30)).midnight_ns()
    assert winter == 1_580_360_400 * 10**9
    assert dt.datetime.fromtimestamp(summer // 10**9, dt.UTC).hour == 4


def test_a_session_survives_json() -> None:
    session = Session(venue="XBOS", date=dt.date(2019, 7, 30))
    session.directory.put(Instrument(7, "AAPL", {"round_lot_size": 100, "authenticity": "P"}))
    session.directory.put(Instrument(9, "ZXZZT", {"authenticity": "T"}))
    again = Session.from_json(json.loads(json.dumps(session.to_json())))
    assert again == session
    assert [i.is_test for i in again.directory] == [False, True]


@pytest.mark.parametrize("data", [{}, {"venue": "X"}, {**Session().to_json(), "directory": [[1]]}])
def test_what_is_no_session_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="not a session"):
        Session.from_json(data)


def test_a_directory_keeps_details_and_counts_changes() -> None:
    directory = Directory([Instrument(1, "AAPL", {"round_lot_size": 100})])
    assert directory.version == 1
    directory.put(Instrument(1, "AAPL"))
    assert directory.get(1) == Instrument(1, "AAPL", {"round_lot_size": 100})
    assert directory.version == 1
    directory.put(Instrument(1, "AAPL", {"round_lot_size": 10}))
    assert directory.version == 2
    with pytest.raises(UsageError, match="near names: AAPL"):
        directory.locate("AAPLE")


@given(st.integers(0, 48 * 3600 * 10**9 - 1))
def test_times_of_day_read_back(ts: int) -> None:
    assert parse_time(format_time(ts)) == ts


@pytest.mark.parametrize("text", ["", "10", "10:61", "10:00:00.1234567890", "x:y", "10:00:00.-1", "99:00"])
def test_what_is_no_time_of_day_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a time of day"):
        parse_time(text)


def test_prices_are_shown_exactly() -> None:
    assert [format_price(p, 4) for p in (3201400, 1, 10000, -5, 1999999900)] == [
        "320.14", "0.0001", "1.00", "-0.0005", "199999.99",
    ]  # fmt: skip
    assert format_price(7, 0) == "7"


def test_anomalies_keep_the_first_positions_and_all_counts() -> None:
    mine, theirs = Anomalies(), Anomalies()
    for at in range(20):
        mine.add("torn_tail", at=at)
    theirs.add("torn_tail", at=99, count=5)
    theirs.add("unknown_ref", count=0)
    mine.merge(theirs)
    assert mine.count("torn_tail") == 25
    assert mine["torn_tail"].positions == list(range(POSITIONS_KEPT))
    assert "unknown_ref" not in mine


def test_errors_say_where_and_what_next() -> None:
    error = PatternError("look-ahead is not in the dialect", pattern="a(?=b)", position=1, hint="use two")
    assert error.caret().splitlines()[1].index("^") == 1
    assert error.exit_code == 2
    damage = DamagedStoreError("bad CRC", file="0.seg", offset=64, first=3, last=None)
    assert "0.seg at offset 64, events 3 to unknown" in str(damage)
    assert str(TridentError("what", hint="do this")) == "what (do this)"


@pytest.mark.parametrize("tz", ["Nowhere/X", "", "../../etc/passwd", "America", "x" * 5_000])
def test_a_time_zone_that_is_not_known(tz: str) -> None:
    with pytest.raises(UsageError, match="no time zone"):
        Session(date=dt.date(2019, 12, 30), tz=tz).midnight_ns()


@pytest.mark.parametrize("date", [dt.date.min, dt.date(1677, 12, 31), dt.date(2262, 1, 1), dt.date.max])
def test_a_date_that_nanoseconds_do_not_reach(date: dt.date) -> None:
    """Else 64-bit columns would wrap around, to another century."""
    with pytest.raises(UsageError, match="64 bits"):
        Session(date=date).midnight_ns()


@pytest.mark.parametrize("date", [dt.date(1678, 1, 1), dt.date(2261, 12, 31)])
def test_the_first_and_last_date_fit_with_a_whole_day(date: dt.date) -> None:
    assert -(1 << 63) <= Session(date=date).midnight_ns() < (1 << 63) - 48 * 3600 * 10**9
