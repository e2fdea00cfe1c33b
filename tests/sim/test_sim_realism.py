"""Simulated days look like days: mix, activity, bursts, references, prices, live orders. Figures of a real
day are those of 2019-12-30."""

from __future__ import annotations

import numpy as np
import pytest

from trident_book.numba_book import NumbaBook
from trident_book.reference import ReferenceBook
from trident_core.benchmarks.setting import BATCH, DAYS
from trident_core.dtypes import Events
from trident_core.session import Session
from trident_sim.spec import SimSpec
from trident_sim.stream import Day, simulate_events
from trident_sim.timetable import CLOSE, NS, OPEN

#: Share of all messages on 2019-12-30, in percent, and how far a simulated day may be from it.
REAL_MIX = {"AF": (44.1, 1.5), "D": (42.6, 1.5), "U": (8.0, 0.5), "ECX": (3.2, 0.5), "I": (1.5, 0.2)}


@pytest.fixture(scope="module")
def events() -> Events:
    return simulate_events(SimSpec(messages=300_000, symbols=100, seed=11))[0]


def of(events: Events, letters: str) -> Events:
    return events[np.isin(events["type"], [ord(letter) for letter in letters])]


@pytest.mark.parametrize("letters", REAL_MIX)
def test_the_mix_is_that_of_a_real_day(events: Events, letters: str) -> None:
    share = 100 * len(of(events, letters)) / len(events)
    wanted, tolerance = REAL_MIX[letters]
    assert share == pytest.approx(wanted, abs=tolerance)


def test_one_or_two_adds_of_a_hundred_name_their_mpid(events: Events) -> None:
    named = of(events, "F")
    assert 0.01 < len(named) / len(of(events, "AF")) < 0.02
    assert len({bytes(aux[:4]) for aux in named["aux"]}) > 10


def test_activity_is_heavy_tailed_over_symbols(events: Events) -> None:
    counts = np.sort(np.bincount(events["locate"])[1:])[::-1]
    assert counts[:10].sum() > 0.35 * counts.sum()
    assert counts[-50:].sum() < 0.25 * counts.sum()
    assert counts[-1] > 0


def test_messages_come_in_bursts(events: Events) -> None:
    times = of(events, "AFDUECX")["ts"].astype(np.int64)
    session = times[(times >= (OPEN + 3600) * NS) & (times < (CLOSE - 3600) * NS)]
    per_second = np.bincount((session // NS) - OPEN - 3600, minlength=CLOSE - OPEN - 7200)
    assert per_second.var() > 3 * per_second.mean()  # a Poisson stream has 1
    gaps = np.diff(session)
    assert np.median(gaps) < gaps.mean() / 4  # a Poisson stream has 0.69


def test_sweeps_share_one_timestamp(events: Events) -> None:
    fills = of(events, "EC")
    same = (fills["ts"][1:] == fills["ts"][:-1]) & (fills["locate"][1:] == fills["locate"][:-1])
    assert same.sum() > 0.1 * len(fills)


def test_references_are_nearly_dense_and_nearly_ascending(events: Events) -> None:
    rows = of(events, "AFU")
    refs = np.where(rows["type"] == ord("U"), rows["ref2"], rows["ref"]).astype(np.int64)
    assert len(np.unique(refs)) == len(refs)
    assert len(refs) > 0.8 * refs.max()
    back = np.diff(refs) < 0
    assert 0 < back.mean() < 0.02
    assert np.max(np.maximum.accumulate(refs) - refs) < 1_000


def test_prices_stand_on_both_sides_of_a_dollar_and_move(events: Events) -> None:
    adds = of(events, "AF")
    cheap = np.unique(adds["locate"][adds["price"] < 9_000])
    assert len(cheap) >= 2
    assert np.any(adds["price"][adds["price"] < 9_000] % 100)
    assert adds["price"].max() > 1_800_000_000
    moved = 0
    for locate in np.unique(adds["locate"]):
        prices = adds["price"][adds["locate"] == locate]
        if len(prices) > 400:
            moved += abs(np.median(prices[:100]) / np.median(prices[-100:]) - 1) > 0.002
    assert moved > 10


def test_most_orders_die_young_and_some_rest_all_day(events: Events) -> None:
    born: dict[int, int] = {}
    lives = []
    for row in of(events, "AFDU")[["type", "ts", "ref", "ref2"]].tolist():
        letter, ts, ref, new = row
        if letter in b"DU":
            lives.append(ts - born.pop(ref))
        if letter != ord("D"):
            born[new if letter == ord("U") else ref] = ts
    seconds = np.array(lives) / NS
    assert np.median(seconds) < 15  # at some 6 messages a second; it scales with the rate
    assert np.quantile(seconds, 0.99) > 3 * 3600


def test_depth_falls_off_from_the_touch() -> None:
    day = Day(SimSpec(messages=200_000, symbols=12, seed=3))
    book = ReferenceBook(day.session)
    for batch in day.batches():
        book.apply(batch[batch["ts"] < 15 * 3600 * NS])
    away = []
    for locate, unit in enumerate(day.world.unit.tolist(), start=1):
        for side in "BS":
            levels = book.levels(locate, side)
            away.append(np.repeat(np.abs(levels["price"] - levels["price"][0]) // unit, levels["count"]))
    units = np.concatenate(away)
    near, far = np.count_nonzero(units < 16) / 16, np.count_nonzero((units >= 64) & (units < 256)) / 192
    assert near > 3 * far > 0  # orders per unit of price


@pytest.mark.slow
def test_a_wide_full_size_day_has_several_hundred_thousand_live_orders() -> None:
    day = Day(SimSpec(messages=10_000_000, symbols=8_900))
    assert sum(len(batch) for batch in day.batches()) == 10_000_000
    assert day.live_peak > 400_000
    assert np.count_nonzero(day.counts) == 23


@pytest.mark.slow
def test_the_wide_day_of_the_benchmarks_has_as_many_live_orders_as_it_says() -> None:
    messages, symbols = DAYS["wide"]
    assert (messages, symbols) == (10_000_000, 8_900)
    book, peak = NumbaBook(Session()), 0
    for batch in Day(SimSpec(messages=messages, symbols=symbols)).batches():
        for start in range(0, len(batch), 16 * BATCH):
            book.apply(batch[start : start + 16 * BATCH])
            peak = max(peak, book.live_orders())
    assert peak >= 400_000
    assert not book.anomalies
