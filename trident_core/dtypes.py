"""The records that cross every boundary: fixed width, little-endian, C-contiguous, checked at import.

Prices and quantities are integer mantissas at the session's scales (ITCH: 4 and 0 decimals); times are
integer nanoseconds since the session's local midnight. An absent price is 0 with a count of 0.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Events = NDArray[Any]  # of EVENT
Tops = NDArray[Any]  # of TOP
Effects = NDArray[Any]  # of EFFECT
Levels = NDArray[Any]  # of LEVEL
Orders = NDArray[Any]  # of ORDER
Matched = NDArray[Any]  # of MATCHED
Frames = NDArray[np.uint8]

#: One message of a feed, of any type: a cache line, the unit of the ring and of the store.
#: Which column holds what for each ITCH type: docs/contracts/parser.md.
EVENT: Final = np.dtype(
    {
        "names": [
            "seq", "ts", "ref", "ref2", "price", "qty", "locate", "type", "side", "flags", "aux",
        ],
        "formats": ["<u8", "<u8", "<u8", "<u8", "<i8", "<u8", "<u4", "u1", "u1", "<u2", ("u1", (8,))],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 52, 53, 54, 56],
        "itemsize": 64,
    },
    align=True,
)  # fmt: skip

#: Top of book of one symbol, after one event.
TOP: Final = np.dtype(
    {
        "names": [
            "seq", "ts", "bid_price", "bid_qty", "ask_price", "ask_qty",
            "bid_count", "ask_count", "locate", "state", "flags",
        ],
        "formats": ["<u8", "<u8", "<i8", "<u8", "<i8", "<u8", "<u4", "<u4", "<u4", "u1", "u1"],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 52, 56, 60, 61],
        "itemsize": 64,
    },
    align=True,
)  # fmt: skip

#: What one event really did to the book: the resting order's side and price, the quantity after clamping.
EFFECT: Final = np.dtype(
    {
        "names": ["price", "qty", "remaining", "mpid", "side", "outcome", "flags"],
        "formats": ["<i8", "<u8", "<u8", ("u1", (4,)), "u1", "u1", "<u2"],
        "offsets": [0, 8, 16, 24, 28, 29, 30],
        "itemsize": 32,
    },
    align=True,
)

#: One price level: price, total quantity, number of orders.
LEVEL: Final = np.dtype(
    {
        "names": ["price", "qty", "count"],
        "formats": ["<i8", "<u8", "<u4"],
        "offsets": [0, 8, 16],
        "itemsize": 24,
    },
    align=True,
)

#: One resting order. `ts` is the time at which it took its place in the queue.
ORDER: Final = np.dtype(
    {
        "names": ["ref", "price", "qty", "ts", "locate", "mpid", "side"],
        "formats": ["<u8", "<i8", "<u8", "<u8", "<u4", ("u1", (4,)), "u1"],
        "offsets": [0, 8, 16, 24, 32, 36, 40],
        "itemsize": 48,
    },
    align=True,
)

#: The canonical row of the book's digest, packed: 29 bytes.
DIGEST_ROW: Final = np.dtype(
    [("locate", "<u4"), ("side", "u1"), ("price", "<i8"), ("ref", "<u8"), ("qty", "<u8")]
)


#: One match of a row pattern: its partition's key (see `SequenceSearch.value`), seq of first and last event,
#: time of its last; `rows` is 0 for an empty match, which then stands at its first event.
MATCHED: Final = np.dtype(
    {
        "names": ["key", "first", "last", "last_ts", "rows"],
        "formats": ["<i8", "<u8", "<u8", "<u8", "u1"],
        "offsets": [0, 8, 16, 24, 32],
        "itemsize": 40,
    },
    align=True,
)


class EventFlag(IntFlag):
    """Bits of EVENT.flags."""

    NON_PRINTABLE = 1  # C with printable = N: changes the book, not the volume (spec 4.4.2)
    PRICE_8DP = 2  # V: the price column has 8 decimals instead of the session's (spec 4.2.5.1)


class TopFlag(IntFlag):
    """Bits of TOP.flags."""

    CHANGED = 1  # price, quantity or count of best bid or ask differs from after the symbol's event before
    CROSSED = 2  # best bid > best ask after the event
    LOCKED = 4  # best bid = best ask after the event


class Outcome(IntEnum):
    """EFFECT.outcome: what became of an event in the book. Every value but the first two is an anomaly."""

    NONE = 0  # the event does not touch the book (S, R, H, P, Q, …)
    APPLIED = 1
    UNKNOWN_REF = 2  # E C X D U of a reference that is not in the book: nothing changes
    DUPLICATE_REF = 3  # an add or a replace to a reference that lives: the old order is evicted, then applied
    OVER_EXECUTION = 4  # E C X of more than remains: clamped to what remains, the order leaves
    REJECTED = 5  # an add without a side (B, S) or shares: no effect. U without shares: the old order left


class EffectFlag(IntFlag):
    """Bits of EFFECT.flags."""

    NOT_AT_HEAD = 1  # E of an order that is not the first of its queue (counted, spec silent; trap 20)
    LEFT = 2  # the order named by `ref` left the book
    LOCATE_MISMATCH = 4  # the event's locate differs from the resting order's; the order's is used


_SIZES = {"EVENT": (EVENT, 64), "TOP": (TOP, 64), "EFFECT": (EFFECT, 32), "LEVEL": (LEVEL, 24),
          "ORDER": (ORDER, 48), "DIGEST_ROW": (DIGEST_ROW, 29)}  # fmt: skip


def _check_layouts() -> None:
    """Fail at import, not in a kernel, when a record is not laid out as the contract says."""
    for name, (dtype, size) in _SIZES.items():
        if dtype.itemsize != size:
            raise ImportError(f"{name} has {dtype.itemsize} bytes instead of {size}")
        fields: Any = dtype.fields
        end = 0
        for field in dtype.names or ():
            sub, offset = fields[field][:2]
            base = sub.subdtype[0] if sub.subdtype else sub
            if base.byteorder == ">":
                raise ImportError(f"{name}.{field} is big-endian")
            if name != "DIGEST_ROW" and offset % base.itemsize:
                raise ImportError(f"{name}.{field} is not aligned")
            if offset < end:
                raise ImportError(f"{name}.{field} overlaps the field before it")
            end = offset + sub.itemsize


_check_layouts()
