"""The facts: what each is called, what it says, where it comes from, and how it is measured on a track."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from trident_facts import series
from trident_facts.lives import CANCELLED, FILLED, LIVE, REPLACED, distances, lives_of
from trident_facts.track import LEVELS, NS, Track

Value = float | None
Values = dict[str, Value]

FLEETING_NS: Final = (50_000_000, 2 * NS)


@dataclass(frozen=True, slots=True)
class Fact:
    """`key` in JSON; `label` and `digits` in the table; `group`: a heading."""

    key: str
    label: str
    digits: int = 2
    group: str = ""


FACTS: Final[tuple[Fact, ...]] = (
    Fact("hours", "hours measured", 2, "the input"),
    Fact("levels", "levels recorded (0: all)", 0, "the input"),
    Fact("events", "order events", 0, "the input"),
    Fact("trades", "trades (marketable orders)", 0, "the input"),
    Fact("tick_bp", "tick, basis points of the mid", 3, "the input"),
    Fact("spread_mean", "spread, ticks: mean", 2, "touch, weighted by time"),
    Fact("spread_p50", "spread, ticks: median", 0, "touch, weighted by time"),
    Fact("spread_p90", "spread, ticks: 90 %", 0, "touch, weighted by time"),
    Fact("spread_bp", "spread, basis points: mean", 2, "touch, weighted by time"),
    Fact("spread_one", "time at a spread of one tick", 3, "touch, weighted by time"),
    *(Fact(f"depth_{k}", f"shares at level {k} / all 5 levels", 3, "depth, weighted by time")
      for k in range(1, LEVELS + 1)),
    Fact("depth_shares", "shares at level 1", 0, "depth, weighted by time"),
    Fact("gap_5", "level 5 behind level 1, ticks", 1, "depth, weighted by time"),
    Fact("place_better", "placed better than the touch", 3, "where orders are placed"),
    Fact("place_at", "at the touch", 3, "where orders are placed"),
    Fact("place_behind", "behind it", 3, "where orders are placed"),
    Fact("place_p50", "of those behind, ticks: median", 0, "where orders are placed"),
    Fact("place_p90", "of those behind, ticks: 90 %", 0, "where orders are placed"),
    Fact("life_p10", "life of cancelled, s: 10 %", 4, "lives of orders"),
    Fact("life_p50", "life of cancelled, s: median", 3, "lives of orders"),
    Fact("life_p90", "life of cancelled, s: 90 %", 1, "lives of orders"),
    Fact("fill_p50", "life of filled, s: median", 3, "lives of orders"),
    Fact("fleeting_50ms", "gone unfilled within 50 ms", 3, "lives of orders"),
    Fact("fleeting_2s", "gone unfilled within 2 s", 3, "lives of orders"),
    Fact("filled_orders", "orders that are filled, whole or in part", 3, "lives of orders"),
    Fact("filled_shares", "shares filled / shares added", 4, "lives of orders"),
    Fact("orders_per_trade", "orders added for each trade", 1, "lives of orders"),
    Fact("size_p50", "shares of a trade: median", 0, "trades"),
    Fact("size_mean", "shares of a trade: mean", 0, "trades"),
    Fact("size_p99", "shares of a trade: 99 %", 0, "trades"),
    Fact("size_tail", "tail exponent of trade sizes", 2, "trades"),
    Fact("size_round", "trades of whole hundreds", 3, "trades"),
    Fact("hidden_shares", "shares from hidden orders", 3, "trades"),
    Fact("sign_1", "signs, autocorrelation: lag 1", 3, "trades"),
    Fact("sign_10", "signs: lag 10", 3, "trades"),
    Fact("sign_50", "signs: lag 50", 3, "trades"),
    Fact("fano_1s", "counts, variance / mean: 1 s", 1, "clustering of order events"),
    Fact("fano_10s", "counts, variance / mean: 10 s", 1, "clustering of order events"),
    Fact("counts_1", "counts in 1 s, autocorrelation: lag 1", 3, "clustering of order events"),
    Fact("counts_60", "counts in 1 s: lag 60", 3, "clustering of order events"),
    Fact("gap_cv", "time between events, deviation / mean", 2, "clustering of order events"),
    Fact("open_rate", "first half hour / noon's", 2, "clustering of order events"),
    Fact("close_rate", "last half hour / noon's", 2, "clustering of order events"),
    Fact("return_bp_1s", "mid returns, 1 s: deviation, bp", 3, "returns of the mid"),
    Fact("return_bp_60s", "mid returns, 60 s: deviation, bp", 2, "returns of the mid"),
    Fact("kurtosis_1s", "excess kurtosis: 1 s", 1, "returns of the mid"),
    Fact("kurtosis_60s", "excess kurtosis: 60 s", 1, "returns of the mid"),
    Fact("return_acf_1s", "autocorrelation, lag 1: 1 s", 3, "returns of the mid"),
    Fact("return_acf_60s", "autocorrelation, lag 1: 60 s", 3, "returns of the mid"),
    Fact("abs_acf_1s", "of absolute returns, lag 1: 1 s", 3, "returns of the mid"),
    Fact("abs_acf_10s", "of absolute returns, lag 10: 1 s", 3, "returns of the mid"),
    Fact("abs_acf_60s", "of absolute returns, lag 1: 60 s", 3, "returns of the mid"),
)  # fmt: skip


def measure(track: Track) -> Values:
    """Every fact of `FACTS` by its key; None where the input does not tell it (too short, no trades, …)."""
    values: Values = {}
    for part in (_input, _touch, _depth, _places, _lives, _trades, _clustering, _returns):
        values |= part(track)
    return {fact.key: values.get(fact.key) for fact in FACTS}


def _input(track: Track) -> Values:
    middles = series.middles(track, NS)
    return {
        "hours": track.seconds / 3600,
        "levels": float(track.levels),
        "events": float(len(track.of("AXDEcCU"))),
        "trades": float(len(series.trades_of(track).ts)),
        "tick_bp": 20_000 * track.tick / float(np.median(middles)) if len(middles) else None,
    }


def _touch(track: Track) -> Values:
    spread, span = series.spreads(track)
    if not len(spread):
        return {}
    mean = float(np.average(spread, weights=span))
    middles = series.middles(track, NS)
    return {
        "spread_mean": mean,
        "spread_p50": series.weighted_quantile(spread, span, 0.5),
        "spread_p90": series.weighted_quantile(spread, span, 0.9),
        "spread_bp": 20_000 * track.tick * mean / float(np.median(middles)) if len(middles) else None,
        "spread_one": float(span[spread <= 1].sum() / span.sum()),
    }


def _depth(track: Track) -> Values:
    shares = track.depth
    values: Values = {"depth_shares": _number(shares[0])}
    total = float(shares.sum())
    if np.isfinite(total) and total > 0:
        values |= {f"depth_{k + 1}": float(shares[k] / total) for k in range(LEVELS)}
        values["gap_5"] = _number(track.gaps[LEVELS - 1])
    return values


def _number(value: float) -> Value:
    return float(value) if np.isfinite(value) else None


def _places(track: Track) -> Values:
    away = distances(track)
    if not len(away):
        return {}
    behind = away[away > 0]
    return {
        "place_better": float(np.mean(away < 0)),
        "place_at": float(np.mean(away == 0)),
        "place_behind": float(np.mean(away > 0)),
        "place_p50": _quantile(behind, 0.5),
        "place_p90": _quantile(behind, 0.9),
    }


def _quantile(values: np.ndarray[tuple[int], np.dtype[np.int64]], q: float) -> Value:
    return float(np.quantile(values, q)) if len(values) else None


def _lives(track: Track) -> Values:
    lives = lives_of(track)
    if not len(lives.life):
        return {}
    unfilled = ((lives.fate == CANCELLED) | (lives.fate == REPLACED)) & (lives.filled == 0)
    gone, filled = lives.life[unfilled], lives.life[lives.fate == FILLED]
    trades = len(series.trades_of(track).ts)
    values: Values = {
        "fill_p50": _quantile(filled, 0.5),
        "filled_orders": float(np.mean(lives.filled > 0)),
        "filled_shares": float(lives.filled.sum() / lives.added.sum()),
        "orders_per_trade": len(lives.life) / trades if trades else None,
    }
    for key, q in (("life_p10", 0.1), ("life_p50", 0.5), ("life_p90", 0.9)):
        values[key] = _quantile(gone, q)
    for key in ("fill_p50", "life_p10", "life_p50", "life_p90"):
        value = values[key]
        values[key] = None if value is None else value / NS
    over = np.count_nonzero(lives.fate != LIVE)
    for key, limit in zip(("fleeting_50ms", "fleeting_2s"), FLEETING_NS, strict=True):
        values[key] = float(np.count_nonzero(gone <= limit) / over) if over else None
    return values


def _trades(track: Track) -> Values:
    trades = series.trades_of(track)
    if not len(trades.ts):
        return {}
    size = trades.size.astype(np.float64)
    prints = track.rows[track.of("ECP")]
    values: Values = {
        "size_p50": _quantile(trades.size, 0.5),
        "size_mean": float(size.mean()),
        "size_p99": _quantile(trades.size, 0.99),
        "size_tail": series.hill(size),
        "size_round": float(np.mean(trades.size % 100 == 0)),
        "hidden_shares": float(prints["qty"][prints["kind"] == ord("P")].sum() / prints["qty"].sum()),
    }
    signs = trades.sign[trades.sign != 0].astype(np.float64)
    for lag in (1, 10, 50):
        values[f"sign_{lag}"] = series.autocorrelation(signs, lag)
    return values


def _clustering(track: Track) -> Values:
    values: Values = {}
    for name, step in (("1s", NS), ("10s", 10 * NS)):
        counts = series.counts(track, step)
        if len(counts) >= 30:
            values[f"fano_{name}"] = float(counts.var() / counts.mean())
    counts = series.counts(track, NS)
    values["counts_1"] = series.autocorrelation(counts, 1)
    values["counts_60"] = series.autocorrelation(counts, 60)
    gaps = np.diff(track.rows["ts"][track.of("AXDEcCU")]).astype(np.float64)
    if len(gaps) and gaps.mean():
        values["gap_cv"] = float(gaps.std() / gaps.mean())
    rates = series.activity(track)
    if rates:
        values["open_rate"], values["close_rate"] = rates
    return values


def _returns(track: Track) -> Values:
    values: Values = {}
    for name, step in (("1s", NS), ("60s", 60 * NS)):
        moves = series.returns(track, step)
        if not len(moves):
            continue
        values[f"return_bp_{name}"] = 10_000 * float(moves.std())
        values[f"kurtosis_{name}"] = series.excess_kurtosis(moves)
        values[f"return_acf_{name}"] = series.autocorrelation(moves, 1)
        values[f"abs_acf_{name}"] = series.autocorrelation(np.abs(moves), 1)
        if name == "1s":
            values["abs_acf_10s"] = series.autocorrelation(np.abs(moves), 10)
    return values


def by_key() -> Mapping[str, Fact]:
    return {fact.key: fact for fact in FACTS}
