"""What the tests of stores share: one set of events, a store filled with it, and its contents."""

from __future__ import annotations

from pathlib import Path

from trident_conformance import damage, drive, streams
from trident_conformance.engines import Engine
from trident_core.dtypes import Events

EVENTS = streams.day(11, 900)


def filled(engine: Engine, folder: Path, sizes: tuple[int, ...] = (1, 7, 100, 400)) -> Path:
    """A closed store that holds EVENTS, appended in batches of these sizes, synced now and then."""
    store = engine.make(folder, "create", streams.session())
    for i, events in enumerate(drive.batches(EVENTS, sizes)):
        assert store.append(events) == events["seq"][-1]
        if i % 2:
            assert store.sync() == events["seq"][-1]
    store.close()
    return folder


def contents(engine: Engine, folder: Path) -> Events:
    store = engine.make(folder, "read")
    events = damage.scanned(store.snapshot())
    store.close()
    return events
