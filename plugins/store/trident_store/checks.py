"""What every store checks of its arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.session import Directory, Instrument, Session

#: Engines that keep a store in a folder of their name.
FOLDER_ENGINES: Final = ("rocksdb", "lmdb", "duckdb")


def copy_of(session: Session, instruments: Mapping[int, Instrument]) -> Session:
    """A session that nobody else changes."""
    return dataclasses.replace(session, directory=Directory(instruments.values()))


def require_same(given: Session, stored: Session) -> None:
    """Raises UsageError unless both are of the same session; directories may differ."""
    for name in ("venue", "date", "tz", "price_decimals", "qty_decimals", "protocol"):
        mine, theirs = getattr(given, name), getattr(stored, name)
        if mine != theirs:
            raise UsageError(
                f"the store's session has {name} {theirs}, the one given has {mine}",
                hint="a store holds one session; create another store",
            )


def check_events(events: Events, last_seq: int) -> None:
    """Raises UsageError unless `events` may follow `last_seq`."""
    if not isinstance(events, np.ndarray) or events.dtype != EVENT:
        what = events.dtype if isinstance(events, np.ndarray) else type(events).__name__
        raise UsageError(f"append takes an array of EVENT, not of {what}", hint="np.zeros(n, EVENT)")
    if events.ndim != 1 or not events.flags.c_contiguous:
        raise UsageError("append takes a flat, contiguous array", hint="np.ascontiguousarray(events)")
    if not len(events):
        return
    seq = events["seq"]
    if int(seq[0]) <= last_seq:
        raise UsageError(f"seq must grow: event 0 has {seq[0]}, the store ends with {last_seq}")
    bad = np.flatnonzero(seq[1:] <= seq[:-1])
    if len(bad):
        i = int(bad[0]) + 1
        raise UsageError(f"seq must grow: event {i} has {seq[i]}, the one before it {seq[i - 1]}")


def where_else(names: Collection[str], otherwise: str) -> str:
    """The hint for a folder, with `names` in it, that is not a store: the engine to ask for, if one shows."""
    found = [name for name in FOLDER_ENGINES if name in names]
    return f"try --store {found[0]}" if found else otherwise
