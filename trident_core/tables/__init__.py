"""Tables for research, from the records that parser and book write: no engine is needed, or known, here.

`bbo`, `trades`, `messages`, `depth` and the notices equal those of the PyPI package itch-book 0.2.1 with
`price_type="fixed"`, but for the differences that docs/contracts/book.md lists. All take the arrays of one
batch; the tables of all batches, one after the other, are the table of the day. Common columns: `ts_event`
(i64, UTC nanoseconds: the session's local midnight plus the event's time), `seq`, `locate`. Prices are
integers at the session's scale; an absent price is 0. Letters are `S1`; "N" stands for no side and for no
cross type. Every table and column: docs/tables.md.
"""

from __future__ import annotations

from trident_core.tables.common import HEAD, Table
from trident_core.tables.levels import DEPTH_MAX, DepthTable, depth, depth_dtype
from trident_core.tables.notices import (
    DIRECT_LISTING,
    DIRECTORY,
    HALT,
    IPO,
    LULD,
    MWCB,
    NOII,
    PARTICIPANT,
    REG_SHO,
    RPII,
    SYSTEM,
    direct_listing,
    directory,
    halts,
    ipo,
    luld,
    mwcb,
    noii,
    participants,
    reg_sho,
    rpii,
    system,
)  # fmt: skip
from trident_core.tables.order_flow import MESSAGE, messages
from trident_core.tables.prints import TRADE, trades, voided
from trident_core.tables.quotes import BBO, bbo

__all__ = [
    "BBO", "DEPTH_MAX", "DIRECTORY", "DIRECT_LISTING", "HALT", "HEAD", "IPO", "LULD", "MESSAGE", "MWCB",
    "NOII", "PARTICIPANT", "REG_SHO", "RPII", "SYSTEM", "TRADE", "DepthTable", "Table", "bbo", "depth",
    "depth_dtype", "direct_listing", "directory", "halts", "ipo", "luld", "messages", "mwcb", "noii",
    "participants", "reg_sho", "rpii", "system", "trades", "voided",
]  # fmt: skip
