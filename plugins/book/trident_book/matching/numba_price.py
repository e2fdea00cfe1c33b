"""The price of a cross (MATCH-73), of arrays of those that take part."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


class Side(NamedTuple):
    """Who takes part on one side, in any order: prices, 0 at market, and quantities."""

    prices: Int64s
    quantities: Int64s

    def at_market(self) -> int:
        return int(self.quantities[self.prices == 0].sum())


class Cross(NamedTuple):
    """Where a cross would be: its price (0: none), and how much is bought and sold there."""

    price: int
    bought: int
    sold: int

    @property
    def volume(self) -> int:
        return min(self.bought, self.sold)


def _up_to(side: Side, prices: Int64s) -> Int64s:
    """How much of a side has a limit of at most each of `prices`."""
    limited = side.prices > 0
    order = np.argsort(side.prices[limited], kind="stable")
    sums = np.concatenate([[0], np.cumsum(side.quantities[limited][order])])
    found: Int64s = sums[np.searchsorted(side.prices[limited][order], prices, "right")]
    return found


def find_cross(buys: Side, sells: Side, reference: int, low: int, high: int) -> Cross:
    """The price by volume, imbalance, distance from the reference price (0: none), height; inside the
    band."""
    found = np.unique(np.concatenate([buys.prices, sells.prices, [reference]]).astype(np.int64))
    prices = found[(found > 0) & (found >= low) & ((found <= high) | (high == 0))]
    if not len(prices):
        return Cross(0, 0, 0)
    bought = int(buys.quantities.sum()) - _up_to(buys, prices - 1)
    sold = sells.at_market() + _up_to(sells, prices)
    volumes = np.minimum(bought, sold)
    far = np.abs(prices - reference) if reference else np.zeros(len(prices), np.int64)
    best = np.lexsort((-prices, far, np.abs(bought - sold), -volumes))[0]
    if volumes[best] == 0:
        return Cross(0, 0, 0)
    return Cross(int(prices[best]), int(bought[best]), int(sold[best]))
