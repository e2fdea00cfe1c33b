"""What a numba market is made of: orders in queues, levels and stops on ladders, all in pools linked by
slots.

    near[locate] -> symbol          refs: id -> order slot (trident_book.index, by `Index.orders`' view)
        |                              |
    symbols[symbol]                 orders[slot] 128 bytes | more[slot] 64 bytes: peak, stop, trail …, whose
        | flags, state, last,          ^                                  pages exist only where they are used
        | first of those waiting       |
    book.sides[2 * symbol + (0 bid, 1 ask)] -> levels: the front's queue and the back's (MATCH-10)
    stops.sides[4 * symbol.stops + k] -> levels by stop price (k 0 to sell, 1 to buy) and by the last price
        that moves trailing ones (k 2 to buy, 3 to sell)

Ladders, their windows, levels and arenas are those of the numba book (trident_book.sides). `g` of a ladder
and of the index has the places of trident_book.records. A command's progress stands in WORK, so that it can
stop where the caller's rows, or a pool, are used up, and go on.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.matching.numba_memory import Fixed, Layout, Pool, reader_of
from trident_book.records import SIDE
from trident_core.orders import COMMAND, REPORT


def _record(fields: list[tuple[str, str]], size: int) -> np.dtype[Any]:
    names, formats = [name for name, _ in fields], [code for _, code in fields]
    ends = np.cumsum([0, *(np.dtype(code).itemsize for code in formats)])
    return np.dtype(
        {"names": names, "formats": formats, "offsets": ends[:-1].tolist(), "itemsize": size}, align=True
    )


def _words(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The same layout, with `mpid` as one little-endian integer."""
    fields: Any = dtype.fields
    names = list(dtype.names or ())
    formats = ["<u4" if name == "mpid" else fields[name][0] for name in names]
    offsets = [fields[name][1] for name in names]
    return np.dtype(
        {"names": names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize}, align=True
    )


COMMAND_WORDS: Final = _words(COMMAND)
REPORT_WORDS: Final = _words(REPORT)

#: `shown`: the displayed quantity, 0 of hidden, all-or-none and waiting ones and of stops. `level`: of the
#: book or of the stops. `prev`, `next`: of the queue, or of those that wait; `prev_own`, `next_own`: of its
#: owner's orders, by reference. `filled`: in its life.
ORDER_SLOT: Final = _record(
    [("id", "<u8"), ("ref", "<u8"), ("price", "<i8"), ("leaves", "<u8"), ("shown", "<u8"), ("next", "<u4"),
     ("prev", "<u4"), ("level", "<u4"), ("side", "<u4"), ("owner", "<u4"), ("flags", "<u4"),
     ("filled", "<u8"), ("ts", "<u8"), ("prev_own", "<u4"), ("next_own", "<u4"), ("position", "<u4"),
     ("mpid", "<u4")],
    128,
)  # fmt: skip
#: The same memory as the index sees it: what it is searched by is called `ref` there.
KEYED: Final = np.dtype(
    {"names": ["ref", "position"], "formats": ["<u8", "<u4"], "offsets": [0, 88], "itemsize": 128}, align=True
)
#: What few orders have. `level`, `prev`, `next`: among the trailing ones.
MORE_SLOT: Final = _record(
    [("peak", "<u8"), ("stop", "<i8"), ("trail", "<i8"), ("step", "<i8"), ("slip", "<i8"), ("min_qty", "<u8"),
     ("level", "<u4"), ("prev", "<u4"), ("next", "<u4")],
    64,
)  # fmt: skip
#: As trident_book.records.LEVEL_SLOT, and the back's queue. `qty`: displayed; `count`: of both queues;
#: `displayed`: orders that show something.
LEVEL_SLOT: Final = _record(
    [("price", "<i8"), ("qty", "<u8"), ("head", "<u4"), ("tail", "<u4"), ("count", "<u4"), ("side", "<u4"),
     ("next", "<u4"), ("back_head", "<u4"), ("back_tail", "<u4"), ("displayed", "<u4"), ("aons", "<u4")],
    64,
)  # fmt: skip
#: `special`: why the short way is closed (SPECIAL_…). `last`, `reference`, `low`, `high`: 0 for none.
#: `stops`: its place on the ladder of stops, 0 for none yet. `wait_markets`: market orders that wait in a
#: call.
SYMBOL_SLOT: Final = _record(
    [("seq", "<u8"), ("ts", "<u8"), ("last", "<i8"), ("reference", "<i8"), ("low", "<i8"), ("high", "<i8"),
     ("locate", "<u4"), ("special", "<u4"), ("stops", "<u4"), ("stop_count", "<u4"), ("aons", "<u4"),
     ("wait_head", "<u4"), ("wait_tail", "<u4"), ("wait_count", "<u4"), ("wait_markets", "<u4"),
     ("state", "<u4"), ("dirty", "<u4")],
    128,
)  # fmt: skip
#: An entry of the table of owners; `used` 0: empty. One without orders stays until the table is made anew.
OWNER_SLOT: Final = _record(
    [("owner", "<u4"), ("used", "<u4"), ("head", "<u4"), ("tail", "<u4"), ("count", "<u4")], 32
)  # fmt: skip
#: The command in hand. `cur`: the incoming order. `low`, `high`: prices of the trades of the work in hand
#: (low 0: none). `todo_…`: stops that have triggered, in turn. `at`, `n`: place in `agenda`. See the phases
#: for the rest.
WORK: Final = _record(
    [("ts", "<u8"), ("id", "<u8"), ("limit", "<i8"), ("low", "<i8"), ("high", "<i8"), ("price", "<i8"),
     ("volume", "<u8"), ("share", "<u8"), ("total", "<u8"), ("extra", "<u8"), ("cancelled", "<u8"),
     ("phase", "<u4"), ("cur", "<u4"), ("symbol", "<u4"), ("todo_head", "<u4"), ("todo_tail", "<u4"),
     ("at", "<u4"), ("n", "<u4"), ("sells", "<u4"), ("reason", "<u4"), ("owner", "<u4"), ("locate", "<u4"),
     ("op", "<u4"), ("code", "<u4"), ("after", "<u4"), ("cursor", "<u4"), ("dirty", "<u4")],
    256,
)  # fmt: skip

# Order flags: the low bits are those of contracts.OrderFlag.
POST_ONLY, HIDDEN, AON, ON_DISCONNECT, SLIPPAGE = 1, 2, 4, 8, 16
MARKET: Final = 1 << 6  # without a price
STOP: Final = 1 << 7  # has not triggered yet
ICEBERG: Final = 1 << 8
GTC, IOC, FOK, ON_OPEN, ON_CLOSE = 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13
LISTED: Final = 1 << 14  # in the index and among its owner's
BOOKED: Final = 1 << 15  # in a queue of the book
WAITS: Final = 1 << 16  # for a cross, or at market in a call
MIN_QTY: Final = 1 << 17
STP_AT: Final = 20  # and three bits: STP_…
STP_NONE, STP_INCOMING, STP_RESTING, STP_BOTH, STP_DECREMENT = range(5)

# SYMBOL.special
SPECIAL_STATE, SPECIAL_BAND, SPECIAL_AON, SPECIAL_STOPS = 1, 2, 4, 8

# WORK.phase: what is to be done next. Those up to OWN_KERNEL are done by `numba_submit`, each of the others
# by an entry of its own, which Python calls.
(
    IDLE, ENTER, MATCH, FINISH, SETTLE, SETTLED,
    SHARE, OWN_HELD, HELD, STOP_IN, TRIGGER, TRAIL, POP, OPERATE, CANCEL_ALL, DIRTY, DONE, CROSS, CROSS_END,
) = range(19)  # fmt: skip
OWN_KERNEL: Final = SETTLED

# Places of State.g.
(
    SEQ, ROW_BASE, REF, MATCH_NO, ORDER_END, ORDER_FREE, MORE_END, SYMBOL_END, STOPS_END, OWNERS_USED, SURE,
    ALLOCATION, STP, PROTECTION, QTY_MAX, ORDERS_MAX, TICKS, OWNER_SEED, STATUS, TAKEN,
) = range(20)  # fmt: skip
TICK_AT: Final = 64  # of State.g: (from price, tick) pairs
G_SIZE: Final = 192
FIFO, PRO_RATA, SIZE_TIME = range(3)

# State.g[STATUS] when a kernel comes back.
ALL_DONE, ROWS_FULL, NEEDS_ROOM, OTHER_KERNEL = range(4)


# The places of `g` of a ladder and of the index are those of trident_book.records.
INDEX: Final = Layout(
    "Index",
    g=Fixed(np.dtype(np.int64), 64),
    refs=Pool(np.dtype(np.uint32)),
    passed=Pool(np.dtype(np.uint32)),
    orders=Pool(KEYED),
)
LADDER: Final = Layout(
    "Ladder",
    g=Fixed(np.dtype(np.int64), 64),
    levels=Pool(LEVEL_SLOT),
    sides=Pool(SIDE),
    window=Pool(np.dtype(np.uint32)),
    keys=Pool(np.dtype(np.int64)),
    slots=Pool(np.dtype(np.uint32)),
)
#: Everything a kernel reads and writes; see the module's picture. `symbols`: 0 is what one without a command
#: yet is like. `agenda`: order slots, of the phases that work through a list.
STATE: Final = Layout(
    "State",
    g=Fixed(np.dtype(np.int64), G_SIZE),
    work=Fixed(WORK, 1),
    orders=Pool(ORDER_SLOT),
    more=Pool(MORE_SLOT),
    symbols=Pool(SYMBOL_SLOT),
    near=Pool(np.dtype(np.uint32)),
    owners=Pool(OWNER_SLOT),
    agenda=Pool(np.dtype(np.uint32)),
    ids=INDEX,
    book=LADDER,
    stops=LADDER,
)
state_at = reader_of(STATE)
