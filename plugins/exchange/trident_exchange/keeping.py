"""The published feed, kept in a second Trident store, for `trident query`, `verify`, `export` and the rest.

It follows from the journal, so it need not be durable at once: what a crash takes from it is put back when
the journal is read again.
"""

from __future__ import annotations

from pathlib import Path

from trident_core.contracts import Kind, Store
from trident_core.dtypes import Events
from trident_core.plugins import registry
from trident_core.session import Session
from trident_core.stores import select_store


class FeedStore:
    """EVENTs of the feed; `seq` is their number in it."""

    def __init__(self, path: Path, session: Session, *, store: str | None = None) -> None:
        if path.exists() and any(path.iterdir()):
            self.store: Store = select_store(path, store).make(path, "append")
        else:
            path.mkdir(parents=True, exist_ok=True)
            self.store = registry().select(Kind.STORE, store).make(path, "create", session)
        self._last = int(self.store.stats()["last_seq"])

    def append(self, events: Events) -> None:
        """Those that it has not got yet."""
        new = events[events["seq"] > self._last]
        if len(new):
            self._last = int(self.store.append(new))

    def close(self) -> None:
        self.store.close()
