"""Tables of what the venue says beside orders and trades: auctions, halts, restrictions, indicators.

Each takes the EVENTs of one batch and the session; `noii`, `mwcb`, `ipo`, `direct_listing` and `directory`
also take the typed rows (`TableParser.parse_tables`) of the same messages, for the fields that EVENT has no
room for. The rows of all batches, one after the other, are those of the day.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import Events
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.tables.common import HEAD, NO_LETTER, Table, check, fill_head, is_any, letters, text

#: I: net order imbalance. Prices are 0 when not disseminated; `direction`: B, S, N none, O too few orders.
NOII: Final = np.dtype(
    [
        *HEAD,
        ("paired", "<u8"), ("imbalance", "<u8"), ("direction", "S1"),
        ("far_px", "<i8"), ("near_px", "<i8"), ("ref_px", "<i8"),
        ("cross_type", "S1"), ("variation", "S1"),
    ]
)  # fmt: skip

#: H and h. `state` of H: T, H, P or Q, with a `reason`; of h: H or T, at the `market` Q, B or X.
HALT: Final = np.dtype([*HEAD, ("kind", "S1"), ("state", "S1"), ("reason", "S4"), ("market", "S1")])

#: Y: 0 no restriction, 1 in effect by a price drop, 2 remains in effect.
REG_SHO: Final = np.dtype([*HEAD, ("action", "S1")])

#: J: auction collar; `extension` counts the extensions.
LULD: Final = np.dtype(
    [*HEAD, ("ref_px", "<i8"), ("upper_px", "<i8"), ("lower_px", "<i8"), ("extension", "<u4")]
)

#: V (the levels, 8 decimals) and W (`breached`: the level, 1 to 3; N on V rows).
MWCB: Final = np.dtype(
    [*HEAD, ("kind", "S1"), ("level_1", "<u8"), ("level_2", "<u8"), ("level_3", "<u8"), ("breached", "S1")]
)

#: K, whose locate is 0: its symbol is `stock`. `release_ts`: UTC nanoseconds of the quotation's release, 0:
#: cancelled or postponed. `qualifier`: A anticipated, C cancelled or postponed.
IPO: Final = np.dtype(
    [*HEAD, ("stock", "S8"), ("release_ts", "<i8"), ("qualifier", "S1"), ("price", "<i8")]
)  # fmt: skip

#: L: a market maker's `mpid`, `primary` Y or N, `mode` and `state` by letter.
PARTICIPANT: Final = np.dtype(
    [*HEAD, ("mpid", "S4"), ("primary", "S1"), ("mode", "S1"), ("state", "S1")]
)  # fmt: skip

#: N: retail interest: B, S, A both, N none.
RPII: Final = np.dtype([*HEAD, ("interest", "S1")])

#: S: O start of messages, S start of system hours, Q of market hours, M end of market hours, E, C.
SYSTEM: Final = np.dtype([*HEAD, ("event", "S1")])

#: O: price discovery of a direct listing with capital raise. `near_ts`: UTC nanoseconds, 0: none.
DIRECT_LISTING: Final = np.dtype(
    [
        *HEAD,
        ("eligibility", "S1"), ("min_px", "<i8"), ("max_px", "<i8"),
        ("near_px", "<i8"), ("near_ts", "<i8"), ("lower_px", "<i8"), ("upper_px", "<i8"),
    ]
)  # fmt: skip

#: R: the stock directory, a row for each message, with every field of the specification.
DIRECTORY: Final = np.dtype(
    [
        *HEAD,
        ("stock", "S8"), ("market_category", "S1"), ("financial_status", "S1"), ("round_lot_size", "<u4"),
        ("round_lots_only", "S1"), ("classification", "S1"), ("sub_type", "S2"), ("authenticity", "S1"),
        ("short_sale_threshold", "S1"), ("ipo", "S1"), ("luld_tier", "S1"), ("etp", "S1"),
        ("etp_leverage", "<u4"), ("inverse", "S1"),
    ]
)  # fmt: skip

#: Columns of DIRECTORY in the words of the specification (`itch50.MESSAGES`).
_DIRECTORY_FIELDS: Final = (
    "stock", "market_category", "financial_status_indicator", "round_lot_size", "round_lots_only",
    "issue_classification", "issue_sub_type", "authenticity", "short_sale_threshold_indicator", "ipo_flag",
    "luld_reference_price_tier", "etp_flag", "etp_leverage_factor", "inverse_indicator",
)  # fmt: skip


def noii(events: Events, typed: Table | None, session: Session) -> Table:
    """NOII[k]: one row for each I (spec 4.6). `typed`: the typed rows of I, for the far price."""
    rows, chosen = _begin(events, "I", NOII, session)
    if not len(rows):
        return rows
    same = _typed(typed, rows)
    rows["paired"] = chosen["qty"]
    rows["imbalance"] = chosen["ref2"]
    rows["direction"] = letters(chosen["side"])
    rows["far_px"] = same["far_price"]
    rows["near_px"] = _u32(chosen["aux"], 4)
    rows["ref_px"] = chosen["price"]
    rows["cross_type"] = letters(chosen["aux"][:, 0])
    rows["variation"] = letters(chosen["aux"][:, 1])
    return rows


def halts(events: Events, session: Session) -> Table:
    """HALT[k]: one row for each trading action (H, 4.2.2) and operational halt of a venue (h, 4.2.8)."""
    rows, chosen = _begin(events, "Hh", HALT, session)
    aux = chosen["aux"]
    trading = chosen["type"] == ord("H")
    rows["kind"] = letters(chosen["type"])
    rows["state"] = letters(np.where(trading, aux[:, 0], aux[:, 1]))
    rows["reason"] = np.where(trading, text(aux[:, 1:5]), b"")
    rows["market"] = letters(np.where(trading, NO_LETTER, aux[:, 0]))
    return rows


def reg_sho(events: Events, session: Session) -> Table:
    """REG_SHO[k]: one row for each Y (4.2.3)."""
    rows, chosen = _begin(events, "Y", REG_SHO, session)
    rows["action"] = letters(chosen["aux"][:, 0])
    return rows


def luld(events: Events, session: Session) -> Table:
    """LULD[k]: one row for each J (4.2.7)."""
    rows, chosen = _begin(events, "J", LULD, session)
    rows["ref_px"] = chosen["price"]
    rows["upper_px"] = _u32(chosen["aux"], 0)
    rows["lower_px"] = _u32(chosen["aux"], 4)
    rows["extension"] = chosen["qty"]
    return rows


def mwcb(events: Events, typed: Table | None, session: Session) -> Table:
    """MWCB[k]: one row for each V and W (4.2.5). `typed`: the typed rows of V, for levels 2 and 3."""
    rows, chosen = _begin(events, "VW", MWCB, session)
    rows["kind"] = letters(chosen["type"])
    declines = np.flatnonzero(chosen["type"] == ord("V"))
    if len(declines):
        same = _typed(typed, rows[declines])
        for level in ("level_1", "level_2", "level_3"):
            rows[level][declines] = same[level]
    rows["breached"] = letters(np.where(chosen["type"] == ord("W"), chosen["aux"][:, 0], NO_LETTER))
    return rows


def ipo(events: Events, typed: Table | None, session: Session) -> Table:
    """IPO[k]: one row for each K (4.2.6). `typed`: the typed rows of K, for the stock: its locate is 0."""
    rows, chosen = _begin(events, "K", IPO, session)
    if len(rows):
        rows["stock"] = np.strings.rstrip(_typed(typed, rows)["stock"])
    at = chosen["qty"].astype(np.int64) * 1_000_000_000
    rows["release_ts"] = np.where(at, at + session.midnight_ns(), 0)
    rows["qualifier"] = letters(chosen["aux"][:, 0])
    rows["price"] = chosen["price"]
    return rows


def participants(events: Events, session: Session) -> Table:
    """PARTICIPANT[k]: one row for each L (4.2.4)."""
    rows, chosen = _begin(events, "L", PARTICIPANT, session)
    aux = chosen["aux"]
    rows["mpid"] = text(aux[:, :4])
    for n, name in enumerate(("primary", "mode", "state")):
        rows[name] = letters(aux[:, 4 + n])
    return rows


def rpii(events: Events, session: Session) -> Table:
    """RPII[k]: one row for each N (4.7): an indicator, no order."""
    rows, chosen = _begin(events, "N", RPII, session)
    rows["interest"] = letters(chosen["aux"][:, 0])
    return rows


def system(events: Events, session: Session) -> Table:
    """SYSTEM[k]: one row for each S (4.1)."""
    rows, chosen = _begin(events, "S", SYSTEM, session)
    rows["event"] = letters(chosen["aux"][:, 0])
    return rows


def direct_listing(events: Events, typed: Table | None, session: Session) -> Table:
    """DIRECT_LISTING[k]: one row for each O. `typed`: the typed rows of O, for what EVENT lacks."""
    rows, chosen = _begin(events, "O", DIRECT_LISTING, session)
    if not len(rows):
        return rows
    same = _typed(typed, rows)
    rows["eligibility"] = letters(chosen["aux"][:, 0])
    rows["min_px"] = same["minimum_allowable_price"]
    rows["max_px"] = same["maximum_allowable_price"]
    rows["near_px"] = same["near_execution_price"]
    at = same["near_execution_time"].astype(np.int64)
    rows["near_ts"] = np.where(at, at + session.midnight_ns(), 0)
    rows["lower_px"] = same["lower_price_range_collar"]
    rows["upper_px"] = same["upper_price_range_collar"]
    return rows


def directory(events: Events, typed: Table | None, session: Session) -> Table:
    """DIRECTORY[k]: one row for each R (4.2.1). `typed`: the typed rows of R."""
    rows, _ = _begin(events, "R", DIRECTORY, session)
    if not len(rows):
        return rows
    same = _typed(typed, rows)
    names = DIRECTORY.names or ()
    for column, name in zip(names[len(HEAD) :], _DIRECTORY_FIELDS, strict=True):
        values = same[name]
        rows[column] = np.strings.rstrip(values) if column in ("stock", "sub_type") else values
    return rows


def _begin(events: Events, types: str, dtype: np.dtype[Any], session: Session) -> tuple[Table, NDArray[Any]]:
    """Rows with the common columns set, and the events that they are of."""
    check(events)
    chosen = events[np.flatnonzero(is_any(events["type"], types))]
    rows = np.zeros(len(chosen), dtype)
    fill_head(rows, chosen, session)
    return rows, chosen


def _typed(typed: Table | None, rows: Table) -> Table:
    """The typed rows of `rows`, in their order, found by `seq`. Raises UsageError if one is not there."""
    if typed is not None and len(typed):
        at = np.minimum(np.searchsorted(typed["seq"], rows["seq"]), len(typed) - 1)
        if (typed["seq"][at] == rows["seq"]).all():
            return typed[at]
    raise UsageError(
        f"no typed rows of the messages from number {rows['seq'][0]} on",
        hint="give what parse_tables makes of the bytes that the events are of",
    )


def _u32(aux: NDArray[np.uint8], start: int) -> NDArray[Any]:
    """Four bytes of every aux as a little-endian u32."""
    return np.ascontiguousarray(aux[:, start : start + 4]).view("<u4")[:, 0]
