"""Records of matching engines: COMMAND in, REPORT out. Which column holds what: docs/matching.md.

Prices and quantities are integer mantissas at the session's scales, times nanoseconds since its midnight.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts.matching import REPORTS_MIN, Matcher

Commands = NDArray[Any]  # of COMMAND
Reports = NDArray[Any]  # of REPORT


def _record(columns: dict[str, Any], size: int) -> np.dtype[Any]:
    """An aligned record, checked at import."""
    dtype: np.dtype[Any] = np.dtype(list(columns.items()), align=True)
    packed = np.dtype(list(columns.items())).itemsize
    if dtype.itemsize != size or size - packed >= 8:
        raise ImportError(f"a record of {dtype.itemsize} bytes ({packed} used) should have {size}")
    return dtype


#: What a participant or the market's operator asks for. Columns that an `op` does not name are not looked at.
COMMAND: Final = _record(
    {
        "ts": "<u8", "id": "<u8", "id2": "<u8", "price": "<i8", "qty": "<u8", "peak": "<u8", "min_qty": "<u8",
        "stop": "<i8", "trail": "<i8", "step": "<i8", "slip": "<i8", "locate": "<u4", "owner": "<u4",
        "mpid": ("u1", (4,)), "op": "u1", "side": "u1", "kind": "u1", "tif": "u1", "flags": "<u2",
        "stp": "u1", "code": "u1",
    },
    112,
)  # fmt: skip

#: What became of a command: one row for each thing that happened, in the order in which it did.
REPORT: Final = _record(
    {
        "seq": "<u8", "ts": "<u8", "id": "<u8", "id2": "<u8", "ref": "<u8", "ref2": "<u8", "price": "<i8",
        "qty": "<u8", "leaves": "<u8", "leaves2": "<u8", "locate": "<u4", "owner": "<u4", "owner2": "<u4",
        "mpid": ("u1", (4,)), "kind": "u1", "reason": "u1", "side": "u1", "flags": "u1", "code": "u1",
    },
    104,
)  # fmt: skip

#: Canonical row of an order for `Matcher.state_digest`, packed.
MATCH_ROW: Final = np.dtype(
    [
        ("locate", "<u4"), ("place", "u1"), ("side", "u1"), ("price", "<i8"), ("stop", "<i8"), ("id", "<u8"),
        ("ref", "<u8"), ("leaves", "<u8"), ("shown", "<u8"), ("filled", "<u8"), ("owner", "<u4"),
    ]
)  # fmt: skip

#: Canonical row of a symbol for `Matcher.state_digest`, packed; after the orders' rows.
MATCH_SYMBOL: Final = np.dtype(
    [
        ("locate", "<u4"), ("state", "u1"), ("last", "<i8"), ("reference", "<i8"), ("low", "<i8"),
        ("high", "<i8"),
    ]
)  # fmt: skip


def submit_all(matcher: Matcher, commands: Commands, room: int = 65_536) -> Reports:
    """REPORT[k]: all reports of these commands. Memory: the reports."""
    found, rows = [], np.zeros(max(room, REPORTS_MIN), REPORT)
    while True:
        taken, written, more = matcher.submit(commands, rows)
        found.append(rows[:written].copy())
        commands = commands[taken:]
        if not len(commands) and not more:
            return np.concatenate(found)
