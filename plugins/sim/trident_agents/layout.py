"""The agents' state: preallocated arrays that the kernels work on.

(Constants of this module are compiled into njit kernels; the word makes the compile cache depend on it.)

Bytes: for each symbol 16 for each price up to twice the opening price; 120 for each order alive; 40 for each
timer; 250 for each agent.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.orders import COMMAND, REPORT


def _signed(dtype: np.dtype[Any], **texts: str) -> np.dtype[Any]:
    """The same bytes with signed integers only (numba makes floats of signed and unsigned that meet) and
    numbers instead of texts."""
    fields: Any = dtype.fields
    names = list(dtype.names or ())
    formats = [texts.get(name, fields[name][0].str.replace("<u8", "<i8")) for name in names]
    offsets = [fields[name][1] for name in names]
    return np.dtype(
        {"names": names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize}, align=True
    )


KERNEL_COMMAND: Final = _signed(COMMAND, mpid="<u4")
KERNEL_REPORT: Final = _signed(REPORT, mpid="<u4")

#: One symbol. Prices in ticks; `fair` and `vol` (one step of it) in 1/4096 tick. `unit`: the spread that
#: makers #: ask for. `bid`, `ask`: the public touch, 0 for none. `level`: its ladders' place in
#: `State.ladder`; `width`: #: prices of each. `wait`: mean time between arrivals of the crowd at an even
#: pace, ns. `mood`: 16 times its #: logarithm's departure. `ema`: of the mid, three horizons, 1/4096 tick.
SYMBOL: Final = np.dtype(
    [(name, "<i8") for name in (
        "fair", "vol", "mood_vol", "unit", "bid", "ask", "level", "width", "wait", "mood", "state",
        "volume", "last", "sign", "makers", "agents", "agents_end", "open", "lot", "ema0", "ema1", "ema2",
        "crossed", "moved", )]
)  # fmt: skip

#: One order: `life` FREE, SENT (not answered yet) or LIVE. `place`: which of its agent's quotes it is, -1:
#: none. #: `born` tells orders of one slot apart.
SLOT: Final = np.dtype(
    [(name, "<i8") for name in ("born", "price", "leaves", "shown")]
    + [(name, "<i4") for name in ("symbol", "agent", "place", "life", "side", "pending", "next", "owner")]
)  # fmt: skip

QUOTES: Final = 8  # orders of one agent that it knows by place: bids even, asks odd

#: One agent. `a` … `f` mean what its kind says.
AGENT: Final = np.dtype(
    [(name, "<i8") for name in
     ("kind", "symbol", "owner", "inventory", "cash", "waiting", "a", "b", "c", "d", "e", "f")]
)  # fmt: skip

#: What is to happen: `tie` keeps equal times in order.
TIMER: Final = np.dtype([("ts", "<i8"), ("tie", "<i8"), ("what", "<i8"), ("arg", "<i8"), ("more", "<i8")])

#: A parent order of an institution: `value` is the sum of price (mantissa) times shares.
PARENT: Final = np.dtype(
    [(name, "<i8") for name in
     ("locate", "side", "style", "shares", "filled", "value", "arrival", "start", "end", "market_volume")]
)  # fmt: skip

FREE, SENT, LIVE = 0, 1, 2
BUY, SELL = 0, 1
MAKER, VALUE, MOMENTUM, INSTITUTION = 1, 2, 3, 4
CROWD: Final = 0  # agent of orders that belong to nobody's plan
TWAP, VWAP, POV = 0, 1, 2
TICK: Final = 100  # mantissas: a cent

#: Places in `State.g`; 0 is the random generator's (trident_sim.rng.RNG).
(
    HEAP, TIES, SLOTS_FREE, SLOTS_USED, BORN, COMMANDS, NOW, MESSAGES, WANTED, PACE, SPENT, CLOSE, OVER,
    PARENTS, LIVE_ORDERS, LIVE_PEAK, SLICE, OWNERS, REJECTED, DROPPED, PLANNED, TRADES, END, G_SIZE,
) = range(1, 25)  # fmt: skip

ORDERS_MAX: Final = 1 << 20
COMMANDS_MAX: Final = 1 << 13
PARENTS_MAX: Final = 1 << 12


class State(NamedTuple):
    """What all kernels read and write. `ladder`: shares at each price, the bids of a symbol, then its asks.
    `quotes`: i64[agents, QUOTES], slots of an agent's orders by place, -1 for none."""

    g: NDArray[np.int64]
    symbols: NDArray[Any]
    ladder: NDArray[np.int64]
    slots: NDArray[Any]
    agents: NDArray[Any]
    quotes: NDArray[np.int64]
    timers: NDArray[Any]
    commands: NDArray[Any]
    tables: NDArray[np.int64]
    parents: NDArray[Any]
