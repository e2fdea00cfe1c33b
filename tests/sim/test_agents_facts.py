"""A day of agents shows the known facts of real books: figures in loose ranges around real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from trident_agents.files import write_agents_day
from trident_agents.spec import AgentSpec
from trident_facts.measure import Options, measure_files

#: key -> from, to. LOBSTER's AMZN and GOOG of 2012-06-21 and runk's AAPL are in docs/simulator.md.
RANGES = {
    "spread_mean": (4, 25), "spread_bp": (1.5, 10), "spread_one": (0, 0.25), "depth_shares": (80, 400),
    "depth_1": (0.12, 0.4), "depth_2": (0.1, 0.3), "depth_5": (0.1, 0.3), "gap_5": (4, 45),
    "place_better": (0.08, 0.35), "place_at": (0.05, 0.45), "place_behind": (0.35, 0.8),
    "life_p10": (0.0005, 0.02), "life_p50": (0.3, 6), "life_p90": (6, 120), "fill_p50": (1, 20),
    "fleeting_50ms": (0.09, 0.4), "fleeting_2s": (0.3, 0.65), "filled_orders": (0.06, 0.2),
    "filled_shares": (0.05, 0.22), "orders_per_trade": (3, 13), "size_p50": (50, 100), "size_mean": (60, 160),
    "size_p99": (300, 1500), "size_tail": (1.2, 4), "size_round": (0.25, 0.6), "hidden_shares": (0.08, 0.4),
    "sign_1": (0.4, 0.8), "sign_10": (0.02, 0.35), "fano_1s": (4, 60), "fano_10s": (7, 150),
    "counts_1": (0.12, 0.6), "gap_cv": (2, 6), "return_bp_1s": (0.3, 2), "return_bp_60s": (3, 20),
    "kurtosis_1s": (8, 300), "return_acf_1s": (-0.15, 0.3), "abs_acf_1s": (0.03, 0.45),
}  # fmt: skip


@pytest.mark.slow
def test_the_facts_of_a_symbol_like_amzn(tmp_path: Path) -> None:
    path = tmp_path / "day.itch"
    written = write_agents_day(path, AgentSpec(messages=40_000, symbols=1, minutes=100, seed=6))
    assert abs(written.messages - 40_000) < 4_000
    ((_, values),) = measure_files([str(path)], Options())
    outside = {
        key: (values[key], low, high)
        for key, (low, high) in RANGES.items()
        if not low <= (values[key] or 0.0) <= high
    }
    assert not outside
