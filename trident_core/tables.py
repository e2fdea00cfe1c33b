"""Tables for research, from the records that parser and book write: no engine is needed, or known, here.

Rows equal those of the PyPI package itch-book 0.2.1 with `price_type="fixed"`, but for the differences that
docs/contracts/book.md lists. `bbo`, `trades` and `messages` take the arrays of one batch; the tables of all
batches, one after the other, are the table of the day. Common columns: `ts_event` (i64, UTC nanoseconds: the
session's local midnight plus the event's time), `seq`, `locate`. Prices are integers at the session's scale;
an absent price is 0. Letters are `S1`; "N" stands for no side and for no cross type.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Book
from trident_core.dtypes import EFFECT, EVENT, TOP, Effects, EventFlag, Events, Levels, Outcome, TopFlag, Tops
from trident_core.errors import UsageError
from trident_core.session import Session

Table = NDArray[Any]

_HEAD: Final = [("ts_event", "<i8"), ("seq", "<u8"), ("locate", "<u4")]

#: Best bid and offer: price, size (total quantity) and count (orders) of both sides.
BBO: Final = np.dtype(
    [
        *_HEAD,
        ("bid_px", "<i8"), ("bid_sz", "<u8"), ("bid_ct", "<u4"),
        ("ask_px", "<i8"), ("ask_sz", "<u8"), ("ask_ct", "<u4"),
    ]
)  # fmt: skip

#: Prints and their voids. `side` and `order_id` are the resting order's (E, C).
TRADE: Final = np.dtype(
    [
        *_HEAD,
        ("kind", "S1"), ("price", "<i8"), ("size", "<u8"), ("side", "S1"),
        ("order_id", "<u8"), ("match_number", "<u8"), ("cross_type", "S1"),
    ]
)  # fmt: skip

#: Every message about an order. `action`: A add, F fill, C cancel, M replace. `remaining`: after the message.
MESSAGE: Final = np.dtype(
    [
        *_HEAD,
        ("type", "S1"), ("action", "S1"), ("side", "S1"), ("price", "<i8"), ("size", "<u8"),
        ("remaining", "<u8"), ("printable", "?"),
        ("order_id", "<u8"), ("old_order_id", "<u8"), ("mpid", "S4"),
    ]
)  # fmt: skip

#: `depth` names its columns with two digits.
DEPTH_MAX: Final = 100

_ACTIONS: Final = {"A": "A", "F": "A", "E": "F", "C": "F", "X": "C", "D": "C", "U": "M"}
_NO_LETTER: Final = ord("N")


def bbo(events: Events, tops: Tops, session: Session) -> Table:
    """BBO[k]: one row for each event after which price, size or count of the best bid or offer is another.

    `events` EVENT[n] and `tops` TOP[n] are those of one `Book.apply`. Raises UsageError for other arrays.
    """
    _check(events, (tops, TOP))
    changed = tops[(tops["flags"] & TopFlag.CHANGED) != 0]
    rows = np.zeros(len(changed), BBO)
    _fill_head(rows, changed, session)
    for side in ("bid", "ask"):
        rows[f"{side}_px"] = changed[f"{side}_price"]
        rows[f"{side}_sz"] = changed[f"{side}_qty"]
        rows[f"{side}_ct"] = changed[f"{side}_count"]
    return rows


def trades(events: Events, effects: Effects, session: Session, tops: Tops | None = None) -> Table:
    """TRADE[k]: one row for each execution of a known order (E, printable C), trade (P), cross (Q), void (B).

    E prints at the resting order's price (spec 4.4.1), C at its own (4.4.2). `size` is the message's, not
    clamped. A B row has only the match number of what it voids: see `voided`. With `tops` the locate of an
    execution is its order's; without, its message's: they differ only where LOCATE_MISMATCH is set.
    Raises UsageError for arrays of another dtype or length.
    """
    _check(events, (effects, EFFECT), (tops, TOP))
    kind = events["type"]
    unprintable = (events["flags"] & EventFlag.NON_PRINTABLE) != 0
    executed = ((kind == ord("E")) | ((kind == ord("C")) & ~unprintable)) & _applied(effects)
    chosen = np.flatnonzero(executed | _is_any(kind, "PQB"))
    events, effects, executed = events[chosen], effects[chosen], executed[chosen]
    kind = events["type"]
    rows = np.zeros(len(chosen), TRADE)
    _fill_head(rows, events, session)
    if tops is not None:
        rows["locate"] = np.where(executed, tops["locate"][chosen], events["locate"])
    rows["kind"] = _letters(kind)
    rows["price"] = np.where(kind == ord("E"), effects["price"], events["price"])
    rows["size"] = events["qty"]
    rows["side"] = _letters(np.where(executed, effects["side"], _NO_LETTER))
    rows["order_id"] = np.where(executed, events["ref"], 0)
    rows["match_number"] = events["ref2"]
    rows["cross_type"] = _letters(np.where(kind == ord("Q"), events["aux"][:, 0], _NO_LETTER))
    return rows


def voided(trades_of_day: Table) -> NDArray[np.bool_]:
    """bool[k]: which rows of a day's `trades` a B of the same day voided (spec 4.5.3). B rows are False.

    A B may come hours after its trade: give it the whole day, or what is known of it so far.
    """
    is_void = trades_of_day["kind"] == b"B"
    match: NDArray[np.uint64] = trades_of_day["match_number"]
    broken: NDArray[np.bool_] = np.isin(match, match[is_void]) & ~is_void
    return broken


def messages(events: Events, effects: Effects, session: Session, tops: Tops | None = None) -> Table:
    """MESSAGE[k]: one row for each A, F, E, C, X, D and U, with what the book knew of its order.

    `side`, and for E, X and D `price`, are the resting order's; D's `size` is what was left. `side` "N": the
    reference was unknown and nothing changed. A or U with `remaining` 0: rejected. U: `order_id` is the new
    reference. `mpid` is set on F rows only, without its padding. `tops` as in `trades`.
    Raises UsageError for arrays of another dtype or length.
    """
    _check(events, (effects, EFFECT), (tops, TOP))
    chosen = np.flatnonzero(_is_any(events["type"], "".join(_ACTIONS)))
    events, effects = events[chosen], effects[chosen]
    kind = events["type"]
    is_add, is_replace = _is_any(kind, "AF"), kind == ord("U")
    known = effects["outcome"] != Outcome.UNKNOWN_REF
    rows = np.zeros(len(chosen), MESSAGE)
    _fill_head(rows, events, session)
    if tops is not None:
        rows["locate"] = tops["locate"][chosen]
    rows["type"] = _letters(kind)
    rows["action"] = _letters(_ACTION_OF[kind])
    rows["side"] = _letters(np.where(is_add, events["side"], np.where(known, effects["side"], _NO_LETTER)))
    rows["price"] = np.where(_is_any(kind, "EXD"), effects["price"], events["price"])
    rows["size"] = np.where(kind == ord("D"), effects["qty"], events["qty"])
    rows["remaining"] = effects["remaining"]
    rows["printable"] = (events["flags"] & EventFlag.NON_PRINTABLE) == 0
    rows["order_id"] = np.where(is_replace, events["ref2"], events["ref"])
    rows["old_order_id"] = np.where(is_replace, events["ref"], 0)
    attributed = np.flatnonzero(kind == ord("F"))
    mpids = np.ascontiguousarray(events["aux"][attributed, :4]).view("S4")[:, 0]
    rows["mpid"][attributed] = np.strings.rstrip(mpids)
    return rows


def depth_dtype(n: int) -> np.dtype[Any]:
    """The row of an n-level depth table: bid_px_00 bid_sz_00 bid_ct_00 ask_px_00 … ask_ct_{n-1}.

    Raises UsageError unless 1 <= n <= DEPTH_MAX.
    """
    if not 1 <= n <= DEPTH_MAX:
        raise UsageError(f"cannot make a depth table of {n} levels", hint=f"choose 1 to {DEPTH_MAX}")
    columns = [
        (f"{side}_{name}_{level:02d}", code)
        for level in range(n)
        for side in ("bid", "ask")
        for name, code in (("px", "<i8"), ("sz", "<u8"), ("ct", "<u4"))
    ]
    return np.dtype(_HEAD + columns)


class DepthTable:
    """The best n levels of both sides, a row after each event that changes them: any book's slow, plain way.

    It feeds `book` one event at a time and compares levels before and after; a change that one symbol's event
    makes in another's book (an eviction) is seen at the other's next event. Memory: one row for each locate.
    """

    def __init__(self, book: Book, n: int = 10) -> None:
        self.dtype = depth_dtype(n)
        self._book = book
        self._n = n
        self._last = {int(locate): self._levels(int(locate)) for locate in book.locates()}

    def apply(self, events: Events) -> Table:
        """Apply `events` to the book and return their rows. Raises UsageError if it is not an EVENT array."""
        _check(events)
        midnight = self._book.session.midnight_ns()
        top = np.zeros(1, TOP)
        rows: list[tuple[int, ...]] = []
        for i in range(len(events)):
            self._book.apply(events[i : i + 1], top)
            locate = int(top["locate"][0])
            levels = self._levels(locate)
            if levels != self._last.get(locate, (0,) * len(levels)):
                rows.append((midnight + int(top["ts"][0]), int(top["seq"][0]), locate, *levels))
            self._last[locate] = levels
        return np.array(rows, self.dtype)

    def _levels(self, locate: int) -> tuple[int, ...]:
        bids, asks = (self._padded(self._book.levels(locate, side, self._n)) for side in "BS")
        return tuple(number for pair in zip(bids, asks, strict=True) for level in pair for number in level)

    def _padded(self, levels: Levels) -> list[tuple[int, int, int]]:
        return [*levels.tolist(), *[(0, 0, 0)] * (self._n - len(levels))]


def depth(book: Book, events: Events, n: int = 10) -> Table:
    """Apply `events` to `book` and return the depth table of them: `DepthTable(book, n).apply(events)`."""
    return DepthTable(book, n).apply(events)


_ACTION_OF: Final = np.zeros(256, np.uint8)
for _type, _action in _ACTIONS.items():
    _ACTION_OF[ord(_type)] = ord(_action)


def _applied(effects: Effects) -> NDArray[np.bool_]:
    """Did the event find its order?"""
    return np.isin(effects["outcome"], (Outcome.APPLIED, Outcome.OVER_EXECUTION))


def _is_any(kind: NDArray[np.uint8], letters: str) -> NDArray[np.bool_]:
    return np.isin(kind, np.frombuffer(letters.encode(), np.uint8))


def _letters(codes: NDArray[Any]) -> NDArray[np.bytes_]:
    return np.ascontiguousarray(codes, np.uint8).view("S1")


def _fill_head(rows: Table, source: NDArray[Any], session: Session) -> None:
    rows["ts_event"] = source["ts"].astype(np.int64) + session.midnight_ns()
    rows["seq"] = source["seq"]
    rows["locate"] = source["locate"]


def _check(events: Events, *others: tuple[NDArray[Any] | None, np.dtype[Any]]) -> None:
    for array, dtype in ((events, EVENT), *others):
        if array is None:
            continue
        if array.dtype != dtype or array.ndim != 1:
            raise UsageError(f"not an array of {dtype.names}", hint="see trident_core.dtypes")
        if len(array) != len(events):
            raise UsageError(
                f"{len(array)} records for {len(events)} events", hint="give all that one apply was given"
            )
