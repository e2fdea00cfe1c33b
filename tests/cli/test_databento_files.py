"""DBN files through the commands: tables of Databento's names, LOBSTER's files, a store, a day in Python."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pq = pytest.importorskip("pyarrow.parquet")
dbn = pytest.importorskip("databento_dbn")

from trident_core.cli.convert import convert  # noqa: E402
from trident_core.errors import InputError  # noqa: E402

Run = Callable[..., "subprocess.CompletedProcess[str]"]
CME = ("data", "databento_dbn", "orderbooks_mbo_2024-05-08T00-00-00_2024-05-08T00-00-02.dbn.zst")
NASDAQ = ("data", "databento_dbn", "XNAS.ITCH")


def run(file: Path, out: Path, **options: Any) -> dict[str, Any]:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        convert(str(file), out, json=True, **options)
    made: dict[str, Any] = json.loads(text.getvalue())
    return made


def records(path: Path) -> list[Any]:
    """As Databento's decoder reads them."""
    import zstandard

    decoder = dbn.DBNDecoder()
    with open(path, "rb") as file:
        decoder.write(zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read())
    decoded: list[Any] = decoder.decode()[1:]
    return decoded


def test_mbo_comes_back(shared: Callable[..., Path], tmp_path: Path) -> None:
    """Times, ids, prices of every record but the clear; the order of what changes the book."""
    path = shared(*CME)
    summary = run(path, tmp_path / "out", naming="databento", tables="all")
    table = pq.read_table(tmp_path / "out" / "mbo.parquet").to_pylist()
    source = [r for r in records(path) if str(r.action) != "R"]
    assert len(table) == len(source) == summary["tables"]["mbo"]["rows"]
    mine = [
        (r["ts_event"].value, r["instrument_id"], r["action"], r["side"], r["price"], r["size"],
         r["order_id"], r["flags"], r["sequence"])
        for r in table if r["action"] in "ACM"
    ]  # fmt: skip
    theirs = [
        (r.ts_event, r.instrument_id, str(r.action), str(r.side), r.price, r.size, r.order_id, int(r.flags),
         r.sequence)
        for r in source if str(r.action) in "ACM"
    ]  # fmt: skip
    assert mine == theirs
    assert {row["symbol"] for row in table} == {"ESM4"}
    trades = pq.read_table(tmp_path / "out" / "trades.parquet").to_pylist()
    assert [(r["side"], r["price"], r["size"]) for r in trades] == [
        (str(r.side), r.price, r.size) for r in source if str(r.action) == "T"
    ]
    assert sum(r["volume"] for r in pq.read_table(tmp_path / "out" / "ohlcv-1m.parquet").to_pylist()) == 6
    meta = summary["metadata"]
    assert (meta["trident.venue"], meta["trident.tz"], meta["trident.price_scale"]) == ("GLBX", "UTC", "9")
    assert meta["trident.session_date"] == "2024-05-08"


def test_a_date_that_only_the_file_carries(shared: Callable[..., Path], tmp_path: Path) -> None:
    summary = run(shared(*NASDAQ, "test_data.mbo.dbn.zst"), tmp_path / "out", tables="bbo,orders")
    assert summary["metadata"]["trident.session_date"] == "2020-12-28"
    rows = pq.read_table(tmp_path / "out" / "bbo.parquet").to_pylist()
    levels = [r.levels[0] for r in records(shared(*NASDAQ, "test_data.mbp-1.dbn.zst"))][:3]
    assert [(r["bid_px"], r["bid_sz"], r["bid_ct"]) for r in rows] == [
        (level.bid_px, level.bid_sz, level.bid_ct) for level in levels
    ]
    assert f"{rows[0]['ts_event']:%Y-%m-%d %H:%M:%S}" == "2020-12-28 09:01:28"


def test_lobsters_files_of_databentos_orders(shared: Callable[..., Path], tmp_path: Path) -> None:
    path = shared(*NASDAQ, "test_data.mbo.dbn.zst")
    run(path, tmp_path / "out", form="lobster", start="00:00", until="24:00", depth=1)
    message = tmp_path / "out" / "NVDA_2020-12-28_0_86400000_message_1.csv"
    assert message.read_text().splitlines() == [
        "14488.297098637,1,196851,2,5020000,1",
        "14488.297194641,1,196855,1,5120100,1",
        "14493.580213335,1,198583,17,5390000,-1",
    ]
    books = message.with_name(message.name.replace("message", "orderbook")).read_text().splitlines()
    assert books[-1] == "5390000,17,5120100,1"


def test_other_schemas_leave_nothing(shared: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds the schema mbp-10"):
        run(shared(*NASDAQ, "test_data.mbp-10.dbn.zst"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_info_and_a_store(trident: Run, shared: Callable[..., Path]) -> None:
    done = trident("info", shared(*CME), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["counts"] == {"A": 13_678, "C": 80, "F": 5, "M": 27, "R": 1, "T": 5}
    assert told["session"]["symbols"] == 1
    done = trident("run", shared(*CME), "store")
    assert done.returncode == 0, done.stderr
    done = trident("query", "store", "--symbol", "^ES", "--type", "U", "--count")
    assert (done.returncode, done.stdout.strip().splitlines()[-1].split()[-1]) == (0, "23"), done.stdout


def test_a_day_from_python_has_the_files_own_time(shared: Callable[..., Path]) -> None:
    """Date, time zone and scale are in the file, and known before its first table is made."""
    import trident_core as trident

    path = shared(*NASDAQ, "test_data.mbo.dbn.zst")
    with trident.open(path) as day:
        assert (str(day.session.date), day.session.venue, day.session.price_decimals) == (
            "2020-12-28",
            "XNAS",
            9,
        )
        assert day.symbols == ["NVDA"]
        rows = day.bbo("NVDA").numpy()
    source = records(path)
    assert rows["ts_event"].tolist() == [r.ts_event for r in source[:3]]
    assert rows["bid_px"].tolist() == [source[0].price, source[1].price, source[1].price]
