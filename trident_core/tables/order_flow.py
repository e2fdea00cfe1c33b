"""The table `messages`: order by order, with what the book knew."""

from __future__ import annotations

from typing import Final

import numpy as np

from trident_core.dtypes import EFFECT, TOP, Effects, EventFlag, Events, Outcome, Tops
from trident_core.session import Session
from trident_core.tables.common import HEAD, NO_LETTER, Table, check, fill_head, is_any, letters

#: Every message about an order. `action`: A add, F fill, C cancel, M replace. `remaining`: after the message.
MESSAGE: Final = np.dtype(
    [
        *HEAD,
        ("type", "S1"), ("action", "S1"), ("side", "S1"), ("price", "<i8"), ("size", "<u8"),
        ("remaining", "<u8"), ("printable", "?"),
        ("order_id", "<u8"), ("old_order_id", "<u8"), ("mpid", "S4"),
    ]
)  # fmt: skip


_ACTIONS: Final = {"A": "A", "F": "A", "E": "F", "C": "F", "X": "C", "D": "C", "U": "M"}
_ACTION_OF: Final = np.zeros(256, np.uint8)
for _type, _action in _ACTIONS.items():
    _ACTION_OF[ord(_type)] = ord(_action)


def messages(events: Events, effects: Effects, session: Session, tops: Tops | None = None) -> Table:
    """MESSAGE[k]: one row for each A, F, E, C, X, D and U, with what the book knew of its order.

    `side`, and for E, X and D `price`, are the resting order's; D's `size` is what was left. `side` "N": the
    reference was unknown and nothing changed. A or U with `remaining` 0: rejected. U: `order_id` is the new
    reference. `mpid` is set on F rows only, without its padding. `tops` as in `trades`.
    Raises UsageError for arrays of another dtype or length.
    """
    check(events, (effects, EFFECT), (tops, TOP))
    chosen = np.flatnonzero(is_any(events["type"], "".join(_ACTIONS)))
    events, effects = events[chosen], effects[chosen]
    kind = events["type"]
    is_add, is_replace = is_any(kind, "AF"), kind == ord("U")
    known = effects["outcome"] != Outcome.UNKNOWN_REF
    rows = np.zeros(len(chosen), MESSAGE)
    fill_head(rows, events, session)
    if tops is not None:
        rows["locate"] = tops["locate"][chosen]
    rows["type"] = letters(kind)
    rows["action"] = letters(_ACTION_OF[kind])
    rows["side"] = letters(np.where(is_add, events["side"], np.where(known, effects["side"], NO_LETTER)))
    rows["price"] = np.where(is_any(kind, "EXD"), effects["price"], events["price"])
    rows["size"] = np.where(kind == ord("D"), effects["qty"], events["qty"])
    rows["remaining"] = effects["remaining"]
    rows["printable"] = (events["flags"] & EventFlag.NON_PRINTABLE) == 0
    rows["order_id"] = np.where(is_replace, events["ref2"], events["ref"])
    rows["old_order_id"] = np.where(is_replace, events["ref"], 0)
    attributed = np.flatnonzero(kind == ord("F"))
    mpids = np.ascontiguousarray(events["aux"][attributed, :4]).view("S4")[:, 0]
    rows["mpid"][attributed] = np.strings.rstrip(mpids)
    return rows
