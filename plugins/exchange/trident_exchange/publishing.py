"""What the public sees: EVENTs of ITCH out of the matching engine's reports (docs/matching.md, MATCH-80),
and the messages of the day's frame: system events and the directory."""

from __future__ import annotations

from typing import Final

import numpy as np

from trident_core.contracts.matching import ReportFlag, ReportKind
from trident_core.dtypes import EVENT, EventFlag, Events
from trident_core.orders import Reports

_TEST_SYMBOLS: Final = frozenset(("ZVZZT", "ZWZZT", "ZXZZT", "ZBZZT", "ZJZZT"))


def events_of(reports: Reports) -> Events:
    """EVENT[k], k <= len(reports), in order; `seq` is not set. At most one for each row, by the row alone."""
    events = np.zeros(len(reports), EVENT)
    for name in ("ts", "ref", "price", "qty", "locate", "side"):
        events[name] = reports[name]
    kind, flags = reports["kind"], reports["flags"]
    shown = flags & ReportFlag.DISPLAYED != 0
    _adds(events, reports, shown & ((kind == ReportKind.BOOKED) | (kind == ReportKind.REFRESHED)))
    _fills(events, reports, kind == ReportKind.FILL, shown)
    left = flags & ReportFlag.LEFT != 0
    changed = shown & (
        (kind == ReportKind.CANCELLED) | ((kind == ReportKind.REPLACED) & (flags & ReportFlag.IN_PLACE != 0))
    )
    _removes(events, reports, changed, left)
    moved = shown & (kind == ReportKind.REPLACED) & (flags & ReportFlag.IN_PLACE == 0)
    _moves(events, reports, moved)
    _notices(events, reports)
    made: Events = events[events["type"] != 0]
    return made


def _put(events: Events, rows: np.ndarray, letter: str, keep: tuple[str, ...]) -> None:
    """The type of these rows; columns that the type does not have become 0."""
    events["type"][rows] = ord(letter)
    for name in ("ref", "price", "qty", "side"):
        if name not in keep:
            events[name][rows] = 0


def _adds(events: Events, reports: Reports, rows: np.ndarray) -> None:
    _put(events, rows, "A", ("ref", "price", "qty", "side"))
    named = rows & (reports["mpid"] != 0).any(axis=1)
    events["type"][named] = ord("F")
    events["aux"][named, :4] = reports["mpid"][named]


def _fills(events: Events, reports: Reports, fills: np.ndarray, shown: np.ndarray) -> None:
    own = reports["flags"] & (ReportFlag.SECOND | ReportFlag.CROSS) != 0
    events["ref2"][fills] = reports["ref2"][fills]
    _put(events, fills & shown & ~own, "E", ("ref", "qty"))
    priced = fills & shown & own
    _put(events, priced, "C", ("ref", "qty", "price"))
    events["flags"][priced] = EventFlag.NON_PRINTABLE
    unseen = fills & ~shown & ~own
    _put(events, unseen, "P", ("price", "qty"))
    events["side"][unseen] = ord("B")


def _removes(events: Events, reports: Reports, rows: np.ndarray, left: np.ndarray) -> None:
    reference = np.where(reports["kind"] == ReportKind.REPLACED, reports["ref2"], reports["ref"])
    events["ref"][rows] = reference[rows]
    _put(events, rows & left, "D", ("ref",))
    less = rows & ~left & (reports["leaves2"] != 0)
    _put(events, less, "X", ("ref", "qty"))
    events["qty"][less] = reports["leaves2"][less]


def _moves(events: Events, reports: Reports, rows: np.ndarray) -> None:
    rests = rows & (reports["flags"] & ReportFlag.RESTS != 0)
    events["ref"][rows] = reports["ref2"][rows]
    _put(events, rows & ~rests, "D", ("ref",))
    _put(events, rests, "U", ("ref", "price", "qty"))
    events["ref2"][rests] = reports["ref"][rests]


def _notices(events: Events, reports: Reports) -> None:
    kind = reports["kind"]
    cross = kind == ReportKind.CROSS
    _put(events, cross, "Q", ("price", "qty"))
    events["ref2"][cross] = reports["ref2"][cross]
    events["aux"][cross, 0] = reports["code"][cross]
    told = kind == ReportKind.INDICATIVE
    _put(events, told, "I", ("price", "qty", "side"))
    events["ref2"][told] = reports["leaves"][told]
    events["aux"][told, 0] = reports["code"][told]
    events["aux"][told, 1] = ord(" ")
    events["aux"][told, 4:8] = reports["leaves2"][told].astype("<u4").view(np.uint8).reshape(-1, 4)
    state = kind == ReportKind.STATE
    _put(events, state, "H", ())
    events["aux"][state, 0] = reports["code"][state]
    events["aux"][state, 1:5] = ord(" ")


def system_event(ts: int, code: str) -> Events:
    """EVENT[1]: S (O start of messages, S of system hours, Q of market hours, M, E, C their ends)."""
    events = np.zeros(1, EVENT)
    events["ts"], events["type"] = ts, ord("S")
    events["aux"][0, 0] = ord(code)
    return events


def directory(ts: int, symbols: tuple[str, ...]) -> Events:
    """EVENT[n]: an R for each symbol, with the locates from 1 on."""
    events = np.zeros(len(symbols), EVENT)
    events["ts"], events["type"], events["qty"] = ts, ord("R"), 100
    events["locate"] = np.arange(1, len(symbols) + 1)
    events["aux"] = np.frombuffer(b"QNCZ PN ", np.uint8)
    test = [symbol in _TEST_SYMBOLS for symbol in symbols]
    events["aux"][test, 5] = ord("T")
    return events
