"""What all tables share: the common columns, letters, and the checks of their input."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Effects, Events, Outcome
from trident_core.errors import UsageError
from trident_core.session import Session

Table = NDArray[Any]

#: Common columns: UTC nanoseconds, sequence number of the event, locate of the symbol (0: none).
HEAD: Final = [("ts_event", "<i8"), ("seq", "<u8"), ("locate", "<u4")]

#: The letter of no side, no cross type, no market.
NO_LETTER: Final = ord("N")


def applied(effects: Effects) -> NDArray[np.bool_]:
    """Did the event find its order?"""
    outcome = effects["outcome"]
    found: NDArray[np.bool_] = (outcome == Outcome.APPLIED) | (outcome == Outcome.OVER_EXECUTION)
    return found


def is_any(kind: NDArray[np.uint8], types: str) -> NDArray[np.bool_]:
    """bool[n]: which of the type bytes `kind` are among the letters `types`."""
    wanted = np.zeros(256, np.bool_)
    wanted[np.frombuffer(types.encode("latin-1"), np.uint8)] = True
    return wanted[kind]


def letters(codes: NDArray[Any]) -> NDArray[np.bytes_]:
    """Bytes as letters: u8[n] to S1[n]."""
    return np.ascontiguousarray(codes, np.uint8).view("S1")


def text(codes: NDArray[Any]) -> NDArray[np.bytes_]:
    """Bytes as text without its padding: u8[n, w] to S[n]."""
    width = codes.shape[1]
    return np.strings.rstrip(np.ascontiguousarray(codes, np.uint8).view(f"S{width}")[:, 0])


def fill_head(rows: Table, source: NDArray[Any], session: Session) -> None:
    """Set the common columns from EVENTs or TOPs."""
    rows["ts_event"] = source["ts"].astype(np.int64) + session.midnight_ns()
    rows["seq"] = source["seq"]
    rows["locate"] = source["locate"]


def check(events: Events, *others: tuple[NDArray[Any] | None, np.dtype[Any]]) -> None:
    """Raise UsageError unless `events` is EVENT[n] and each of `others` (or None) n records of its dtype."""
    for array, dtype in ((events, EVENT), *others):
        if array is None:
            continue
        if array.dtype != dtype or array.ndim != 1:
            raise UsageError(f"not an array of {dtype.names}", hint="see trident_core.dtypes")
        if len(array) != len(events):
            raise UsageError(
                f"{len(array)} records for {len(events)} events", hint="give all that one apply was given"
            )
