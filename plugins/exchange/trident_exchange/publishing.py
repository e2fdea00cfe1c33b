"""The frame of the feed: system events and the directory. What is between, the reports of the matching engine
say (`trident_core.publication`)."""

from __future__ import annotations

from typing import Final

import numpy as np

from trident_core.dtypes import EVENT, Events

_TEST_SYMBOLS: Final = frozenset(("ZVZZT", "ZWZZT", "ZXZZT", "ZBZZT", "ZJZZT"))


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
