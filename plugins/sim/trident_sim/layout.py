"""The simulator's state: preallocated arrays that the kernel works on, and what they cost.

(Constants of this module are compiled into njit kernels; the word makes the compile cache depend on this
file.)

Bytes: 6.2 KiB for each symbol (untouched pages cost nothing), 75 for each order alive at the peak, 4 MiB
for the ring of recent orders, 0.5 MiB for the table of symbols, 12 for each second of the day, 64 for each
prepared message, 68 for each message of a batch. The number of messages adds nothing.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_sim.rng import RNG, Stream
from trident_sim.spec import SimSpec
from trident_sim.timetable import Timetable
from trident_sim.world import World

#: EVENT with `aux` as one little-endian number and signed integers only: the same bytes. (numba makes floats
#: of signed and unsigned integers that meet.)
KERNEL_EVENT: Final = np.dtype(
    {
        "names": list(EVENT.names or ()),
        "formats": ["<i8"] * 6 + ["<u4", "u1", "u1", "<u2", "<i8"],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 52, 53, 54, 56],
        "itemsize": 64,
    },
    align=True,
)

#: One symbol. `fair` and `step` are in 1/256 of the smallest price; `state` is the trading state's letter.
SYMBOL: Final = np.dtype(
    [("fair", "<i8"), ("step", "<i8"), ("unit", "<i8"), ("price", "<i8"), ("state", "<i8")], align=True
)

#: One order. `key` is 2 * locate + side (0 buy, 1 sell); `birth` its number among all orders; `qty` 0: a free
#: slot.
ORDER_SLOT: Final = np.dtype(
    [
        ("ref", "<i8"), ("birth", "<i8"), ("price", "<i8"), ("qty", "<i8"), ("key", "<i8"), ("sticky", "<i8"),
        ("next", "<i4"), ("prev", "<i4"),
    ],
    align=True,
)  # fmt: skip

LEVELS_MAX: Final = 256  # price levels a side; an order for one more joins the nearest level
RING_BITS: Final = 20  # orders younger than so many adds can be found by age
MATCHES: Final = 1024  # recent matches that a broken trade can void
LIVE_SPARE: Final = 4096

#: Places in `State.g`; 0 is the random generator's (rng.RNG).
(
    SEQ, REF, STASH, MATCH, BIRTHS, FREE, SLOTS_USED, LIVE, LIVE_PEAK, STICKY, NEXT_ITEM, CURSOR, SECOND,
    SLOT, LOADED, DEBT, LAST_TS, LAST_SYMBOL, OUT, AGE_BITS, ANOMALY_RATE, ANOMALY_MASK, DEBT_MAX,
    DONE, G_SIZE,
) = range(1, 26)  # fmt: skip

#: Arguments of kernels are numpy integers: numba compiles a function anew for each Python literal it is
#: given.
ZERO: Final = np.int64(0)
ONE: Final = np.int64(1)


class State(NamedTuple):
    """What all kernels read and write: few arrays, as each costs time to compile at every call.

    `symbols` has index = locate; `levels` and `depth` (levels in use) 2 * locate + side. `levels` i32[2 *
    (symbols + 1), LEVELS_MAX, 3]: price (negative for sells, so that the best is always the last), first
    and last order slot of the queue. `matches` i64[MATCHES, 2]: number, locate. `extra` goes with `out`:
    the far price of an I; 1 + the kind of an anomaly; else 0.
    """

    g: NDArray[np.int64]
    symbols: NDArray[Any]
    levels: NDArray[np.int32]
    depth: NDArray[np.int32]
    orders: NDArray[Any]
    free: NDArray[np.int32]
    ring: NDArray[np.int32]
    alias: NDArray[np.int32]
    matches: NDArray[np.int64]
    out: NDArray[Any]
    extra: NDArray[np.uint32]


class Plan(NamedTuple):
    """What the day's loop follows: prepared messages, slots and targets of each second, and the times of
    the slots of the second at work (i64)."""

    items: NDArray[Any]
    slots: NDArray[np.int32]
    targets: NDArray[np.int64]
    times: NDArray[np.int64]


def make_plan(items: Events, timetable: Timetable) -> Plan:
    return Plan(
        items=items.view(KERNEL_EVENT),
        slots=timetable.slots,
        targets=timetable.targets,
        times=np.zeros(max(1, int(timetable.slots.max())), np.int64),
    )


def make_state(spec: SimSpec, world: World, live_peak: int, batch: int) -> State:
    """The state before the first message. `batch` is the size of `out`."""
    n = spec.symbols
    capacity = live_peak * 5 // 4 + LIVE_SPARE
    g = np.zeros(G_SIZE, np.int64)
    g[AGE_BITS] = min(RING_BITS, max(6, spec.messages.bit_length() - 5))
    g[ANOMALY_RATE] = int(spec.anomalies * (1 << 30))
    g[ANOMALY_MASK] = spec.anomaly_mask
    g[DEBT_MAX] = spec.messages // 200
    g[REF] = 1
    g[RNG] = Stream(spec.seed, 7).seed()
    symbols = np.zeros(n + 1, SYMBOL)
    symbols["fair"][1:] = world.price << 8
    symbols["price"][1:] = world.price
    symbols["step"][1:] = world.step
    symbols["unit"][1:] = world.unit
    return State(
        g=g,
        symbols=symbols,
        levels=np.zeros((2 * n + 2, LEVELS_MAX, 3), np.int32),
        depth=np.zeros(2 * n + 2, np.int32),
        orders=np.zeros(capacity, ORDER_SLOT),
        free=np.zeros(capacity, np.int32),
        ring=np.zeros(1 << RING_BITS, np.int32),
        alias=world.alias,
        matches=np.zeros((MATCHES, 2), np.int64),
        out=np.zeros(batch, KERNEL_EVENT),
        extra=np.zeros(batch, np.uint32),
    )
