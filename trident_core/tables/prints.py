"""The table `trades`: prints, and the voids that take some of them back."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EFFECT, TOP, Effects, Events, Tops
from trident_core.session import Session
from trident_core.tables.common import HEAD, NO_LETTER, Table, check, fill_head, is_any, letters
from trident_core.tables.scan_kernel import printing

#: Prints and their voids. `side` and `order_id` are the resting order's (E, C).
TRADE: Final = np.dtype(
    [
        *HEAD,
        ("kind", "S1"), ("price", "<i8"), ("size", "<u8"), ("side", "S1"),
        ("order_id", "<u8"), ("match_number", "<u8"), ("cross_type", "S1"),
    ]
)  # fmt: skip


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
    events, effects = events[chosen], effects[chosen]
    kind = events["type"]
    executed = is_any(kind, "EC")
    rows = np.zeros(len(chosen), TRADE)
    fill_head(rows, events, session)
    if tops is not None:
        rows["locate"] = np.where(executed, tops["locate"][chosen], events["locate"])
    rows["kind"] = letters(kind)
    rows["price"] = np.where(kind == ord("E"), effects["price"], events["price"])
    rows["size"] = events["qty"]
    rows["side"] = letters(np.where(executed, effects["side"], NO_LETTER))
    rows["order_id"] = np.where(executed, events["ref"], 0)
    rows["match_number"] = events["ref2"]
    rows["cross_type"] = letters(np.where(kind == ord("Q"), events["aux"][:, 0], NO_LETTER))
    return rows


def voided(trades_of_day: Table) -> NDArray[np.bool_]:
    """bool[k]: which rows of a day's `trades` a B of the same day voided (spec 4.5.3). B rows are False.

    A B may come hours after its trade: give it the whole day, or what is known of it so far.
    """
    is_void = trades_of_day["kind"] == b"B"
    match: NDArray[np.uint64] = trades_of_day["match_number"]
    broken: NDArray[np.bool_] = np.isin(match, match[is_void]) & ~is_void
    return broken
