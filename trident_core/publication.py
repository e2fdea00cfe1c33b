"""What the public sees of a market: REPORTs -> EVENTs, by the table of docs/matching.md (MATCH-80).

    events = events_of(reports, first_seq=1)    # for the ITCH encoder, a book, the store

Applied in order by any book they give the matcher's `digest()`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts.matching import ReportFlag, ReportKind
from trident_core.dtypes import EVENT, EventFlag, Events
from trident_core.errors import UsageError
from trident_core.orders import REPORT, Reports

_Mask = NDArray[np.bool_]
_NO_REASON: Final = np.frombuffer(b"    ", np.uint8)


def events_of(reports: Reports, first_seq: int = 1) -> Events:
    """EVENT[k], k <= len(reports): what these rows publish, in order, numbered from `first_seq`.

    An INDICATIVE's far price has no column in EVENT. Any split of the reports gives the same events. Raises
    UsageError for an array that is not of REPORT, or not one-dimensional.
    """
    if not isinstance(reports, np.ndarray) or reports.dtype != REPORT or reports.ndim != 1:
        raise UsageError("reports are no REPORTs", hint="pass a one-dimensional array of trident_core.orders")
    letters = _letters(reports)
    told = letters != 0
    rows, letters = reports[told], letters[told]
    events = np.zeros(len(rows), EVENT)
    events["seq"] = np.arange(first_seq, first_seq + len(rows), dtype=np.uint64)
    events["type"] = letters
    for column in ("ts", "locate"):
        events[column] = rows[column]
    for fill in (_adds, _trades, _leaves, _crosses, _states):
        fill(events, rows, letters)
    return events


def _letters(reports: Reports) -> NDArray[np.uint8]:
    """The type of each row's event; 0: none."""
    kind, flags = reports["kind"], reports["flags"]
    shown, left = _has(flags, ReportFlag.DISPLAYED), _has(flags, ReportFlag.LEFT)
    in_place, rests = _has(flags, ReportFlag.IN_PLACE), _has(flags, ReportFlag.RESTS)
    fill, replaced = kind == ReportKind.FILL, kind == ReportKind.REPLACED
    second, cross = _has(flags, ReportFlag.SECOND), _has(flags, ReportFlag.CROSS)
    joined = ((kind == ReportKind.BOOKED) | (kind == ReportKind.REFRESHED)) & shown
    fell = ((kind == ReportKind.CANCELLED) | (replaced & in_place)) & shown
    moved = replaced & ~in_place & shown
    letters = np.zeros(len(reports), np.uint8)
    for mask, letter in (
        (joined & ~reports["mpid"].any(axis=1), "A"),
        (joined & reports["mpid"].any(axis=1), "F"),
        (fill & shown & ~second & ~cross, "E"),
        (fill & shown & (second | cross), "C"),
        (fill & ~shown & ~second & ~cross, "P"),
        (fell & left, "D"),
        (fell & ~left & (reports["leaves2"] != 0), "X"),
        (moved & rests, "U"),
        (moved & ~rests, "D"),
        (kind == ReportKind.CROSS, "Q"),
        (kind == ReportKind.INDICATIVE, "I"),
        (kind == ReportKind.STATE, "H"),
    ):
        letters[mask] = ord(letter)
    return letters


def _has(flags: NDArray[Any], flag: ReportFlag) -> _Mask:
    mask: _Mask = (flags & int(flag)) != 0
    return mask


def _is(letters: NDArray[np.uint8], wanted: str) -> _Mask:
    return np.isin(letters, list(wanted.encode()))


def _copy(events: Events, rows: Reports, mask: _Mask, **columns: str) -> None:
    for target, source in columns.items():
        events[target][mask] = rows[source][mask]


def _adds(events: Events, rows: Reports, letters: NDArray[np.uint8]) -> None:
    _copy(events, rows, _is(letters, "AF"), ref="ref", price="price", qty="qty", side="side")
    attributed = _is(letters, "F")
    events["aux"][attributed, :4] = rows["mpid"][attributed]
    _copy(events, rows, _is(letters, "U"), ref="ref2", ref2="ref", price="price", qty="qty")


def _trades(events: Events, rows: Reports, letters: NDArray[np.uint8]) -> None:
    _copy(events, rows, _is(letters, "E"), ref="ref", ref2="ref2", qty="qty")
    in_cross = _is(letters, "C")
    _copy(events, rows, in_cross, ref="ref", ref2="ref2", qty="qty", price="price")
    events["flags"][in_cross] = int(EventFlag.NON_PRINTABLE)
    unseen = _is(letters, "P")
    _copy(events, rows, unseen, ref2="ref2", qty="qty", price="price")
    events["side"][unseen] = ord("B")


def _leaves(events: Events, rows: Reports, letters: NDArray[np.uint8]) -> None:
    _copy(events, rows, _is(letters, "X"), ref="ref", qty="leaves2")
    gone, moved = _is(letters, "D"), rows["kind"] == ReportKind.REPLACED
    _copy(events, rows, gone & ~moved, ref="ref")
    _copy(events, rows, gone & moved, ref="ref2")


def _crosses(events: Events, rows: Reports, letters: NDArray[np.uint8]) -> None:
    crossed, told = _is(letters, "Q"), _is(letters, "I")
    _copy(events, rows, crossed, ref2="ref2", qty="qty", price="price")
    _copy(events, rows, told, ref2="leaves", qty="qty", price="price", side="side")
    events["aux"][crossed | told, 0] = rows["code"][crossed | told]
    near = rows["leaves2"][told].astype("<u4")
    events["aux"][told, 1] = _variation(near, rows["price"][told])
    events["aux"][told, 4:] = near.view(np.uint8).reshape(-1, 4)


def _variation(near: NDArray[Any], reference: NDArray[Any]) -> NDArray[np.uint8]:
    """The price variation indicator (spec 4.6): per cent between near and reference price."""
    known = (near > 0) & (reference > 0)
    apart = np.abs(near.astype(np.int64) - reference) * 100 // np.maximum(reference, 1)
    digits = np.frombuffer(b"L123456789" + b"A" * 10 + b"B" * 10 + b"C", np.uint8)
    return np.where(known, digits[np.minimum(apart, 30)], np.uint8(ord(" ")))


def _states(events: Events, rows: Reports, letters: NDArray[np.uint8]) -> None:
    changed = _is(letters, "H")
    events["aux"][changed, 0] = rows["code"][changed]
    events["aux"][changed, 1:5] = _NO_REASON
