"""The facts of order books: by hand, against other reckonings of real days, and what is refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from trident_core.dtypes import EVENT
from trident_core.errors import InputError, UsageError
from trident_core.session import Directory, Instrument, Session
from trident_facts import series
from trident_facts.catalog import FACTS, measure
from trident_facts.command import facts
from trident_facts.measure import Options, measure_files, tracks_of
from trident_facts.track import NS, Track
from trident_parser.encode import encode_events
from trident_sim.stream import simulate_bytes

#: seconds, type, ref, ref2, side, price in cents, shares
BY_HAND = [
    (1.0, "A", 1, 0, "B", 1000, 100),
    (1.0, "A", 2, 0, "S", 1003, 100),
    (2.0, "A", 3, 0, "B", 1001, 200),  # better
    (3.0, "A", 4, 0, "S", 1003, 50),  # at the touch
    (4.0, "E", 3, 11, "", 0, 60),  # one seller takes twice at one time
    (4.0, "E", 3, 12, "", 0, 40),
    (4.03, "D", 4, 0, "", 0, 0),
    (5.0, "U", 1, 5, "", 999, 100),  # behind, by two ticks
    (6.0, "C", 2, 13, "", 1003, 100),  # a buyer takes all: no asks
    (7.0, "A", 6, 0, "S", 1005, 70),
    (8.0, "P", 0, 14, "B", 1002, 30),
    (9.0, "X", 3, 0, "", 0, 100),
]


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    return write(tmp_path / "by-hand.itch", BY_HAND)


def write(
    path: Path, rows: list[tuple[float, str, int, int, str, int, int]], locate: int = 1, symbol: str = "ABC"
) -> Path:
    events = np.zeros(len(rows), EVENT)
    for event, (seconds, kind, ref, ref2, side, cents, shares) in zip(events, rows, strict=True):
        event["ts"], event["type"], event["ref"], event["ref2"] = round(seconds * NS), ord(kind), ref, ref2
        event["price"], event["qty"], event["locate"] = cents * 100, shares, locate
        event["side"] = ord(side) if side else 0
    path.write_bytes(bytes(encode_events(events, Session(directory=Directory([Instrument(locate, symbol)])))))
    return path


def one(path: Path | str, **options: Any) -> tuple[Track, dict[str, Any]]:
    ((track, values),) = measure_files([str(path)], Options(**options))
    return track, values


def test_by_hand(by_hand: Path) -> None:
    track, got = one(by_hand, start=1 * NS, end=11 * NS)
    assert (track.symbol, track.tick, len(track.rows)) == ("ABC", 100, 12)
    assert got["hours"] == 10 / 3600
    # [1,2) 3 ticks, [2,6) 2, [6,7) no ask, [7,9) 4, [9,11) 6
    assert got["spread_mean"] == pytest.approx((3 * 1 + 2 * 4 + 4 * 2 + 6 * 2) / 9)
    assert (got["spread_p50"], got["spread_p90"]) == (3, 6)
    assert got["spread_one"] == 0
    # placed after a touch: 3 better, 4 at it, U two behind; 6 had no ask to join
    assert (got["place_better"], got["place_at"], got["place_behind"]) == (1 / 3, 1 / 3, 1 / 3)
    assert got["place_p50"] == 2
    assert got["trades"] == 3
    assert (got["size_p50"], got["size_mean"]) == (100, pytest.approx((100 + 100 + 30) / 3))
    assert got["hidden_shares"] == pytest.approx(30 / 230)
    assert got["filled_orders"] == pytest.approx(2 / 6)  # 3 in part, 2 in whole, of 1 2 3 4 5 6
    assert got["filled_shares"] == pytest.approx(200 / 620)
    assert got["orders_per_trade"] == 2
    # gone unfilled: 4 after 1.03 s, 1 after 4 s; over: 1, 2, 3, 4
    assert got["life_p50"] == pytest.approx((1.03 + 4) / 2)
    assert got["fill_p50"] == 5
    assert (got["fleeting_50ms"], got["fleeting_2s"]) == (0, 0.25)
    assert got["depth_shares"] == pytest.approx(_depth_by_hand())


def _depth_by_hand() -> float:
    """Shares at the best bid and at the best ask, over the time for which there was one."""
    bids = 100 * 1 + 200 * 2 + 100 * 5 + 100 * 2
    asks = 100 * 2 + 150 * 1.03 + 100 * 1.97 + 70 * 4
    return (bids + asks) / (10 + 9)


def test_series_by_hand() -> None:
    alternating = np.tile([1.0, -1.0], 50)
    assert series.autocorrelation(alternating, 1) == pytest.approx(-0.99)
    assert series.autocorrelation(alternating, 2) == pytest.approx(0.98)
    assert series.autocorrelation(np.ones(100), 1) is None
    assert series.autocorrelation(alternating[:20], 1) is None
    assert series.excess_kurtosis(alternating) == pytest.approx(-2)
    # P(X > x) = x^-1.5, at its quantiles
    pareto = (1 - (np.arange(100_000) + 0.5) / 100_000) ** (-1 / 1.5)
    assert series.hill(pareto) == pytest.approx(1.5, abs=0.05)
    assert series.weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 8.0]), 0.5) == 2


def test_a_sign_is_the_takers_and_executions_of_one_time_are_one_trade(by_hand: Path) -> None:
    (track,) = tracks_of(str(by_hand), Options())
    trades = series.trades_of(track)
    assert trades.sign.tolist() == [-1, 1, 0]  # P's is masked
    assert trades.size.tolist() == [100, 100, 30]


def test_an_order_of_which_the_add_is_missing_is_no_life(tmp_path: Path) -> None:
    rows = [*BY_HAND[:2], (2.0, "A", 3, 0, "B", 1001, 200), (5.0, "D", 3, 0, "", 0, 0)]
    _, got = one(write(tmp_path / "late.itch", rows), start=3 * NS, end=9 * NS)
    assert got["life_p50"] is None
    assert got["events"] == 1


@pytest.mark.shared
def test_runk_against_the_quotes_of_another_engine(shared: Callable[..., Path]) -> None:
    """Time-weighted spread from itch-book's own table of the touch, in plain Python."""
    _, got = one(shared("data", "itch50_runk", "locate-13-10k.bin"))
    golden = shared("data", "golden_runk_by_itch_book_0.2.1")
    text = gzip.decompress((golden / "bbo.csv.gz").read_bytes()).decode()
    rows = [
        (int(r["ts_event"]), int(r["bid_px"]), int(r["ask_px"])) for r in csv.DictReader(io.StringIO(text))
    ]
    total = weight = 0.0
    for (ts, bid, ask), (until, _, _) in pairwise(rows):
        if 0 < bid < ask:
            total += (ask - bid) / 100 * (until - ts)
            weight += until - ts
    assert got["spread_mean"] == pytest.approx(total / weight, rel=0.01)  # the end of the hours differs
    trades = gzip.decompress((golden / "trades.csv.gz").read_bytes()).decode()
    hidden = shares = 0
    for row in csv.DictReader(io.StringIO(trades)):
        shares += int(row["size"])
        hidden += int(row["size"]) * (row["kind"] == "P")
    assert got["hidden_shares"] == pytest.approx(hidden / shares)


@pytest.mark.shared
def test_lobster_against_its_own_rows(shared: Callable[..., Path]) -> None:
    """Spread, depth and lives of GOOG's touch, reckoned in plain Python from LOBSTER's two files."""
    path = shared("data", "lobster_2012-06-21", "LOBSTER_SampleFile_GOOG_2012-06-21_1.zip")
    track, got = one(path)
    assert (track.symbol, track.levels) == ("GOOG", 1)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        texts = [
            archive.read(next(n for n in names if kind in n)).decode()
            for kind in ("_message_", "_orderbook_")
        ]
    messages, levels = ([line.split(",") for line in text.splitlines()] for text in texts)
    total = weight = 0.0
    born: dict[str, float] = {}
    filled: set[str] = set()
    gone = over = 0
    for k, (seconds, kind, order, _, _, _) in enumerate(messages):
        until = float(messages[k + 1][0]) if k + 1 < len(messages) else 57_600.0
        total += (int(levels[k][0]) - int(levels[k][2])) / 100 * (until - float(seconds))
        weight += until - float(seconds)
        if kind == "1":
            born[order] = float(seconds)
        elif kind == "4":
            filled.add(order)
        elif kind == "3" and order in born:
            gone += order not in filled and float(seconds) - born[order] <= 2
    assert got["spread_mean"] == pytest.approx(total / weight, rel=1e-6)
    over = len(born) - _alive(messages)
    assert got["fleeting_2s"] == pytest.approx(gone / over, abs=0.002)


def _alive(messages: list[list[str]]) -> int:
    left: dict[str, int] = {}
    for _, kind, order, size, _, _ in messages:
        if kind == "1":
            left[order] = int(size)
        elif kind in "234" and order in left:
            left[order] -= int(size) if kind != "3" else left[order]
    return sum(shares > 0 for shares in left.values())


def test_a_days_symbols_are_chosen(tmp_path: Path) -> None:
    path = tmp_path / "flow.itch"
    path.write_bytes(simulate_bytes(20_000, 8, 3))
    busy = tracks_of(str(path), Options(busiest=3))
    assert len(busy) == 3
    assert [len(t.rows) for t in busy] == sorted((len(t.rows) for t in busy), reverse=True)
    (named,) = tracks_of(str(path), Options(symbols=(busy[2].symbol,)))
    assert np.array_equal(named.rows, busy[2].rows)
    values = measure(busy[0])
    assert values.keys() == {fact.key for fact in FACTS}
    assert all(value is None or math.isfinite(value) for value in values.values())
    assert sum(values[f"depth_{k}"] or 0 for k in range(1, 6)) == pytest.approx(1)


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.command()(facts)
    return made


def test_the_command_puts_sources_side_by_side(app: typer.Typer, by_hand: Path) -> None:
    other = write(by_hand.with_name("other.itch"), BY_HAND[:6], locate=2, symbol="DEF")
    done = CliRunner().invoke(app, [str(by_hand), str(other), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [day["symbol"] for day in told["days"]] == ["ABC", "DEF"]
    assert told["days"][0]["values"]["trades"] == 3
    assert told["days"][1]["values"]["trades"] == 1
    assert told["facts"].keys() == told["days"][0]["values"].keys()
    shown = CliRunner().invoke(app, [str(by_hand), str(other)])
    assert "by-hand.itch" in shown.stdout
    assert "spread, ticks: mean" in shown.stdout


def test_what_cannot_be_measured_is_refused(app: typer.Typer, by_hand: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        tracks_of("-", Options())
    with pytest.raises(UsageError):
        tracks_of(str(by_hand), Options(symbols=("NONE",)))
    with pytest.raises(InputError):
        tracks_of(str(write(tmp_path / "none.itch", [(1.0, "P", 0, 14, "B", 1002, 30)])), Options())
    alone = tmp_path / "AMZN_2012-06-21_34200000_57600000_message_1.csv"
    alone.write_text("34200.017459617,5,0,1,2238200,-1\n34200.2,1,11885113,21,2238100,1\n")
    with pytest.raises(InputError, match="orderbook"):
        tracks_of(str(alone), Options())
    alone.with_name(alone.name.replace("message", "orderbook")).write_text("2239500,100,2231800,100\n")
    with pytest.raises(InputError, match="rows of levels"):
        tracks_of(str(alone), Options())
    done = CliRunner().invoke(app, [str(by_hand), "--from", "10:00", "--to", "09:00"])
    assert isinstance(done.exception, UsageError)
