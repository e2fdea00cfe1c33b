"""Every command as a user runs it: what it prints, as a table and as JSON, and how it exits."""

from __future__ import annotations

import datetime as dt
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from trident_core.benchmarks.latency import OPERATIONS
from trident_core.cli.names import COMMANDS
from trident_store.reference import ReferenceStore

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_help_lists_every_command_fast_and_without_numba(trident: Run) -> None:
    done = trident("--help")
    assert done.returncode == 0
    for name in (*COMMANDS, "simulate", "facts", "exchange", "order"):
        assert f"\n  {name} " in done.stdout
    code = (
        "import sys; from trident_core.cli.main import build\n"
        "try: build(['--help'])(['--help'])\n"
        "except SystemExit: print(sorted({'numba', 'numpy', 'llvmlite'} & set(sys.modules)))"
    )
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert imported.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", [*COMMANDS, "simulate", "facts", "exchange", "order"])
def test_every_command_explains_itself(trident: Run, name: str) -> None:
    done = trident(name, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: " in done.stdout
    assert "--json" in done.stdout


def test_version(trident: Run) -> None:
    assert trident("--version").stdout == "trident 0.1.0\n"


def test_info_and_replay_of_a_day(trident: Run, day: Path) -> None:
    info = json.loads(trident("info", day, "--json").stdout)
    assert info["events"] == sum(info["counts"].values()) == 6_000
    assert info["session"] == {
        "venue": "XNAS", "date": "2019-12-30", "tz": "America/New_York", "price_decimals": 4,
        "qty_decimals": 0, "protocol": "itch50", "symbols": 12,
    }  # fmt: skip
    assert info["ends"] == "on a message boundary"
    assert info["anomalies"] == {}
    assert "6,000" in trident("info", day).stdout

    whole = json.loads(trident("replay", day, "--json").stdout)
    part = json.loads(trident("replay", day, "--at", "10:00", "--json").stdout)
    assert part["events"] == sum(part["counts"].values()) < whole["events"]
    assert part["last_ts"] <= 36_000 * 10**9
    symbol = next(iter(part["books"]))
    shown = trident("replay", day, "--symbols", symbol, "--at", "10:00", "--depth", "2").stdout
    assert f"{symbol} depth" in shown
    assert "touch" in shown


def test_every_engine_gives_the_same_digest(trident: Run, day: Path) -> None:
    digests = {
        json.loads(trident("replay", day, "--parser", parser, "--book", book, "--json").stdout)["digest"]
        for parser in ("reference", "numba")
        for book in ("reference",)
    }
    assert len(digests) == 1


def test_run_query_verify(trident: Run, day: Path, tmp_path: Path) -> None:
    run = json.loads(trident("run", day, "store", "--json").stdout)
    assert run["stored"] == run["durable_seq"] == run["events"] == 6_000

    verify = json.loads(trident("verify", "store", "--json").stdout)
    assert verify["ok"]
    assert verify["events"] == 6_000
    assert "sound" in trident("verify", "store").stdout

    counted = json.loads(trident("query", "store", "--type", "[AF]", "--count", "--json").stdout)
    assert counted["by_type"] == {key: run["counts"][key] for key in counted["by_type"]}
    by_symbol = json.loads(
        trident("query", "store", "--symbol", ".", "--count", "--by", "symbol", "--json").stdout
    )
    assert len(by_symbol["by_symbol"]) == 12
    lines = trident("query", "store", "--symbol", "^ZXZZT$", "--limit", "3", "--json").stdout.splitlines()
    assert [json.loads(line)["symbol"] for line in lines] == ["ZXZZT"] * 3
    table = trident("query", "store", "--mpid", "^[A-Z]{4}", "--limit", "2").stdout
    assert "stopped at --limit 2" in table

    again = trident("run", day, "store")
    assert again.returncode == 2
    assert "--resume" in again.stderr
    resumed = json.loads(trident("run", day, "store", "--resume", "--json").stdout)
    assert (resumed["stored"], resumed["durable_seq"]) == (0, 6_000)


def test_verify_names_the_place_of_damage_and_exits_with_4(trident: Run, day: Path, tmp_path: Path) -> None:
    trident("run", day, "store")
    segment = max((tmp_path / "store").glob("*.seg"), key=lambda path: path.stat().st_size)
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    done = trident("verify", "store")
    assert done.returncode == 4
    assert "damaged" in done.stdout
    assert segment.name in done.stdout
    query = trident("query", "store", "--count")
    assert query.returncode == 4
    assert query.stderr.startswith("error: ")
    assert segment.name in query.stderr


def test_stdin_and_a_closed_pipe(trident: Run, day: Path) -> None:
    done = trident("info", "-", "--json", stdin=day.read_bytes())
    assert json.loads(done.stdout)["events"] == 6_000
    shell = f"{sys.executable} -m trident_core.cli plugins --json | head -c 1"
    piped = subprocess.run(shell, shell=True, capture_output=True, text=True, timeout=60)
    assert piped.stderr == ""


def test_interrupting_a_run_leaves_a_valid_store(trident: Run, tmp_path: Path) -> None:
    assert trident("simulate", "day.itch", "-n", "200000", "-s", "50").returncode == 0
    command = [
        sys.executable,
        "-m",
        "trident_core.cli",
        "run",
        "day.itch",
        "store",
        "--book",
        "reference",
        "--json",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # until events are on their way to the disk
        if sum(path.stat().st_size for path in tmp_path.glob("store/*.seg")) > 1 << 20:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    stats = json.loads(out)
    assert stats["interrupted"]
    assert b"Traceback" not in err
    verify = json.loads(trident("verify", "store", "--json").stdout)
    assert verify["ok"]
    assert verify["events"] == stats["stored"] < 200_000
    resumed = json.loads(trident("run", "day.itch", "store", "--resume", "--json").stdout)
    assert resumed["stored"] == 200_000 - stats["stored"]
    assert json.loads(trident("verify", "store", "--json").stdout)["events"] == 200_000


def test_demo_ends_with_answers_and_replaces_only_its_own_folder(
    trident: Run, tmp_path: Path, day: Path
) -> None:
    done = trident("demo", "--messages", "5000", "--symbols", "8")
    assert done.returncode == 0, done.stderr
    for part in ("1. simulated a day", "sound", "most active symbols", "answers from the store"):
        assert part in done.stdout
    again = json.loads(trident("demo", day, "--json").stdout)
    assert again["verified"]
    assert again["run"]["events"] == 6_000
    assert again["answers"][0]["count"] > 0
    (tmp_path / "mine").mkdir()
    refused = trident("demo", "--out", "mine")
    assert refused.returncode == 2
    assert "is not an earlier demo's" in refused.stderr


def test_plugins_and_doctor(trident: Run) -> None:
    rows = json.loads(trident("plugins", "--json").stdout)
    assert {row["status"] for row in rows if row["distribution"] == "trident-core"} == {"ok"}
    assert {row["kind"] for row in rows} >= {"feed", "parser", "book", "store", "query", "command"}
    assert "reference" in trident("plugins").stdout
    checks = json.loads(trident("doctor", "--json").stdout)
    assert {"python", "numba", "cpu", "huge pages", "compile cache", "crc32c"} <= {c["check"] for c in checks}
    assert trident("doctor").returncode == 0


def test_bench_prints_ratios_to_its_peers(trident: Run) -> None:
    done = trident("bench", "ring", "--messages", "3000", "--symbols", "10", "--rounds", "1", "--json")
    (result,) = json.loads(done.stdout)
    assert set(result["contenders"]) >= {"queue.SimpleQueue"}
    assert all(c["ratio_to_first"] > 0 for c in result["contenders"].values())


def test_bench_latency_has_a_row_for_each_operation_and_the_floor(trident: Run) -> None:
    args = ("bench", "latency", "--messages", "20000", "--symbols", "10", "--rounds", "1")
    (result,) = json.loads(trident(*args, "--json").stdout)
    rows = result["operations"]
    assert list(rows)[:4] == ["add", "reduce", "delete", "replace"]
    assert sum(rows.get(name, {"count": 0})["count"] for name in OPERATIONS.values()) == 20_000
    assert rows["all"]["count"] == 20_000
    for row in (*rows.values(), result["floor"]):
        assert 0 < row["p50"] <= row["p90"] <= row["p99"] <= row["p99_9"] <= row["max"]
    assert rows["add"]["p50"] >= result["floor"]["p50"]
    assert "live orders at the peak" in result["input"]

    reference = trident(*args, "--book", "reference", "--symbols", "20")
    assert "holds a call from Python" in reference.stdout
    assert "floor of the clock" in reference.stdout


@pytest.mark.slow
def test_bench_book_measures_memory_and_names_its_input(trident: Run) -> None:
    args = ("--messages", "3000", "--symbols", "10", "--rounds", "1", "--day", "narrow,wide", "--json")
    results = json.loads(trident("bench", "book", *args).stdout)
    assert len(results) == 2
    for result in results:
        assert result["input"].startswith("simulated day: 3,000 messages, 10 symbols, ")
        for contender in result["contenders"].values():
            assert 10 < contender["peak_anonymous_mb"] <= contender["peak_rss_mb"] < 1_000


@pytest.mark.parametrize(
    ("args", "code", "error", "hint"),
    [
        (["info", "nothing-here"], 3, "does not exist", ""),
        (["info", "."], 3, "is a folder", ""),
        (["info", "empty"], 3, "empty", ""),
        (["info", "text"], 3, "no feed recognises", "feeds installed"),
        (["info", "day", "--date", "30.12.2019"], 2, "not a date", "2019-12-30"),
        (["info", "day", "--feed", "nope"], 5, "no feed engine named 'nope'", "installed: "),
        (["replay", "day", "--at", "noon"], 2, "not a time of day", "10:31"),
        (["replay", "day", "--symbols", "NOPE"], 2, "no symbol 'NOPE'", ""),
        (["replay", "day", "--book", "nope"], 5, "no book engine named 'nope'", "installed: "),
        (["query", "nothing-here"], 4, "nothing-here", ""),
        (["verify", "nothing-here"], 4, "nothing-here", ""),
        (["bench", "nope"], 2, "no benchmark 'nope'", "there are"),
        (["bench", "book", "--day", "narrow,long"], 2, "no day 'long'", "quick, narrow, wide"),
        (["nope"], 2, "No such command", ""),
    ],
)
def test_errors_are_one_line_with_a_hint_and_an_exit_code(
    trident: Run, day: Path, tmp_path: Path, args: list[str], code: int, error: str, hint: str
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("once upon a time\n" * 100)
    (tmp_path / "day").write_bytes(day.read_bytes())
    done = trident(*args)
    assert done.returncode == code, done.stderr
    assert error in done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pattern_error_points_at_its_place(trident: Run, day: Path) -> None:
    trident("run", day, "store")
    done = trident("query", "store", "--symbol", "AB(?=C)")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[0] == "AB(?=C)"
    assert lines[1].index("^") == 2


def test_real_captures_and_days(trident: Run, shared: Callable[..., Path], tmp_path: Path) -> None:
    """The main job on real input, start to end."""
    day = shared("data", "itch50_runk", "locate-13-10k.bin")
    run = json.loads(trident("run", day, "aapl", "--json").stdout)
    assert (run["stored"], run["live_orders"], run["anomalies"]) == (10_000, 215, {})
    assert json.loads(trident("verify", "aapl", "--json").stdout)["ok"]
    found = json.loads(
        trident("query", "aapl", "--symbol", "^AAPL$", "--type", "[EC]", "--count", "--json").stdout
    )
    assert found == {"count": 849, "by_type": {"E": 849}}

    capture = shared("data", "pcap", "Nasdaq.Equities.TotalView.Itch.v5.0", "Multiple.Packets.pcap")
    run = json.loads(trident("run", capture, "pcap", "--json").stdout)
    with ReferenceStore(tmp_path / "pcap", "read") as store:
        assert store.session.date == dt.date(
            2023, 8, 22
        )  # the capture's clock, known before the store is made
    unusable = shared("data", "pcap", "Nasdaq.Nsm.Ouch.v5.0", "OrderAcceptedMessage.pcap")
    assert trident("run", unusable, "nothing").returncode == 3
    assert not (tmp_path / "nothing").exists()
    assert (run["stored"], run["last_seq"]) == (39, 19_009_154)
    assert json.loads(trident("verify", "pcap", "--json").stdout)["ok"]
    assert json.loads(trident("query", "pcap", "--count", "--json").stdout)["count"] == 39
