"""A day from Python: its tables, batches and windows are those of one pass over the input."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import subprocess
import sys

import numpy as np
import pytest

import trident_core as trident
from trident_core.errors import InputError, PluginError, UsageError
from trident_core.session import Session, parse_time
from trident_core.tables.catalog import TABLES

MARKET = ("system", "mwcb")


def same(left: np.ndarray, right: np.ndarray) -> bool:
    """Row for row, column for column; an empty array has the columns of any."""
    if not len(left) or not len(right):
        return len(left) == len(right)
    names = left.dtype.names
    return names == right.dtype.names and all(np.array_equal(left[name], right[name]) for name in names)


@pytest.fixture(scope="module", params=["index", "input"])
def day(request, odd_day, small_spans):
    with trident.open(odd_day, cache=None if request.param == "index" else False) as opened:
        yield opened


def test_counts_symbols_anomalies(day, odd_truth):
    assert day.counts() == {chr(t): int(n) for t, n in enumerate(odd_truth.counts) if n}
    assert day.symbols == odd_truth.session.directory.symbols()
    assert day.session.date == dt.date(2019, 12, 30)
    assert day.session.directory == odd_truth.session.directory
    assert day.anomalies.to_json() == odd_truth.book.anomalies.to_json()
    assert day.anomalies.count("duplicate_ref") > 10
    assert day.survey.events == 6_000
    assert (day.survey.first_ts, day.survey.last_ts) == tuple(odd_truth.events["ts"][[0, -1]].tolist())


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_all_symbols(day, odd_truth, name):
    asked = day.table(name, levels=3)
    rows = asked.numpy()
    assert rows.dtype == asked.dtype
    assert same(rows, odd_truth.table(name))
    assert len(asked) == len(rows)


@pytest.mark.parametrize("name", [name for name in TABLES if name not in MARKET])
def test_tables_of_each_symbol(day, odd_truth, name):
    everything, total = odd_truth.table(name), 0
    for locate, symbol in enumerate(day.symbols, 1):
        rows = day.table(name, symbol, levels=3).numpy()
        if name == "ipo":
            wanted = everything[everything["stock"] == symbol.encode()]
        else:
            wanted = everything[everything["locate"] == locate]
        assert same(rows, wanted), symbol
        total += len(rows)
    assert total == len(everything)


def test_many_symbols_are_read_by_whole_spans(make_day, truth, monkeypatch, small_spans):
    from trident_core.day.index import DayIndex

    path = make_day(messages=4_000, symbols=120, seed=2)
    plain = truth(path.read_bytes(), Session(date=dt.date(2019, 12, 30))).table("messages")
    whole, read = DayIndex._whole, []
    monkeypatch.setattr(DayIndex, "_whole", lambda self, span: (read.append(span), whole(self, span))[1])
    with trident.open(path) as day:
        assert same(day.messages(day.symbols[:90]).numpy(), plain[plain["locate"] <= 90])
        assert read
        read.clear()
        assert same(day.messages(day.symbols[:50]).numpy(), plain[plain["locate"] <= 50])
        assert not read


@pytest.mark.parametrize("name", ["bbo", "trades", "messages", "depth", "orders", "noii"])
def test_windows_are_half_open(day, odd_truth, name):
    everything = odd_truth.table(name)
    start = int(everything["ts_event"][len(everything) // 3]) - day.session.midnight_ns()
    end = int(everything["ts_event"][len(everything) // 2]) - day.session.midnight_ns()
    at = everything["ts_event"] - day.session.midnight_ns()
    symbols = day.symbols[2:5]
    of_three = np.isin(everything["locate"], [3, 4, 5])
    inside = (at >= start) & (at < end)
    assert 0 < inside.sum() < len(everything)
    assert same(day.table(name, start=start, end=end, levels=3).numpy(), everything[inside])
    assert same(
        day.table(name, symbols, start=start, end=end, levels=3).numpy(), everything[inside & of_three]
    )
    parts = [day.table(name, symbols, levels=3, **window).numpy()
             for window in ({"end": start}, {"start": start, "end": end}, {"start": end})]  # fmt: skip
    assert sum(map(len, parts)) == of_three.sum()
    if name != "orders":  # whose order is that of the orders' ends
        assert same(np.concatenate(parts), everything[of_three])


def test_bars_are_of_the_prints_in_the_window(day, odd_truth):
    from trident_core.tables.candles import bars

    prints = odd_truth.table("trades")
    at = prints["ts_event"] - day.session.midnight_ns()
    start, end = parse_time("10:00:30"), parse_time("15:00")
    plain = prints[[name for name in prints.dtype.names if name != "voided"]]
    voided = prints[prints["voided"]]
    assert len(voided)
    wanted = bars(plain[(at >= start) & (at < end) & ~prints["voided"]], day.session, "5m")
    assert same(day.bars(kind="5m", start="10:00:30", end=dt.time(15)).numpy(), wanted)


def test_batches(day, odd_truth):
    chosen = np.isin(odd_truth.tops["locate"], [1, 4]) & (odd_truth.events["ts"] >= parse_time("10:00"))
    batches = list(day.batches([day.symbols[0], day.symbols[3]], start="10:00"))
    for n, whole in enumerate((odd_truth.events, odd_truth.tops, odd_truth.effects)):
        assert same(np.concatenate([batch[n] for batch in batches]), whole[chosen])
        assert all(batch[n].flags.owndata or batch[n].base is not None for batch in batches)
    assert sum(len(events) for events, _, _ in day.batches()) == 6_000


def test_rows_come_in_batches(day, odd_truth):
    table = day.messages()
    batches = list(table.batches())
    assert len(batches) > 10
    assert all(0 < len(batch) <= 128 for batch in batches)
    assert same(np.concatenate(batches), odd_truth.table("messages"))
    assert same(table.head(200), odd_truth.table("messages")[:200])
    assert "messages of all symbols" in repr(table)
    assert repr(day.bbo(day.symbols[:5], start="09:30")).startswith("<table bbo of ")


@pytest.mark.parametrize(("parser", "book"), [("reference", "numba"), ("numba", "reference")])
def test_engines_are_those_selected(odd_day, odd_truth, parser, book):
    with trident.open(odd_day, parser=parser, book=book) as day:
        assert day.survey.engines == {"parser": parser, "book": book}
        assert same(
            day.bbo(day.symbols[1]).numpy(), odd_truth.table("bbo")[odd_truth.table("bbo")["locate"] == 2]
        )


@pytest.mark.shared
@pytest.mark.parametrize("name", ["bbo", "trades", "messages", "depth"])
def test_real_data_against_the_tables_of_another_engine(shared, name):
    path = shared("data", "itch50_runk", "locate-13-10k.bin")
    with gzip.open(shared("data", "golden_runk_by_itch_book_0.2.1", f"{name}.csv.gz"), "rt") as file:
        header, *golden = list(csv.reader(file))
    with trident.open(path, date="2020-01-30") as day:
        rows = day.table(name, "AAPL").numpy()
        book = day.book_at("AAPL", "20:00")
    columns = [column for column in header if column != "mpid"]  # numbered by the other engine
    ours = [[v.decode() if isinstance(v, bytes) else str(v) for v in row] for row in rows[columns].tolist()]
    assert ours == [[row[header.index(column)] for column in columns] for row in golden]
    assert (book.bids["price"][0], book.asks["price"][0], len(book.orders)) == (320_1400, 320_3000, 215)


@pytest.mark.shared
def test_another_format(shared):
    with trident.open(
        shared("data", "lobster_2012-06-21", "LOBSTER_SampleFile_AMZN_2012-06-21_1.zip")
    ) as day:
        assert day.symbols == ["AMZN"]
        assert day.session.protocol == "lobster-csv"
        assert len(day.messages("AMZN")) == day.counts()["A"] + sum(day.counts().get(t, 0) for t in "XDE")
        assert same(day.trades("AMZN").numpy(), day.trades().numpy())
        assert len(day.table("noii", "AMZN")) == 0
        assert day.book_at("AMZN", "12:00").state.name == "UNKNOWN"


def test_misuse_is_told_at_once_with_a_hint(odd_day):
    with trident.open(odd_day) as day:
        near = day.symbols[0][:-1] + "_"
        for call, words in (
            (lambda: day.bbo(near), "near names: "),
            (lambda: day.book_at("", "10:00"), "no symbol ''"),
            (lambda: day.book_at(day.symbols[0], "ten"), "write 10:31"),
            (lambda: day.book_at(day.symbols[0], -1), "not a time of day"),
            (lambda: day.bbo([]), "None for all"),
            (lambda: day.bbo([1]), "None for all"),
            (lambda: day.bbo(start="10:00", end="10:00"), "is empty"),
            (lambda: day.table("quotes"), "tables: bbo"),
            (lambda: day.bbo(price="dollars"), "price: fixed, float, decimal"),
            (lambda: day.bbo(time="local"), "time: utc, ns"),
            (lambda: day.depth(levels=0), "1 to 100"),
            (lambda: day.bars(kind="1 fortnight"), "write 1s"),
            (lambda: day.table("system", day.symbols[0]), "leave the symbols out"),
            (lambda: day.bbo(price="decimal").numpy(), "no decimals"),
        ):
            with pytest.raises(UsageError, match=words):
                call()
    with pytest.raises(UsageError, match="is closed"):
        day.bbo().numpy()
    with pytest.raises(UsageError, match="is closed"):
        day.book_at("AAPL", "10:00")


def test_what_cannot_be_opened_is_told_at_once(odd_day, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        trident.open(tmp_path / "nothing")
    with pytest.raises(PluginError, match="no book engine named 'best'"):
        trident.open(odd_day, book="best")
    with pytest.raises(UsageError, match="write 2019-12-30"):
        trident.open(odd_day, date="30.12.2019")


def test_the_package_starts_without_numpy():
    code = (
        "import sys, trident_core as trident; print(sorted({'numpy', 'numba'} & set(sys.modules)), "
        "'open' in dir(trident), trident.open.__name__, hasattr(trident, 'close'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[] True open_day False\n"


def test_standard_input_is_read_once_and_answers_all(odd_day):
    code = (
        "import trident_core as trident\n"
        "with trident.open('-', date='2019-12-30') as day:\n"
        "    first = day.symbols[0]\n"
        "    print(len(day.bbo()), len(day.bbo(first)), len(day.book_at(first, '12:00').orders))\n"
    )
    with trident.open(odd_day) as day, open(odd_day, "rb") as stream:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=stream, capture_output=True, text=True, timeout=120
        )
        first = day.symbols[0]
        wanted = [len(day.bbo()), len(day.bbo(first)), len(day.book_at(first, "12:00").orders)]
    assert done.stdout.split() == [str(n) for n in wanted], done.stderr
    assert wanted[0] > wanted[1] > 0


def test_progress_is_told(odd_day):
    seen = []
    with trident.open(odd_day, progress=lambda *args: seen.append(args)) as day:
        day.symbols  # noqa: B018
    assert seen[-1] == (odd_day.stat().st_size, odd_day.stat().st_size, 6_000)


def test_a_session_without_a_date_has_times_since_midnight(odd_day, tmp_path, truth):
    path = tmp_path / "day.bin"
    path.write_bytes(odd_day.read_bytes())
    with trident.open(path) as day:
        assert day.session.date is None
        plain = truth(odd_day.read_bytes(), Session())
        assert same(
            day.bbo(day.symbols[0]).head(), plain.table("bbo")[plain.table("bbo")["locate"] == 1][:10]
        )
