"""The table `bbo`: best bid and offer of every symbol."""

from __future__ import annotations

from typing import Final

import numpy as np

from trident_core.dtypes import TOP, Events, Tops
from trident_core.session import Session
from trident_core.tables.common import HEAD, Table, check
from trident_core.tables.scan_kernel import changed_quotes, count_changed

#: Best bid and offer: price, size (total quantity) and count (orders) of both sides.
BBO: Final = np.dtype(
    [
        *HEAD,
        ("bid_px", "<i8"), ("bid_sz", "<u8"), ("bid_ct", "<u4"),
        ("ask_px", "<i8"), ("ask_sz", "<u8"), ("ask_ct", "<u4"),
    ]
)  # fmt: skip


def bbo(events: Events, tops: Tops, session: Session) -> Table:
    """BBO[k]: one row for each event after which price, size or count of the best bid or offer is another.

    `events` EVENT[n] and `tops` TOP[n] are those of one `Book.apply`. Raises UsageError for other arrays.
    """
    check(events, (tops, TOP))
    rows = np.empty(count_changed(tops), BBO)
    changed_quotes(tops, np.uint64(session.midnight_ns()), rows)
    return rows
