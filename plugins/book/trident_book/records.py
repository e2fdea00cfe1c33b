"""What the numba book is made of: one cache line for each order, level and side, in pools, linked by slots.

    near/far: locate -> symbol               refs: reference -> order slot (trident_book.index)
         |                                        |
         v                                        v
    tops[symbol]   TOP, as of the            orders[slot]  64 bytes: ref qty ts price | level side
         |         symbol's last event            |        prev next mpid position
    sides[2 * symbol + (0 bid, 1 ask)]            |            ^ queue of a level, oldest first:
         |    64 bytes: bits base … best          |            |
         |                                        v            v
         |--> window[64 * side + bit]  ------>  levels[slot]  64 bytes: price qty | head tail count side
         |    the levels of 64 ticks near the best          ^
         '--> keys  [ … -7 -3  2  5 ]  ascending            |
              slots [ …  4  9  1  6 ]  -------------------->'   all other levels (trident_book.outside)

A key is the bid's price, or the bitwise complement of the ask's: the best level has the highest. A side is
named by its place in `sides`. Slot 0 is null in every pool. Free slots are chained through `next`; a free
order has no shares, a free level no orders. `keys` and `slots` are one arena of chunks of 8, 16, 32 …
entries, one chunk for each side that ever had a level outside its window; free chunks of a size are chained
through their first key.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray


def _record(fields: list[tuple[str, str]]) -> np.dtype[Any]:
    """An aligned record of 64 bytes with the fields from its start on."""
    names, formats = [name for name, _ in fields], [code for _, code in fields]
    ends = np.cumsum([0, *(np.dtype(code).itemsize for code in formats)])
    return np.dtype(
        {"names": names, "formats": formats, "offsets": ends[:-1].tolist(), "itemsize": 64}, align=True
    )


#: `position`: of its entry in the index.
ORDER_SLOT: Final = _record(
    [("ref", "<u8"), ("qty", "<u8"), ("ts", "<u8"), ("price", "<i8"), ("level", "<u4"), ("side", "<u4"),
     ("prev", "<u4"), ("next", "<u4"), ("mpid", "<u4"), ("position", "<u4")],
)  # fmt: skip

LEVEL_SLOT: Final = _record(
    [("price", "<i8"), ("qty", "<u8"), ("head", "<u4"), ("tail", "<u4"), ("count", "<u4"), ("side", "<u4"),
     ("next", "<u4")],
)  # fmt: skip

#: `bits`: which of the window's ticks have a level; the key of bit k is `base` + k * `tick`. `inverse`,
#: `twos`: what divides by the tick. `best`: the best level's slot, 0 when there is none. `stale`: the touch
#: of this side may differ from what `tops` says. `start`, `n`, `cap`: the chunk of the levels outside.
#: `misses`: levels made outside since the window was placed; at `patience` it is placed anew.
SIDE: Final = _record(
    [("bits", "<u8"), ("base", "<i8"), ("inverse", "<u8"), ("tick", "<u8"), ("twos", "<u4"),
     ("best", "<u4"), ("stale", "<u4"), ("start", "<u4"), ("n", "<u4"), ("cap", "<u4"), ("misses", "<u4"),
     ("patience", "<u4")],
)  # fmt: skip
#: Ticks in a window: bits of a word.
WINDOW: Final = 64

# Slots of State.g, i64[64]: how far each pool is used, its first free slot, and so on.
(
    ORDER_END, ORDER_FREE, LIVE, LEVEL_END, LEVEL_FREE, SYMBOL_END, CHUNK_END, CHUNK_MAX,
    INDEX_BITS, FAR_LOCATES, SEED,
    AHEAD_FROM,
) = range(12)  # fmt: skip
CHUNK_FREE: Final = 16  # first of 32 heads of free chunks, by size
#: The smallest chunk of the arena: a cache line of keys.
CHUNK_MIN: Final = 8
#: The arena must have room for eight chunks of the largest size so far, but at least of CHUNK_ROOM.
CHUNK_SPARE: Final = 8
CHUNK_ROOM: Final = 4096
#: Locates below this are looked up directly, others (not of ITCH) in an open-addressing table.
NEAR: Final = 65_536

#: Kinds of anomaly by the kernel's numbers.
ANOMALIES: Final = (
    "unknown_ref", "duplicate_ref", "over_execution", "rejected_add", "not_at_head", "locate_mismatch",
    "crossed",
)  # fmt: skip
UNKNOWN_REF, DUPLICATE_REF, OVER_EXECUTION, REJECTED_ADD, NOT_AT_HEAD, LOCATE_MISMATCH, CROSSED = range(7)

# What the types of events do, and the table from type to rule.
OTHER, ADD, REDUCE, DELETE, REPLACE, ACTION = range(6)
RULES: Final = np.zeros(256, np.uint8)
for _letters, _rule in (("AF", ADD), ("ECX", REDUCE), ("D", DELETE), ("U", REPLACE), ("H", ACTION)):
    RULES[[ord(letter) for letter in _letters]] = _rule

#: Length of the rings of hints, a power of two; trident_book.ahead looks less far ahead.
HINTS: Final = 64


class State(NamedTuple):
    """Everything a kernel reads and writes; see the module's picture."""

    g: NDArray[np.int64]
    refs: NDArray[np.uint32]  # the index: buckets of 8 tags and 8 order slots; tag 0 is empty
    passed: NDArray[np.uint32]  # by bucket: entries that belong here or before, and stand behind
    orders: NDArray[Any]  # ORDER_SLOT
    levels: NDArray[Any]  # LEVEL_SLOT
    tops: NDArray[Any]  # TOP by symbol
    sides: NDArray[Any]  # SIDE, two for each symbol
    window: NDArray[np.uint32]  # level slots, WINDOW for each side; only those of `bits` mean anything
    keys: NDArray[np.int64]
    slots: NDArray[np.uint32]
    near: NDArray[np.uint32]  # symbol by locate, 0 is none
    far: NDArray[np.uint64]  # locate << 32 | symbol; 0 is empty
    counts: NDArray[np.int64]  # anomalies of this batch, by kind
    firsts: NDArray[np.uint64]  # seq of the first ones, POSITIONS_KEPT for each kind
    order_hints: NDArray[np.uint32]  # order slots found ahead, by event (a ring of HINTS)
    level_hints: NDArray[np.uint32]  # level slots, likewise
