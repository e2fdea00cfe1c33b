"""The table `trades`: prints, and the voids that take some of them back."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EFFECT, TOP, Effects, Events, Tops
from trident_core.session import Session
from trident_core.tables.common import HEAD, Table, check
from trident_core.tables.scan_kernel import fill_trades, printing

#: Prints and their voids. `side` and `order_id` are the resting order's (E, C).
TRADE: Final = np.dtype(
    [
        *HEAD,
        ("kind", "S1"), ("price", "<i8"), ("size", "<u8"), ("side", "S1"),
        ("order_id", "<u8"), ("match_number", "<u8"), ("cross_type", "S1"),
    ]
)  # fmt: skip

#: The same with letters as numbers, and no tops at all: what a kernel takes.
_CODES: Final = np.dtype(
    [(name, "u1" if TRADE[name].kind == "S" else TRADE[name]) for name in TRADE.names or ()]
)
_NO_TOPS: Final = np.zeros(0, TOP)


def trades(events: Events, effects: Effects, session: Session, tops: Tops | None = None) -> Table:
    """TRADE[k]: one row for each execution of a known order (E, printable C), trade (P), cross (Q), void (B).

    E prints at the resting order's price (spec 4.4.1), C at its own (4.4.2). `size` is the message's, not
    clamped. A B row has only the match number of what it voids: see `voided`. With `tops` the locate of an
    execution is its order's; without, its message's: they differ only where LOCATE_MISMATCH is set.
    Raises UsageError for arrays of another dtype or length.
    """
    check(events, (effects, EFFECT), (tops, TOP))
    chosen = np.empty(len(events), np.int64)
    chosen = chosen[: printing(events, effects, chosen)]
    rows = np.empty(len(chosen), _CODES)
    cross_types = events["aux"][:, 0]
    resting = _NO_TOPS if tops is None else tops
    fill_trades(chosen, events, effects, resting, cross_types, session.midnight_ns(), rows)
    return rows.view(TRADE)


def voided(trades_of_day: Table) -> NDArray[np.bool_]:
    """bool[k]: which rows of a day's `trades` a B of the same day voided (spec 4.5.3). B rows are False.

    A B may come hours after its trade: give it the whole day, or what is known of it so far.
    """
    is_void = trades_of_day["kind"] == b"B"
    match: NDArray[np.uint64] = trades_of_day["match_number"]
    broken: NDArray[np.bool_] = np.isin(match, match[is_void]) & ~is_void
    return broken
