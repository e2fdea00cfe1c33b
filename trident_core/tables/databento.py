"""The schemas mbo, mbp-1, mbp-N, trades and ohlcv in Databento's words: names, actions, sides, price scale.

What is the same, what is left out and what differs from a file of theirs: docs/tables.md. Prices are i64 with
9 decimals, `UNDEF_PRICE` where there is none. `side` is B or A (ask), for a trade the aggressor's.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import Effects, EventFlag, Events, Outcome, TopFlag, Tops
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.tables.common import Table, applied, is_any

UNDEF_PRICE: Final = (1 << 63) - 1
PRICE_DECIMALS: Final = 9
#: Bit of `flags`: the last record of its event.
LAST: Final = 128

_FIRST: Final = [("ts_event", "<i8"), ("rtype", "u1"), ("instrument_id", "<u4")]
_WHAT: Final = [("action", "S1"), ("side", "S1"), ("depth", "u1"), ("price", "<i8"), ("size", "<u8")]
_LAST: Final = [("flags", "u1"), ("sequence", "<u8")]

MBO: Final = np.dtype(
    [
        *_FIRST,
        ("action", "S1"), ("side", "S1"), ("price", "<i8"), ("size", "<u8"), ("order_id", "<u8"),
        *_LAST,
    ]
)  # fmt: skip
DB_TRADE: Final = np.dtype([*_FIRST, *_WHAT, *_LAST])
OHLCV: Final = np.dtype(
    [*_FIRST, *[(name, "<i8") for name in ("open", "high", "low", "close")], ("volume", "<u8")]
)

RTYPES: Final = {
    "trades": 0x00, "mbp-1": 0x01, "mbp-10": 0x0A, "mbo": 0xA0,
    "ohlcv-1s": 0x20, "ohlcv-1m": 0x21, "ohlcv-1h": 0x22,
}  # fmt: skip

_ACTION_OF: Final = np.full(256, ord("N"), np.uint8)
for _types, _action in (("AF", "A"), ("XD", "C"), ("U", "M"), ("ECPQ", "T")):
    for _type in _types:
        _ACTION_OF[ord(_type)] = ord(_action)
_SIDE: Final = np.full(256, ord("N"), np.uint8)
_SIDE[ord("B")], _SIDE[ord("S")] = ord("B"), ord("A")
_AGGRESSOR: Final = np.full(256, ord("N"), np.uint8)
_AGGRESSOR[ord("B")], _AGGRESSOR[ord("S")] = ord("A"), ord("B")


def mbp_dtype(n: int) -> np.dtype[Any]:
    """The row of mbp-n."""
    levels = [
        (f"{side}_{name}_{level:02d}", code)
        for level in range(n)
        for name, code in (("px", "<i8"), ("sz", "<u8"), ("ct", "<u4"))
        for side in ("bid", "ask")
    ]
    return np.dtype([*_FIRST, *_WHAT, *_LAST, *levels])


def mbo(events: Events, effects: Effects, tops: Tops, session: Session) -> Table:
    """MBO[k]: A adds, C takes away, T is a trade, F the fill of the resting order; T, F leave the book alone.

    E and printable C: T, F, C; other C: F, C. A replace: C of the old order, A of the new; one that keeps its
    reference, as DBN's do: M, and so are cancels and executions by a modify. D: C of all that was left.
    """
    chosen = np.flatnonzero(_is_record(events, effects))
    events, effects, tops = events[chosen], effects[chosen], tops[chosen]
    kind = events["type"]
    prints = _prints(events, effects)
    executes = is_any(kind, "EC")
    modified = is_any(kind, "UXC") & (events["ref"] == events["ref2"]) & _is_theirs(session)
    renewed = (kind == ord("U")) & (effects["outcome"] != Outcome.REJECTED) & ~modified
    copies = np.where(executes, 2 + prints, np.where(renewed, 2, 1))
    at = np.repeat(np.arange(len(events)), copies)
    nth = np.arange(len(at)) - np.repeat(np.cumsum(copies) - copies, copies)
    trade, fill = prints[at] & (nth == 0), executes[at] & (nth == copies[at] - 2)
    adds = is_any(kind, "AF")[at] | (renewed[at] & (nth == 1))
    takes = ~(trade | fill | adds)
    rows = _begin(events[at], tops[at], MBO, RTYPES["mbo"], session)
    action = np.full(len(at), ord("C"), np.uint8)
    modifies = takes & modified[at]
    for where, letter in ((trade, "T"), (fill, "F"), (adds, "A"), (modifies, "M")):
        action[where] = ord(letter)
    rows["action"] = action.view("S1")
    resting = _resting(events, effects, session)[at]
    rows["side"] = np.where(trade, _AGGRESSOR[resting], _SIDE[resting]).view("S1")
    printed = np.where(kind == ord("E"), effects["price"], events["price"])[at]
    moves = modifies & (kind == ord("U"))[at]
    price = np.where(takes & ~moves, effects["price"][at], np.where(adds, events["price"][at], printed))
    rows["price"] = _scaled(price, session)
    left = np.where(modifies, effects["remaining"][at], effects["qty"][at])
    rows["size"] = np.where(takes, left, events["qty"][at])
    ids = np.where(adds & renewed[at], events["ref2"][at], events["ref"][at])
    rows["order_id"] = np.where(trade, _aggressors(events, session)[at], ids)
    rows["flags"] *= nth == copies[at] - 1
    return rows


def trades(events: Events, effects: Effects, tops: Tops, session: Session) -> Table:
    """DB_TRADE[k]: E of known orders, printable C, P and Q with a size. B has no record."""
    chosen = np.flatnonzero(_prints(events, effects) & (events["qty"] > 0))
    return _trigger(events[chosen], effects[chosen], tops[chosen], DB_TRADE, RTYPES["trades"], session)


def mbp_1(events: Events, effects: Effects, tops: Tops, session: Session) -> Table:
    """mbp_dtype(1)[k]: a row for each event that changes the best bid or offer, with the event itself."""
    chosen = np.flatnonzero(tops["flags"] & TopFlag.CHANGED)
    tops = tops[chosen]
    rows = _trigger(events[chosen], effects[chosen], tops, mbp_dtype(1), RTYPES["mbp-1"], session)
    for side in ("bid", "ask"):
        count = tops[f"{side}_count"]
        rows[f"{side}_px_00"] = _scaled(tops[f"{side}_price"], session, count > 0)
        rows[f"{side}_sz_00"], rows[f"{side}_ct_00"] = tops[f"{side}_qty"], count
    return rows


def mbp_n(depth: Table, n: int, events: Events, effects: Effects, tops: Tops, session: Session) -> Table:
    """mbp_dtype(n)[k]: the rows of the native `depth` of this batch, each with the event that it follows."""
    chosen = np.searchsorted(events["seq"], depth["seq"])
    rows = _trigger(
        events[chosen], effects[chosen], tops[chosen], mbp_dtype(n), RTYPES.get(f"mbp-{n}", 0xFF), session
    )
    better = np.zeros(len(depth), np.int64)
    bid, ask = rows["side"] == b"B", rows["side"] == b"A"
    trade = rows["action"] == b"T"  # its side is the aggressor's
    on_bids, on_asks = np.where(trade, ask, bid), np.where(trade, bid, ask)
    for level in range(n):
        for side, wanted in (("bid", on_bids), ("ask", on_asks)):
            px, sz, ct = (depth[f"{side}_{name}_{level:02d}"] for name in ("px", "sz", "ct"))
            scaled = _scaled(px, session, ct > 0)
            rows[f"{side}_px_{level:02d}"] = scaled
            rows[f"{side}_sz_{level:02d}"], rows[f"{side}_ct_{level:02d}"] = sz, ct
            ahead = scaled > rows["price"] if side == "bid" else scaled < rows["price"]
            better += wanted & (ct > 0) & ahead
    rows["depth"] = np.minimum(better, n - 1)
    return rows


def ohlcv(bars: Table, rtype: int, session: Session) -> Table:
    """OHLCV[k]: the rows of the native time `bars`."""
    rows = np.zeros(len(bars), OHLCV)
    rows["ts_event"], rows["rtype"], rows["instrument_id"] = bars["ts_event"], rtype, bars["locate"]
    for name in ("open", "high", "low", "close"):
        rows[name] = _scaled(bars[name], session)
    rows["volume"] = bars["volume"]
    return rows


def _prints(events: Events, effects: Effects) -> NDArray[np.bool_]:
    kind = events["type"]
    unprintable = (events["flags"] & EventFlag.NON_PRINTABLE) != 0
    executed: NDArray[np.bool_] = is_any(kind, "EC") & ~unprintable & applied(effects)
    trades: NDArray[np.bool_] = executed | is_any(kind, "PQ")
    return trades


def _is_record(events: Events, effects: Effects) -> NDArray[np.bool_]:
    """Has the event a record in mbo? A print, or a change of the book."""
    outcome = effects["outcome"]
    changed: NDArray[np.bool_] = (outcome != Outcome.NONE) & (outcome != Outcome.UNKNOWN_REF)
    changed &= ~((outcome == Outcome.REJECTED) & is_any(events["type"], "AF"))
    changed |= _prints(events, effects) & (events["qty"] > 0)
    return changed


def _begin(events: Events, tops: Tops, dtype: np.dtype[Any], rtype: int, session: Session) -> Table:
    rows = np.zeros(len(events), dtype)
    rows["ts_event"] = events["ts"].astype(np.int64) + session.midnight_ns()
    rows["rtype"], rows["instrument_id"] = rtype, tops["locate"]
    if _is_theirs(session):
        aux = np.ascontiguousarray(events["aux"])
        rows["sequence"], rows["flags"] = aux.view("<u4")[:, 0], aux[:, 6]
        older = (events["type"] == ord("A")) & (events["ref2"] != 0)  # than the session, from a snapshot
        rows["ts_event"][older] = events["ref2"][older]
    else:
        rows["sequence"], rows["flags"] = events["seq"], LAST
    return rows


def _is_theirs(session: Session) -> bool:
    """Do the events come from a DBN file? They carry its sequence numbers and flags then."""
    return session.protocol == "dbn-mbo"


def _aggressors(events: Events, session: Session) -> NDArray[np.uint64]:
    """The order that took, as far as it is told: by a DBN file, for venues that tell it."""
    if not _is_theirs(session):
        return np.zeros(len(events), np.uint64)
    matched: NDArray[np.uint64] = np.where(events["type"] == ord("P"), events["ref"], events["ref2"])
    return matched


def _resting(events: Events, effects: Effects, session: Session) -> NDArray[np.uint8]:
    """The side of the order that rested. NASDAQ's P and Q do not tell it; a DBN file's trades do."""
    without = is_any(events["type"], "PQ")
    side: NDArray[np.uint8] = np.where(without, events["side"] if _is_theirs(session) else 0, effects["side"])
    return side


def _trigger(
    events: Events, effects: Effects, tops: Tops, dtype: np.dtype[Any], rtype: int, session: Session
) -> Table:
    """Rows with the columns that say which event it was."""
    rows = _begin(events, tops, dtype, rtype, session)
    kind = events["type"]
    prints = _prints(events, effects)
    action = np.where(is_any(kind, "C") & ~prints, ord("C"), _ACTION_OF[kind]).astype(np.uint8)
    resting = _resting(events, effects, session)
    rows["action"] = action.view("S1")
    rows["side"] = np.where(prints, _AGGRESSOR[resting], _SIDE[resting]).view("S1")
    takes = is_any(kind, "XDE") | (is_any(kind, "C") & ~prints)
    known = is_any(kind, "AFUXDECPQ")
    rows["price"] = _scaled(np.where(takes, effects["price"], events["price"]), session, known)
    rows["size"] = np.where(is_any(kind, "XD"), effects["qty"], np.where(known, events["qty"], 0))
    return rows


def _scaled(
    prices: NDArray[Any], session: Session, known: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Prices at 9 decimals; UNDEF_PRICE where not `known`. Raises UsageError if the session has more."""
    if session.price_decimals > PRICE_DECIMALS:
        raise UsageError(f"prices of {session.price_decimals} decimals do not fit Databento's 9")
    scaled: NDArray[np.int64] = prices.astype(np.int64) * 10 ** (PRICE_DECIMALS - session.price_decimals)
    return scaled if known is None else np.where(known, scaled, UNDEF_PRICE)
