"""`trident convert` as a user runs it: files read back, formats, partitions, windows, nothing half done."""

from __future__ import annotations

import contextlib
import csv
import gzip
import hashlib
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402
from pyarrow import dataset  # noqa: E402

from trident_core.cli.convert import convert  # noqa: E402
from trident_core.errors import InputError, UsageError  # noqa: E402

Run = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[2]


def run(file: Path | str, out: Path, **options: Any) -> dict[str, Any]:
    """The command's function, in this process: its summary."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        convert(str(file), out, json=True, **options)
    made: dict[str, Any] = json.loads(text.getvalue())
    return made


@pytest.fixture(scope="module")
def converted(day: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every table of the small day, as Parquet."""
    out = tmp_path_factory.mktemp("converted")
    run(day, out, tables="all", bars="1m,10trades")
    return out


def table(path: Path) -> Any:
    return pq.read_table(path)


def test_golden_tables_through_parquet(shared: Callable[..., Path], tmp_path: Path) -> None:
    """AAPL's messages of a real day, row for row what another engine made of them."""
    day = shared("data", "itch50_runk", "locate-13-10k.bin")
    done = run(day, tmp_path / "out", tables="bbo,trades,messages,depth", date="2020-01-30")
    for name in ("bbo", "trades", "messages", "depth"):
        with gzip.open(shared("data", "golden_runk_by_itch_book_0.2.1", f"{name}.csv.gz"), "rt") as file:
            header, *golden = list(csv.reader(file))
        read = table(tmp_path / "out" / f"{name}.parquet")
        columns = [read[column] for column in header]
        columns[0] = columns[0].cast(pa.int64())
        rows = [[str(v) for v in row] for row in zip(*(c.to_pylist() for c in columns), strict=True)]
        if name == "messages":  # the other engine numbers MPIDs by first appearance
            numbers = {"": "0"}
            for row in rows:
                row[-1] = numbers.setdefault(row[-1], str(len(numbers)))
        assert rows == golden, name
        assert len(rows) == done["tables"][name]["rows"]


def test_parquet_is_typed_dictionary_coded_and_says_where_it_comes_from(day: Path, converted: Path) -> None:
    file = pq.ParquetFile(converted / "bbo.parquet")
    schema = file.schema_arrow
    assert schema.field("ts_event").type == pa.timestamp("ns", tz="UTC")
    assert schema.field("symbol").type == pa.dictionary(pa.int32(), pa.string())
    assert schema.field("bid_px").type == pa.int64()
    assert schema.field("bid_px").metadata[b"scale"] == b"4"
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    meta = {k.decode(): v.decode() for k, v in file.metadata.metadata.items() if k.startswith(b"trident.")}
    assert meta["trident.source"] == day.name
    assert meta["trident.source_md5"] == hashlib.md5(day.read_bytes()).hexdigest()
    assert meta["trident.session_date"] == "2019-12-30"
    assert meta["trident.price_scale"] == "4"
    assert meta["trident.messages"] == "6000"
    assert sum(json.loads(meta["trident.counts"]).values()) == 6000
    assert json.loads(meta["trident.anomalies"]) == {}
    assert json.loads(meta["trident.engines"])["book"]
    assert meta["trident.complete"] == "true"
    assert len(meta["trident.book_digest"]) == 64
    summary = json.loads((converted / "trident.json").read_text())
    assert summary["metadata"] == meta
    for name, item in summary["tables"].items():
        assert (converted / item["files"]).stat().st_size == item["bytes"]
        assert table(converted / item["files"]).num_rows == item["rows"] > 0, name
    assert sorted(p.name for p in converted.iterdir()) == sorted(
        ["trident.json", *(item["files"] for item in summary["tables"].values())]
    )


def test_symbols_and_voids(converted: Path) -> None:
    directory = table(converted / "directory.parquet")
    symbol_of = dict(zip(directory["locate"].to_pylist(), directory["stock"].to_pylist(), strict=True))
    for name in ("bbo", "trades", "orders", "bars_1m"):
        read = table(converted / f"{name}.parquet")
        expected = [symbol_of.get(n) for n in read["locate"].to_pylist()]
        assert read["symbol"].to_pylist() == expected
    trades = table(converted / "trades.parquet")
    voids = {r["match_number"] for r in trades.to_pylist() if r["kind"] == "B"}
    marked = [r["voided"] for r in trades.to_pylist()]
    expected = [r["match_number"] in voids and r["kind"] != "B" for r in trades.to_pylist()]
    assert marked == expected
    assert any(marked)
    good = [r for r in trades.to_pylist() if r["kind"] != "B" and not r["voided"]]
    for name in ("bars_1m", "bars_10trades"):
        bars = table(converted / f"{name}.parquet")
        assert sum(bars["volume"].to_pylist()) == sum(r["size"] for r in good)


@pytest.mark.parametrize("price", ["float", "decimal"])
def test_prices_as_floats_and_decimals(day: Path, converted: Path, tmp_path: Path, price: str):
    run(day, tmp_path / "out", tables="bbo,trades,noii,bars", price=price)
    for name, column, count in (
        ("bbo", "bid_px", "bid_ct"),
        ("bbo", "ask_px", "ask_ct"),
        ("trades", "price", ""),
    ):
        exact = table(converted / f"{name}.parquet")
        made = table(tmp_path / "out" / f"{name}.parquet")
        absent = (
            [n == 0 for n in exact[count].to_pylist()]
            if count
            else [k == "B" for k in exact["kind"].to_pylist()]
        )
        assert any(absent)
        for fixed, value, none in zip(
            exact[column].to_pylist(), made[column].to_pylist(), absent, strict=True
        ):
            if none:
                assert value is None or value != value
            else:
                assert value * 10_000 == pytest.approx(fixed, abs=1e-6)
    vwap = table(tmp_path / "out" / "bars_1m.parquet")["vwap"].to_numpy()
    fixed = table(converted / "bars_1m.parquet")["vwap"].to_numpy()
    np.testing.assert_allclose(vwap * 10_000, fixed)


def test_arrow_and_csv_hold_the_same(day: Path, converted: Path, tmp_path: Path) -> None:
    names = ("bbo", "trades", "orders", "halts", "ipo", "directory")
    for form in ("arrow", "csv"):
        run(day, tmp_path / form, tables=",".join(names), form=form)
    for name in names:
        expected = table(converted / f"{name}.parquet")
        with pa.ipc.open_file(tmp_path / "arrow" / f"{name}.arrow") as file:
            assert file.read_all().to_pylist() == expected.to_pylist()
            assert file.schema.metadata[b"trident.session_date"] == b"2019-12-30"
        with open(tmp_path / "csv" / f"{name}.csv", newline="") as text:
            header, *rows = list(csv.reader(text))
        assert header == expected.schema.names
        assert len(rows) == expected.num_rows
        seq = header.index("seq")
        assert [int(row[seq]) for row in rows] == expected["seq"].to_pylist()
        symbol = header.index("symbol")
        assert [row[symbol] or None for row in rows] == expected["symbol"].to_pylist()


def test_the_parts_of_all_symbols_are_the_whole(day: Path, converted: Path, tmp_path: Path):
    run(day, tmp_path / "out", tables="bbo,orders,system", by_symbol=True)
    for name in ("bbo", "orders", "system"):
        whole = table(converted / f"{name}.parquet").to_pylist()
        folder = tmp_path / "out" / name
        by_symbol: dict[str, list[dict[str, Any]]] = {}
        for row in whole:
            symbol = row.pop("symbol") or "__HIVE_DEFAULT_PARTITION__"
            by_symbol.setdefault(symbol, []).append(row)
        assert {p.name.removeprefix("symbol=") for p in folder.iterdir()} == set(by_symbol)
        for symbol, rows in by_symbol.items():
            (part,) = (folder / f"symbol={symbol}").iterdir()
            assert pq.ParquetFile(part).read().to_pylist() == rows
    parts = dataset.dataset(tmp_path / "out" / "bbo", partitioning="hive").to_table()
    whole = table(converted / "bbo.parquet")
    assert sorted(parts["symbol"].to_pylist()) == sorted(whole["symbol"].to_pylist())


def test_symbols_and_windows_select_rows(day: Path, converted: Path, tmp_path: Path) -> None:
    wanted = table(converted / "directory.parquet")["stock"].to_pylist()[:2]
    tables = "bbo,trades,messages,depth,noii,halts"
    options = {"symbols": ",".join([*wanted, "NOSUCH"]), "start": "09:45", "until": "15:00"}
    summary = run(day, tmp_path / "out", tables=f"{tables},directory", **options)
    assert summary["missing"] == ["NOSUCH"]
    assert summary["metadata"]["trident.complete"] == "false"
    for name in tables.split(","):
        rows = [
            row
            for row in table(converted / f"{name}.parquet").to_pylist()
            if row["symbol"] in wanted and "14:45" <= f"{row['ts_event']:%H:%M:%S.%f}" < "20:00:00.000001"
        ]
        assert table(tmp_path / "out" / f"{name}.parquet").to_pylist() == rows, name
    assert table(tmp_path / "out" / "directory.parquet")["stock"].to_pylist() == wanted


def test_every_engine_writes_the_same(day: Path, converted: Path, tmp_path: Path) -> None:
    run(day, tmp_path / "out", tables="bbo,trades,depth,orders,noii", parser="reference", book="reference")
    for name in ("bbo", "trades", "depth", "orders", "noii"):
        assert table(tmp_path / "out" / f"{name}.parquet").equals(table(converted / f"{name}.parquet"))


def test_tables_without_rows_have_their_columns(day: Path, tmp_path: Path) -> None:
    run(day, tmp_path / "out", tables="trades,mwcb", until="03:30")
    read = table(tmp_path / "out" / "trades.parquet")
    assert (read.num_rows, read.schema.names[-1]) == (0, "voided")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tables": "bbo,quotes"}, "no table 'quotes'"),
        ({"form": "xlsx"}, "--format takes parquet, arrow, csv"),
        ({"price": "double"}, "--price takes fixed, decimal, float"),
        ({"naming": "databento", "tables": "bbo"}, "tables: mbo, mbp-1"),
        ({"tables": "bars", "bars": "1y"}, "not a kind of bar: '1y'"),
        ({"symbols": "NOSUCH"}, "no symbol 'NOSUCH'"),
        ({"start": "noon"}, "not a time of day"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing(day: Path, tmp_path: Path, options: Any, words: str):
    with pytest.raises(UsageError, match=words):
        run(day, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_without_a_date_it_asks_for_one(day: Path, tmp_path: Path) -> None:
    os.link(day, tmp_path / "day.gz")
    with pytest.raises(UsageError, match="--date"):
        run(tmp_path / "day.gz", tmp_path / "out")
    run(tmp_path / "day.gz", tmp_path / "out", date="2019-07-01", tables="system")
    first = table(tmp_path / "out" / "system.parquet")["ts_event"].to_pylist()[0]
    assert f"{first:%Y-%m-%d %H:%M}" == "2019-07-01 07:00"  # 03:00 in New York's summer


def test_a_folder_that_is_a_file_is_refused(day: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError, match="out"):
        run(day, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_damaged_input_is_converted_as_far_as_it_goes(day: Path, tmp_path: Path) -> None:
    data = gzip.decompress(day.read_bytes())
    (tmp_path / "2019-12-30.itch").write_bytes(data[: len(data) // 2 + 3])
    summary = run(tmp_path / "2019-12-30.itch", tmp_path / "out", date="2019-12-30")
    assert summary["run"]["anomalies"]["torn_tail"]["count"] == 1
    assert json.loads(summary["metadata"]["trident.anomalies"])["torn_tail"]["count"] == 1


def test_standard_input(trident: Run, day: Path, converted: Path, tmp_path: Path) -> None:
    done = trident("convert", "-", "out", "--date", "2019-12-30", "--tables", "bbo", stdin=day.read_bytes())
    assert done.returncode == 0, done.stderr
    read = table(tmp_path / "out" / "bbo.parquet")
    assert read.equals(table(converted / "bbo.parquet"))
    assert b"trident.source_md5" not in pq.ParquetFile(tmp_path / "out" / "bbo.parquet").metadata.metadata


def test_an_interrupted_run_leaves_older_files_and_no_half_ones(day: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "bbo.parquet").write_text("older")
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    args = ["convert", "pipe", "out", "--date", "2019-12-30", "--tables", "bbo,orders"]
    process = subprocess.Popen(
        [sys.executable, "-m", "trident_core.cli", *args], cwd=tmp_path, stderr=subprocess.PIPE
    )
    with open(fifo, "wb") as pipe:
        pipe.write(gzip.decompress(day.read_bytes())[:200_000])
        pipe.flush()
        deadline = time.monotonic() + 100
        while len(list((tmp_path / "out").iterdir())) < 1 or time.monotonic() < deadline - 98:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(100) == 130
    process.communicate()
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["bbo.parquet"]
    assert (tmp_path / "out" / "bbo.parquet").read_text() == "older"


def test_databento_names(day: Path, converted: Path, tmp_path: Path) -> None:
    summary = run(day, tmp_path / "out", naming="databento", tables="all")["tables"]
    assert list(summary) == ["mbo", "mbp-1", "mbp-10", "trades", "ohlcv-1s", "ohlcv-1m", "ohlcv-1h"]
    one = table(tmp_path / "out" / "mbp-1.parquet")
    native = table(converted / "bbo.parquet")
    assert one["sequence"].equals(native["seq"])
    assert one["symbol"].to_pylist() == native["symbol"].to_pylist()
    assert one["bid_ct_00"].equals(native["bid_ct"])
    assert one.schema.field("price").metadata[b"scale"] == b"9"
    minutes = table(tmp_path / "out" / "ohlcv-1m.parquet")
    bars = table(converted / "bars_1m.parquet")
    assert minutes["volume"].equals(bars["volume"])
    assert minutes["close"].to_pylist() == [n * 10**5 for n in bars["close"].to_pylist()]


@pytest.mark.slow
def test_the_commands_of_the_tables_page_work(trident: Run) -> None:
    page = (ROOT / "docs" / "tables.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("trident ")]
    assert len(lines) >= 5
    for line in lines:
        done = trident(*shlex.split(line)[1:])
        assert done.returncode == 0, (line, done.stderr)


def test_every_table_and_column_is_on_the_page(converted: Path) -> None:
    page = (ROOT / "docs" / "tables.md").read_text()
    for path in converted.glob("*.parquet"):
        name = path.stem.partition("_1")[0]
        assert f"`{name}`" in page
        if name in ("depth", "directory"):
            continue
        for column in pq.read_schema(path).names:
            assert f"`{column}`" in page, (name, column)
