"""Bars against plain loops, voids, and the log of prints."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core import tables
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.tables import voids
from trident_core.tables.candles import Bars, BarSpec, bars
from trident_core.tables.voids import PrintLog

KINDS = ("1s", "5ms", "7trades", "500shares", "60usd")


@pytest.fixture(scope="module")
def prints(chance, applied):
    """Trades of a day by chance, its times stretched so that bars of a second have several."""
    day = applied(chance(4, 3_000, anomalies=0.0))
    made = tables.trades(day.events, day.effects, Session(), day.tops)
    made["ts_event"] *= 1_000
    return made


def naive(prints: np.ndarray, text: str) -> list[tuple[object, ...]]:
    """(start, locate, open, high, low, close, volume, trades, notional, end seq), sorted."""
    spec = BarSpec.parse(text)
    broken = set(prints["match_number"][prints["kind"] == b"B"].tolist())
    done: list[list[dict[str, int]]] = []
    held: dict[int, list[dict[str, int]]] = {}
    for r in prints:
        if r["kind"] == b"B" or int(r["match_number"]) in broken or r["size"] == 0:
            continue
        p = {name: int(r[name]) for name in ("ts_event", "seq", "locate", "price", "size")}
        bar = held.setdefault(p["locate"], [])
        if text in ("1s", "5ms"):
            if bar and bar[-1]["ts_event"] // spec.size != p["ts_event"] // spec.size:
                done.append(held.pop(p["locate"]))
                bar = held.setdefault(p["locate"], [])
            bar.append(p)
            continue
        bar.append(p)
        volume = sum(q["size"] for q in bar)
        money = sum(q["size"] * q["price"] for q in bar)
        full = {
            "trades": len(bar) >= spec.size,
            "shares": volume >= spec.size,
            "usd": money >= spec.size * 10_000,
        }
        if full[text.lstrip("0123456789")]:
            done.append(held.pop(p["locate"]))
    rows = []
    for bar in [*done, *held.values()]:
        prices = [q["price"] for q in bar]
        start = bar[0]["ts_event"]
        if text in ("1s", "5ms"):
            start = start // spec.size * spec.size
        rows.append(
            (
                start, bar[0]["locate"], prices[0], max(prices), min(prices), prices[-1],
                sum(q["size"] for q in bar), len(bar), sum(q["size"] * q["price"] for q in bar),
                bar[-1]["seq"],
            )
        )  # fmt: skip
    return sorted(rows)


@pytest.mark.parametrize("text", KINDS)
def test_equal_to_a_loop(prints, text):
    made = bars(prints, Session(), text)
    columns = [
        "ts_event",
        "locate",
        "open",
        "high",
        "low",
        "close",
        "volume",
        "trades",
        "notional",
        "end_seq",
    ]
    assert sorted(made[columns].tolist()) == naive(prints, text)
    assert len(made) > 10
    assert (prints["kind"] == b"B").any()
    np.testing.assert_allclose(made["vwap"], made["notional"] / made["volume"])


def test_time_bars_are_in_the_order_of_time_and_locate(prints):
    made = bars(prints, Session(), "1s")
    keys = made[["ts_event", "locate"]].tolist()
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@given(st.lists(st.integers(0, 10_000), max_size=6), st.sampled_from(KINDS))
@settings(deadline=None, max_examples=40)
def test_any_split_gives_the_same_bars(prints, cuts, text):
    good = prints[~tables.voided(prints)]
    built = Bars(Session(), BarSpec.parse(text))
    edges = [0, *sorted(cut % len(good) for cut in cuts), len(good)]
    parts = [built.apply(good[a:b]) for a, b in pairwise(edges)]
    np.testing.assert_array_equal(np.concatenate([*parts, built.finish()]), bars(prints, Session(), text))


def test_a_void_takes_its_print_out_of_the_bar(stream, applied):
    day = applied(
        stream().add(1, "B", 100, 5000).execute(1, 10, match=7).execute(1, 20, match=8)
        .put("P", side=66, qty=5, price=9999, ref2=9).put("B", ref2=9)
        .execute_at(1, 3, 1, printable=False, match=10)
    )  # fmt: skip
    made = tables.trades(day.events, day.effects, Session(), day.tops)
    (bar,) = bars(made, Session(), "1h")
    assert (bar["open"], bar["high"], bar["low"], bar["volume"], bar["trades"]) == (5000, 5000, 5000, 30, 2)


def test_the_log_of_prints_marks_what_a_later_void_took_back(prints, monkeypatch, tmp_path):
    monkeypatch.setattr(voids, "MEMORY_MAX", 1_000)
    log = PrintLog(tmp_path)
    for start in range(0, len(prints), 50):
        log.append(prints[start : start + 50])
    read = np.concatenate(list(log.read(batch=17)))
    assert (read["voided"] == tables.voided(prints)).all()
    assert log.voided == np.count_nonzero(read["voided"]) > 0
    assert (read[list(prints.dtype.names)] == prints).all()
    assert log.rows == len(prints)
    log.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", ["", "m", "0s", "1", "1d", "25h", "-1s", "1.5m", "10 shares", "9" * 13 + "s"]
)
def test_kinds_that_are_none_are_refused(text):
    with pytest.raises(UsageError, match="not a kind of bar"):
        BarSpec.parse(text)
