"""A day's tables as Arrow, polars and pandas, and its plots."""

from __future__ import annotations

import datetime as dt
import re
import sys

import numpy as np
import pytest

import trident_core as trident
from trident_core.errors import PluginError, UsageError
from trident_core.tables.catalog import TABLES


@pytest.fixture(scope="module")
def day(odd_day):
    with trident.open(odd_day) as opened:
        yield opened


@pytest.mark.parametrize("name", TABLES)
def test_arrow_has_what_numpy_has(day, name):
    rows, table = day.table(name, levels=3).numpy(), day.table(name, levels=3, time="ns").to_arrow()
    assert [column for column in table.column_names if column != "symbol"] == list(rows.dtype.names)
    assert len(table) == len(rows) > 0
    for column in rows.dtype.names:
        values = table[column].to_pylist()
        if rows.dtype[column].kind == "S":
            assert values == [value.decode("latin-1").rstrip(" ") for value in rows[column].tolist()], column
        else:
            zero = 0 if column.endswith("_ts") else None  # never: null
            assert [zero if v is None else v for v in values] == rows[column].tolist(), column
    symbol_of = day.session.directory.symbol
    assert table["symbol"].to_pylist() == [symbol_of(n) or None for n in rows["locate"].tolist()]


@pytest.mark.parametrize("name", ["bbo", "trades", "depth", "bars", "mwcb", "noii", "orders"])
def test_float_prices_are_the_same_everywhere(day, name):
    rows = day.table(name, levels=3, price="float").numpy()
    table = day.table(name, levels=3, price="float").to_arrow()
    fixed = day.table(name, levels=3).numpy()
    floats = [column for column in rows.dtype.names if rows.dtype[column].kind == "f"]
    assert floats
    for column in floats:
        assert np.array_equal(rows[column], table[column].to_numpy(), equal_nan=True)
        there = ~np.isnan(rows[column])
        assert there.any()
        scale = 10**8 if name == "mwcb" else 10**4
        assert np.allclose(rows[column][there] * scale, fixed[column][there])
    for column in set(rows.dtype.names) - set(floats):
        assert rows[column].tolist() == fixed[column].tolist()


def test_arrow_is_typed_and_says_its_scale(day):
    import pyarrow as pa

    table = day.bbo().to_arrow()
    assert table.schema.field("ts_event").type == pa.timestamp("ns", tz="UTC")
    assert table.schema.field("bid_px").metadata == {b"scale": b"4"}
    assert pa.types.is_dictionary(table.schema.field("symbol").type)
    decimals = day.bbo(price="decimal").to_arrow()
    assert decimals.schema.field("bid_px").type == pa.decimal128(19, 4)
    first = table["ts_event"][0].value + 0
    midnight = int(dt.datetime(2019, 12, 30, 5, tzinfo=dt.UTC).timestamp()) * 10**9  # New York, in winter
    assert 0 < first - midnight < 24 * 3600 * 10**9


def test_polars_and_pandas(day):
    import polars as pl

    fixed = day.bbo(day.symbols[:2]).numpy()
    frame = day.bbo(day.symbols[:2]).to_polars()
    assert frame["bid_px"].to_list() == fixed["bid_px"].tolist()
    assert frame["symbol"].unique().sort().to_list() == sorted(day.symbols[:2])
    assert frame.schema["ts_event"] == pl.Datetime("ns", "UTC")
    assert pl.DataFrame(day.bbo(day.symbols[:2])).equals(frame)
    pandas = day.bbo(day.symbols[:2], price="float").to_pandas()
    assert pandas["ask_sz"].tolist() == fixed["ask_sz"].tolist()
    assert str(pandas["ts_event"].dtype) == "datetime64[ns, UTC]"
    new_york = pandas["ts_event"].dt.tz_convert("America/New_York")
    assert set(new_york.dt.date) == {dt.date(2019, 12, 30)}


def test_a_stream_is_made_as_it_is_taken(odd_day, monkeypatch):
    from trident_core.day import columns

    monkeypatch.setattr(columns, "ROWS", 500)
    with trident.open(odd_day) as day:
        batches = list(day.messages().reader())
        assert len(batches) == 1  # one batch of events has all of them
        assert sum(len(batch) for batch in batches) == len(day.messages())
    assert [len(part) for part in columns.gathered(iter([np.zeros(300)] * 4))] == [2, 2]
    assert [len(part) for part in columns.gathered(iter([np.zeros(300)] * 3))] == [2, 1]


def test_an_unknown_date_gives_integers(odd_day, tmp_path):
    path = tmp_path / "day"
    path.write_bytes(odd_day.read_bytes())
    with trident.open(path) as day:
        table = day.bbo().to_arrow()
        assert str(table.schema.field("ts_event").type) == "int64"
        assert 0 < table["ts_event"][0].as_py() < 24 * 3600 * 10**9
        ax = day.plot_spread(day.symbols[0])
        assert re.fullmatch(r"\S+ spread", ax.get_title())
        close(ax)


@pytest.mark.parametrize(
    ("missing", "call", "hint"),
    [
        ("pyarrow", lambda day: day.bbo().to_arrow(), "trident-core[arrow]"),
        ("polars", lambda day: day.bbo().to_polars(), "pip install 'polars'"),
        ("pandas", lambda day: day.bbo().to_pandas(), "pip install 'pandas'"),
        ("matplotlib", lambda day: day.plot_spread(day.symbols[0]), "trident-core[plot]"),
        ("matplotlib", lambda day: day.book_at(day.symbols[0], "12:00").plot(), "trident-core[plot]"),
    ],
    ids=["arrow", "polars", "pandas", "spread", "book"],
)
def test_a_missing_package_is_named(day, monkeypatch, missing, call, hint):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(PluginError, match=missing) as caught:
        call(day)
    assert hint in caught.value.hint


# --- plots


@pytest.fixture(autouse=True)
def _agg(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")


def close(ax) -> None:
    from matplotlib import pyplot

    ax.figure.canvas.draw()  # what cannot be drawn fails here
    pyplot.close(ax.figure)


def test_plot_of_a_book(day):
    symbol = day.symbols[2]
    snapshot = day.book_at(symbol, "10:31:07.5")
    ax = day.plot_book(symbol, "10:31:07.5", levels=4)
    assert ax.get_title() == f"{symbol} book at 10:31:07.5 New York time"
    assert ax.get_xlabel() == "price, dollars"
    bid, ask = ax.get_lines()[:2]
    for line, side in ((bid, snapshot.bids[:4]), (ask, snapshot.asks[:4])):
        assert line.get_xdata().tolist() == (side["price"] / 10_000).tolist()
        assert line.get_ydata().tolist() == np.cumsum(side["qty"]).tolist()
    close(ax)
    empty = day.book_at(symbol, 0).plot()
    assert [text.get_text() for text in empty.texts] == ["no orders"]
    assert snapshot.plot(ax=empty) is empty
    close(empty)
    with pytest.raises(UsageError, match="0 levels"):
        snapshot.plot(0)


def test_plot_of_a_spread(day):
    symbol = max(day.symbols, key=lambda name: len(day.bbo(name, start="09:30", end="16:00")))
    ax = day.plot_spread(symbol, "10:00", "15:00")
    assert ax.get_title() == f"{symbol} spread, 2019-12-30"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time of day, New York time", "spread, dollars")
    rows = day.bbo(symbol, start="10:00", end="15:00", price="float").numpy()
    drawn = ax.get_lines()[0].get_ydata()
    assert np.allclose(drawn[1:-1], rows["ask_px"] - rows["bid_px"], equal_nan=True)
    close(ax)


def test_a_busy_spread_is_summed_up_by_time(day, monkeypatch):
    from trident_core.day import plots

    monkeypatch.setattr(plots, "CHANGES_MAX", 10)
    symbol = max(day.symbols, key=lambda name: len(day.bbo(name, start="09:30", end="16:00")))
    ax = day.plot_spread(symbol)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["range", "time-weighted mean"]
    close(ax)
    times, values = np.array([0.0, 100.0, 300.0, 350.0]), np.array([1.0, 3.0, np.nan, 2.0])
    monkeypatch.setattr(plots, "PIECES", 2)
    edges, mean, low, high = plots._pieces(times, values, 0, 400)
    assert edges.tolist() == [0, 200, 400]
    assert mean.tolist() == [2.0, (3 * 100 + 2 * 50) / 150]
    assert (low.tolist(), high.tolist()) == ([1, 2], [3, 3])
