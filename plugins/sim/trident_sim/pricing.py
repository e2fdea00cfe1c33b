"""Kernel: where orders are placed, how large they are, and how the fair price of a symbol moves.

Prices are integers with 4 decimals. The tick is 0.01 from a dollar up and 0.0001 below it (Regulation NMS,
rule 612).
"""

from __future__ import annotations

from typing import Any, Final

from trident_core.jit import I64, njit_kernel
from trident_sim.queues import best
from trident_sim.rng import below, log_uniform

DOLLAR: Final = 10_000
CENT: Final = 100
FAIR_MIN: Final = 200 << 8
FAIR_MAX: Final = 1_950_000_000 << 8
PRICE_MAX: Final = 1_999_999_900


@njit_kernel
def passive(price: I64, side: I64) -> Any:
    """The price on the tick grid: buys (side 0) round down, sells up."""
    if price < DOLLAR:
        return max(price, 1)
    if side:
        return (price + CENT - 1) // CENT * CENT
    return price // CENT * CENT


@njit_kernel
def drift(st: Any, locate: I64) -> None:
    """One step of the symbol's random walk."""
    symbol = st.symbols[locate]
    fair = symbol.fair + below(st.g, 2 * symbol.step + 1) - symbol.step
    symbol.fair = min(max(fair, FAIR_MIN), FAIR_MAX)


@njit_kernel
def crosses(st: Any, key: I64, price: I64) -> Any:
    """Would an order of side `key` at `price` trade with the other side?"""
    other = best(st, key ^ 1)
    if other == 0:
        return False
    return price <= other if key & 1 else price >= other


@njit_kernel
def place(st: Any, key: I64, deep: I64) -> Any:
    """A price for a new order: at the touch, a tick better, behind it, around the fair price, or far away.

    Distances are log-uniform, so the depth profile falls off as a power law.
    """
    g, symbol = st.g, st.symbols[key >> 1]
    side = key & 1
    sign = 1 - 2 * side
    fair, unit, own = symbol.fair >> 8, symbol.unit, best(st, key)
    draw = below(g, 100)
    if deep:
        price = fair - sign * unit * (1 + log_uniform(g, 7))
    elif own and draw < 34:
        price = own
    elif own and draw < 40:
        price = own + sign * (1 if own < DOLLAR else CENT)
    elif own and draw < 56:
        price = own - sign * unit * log_uniform(g, 5)
    elif draw < 97:
        price = fair - sign * ((unit >> 1) + unit * (log_uniform(g, 6) - 1))
    else:
        price = fair - sign * unit * log_uniform(g, 11)
    price = min(max(price, fair >> 2), fair << 2, PRICE_MAX)
    return passive(price, side)


@njit_kernel
def quantity(st: Any) -> Any:
    """Shares: mostly round lots, one in four odd, now and then large."""
    draw = below(st.g, 16)
    if draw < 7:
        return 100
    if draw < 11:
        return 100 * log_uniform(st.g, 4)
    if draw < 15:
        return log_uniform(st.g, 8)
    return 100 * log_uniform(st.g, 7)
