"""Rows go to files through buffers that are used again: what is put is what is read, on a slow disk too."""

from __future__ import annotations

import datetime as dt
import time

import numpy as np
import pytest

from trident_core.session import Instrument, Session
from trident_core.tables.quotes import BBO

pytest.importorskip("pyarrow")

import pyarrow.dataset as ds

from trident_core.export import folder as folders
from trident_core.export.columns import Layout, Prices, SymbolCodes
from trident_core.export.files import Format, TableFile
from trident_core.export.folder import TableFolder


@pytest.fixture
def slow_disk(monkeypatch):
    """A disk that is slower than the rows come: buffers wait for it."""
    write = TableFile.write

    def slowly(self, batch):
        time.sleep(0.02)
        write(self, batch)

    monkeypatch.setattr(TableFile, "write", slowly)


@pytest.fixture
def session():
    made = Session(date=dt.date(2019, 12, 30))
    for locate in range(1, 4):
        made.directory.put(Instrument(locate, f"S{locate}"))
    return made


def quotes(n):
    rows = np.zeros(n, BBO)
    for number, name in enumerate(BBO.names):
        rows[name] = np.arange(n) * 7 + number
    rows["locate"] = 1 + np.arange(n) % 3
    return rows


def put_all(target, rows, sizes):
    """Put rows in pieces of these sizes, through one array that is overwritten after each."""
    start, piece = 0, np.zeros(max(sizes), BBO)
    while start < len(rows):
        for size in sizes:
            taken = rows[start : start + size]
            piece[: len(taken)] = taken
            target.put("bbo", piece[: len(taken)])
            piece.view(np.uint8)[:] = 0xFF
            start += size


@pytest.mark.usefixtures("slow_disk")
@pytest.mark.parametrize("form", list(Format))
def test_groups_of_any_pieces_hold_what_was_put(tmp_path, monkeypatch, session, form):
    monkeypatch.setattr(folders, "GROUP_BYTES", 50 * BBO.itemsize)
    rows = quotes(1_037)
    layouts = {"bbo": Layout(BBO, Prices.FIXED, 4)}
    target = TableFolder(tmp_path, layouts, form, SymbolCodes(session), {})
    put_all(target, rows, [1, 49, 120, 3])
    target.finish({})
    assert target.rows == {"bbo": 1_037}
    found = ds.dataset(tmp_path / f"bbo.{form}", format="ipc" if form is Format.ARROW else form.value)
    table = found.to_table()
    for name in BBO.names[1:]:
        assert table[name].to_pylist() == rows[name].tolist(), name
    assert [str(symbol) for symbol in table["symbol"].to_pylist()] == [f"S{n}" for n in rows["locate"]]


@pytest.mark.usefixtures("slow_disk")
def test_parts_of_symbols_hold_what_was_put(tmp_path, monkeypatch, session):
    monkeypatch.setattr(folders, "PARTITION_BYTES", 100 * BBO.itemsize)
    rows = quotes(731)
    layouts = {"bbo": Layout(BBO, Prices.FIXED, 4, symbol=False)}
    target = TableFolder(tmp_path, layouts, Format.PARQUET, SymbolCodes(session), {}, by_symbol=True)
    put_all(target, rows, [64, 1, 100])
    target.finish({})
    for locate in range(1, 4):
        mine = rows[rows["locate"] == locate]
        parts = sorted((tmp_path / "bbo" / f"symbol=S{locate}").iterdir())
        assert len(parts) == 8
        table = ds.dataset(parts).to_table()
        for name in BBO.names[1:]:
            assert table[name].to_pylist() == mine[name].tolist(), name


def test_few_buffers_are_made(tmp_path, monkeypatch, session):
    """Memory is bounded by the groups on their way, not by the rows."""
    monkeypatch.setattr(folders, "GROUP_BYTES", 10 * BBO.itemsize)
    seen = set()
    batch = Layout.batch

    def noted(self, parts, symbols, **options):
        seen.add(parts[0].__array_interface__["data"][0])
        return batch(self, parts, symbols, **options)

    monkeypatch.setattr(Layout, "batch", noted)
    layouts = {"bbo": Layout(BBO, Prices.FIXED, 4)}
    target = TableFolder(tmp_path, layouts, Format.ARROW, SymbolCodes(session), {})
    put_all(target, quotes(1_000), [7])
    target.finish({})
    assert 1 <= len(seen) <= folders.WAITING + 2
