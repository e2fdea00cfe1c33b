"""Runs over several threads: every output is that of one thread, on days of all kinds, real ones too."""

from __future__ import annotations

import datetime as dt
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trident_core as trident
from trident_book.numba_book import NumbaBook
from trident_core import inputs
from trident_core.contracts import EngineSpec, Kind
from trident_core.convert import ConvertOptions, run_convert
from trident_core.day import day as day_module
from trident_core.decode import decode
from trident_core.errors import TridentError, UsageError
from trident_core.export.files import Format
from trident_core.inputs import open_input
from trident_core.pipeline import Line, LineOptions
from trident_core.session import Session
from trident_core.sharding import ShardedBook, make_books
from trident_core.tables.catalog import DATABENTO_TABLES, TABLES, Naming

DATE = dt.date(2019, 12, 30)
THREADS = (2, 3, 8)
#: What may differ between two runs.
CLOCKS = ("wall_s", "stage_s", "events_per_s", "notices", "ring_full_waits", "ring_full_wait_s")


@pytest.fixture(scope="module")
def wide_day(make_day: Callable[..., Path]) -> Path:
    return make_day(messages=20_000, symbols=600, seed=5)


def replayed(
    path: Path | str, threads: int, *, lenient: bool = False, **options: Any
) -> tuple[dict[str, Any], list[str]]:
    """The statistics of a replay, and its notices."""
    opened = open_input(str(path), date=DATE, lenient=lenient, threads=threads)
    try:
        line = Line(opened.feed, opened.source, opened.parser, opened.book, options=LineOptions(**options))
        stats = line.run()
    finally:
        opened.close()
    opened.tell(stats)
    return {name: value for name, value in stats.to_json().items() if name not in CLOCKS}, stats.notices


def converted(
    path: Path,
    folder: Path,
    threads: int,
    *,
    lenient: bool = False,
    parser: str | None = None,
    **options: Any,
) -> dict[str, bytes]:
    """The bytes of each file that a conversion writes, but for the one that tells the time."""
    opened = open_input(str(path), date=DATE, lenient=lenient, threads=threads, parser=parser)
    try:
        run_convert(opened, folder / str(threads), ConvertOptions(md5=False, **options))
    finally:
        opened.close()
    files = (folder / str(threads)).rglob("*.*")
    return {file.name: file.read_bytes() for file in files if file.suffix == f".{options['form'].value}"}


@pytest.mark.parametrize("threads", THREADS)
def test_every_table_of_a_wide_day(wide_day: Path, tmp_path: Path, threads: int) -> None:
    options = {"tables": tuple(TABLES), "form": Format.CSV, "bars": ("1m", "100trades"), "depth": 3}
    law = converted(wide_day, tmp_path, 1, **options)
    assert len(law) == len(TABLES) + 1
    assert converted(wide_day, tmp_path, threads, **options) == law


@pytest.mark.parametrize("threads", THREADS)
def test_every_table_of_a_day_with_anomalies(odd_day: Path, tmp_path: Path, threads: int) -> None:
    options = {"tables": tuple(TABLES), "form": Format.CSV, "symbols": (), "start": 10 * 3_600 * 10**9}
    assert converted(odd_day, tmp_path, threads, **options) == converted(odd_day, tmp_path, 1, **options)


def test_databentos_names(wide_day: Path, tmp_path: Path) -> None:
    options = {"tables": tuple(DATABENTO_TABLES), "form": Format.CSV, "naming": Naming.DATABENTO}
    assert converted(wide_day, tmp_path, 2, **options) == converted(wide_day, tmp_path, 1, **options)


def test_some_symbols_and_a_window(wide_day: Path, tmp_path: Path) -> None:
    names = tuple(trident.open(wide_day, cache=False).symbols[5:300:7])
    options = {
        "tables": ("bbo", "trades", "orders"),
        "form": Format.CSV,
        "symbols": names,
        "until": 12 * 3_600 * 10**9,
    }
    law = converted(wide_day, tmp_path, 1, **options)
    assert law["bbo.csv"].count(b"\n") > 100
    assert converted(wide_day, tmp_path, 2, **options) == law


def test_parquet_is_the_same_byte_for_byte(
    wide_day: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but the footer, which has the time: column chunks, and how rows are grouped."""
    from trident_core.export import folder

    monkeypatch.setattr(folder, "GROUP_BYTES", 1 << 16)
    for form in (Format.PARQUET, Format.ARROW):
        options = {"tables": ("bbo", "trades", "messages"), "form": form}
        law, found = (converted(wide_day, tmp_path, n, **options) for n in (1, 2))
        assert law.keys() == found.keys()
        for name, data in law.items():
            at = data.rfind(b"trident.created")
            assert len(found[name]) == len(data)
            same = np.frombuffer(data, np.uint8) == np.frombuffer(found[name], np.uint8)
            if form is Format.PARQUET:
                import pyarrow.parquet as pq

                footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
                groups = pq.ParquetFile(tmp_path / "1" / name).metadata.num_row_groups
                assert same[:footer].all()
                assert at > footer
                assert groups > 2 or name == "trades.parquet"
            assert np.count_nonzero(~same) <= 40  # two times of writing


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("batch", [1 << 14, 97])
def test_a_replay_of_days(odd_day: Path, wide_day: Path, threads: int, batch: int) -> None:
    for path in (odd_day, wide_day):
        for options in ({}, {"until": 11 * 3_600 * 10**9}):
            law, notices = replayed(path, 1, batch=batch, **options)
            assert notices == []
            found, notices = replayed(path, threads, batch=batch, **options)
            assert found == law
            assert bool(notices) == (path is odd_day)


def test_real_data(shared: Callable[..., Path]) -> None:
    """Captures and day files that others made, compressed or not, torn, with zeroed lengths and headers."""
    files = [
        (shared("data", "itch50_runk", "locate-13-10k.bin"), False),
        (shared("data", "itch50_heads", "huckzou_partialData.bin"), False),
        (shared("data", "ritch", "ex20101224.TEST_ITCH_50.gz"), True),
        *[(path, True) for path in sorted(shared("data", "pcap").rglob("*.pcap"))],
    ]
    done = 0
    for path, lenient in files:
        try:
            law, _ = replayed(path, 1, lenient=lenient)
        except TridentError as error:
            with pytest.raises(type(error), match=re.escape(error.message)):
                replayed(path, 2, lenient=lenient)
            continue
        for threads in (2, 3):
            assert replayed(path, threads, lenient=lenient)[0] == law, path.name
        done += 1
    assert done > 20


def test_input_that_ends_in_any_way(odd_day: Path, tmp_path: Path) -> None:
    data = odd_day.read_bytes()
    end = len(data) // 3
    pieces = {
        "torn": data[:end],
        "malformed": data[:end] + b"\0\0\0\0",
        "one": data[:14],
        "bytes": b"\0\x0cS" + bytes(11),
    }
    for name, part in pieces.items():
        path = tmp_path / f"{name}.itch50"
        path.write_bytes(part)
        assert replayed(path, 2)[0] == replayed(path, 1)[0], name


def test_a_pipe(odd_day: Path, tmp_path: Path) -> None:
    """An input that cannot be read twice, and whose symbols share references: one pass is enough."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    law = replayed(odd_day, 1)[0]
    writer = threading.Thread(target=lambda: pipe.write_bytes(odd_day.read_bytes()))
    writer.start()
    found, notices = replayed(pipe, 2)
    writer.join()
    assert found | {"source": ""} == law | {"source": ""}
    assert "one thread builds all books" in notices[0]


@pytest.mark.parametrize("path", ["odd_day", "wide_day"])
@pytest.mark.parametrize("cache", [None, False], ids=["index", "no-index"])
def test_a_day_from_python(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, path: str, cache: bool | None
) -> None:
    monkeypatch.setattr(day_module, "_MANY", 2)
    where = request.getfixturevalue(path)
    tables = [
        "bbo",
        "trades",
        "messages",
        "depth",
        "orders",
        "bars",
        "noii",
        "halts",
        "ipo",
        "system",
        "directory",
    ]
    with trident.open(where, cache=cache) as one, trident.open(where, cache=cache, threads=3) as three:
        few = one.symbols[1:9]
        for name in tables:
            for chosen in (
                [{}] if name == "system" else [{}, {"symbols": few, "start": "10:00", "end": "15:00"}]
            ):
                assert (
                    three.table(name, **chosen).numpy().tobytes()
                    == one.table(name, **chosen).numpy().tobytes()
                )
        assert three.anomalies.to_json() == one.anomalies.to_json()
        assert three.counts() == one.counts()
        for name in few:
            found, law = (day.book_at(name, "12:00").orders for day in (three, one))
            assert np.array_equal(found, law)
        assert bool(three.survey.notices) == (path == "odd_day")
        assert next(iter(three.bbo())).dtype == three.bbo().dtype  # given up at once
    assert not [t for t in threading.enumerate() if t.name.startswith("trident-shard")]


class Batches(ShardedBook):
    """Remembers where its batches end: a slow machine has short ones, too (`decode.LINGER_S`)."""

    ends = (0,)

    def submit(self, events: Any, *rest: Any, **named: Any) -> Any:
        self.ends = (*self.ends, self.ends[-1] + len(events))
        return super().submit(events, *rest, **named)


class Interrupted(NumbaBook):
    """A user presses Ctrl-C while a shard applies its 4th batch."""

    batches = 0

    def apply(self, *arrays: Any) -> int:
        Interrupted.batches += 1
        if Interrupted.batches == 8:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
        return super().apply(*arrays)


def test_ctrl_c_leaves_whole_batches_and_no_thread(wide_day: Path) -> None:
    Interrupted.batches = 0
    opened = open_input(str(wide_day), date=DATE)
    opened.book = sharded = Batches(Interrupted, opened.session, 2)
    options = LineOptions(batch=500)
    stats = Line(opened.feed, opened.source, opened.parser, opened.book, options=options).run()
    opened.close()
    assert stats.interrupted
    assert 0 < stats.events == stats.applied < 20_000
    assert stats.events in sharded.ends
    again = open_input(str(wide_day), date=DATE)
    book = NumbaBook(Session())
    book.apply(np.concatenate([each.copy() for each in decode(again.feed, again.parser)])[: stats.events])
    again.close()
    assert stats.digest == book.digest().hex()
    assert not [t for t in threading.enumerate() if t.name.startswith("trident-shard")]


def test_ctrl_c_while_converting_leaves_no_file(wide_day: Path, tmp_path: Path) -> None:
    Interrupted.batches = 0
    opened = open_input(str(wide_day), date=DATE)
    opened.book = ShardedBook(Interrupted, opened.session, 8)
    done = run_convert(opened, tmp_path / "out", ConvertOptions(md5=False))
    opened.close()
    assert done.stats.interrupted
    assert not (tmp_path / "out").exists()


class Broken(NumbaBook):
    """Raises in one shard, and not at once."""

    def apply(self, events: Any, *arrays: Any) -> int:
        if (events["type"] == ord("Q")).any():
            raise ZeroDivisionError("in a shard")
        return super().apply(events, *arrays)


def test_an_engine_that_raises_ends_the_run(wide_day: Path, tmp_path: Path) -> None:
    opened = open_input(str(wide_day), date=DATE)
    opened.book = ShardedBook(Broken, opened.session, 3)
    with pytest.raises(ZeroDivisionError, match="in a shard"):
        run_convert(opened, tmp_path / "out", ConvertOptions(md5=False))
    opened.close()
    assert not (tmp_path / "out").exists()
    assert not [t for t in threading.enumerate() if t.name.startswith("trident-shard")]


def test_an_engine_that_is_not_made_for_threads(odd_day: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets one thread, a notice says so, and nothing else is different."""
    spec = EngineSpec(Kind.BOOK, "plain", "trident_book.reference:ReferenceBook", "no capabilities")
    monkeypatch.setattr(inputs, "make_books", lambda _, session, threads: make_books(spec, session, threads))
    found, notices = replayed(odd_day, 4)
    assert found == replayed(odd_day, 1)[0]
    assert "not made for several threads" in notices[0]


def test_wrong_numbers_of_threads(odd_day: Path) -> None:
    for threads in (0, -1, 65, "2"):
        with pytest.raises(UsageError, match="threads"):
            open_input(str(odd_day), threads=threads)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="threads"):
            trident.open(odd_day, threads=threads)
