"""Percentiles, comparisons and footprints: what they say is what was."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from trident_core import ticks
from trident_core.footprint import footprint
from trident_core.measure import Percentiles, compare


def test_percentiles_are_measurements_at_their_ranks() -> None:
    values = np.random.default_rng(1).permutation(np.arange(1, 10_001))
    found = Percentiles.of(values, 0.5)
    assert found == Percentiles(10_000, 2_500, 4_500, 4_950, 4_995, 5_000)
    assert Percentiles.of(np.array([7])) == Percentiles(1, 7, 7, 7, 7, 7)
    assert Percentiles.of(np.array([3, 1, 2])) == Percentiles(3, 2, 3, 3, 3, 3)


def test_over_rounds_is_the_median_of_each_and_the_greatest_maximum() -> None:
    rounds = [Percentiles(5, 1, 2, 3, 4, 90), Percentiles(5, 2, 9, 3, 4, 80), Percentiles(5, 3, 4, 3, 8, 5)]
    assert Percentiles.over_rounds(rounds) == Percentiles(5, 2, 4, 3, 4, 90)


def test_contenders_take_turns_after_a_warm_up_and_the_input_is_named() -> None:
    order: list[str] = []
    runs = {"a": partial(order.append, "a"), "b": partial(order.append, "b")}
    data = compare("title", runs, "the input", unit="rows", units=10, rounds=2).to_json()
    assert order == ["a", "b"] * 3
    assert (data["input"], data["rounds"], data["clock"]) == ("the input", 2, "perf_counter")
    assert data["contenders"]["a"]["peak_rss_mb"] is None
    json.dumps(data)


def test_a_footprint_is_of_the_job_alone() -> None:
    held = np.ones(50_000_000 // 8)  # of this process, not of the job's
    small, large = footprint(partial(np.ones, 10)), footprint(partial(np.ones, 200_000_000 // 8))
    assert held[0] == 1
    assert 195 < large.peak_mb - small.peak_mb < 205
    assert 10 < small.anonymous_mb <= small.peak_mb


def test_a_job_that_fails_on_its_own_says_why() -> None:
    with pytest.raises(RuntimeError, match="ValueError"):
        footprint(partial(int, "no number"))


@pytest.mark.skipif(not ticks.available(), reason="this processor has no time-stamp counter")
def test_the_counter_runs_at_one_rate_and_has_a_floor() -> None:
    rate = ticks.Rate()
    first = rate.ticks_per_ns(0.1)
    assert rate.ticks_per_ns(0.2) == pytest.approx(first, rel=0.01)
    assert 0.01 < first < 10
    steps = ticks.floor_ticks(1_000)
    assert (steps > 0).all()
    assert np.median(steps) / first < 1_000
