"""Determinism, limits, files and the command."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
import zstandard
from typer.testing import CliRunner

from trident_core.errors import UsageError
from trident_sim.command import simulate
from trident_sim.files import write_day
from trident_sim.spec import SimSpec
from trident_sim.stream import Day, iter_frames, simulate_bytes

#: A day's bytes may change with the model only, never with a machine, numpy or numba: then regenerate them
#: (print the digest) and say so in CHANGELOG.md, since measured figures name seeds.
GOLDEN = {
    (5_000, 12, 42): "c312ff978e78a7484d7b92fab4fb17fe8b6accd52c1ee6955e0b343ed1039bae",
    (4_000, 60, 7): "d22b6344257ffb3f256e5113f98c98ebe91d0e285dbc7208f20ab3e26288af09",
}


@pytest.mark.parametrize("case", GOLDEN, ids=str)
def test_golden_digests(case: tuple[int, int, int]) -> None:
    assert hashlib.sha256(simulate_bytes(*case)).hexdigest() == GOLDEN[case]


def test_the_golden_digest_of_a_disturbed_day() -> None:
    data = simulate_bytes(5_000, 12, 42, anomalies=0.05)
    assert (
        hashlib.sha256(data).hexdigest() == "6dc0f85040ad399b5d8815a48defc95a91868e658980b97c96ec7b6719933636"
    )


def test_the_batch_size_changes_nothing() -> None:
    spec = SimSpec(messages=4_000, symbols=40, seed=3, anomalies=0.01)
    whole = b"".join(chunk.tobytes() for chunk in iter_frames(spec))
    for batch in (70, 100, 4096):
        day = Day(spec, batch)
        assert b"".join(chunk.tobytes() for chunk in day.frames()) == whole
        assert day.counts.sum() == spec.messages


def test_another_seed_is_another_day() -> None:
    assert simulate_bytes(3_000, 10, 1) != simulate_bytes(3_000, 10, 2)


def test_a_day_with_more_messages_has_the_same_symbols() -> None:
    few, many = Day(SimSpec(messages=5_000, symbols=30)), Day(SimSpec(messages=90_000, symbols=30))
    assert few.session.directory == many.session.directory


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"symbols": 5}, "symbols"),
        ({"symbols": 60_001, "messages": 10**7}, "symbols"),
        ({"messages": 3_799, "symbols": 200}, "messages"),
        ({"messages": (1 << 30) + 1}, "messages"),
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
        ({"anomalies": 0.3}, "anomalies"),
        ({"anomalies": float("nan")}, "anomalies"),
        ({"anomaly_kinds": ("no_such",)}, "no_such"),
        ({"anomaly_kinds": ()}, "kind"),
    ],
)
def test_limits_are_refused_with_a_hint(fields: dict[str, Any], word: str) -> None:
    with pytest.raises(UsageError, match=word) as caught:
        SimSpec(**fields)
    assert caught.value.hint


def test_the_smallest_day_is_whole() -> None:
    for symbols in (6, 7, 60):
        spec = SimSpec(messages=600 + 16 * symbols, symbols=symbols)
        assert sum(len(batch) for batch in Day(spec).batches()) == spec.messages


def test_a_batch_that_is_too_small_is_refused() -> None:
    with pytest.raises(UsageError, match="batch of 64"):
        Day(SimSpec(), batch=64)


SMALL = SimSpec(messages=2_000, symbols=10)


def test_files_hold_the_same_bytes_however_they_are_compressed(tmp_path: Path) -> None:
    raw = simulate_bytes(2_000, 10)
    for name, unpack in (
        ("day.NASDAQ_ITCH50", bytes),
        ("day.gz", gzip.decompress),
        ("day.zst", lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)),
    ):
        path = tmp_path / name
        written = write_day(path, SMALL)
        assert unpack(path.read_bytes()) == raw
        assert (written.bytes, written.file_bytes) == (len(raw), path.stat().st_size)
        assert sum(written.counts.values()) == written.messages == 2_000
        again = tmp_path / f"again-{name}"
        write_day(again, SMALL)
        assert again.read_bytes() == path.read_bytes()


def test_a_file_is_replaced_only_when_told_to(tmp_path: Path) -> None:
    path = tmp_path / "day.itch"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write_day(path, SMALL)
    assert path.read_text() == "mine"
    write_day(path, SMALL, force=True)
    assert path.stat().st_size > 50_000


@pytest.mark.parametrize(
    ("name", "why"),
    [("missing/day.gz", "no folder"), (".", "is a folder"), ("day.xz", "not written as .xz")],
)
def test_places_that_cannot_be_written_are_refused(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        write_day(tmp_path / name, SMALL)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_day_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_day(tmp_path / "day.gz", SMALL, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_the_command_reports_what_it_wrote(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(simulate)
    path = tmp_path / "day.itch.gz"
    options = [
        "-n",
        "3000",
        "-s",
        "12",
        "--seed",
        "4",
        "--anomalies",
        "0.02",
        "--date",
        "2019-12-30",
        "--json",
    ]
    result = CliRunner().invoke(app, [str(path), *options])
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    assert gzip.decompress(path.read_bytes()) == simulate_bytes(3_000, 12, 4, anomalies=0.02)
    assert (told["messages"], told["symbols"], told["date"]) == (3_000, 12, "2019-12-30")
    assert sum(told["anomalies"].values()) > 20
    assert told["live_orders_peak"] >= told["live_orders"] > 0
    shown = CliRunner().invoke(app, [str(path), "--force", "-n", "3000", "-s", "12"])
    assert "messages by type" in shown.output
    assert "3,000" in shown.output


def test_events_are_views_that_the_next_batch_overwrites() -> None:
    """Documented, and why `simulate_events` copies."""
    batches = Day(SimSpec(messages=3_000, symbols=10), 500).batches()
    first = next(batches)
    kept = first.copy()
    next(batches)
    assert not np.array_equal(first, kept)
