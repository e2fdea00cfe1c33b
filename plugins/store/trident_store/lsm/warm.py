"""Compiling the engine's kernels: a small store is written, flushed, merged, read and looked into."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trident_core.dtypes import EVENT, Events
from trident_core.session import Session

if TYPE_CHECKING:
    from trident_store.lsm.engine import LsmStore


def exercise() -> None:
    """Run every kernel once with arrays like those of a real store; leaves nothing behind."""
    from trident_store.lsm.engine import LsmStore

    events = np.zeros(600, EVENT)
    events["seq"] = np.arange(1, 601)
    events["ref"] = events["seq"] // np.uint64(2) + np.uint64(1)
    events["locate"] = events["seq"] % np.uint64(7)
    with tempfile.TemporaryDirectory(prefix="trident-") as folder:
        path = Path(folder) / "s"
        with LsmStore(path, "create", Session(), fanout=2, background=False) as store:
            _use(store, events)
        with LsmStore(path, "read") as reader:
            snapshot = reader.snapshot()  # of blocks that nobody has checked yet
            snapshot.column_into("price", np.empty(snapshot.count, np.int64))
            snapshot.close()
            reader.verify_watched(lambda done, total: None)


def _use(store: LsmStore, events: Events) -> None:
    """Append, flush, merge, read and look up."""
    for part in np.array_split(events, 3):
        store.append(part)
        if part[0]["seq"] < 300:
            store.flush()
    store.compact()
    snapshot = store.snapshot()
    snapshot.get(100)
    for filters in ({}, {"locates": [3]}, {"locates": [3], "seq": (50, 300)}):
        for _ in snapshot.scan(**filters):
            pass
    snapshot.close()
