"""Compiling the engine's kernels: a small store is written, flushed, merged, read and looked into."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from trident_core.dtypes import EVENT
from trident_core.session import Session


def exercise() -> None:
    """Run every kernel once with arrays like those of a real store; leaves nothing behind."""
    from trident_store.lsm.engine import LsmStore

    events = np.zeros(600, EVENT)
    events["seq"] = np.arange(1, 601)
    events["ref"] = events["seq"] // np.uint64(2) + np.uint64(1)
    events["locate"] = events["seq"] % np.uint64(7)
    with (
        tempfile.TemporaryDirectory(prefix="trident-") as folder,
        LsmStore(Path(folder) / "s", "create", Session(), fanout=2, background=False) as store,
    ):
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
