"""`trident convert --format lobster` as a user runs it, judged by our LOBSTER feed and by the depth table."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core.cli.convert import convert
from trident_core.convert_lobster import LobsterOptions, run_lobster
from trident_core.errors import InputError, UsageError
from trident_core.export import lobster as files_module
from trident_core.inputs import open_input
from trident_core.tables import lobster as rows_module
from trident_core.tables.levels import DepthTable
from trident_parser.lobster_gaps import read_day

DAY = 24 * 3600 * 10**9
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def run(file: Path | str, out: Path, **options: Any) -> dict[str, Any]:
    """The command's function, in this process: its summary."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        convert(str(file), out, form="lobster", json=True, **options)
    made: dict[str, Any] = json.loads(text.getvalue())
    return made


def whole_day(file: Path, out: Path, depth: int, **more: Any) -> dict[str, Any]:
    return run(file, out, start="00:00", until="24:00", depth=depth, **more)


def pairs(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Symbol -> its message file and its orderbook file."""
    return {
        path.name.partition("_")[0]: (path, path.with_name(path.name.replace("_message_", "_orderbook_")))
        for path in sorted(folder.glob("*_message_*.csv"))
    }


def orderbook(path: Path) -> list[list[int]]:
    return [[int(number) for number in line.split(",")] for line in path.read_text().splitlines()]


def levels_of(row: list[int]) -> dict[str, list[tuple[int, int]]]:
    """Side -> (price, size) of the levels that are there, best first."""
    both = {"S": zip(row[0::4], row[1::4], strict=True), "B": zip(row[2::4], row[3::4], strict=True)}
    return {side: [level for level in levels if level[1]] for side, levels in both.items()}


@pytest.fixture(scope="module")
def deep(day: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole day with more levels than it ever has."""
    out = tmp_path_factory.mktemp("deep")
    summary = whole_day(day, out, 50)
    assert "outside_depth" not in summary["counted"]
    return out


def test_our_feed_rebuilds_every_row_from_the_messages(deep: Path) -> None:
    """Nothing is outside this depth, so the messages alone make the book: row for row the orderbook file."""
    for message, book_file in pairs(deep).values():
        session, events, anomalies = read_day(message)
        assert not anomalies
        rows = orderbook(book_file)
        book = ReferenceBook(session)
        assert len(rows) == len(events)
        for k, row in enumerate(rows):
            book.apply(events[k : k + 1])
            theirs = levels_of(row)
            for side in "BS":
                assert [tuple(v)[:2] for v in book.levels(1, side).tolist()] == theirs[side], (message, k)
        assert not set(book.anomalies) - {"not_at_head", "crossed"}


@pytest.mark.parametrize("depth", [1, 3])
def test_each_row_is_the_row_before_with_its_message(day: Path, deep: Path, tmp_path: Path, depth: int):
    """LOBSTER's own law. All that a depth leaves out enters from below, or happens there."""
    whole_day(day, tmp_path / "out", depth)
    for symbol, (message, book_file) in pairs(tmp_path / "out").items():
        _, events, _ = read_day(message)
        rows = [levels_of(row) for row in orderbook(book_file)]
        before: dict[str, list[tuple[int, int]]] = {"B": [], "S": []}
        for event, after in zip(events, rows, strict=True):
            kind, side = chr(event["type"]), chr(event["side"])
            for s in "BS":
                expected = dict(before[s])
                if s == side and kind in "AXDE":
                    price = int(event["price"])
                    left = expected.get(price, 0) + int(event["qty"]) * (1 if kind == "A" else -1)
                    expected[price] = left
                    assert left >= 0
                    assert left or expected.pop(price) == 0
                ordered = sorted(expected.items(), reverse=s == "B")[:depth]
                assert after[s][: len(ordered)] == ordered, (symbol, event)
                assert len(after[s]) == len(ordered) or len(before[s]) == depth > len(ordered)
            before = after
        assert set(message.read_text().splitlines()) <= set(pairs(deep)[symbol][0].read_text().splitlines())


@pytest.mark.parametrize("depth", [1, 5])
def test_the_rows_are_the_depth_table(day: Path, tmp_path: Path, depth: int) -> None:
    """At each time the last row is the table's; and each row of the table has a row here."""
    whole_day(day, tmp_path / "out", depth)
    opened = open_input(str(day), book="reference")
    from trident_core.decode import decode

    table_of = DepthTable(opened.book, depth)
    try:
        parts = [table_of.apply(batch.copy()) for batch in decode(opened.feed, opened.parser)]
    finally:
        opened.close()
    table, midnight = np.concatenate(parts), opened.session.midnight_ns()
    names = [
        (side, f"{side}_{what}_{n:02d}")
        for n in range(depth)
        for side in ("ask", "bid")
        for what in ("px", "sz")
    ]
    compared = 0
    for symbol, (message, book_file) in pairs(tmp_path / "out").items():
        mine = table[table["locate"] == opened.session.directory.locate(symbol)]
        _, events, _ = read_day(message)
        rows = orderbook(book_file)
        last_at = {int(ts): row for ts, row in zip(events["ts"], rows, strict=True)}
        shown: dict[int, list[int]] = {}
        for row in mine:
            numbers = []
            for side, name in names:
                there = row[name.replace("_px_", "_ct_")] or "_px_" not in name
                dummy = 9_999_999_999 if side == "ask" else -9_999_999_999
                numbers.append(int(row[name]) if there else dummy)
            shown[int(row["ts_event"]) - midnight] = numbers
        assert shown.keys() <= last_at.keys()
        state = [9_999_999_999, 0, -9_999_999_999, 0] * depth
        for ts, row in last_at.items():
            state = shown.get(ts, state)
            assert row == state, (symbol, ts)
            compared += 1
    assert compared > 2_000


def test_the_window_and_the_names(day: Path, deep: Path, tmp_path: Path) -> None:
    summary = run(day, tmp_path / "out", depth=50)
    assert summary["files"] == "*_2019-12-30_34200000_57600000_*_50.csv"
    assert (
        sum(len(m.read_text().splitlines()) for m, _ in pairs(tmp_path / "out").values()) == summary["rows"]
    )
    for symbol, (message, book_file) in pairs(tmp_path / "out").items():
        whole_message, whole_book = pairs(deep)[symbol]
        lines = whole_message.read_text().splitlines()
        inside = [n for n, line in enumerate(lines) if 34_200 <= float(line.partition(",")[0]) <= 57_600]
        assert message.read_text().splitlines() == [lines[n] for n in inside]
        books = whole_book.read_text().splitlines()
        assert book_file.read_text().splitlines() == [books[n] for n in inside]
    sizes = {kind: sum(p[i].stat().st_size for p in pairs(tmp_path / "out").values()) for i, kind in
             enumerate(("message", "orderbook"))}  # fmt: skip
    assert sizes == summary["bytes"]
    assert json.loads((tmp_path / "out" / "trident.json").read_text()) == summary
    assert summary["metadata"]["trident.session_date"] == "2019-12-30"


def test_symbols_that_were_asked_for(day: Path, deep: Path, tmp_path: Path) -> None:
    wanted = list(pairs(deep))[:2]
    summary = whole_day(day, tmp_path / "out", 50, symbols=",".join([*wanted, "NOSUCH"]))
    assert (summary["missing"], summary["symbols"]) == (["NOSUCH"], wanted)
    made = pairs(tmp_path / "out")
    assert list(made) == wanted
    for symbol in wanted:
        assert [p.read_bytes() for p in made[symbol]] == [p.read_bytes() for p in pairs(deep)[symbol]]
    early = run(day, tmp_path / "early", symbols=wanted[0], start="00:00", until="00:01")
    assert [p.read_bytes() for p in pairs(tmp_path / "early")[wanted[0]]] == [b"", b""]
    assert early["rows"] == 0


def test_any_size_of_blocks_and_buffers_writes_the_same(
    day: Path, deep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "BLOCK_BYTES", 50_000)
    monkeypatch.setattr(files_module, "FILE_BYTES", 3_000)
    monkeypatch.setattr(files_module, "PENDING_BYTES", 9_000)
    whole_day(day, tmp_path / "out", 50, parser="reference", book="reference")
    names = sorted(path.name for path in deep.glob("*.csv"))
    assert sorted(path.name for path in (tmp_path / "out").glob("*.csv")) == names
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (deep / name).read_bytes()


def test_a_real_lobster_file_gives_back_what_a_book_can_know_of_it(
    shared: Callable[..., Path], tmp_path: Path
) -> None:
    """A message file alone has no opening book: what names an unknown order is left out, and counted."""
    sample = shared("data", "lobster_2012-06-21", "LOBSTER_SampleFile_AMZN_2012-06-21_1.zip")
    summary = run(sample, tmp_path / "out", depth=1)
    ((message, _),) = pairs(tmp_path / "out").values()
    assert message.name == "AMZN_2012-06-21_34200000_57600000_message_1.csv"
    unknown = summary["run"]["anomalies"]["unknown_ref"]["count"]
    hidden = summary["counted"]["outside_depth"]["count"]
    assert summary["rows"] == 57_515 - unknown - hidden == len(message.read_text().splitlines())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tables": "bbo"}, "nothing to choose for --tables"),
        ({"price": "float", "by_symbol": True}, "--price, --by-symbol"),
        ({"naming": "databento"}, "--naming"),
        ({"bars": "5m"}, "--bars"),
        ({"symbols": "NOSUCH"}, "no symbol 'NOSUCH'"),
        ({"start": "10:00", "until": "09:59"}, "end before it starts"),
    ],
)
def test_what_cannot_be_done_is_said_and_leaves_nothing(day: Path, tmp_path: Path, options: Any, words: str):
    with pytest.raises(UsageError, match=words):
        run(day, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_disk_that_refuses_is_one_error_and_leaves_nothing(
    day: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="cannot make the folder"):
        run(day, tmp_path / "file")
    monkeypatch.setattr(files_module, "FILE_BYTES", 1_000)
    opened = []

    def full(path: Path, *args: Any, **more: Any) -> Any:
        opened.append(path)
        if len(opened) > 20:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return open(path, *args, **more)

    monkeypatch.setattr(files_module, "open", full, raising=False)
    with pytest.raises(InputError, match="cannot be written: No space"):
        run(day, tmp_path / "out")
    assert len(opened) == 21
    assert not (tmp_path / "out").exists()


def test_symbols_that_no_file_name_can_have(day: Path, tmp_path: Path) -> None:
    """Slashes, two symbols of one name, and none: each pair has its own name."""
    opened = open_input(str(day))
    listed = list(opened.session.directory)
    assert not listed
    from trident_core.session import Instrument

    directory = opened.session.directory
    names = {1: "BRK/A", 2: "A+", 3: "A+"}
    put = directory.put

    def renamed(instrument: Instrument) -> None:
        symbol = names.get(instrument.locate, instrument.symbol)
        put(Instrument(instrument.locate, symbol, instrument.details))

    directory.put = renamed  # type: ignore[method-assign]
    try:
        done = run_lobster(opened, tmp_path / "out", LobsterOptions(md5=False))
    finally:
        opened.close()
    assert {"BRK/A", "A+", "A+.locate-3"} <= set(done.symbols)
    made = set(pairs(tmp_path / "out"))
    assert {"BRK%2FA", "A+", "A+.locate-3"} <= made
    assert len(made) == len(done.symbols)


def test_an_interrupted_run_leaves_older_files_and_no_half_ones(day: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    names = (f"ZXZZT_2019-12-30_34200000_57600000_{kind}_10.csv" for kind in ("message", "orderbook"))
    older = dict.fromkeys(names, b"older")
    for name, data in older.items():
        (tmp_path / "out" / name).write_bytes(data)
    os.mkfifo(tmp_path / "pipe")
    args = ["convert", "pipe", "out", "--date", "2019-12-30", "--format", "lobster"]
    process = subprocess.Popen(
        [sys.executable, "-m", "trident_core.cli", *args], cwd=tmp_path, stderr=subprocess.PIPE
    )
    with open(tmp_path / "pipe", "wb") as pipe:
        pipe.write(gzip.decompress(day.read_bytes())[:200_000])
        pipe.flush()
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        assert process.wait(100) == 130
    process.communicate()
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == older


def test_the_command_says_what_it_wrote(trident: Run, day: Path) -> None:
    done = trident("convert", day, "out", "--format", "lobster", "--depth", "1")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+ pairs \*_2019-12-30_34200000_57600000_\*_1\.csv, [\d,]+ rows", done.stdout)
    assert "changes of the book outside the depth: not in the files" in done.stdout


@pytest.mark.slow
def test_the_commands_of_the_page_work(trident: Run) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "lobster.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith(("trident simulate", "trident convert"))]
    assert len(lines) == 3
    for line in lines:
        done = trident(*line.split()[1:])
        assert done.returncode == 0, (line, done.stderr)
