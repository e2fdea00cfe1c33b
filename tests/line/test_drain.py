"""The line in live mode: whatever the store does, all arrives, in order, and the book does not wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.contracts import Pressure
from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError
from trident_core.line.drain import DrainOptions
from trident_core.line.faults import Faults, faulty
from trident_core.line.ladder import Thresholds
from trident_core.line.writer import ThreadWriter
from trident_core.session import Session
from trident_store.reference import ReferenceStore

Make = Callable[[int, int], Events]
BATCH, RING = 256, 4_096


class SlowStore(ReferenceStore):
    """Takes a moment for each append, and more for the first sync; notes what the ladder tells it."""

    append_s, sync_s = 0.0, 0.0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.levels: list[Pressure] = []

    def append(self, events: Events) -> int:
        time.sleep(self.append_s)
        return super().append(events)

    def sync(self) -> int:
        time.sleep(self.sync_s)
        return super().sync()

    def shed(self, level: Pressure) -> None:
        self.levels.append(level)


def feed(writer: ThreadWriter, make: Make, count: int, pause_s: float = 0.002) -> bool:
    for start in range(0, count, BATCH):
        if not writer.put(make(start, min(BATCH, count - start))):
            return False
        time.sleep(pause_s)
    return True


def read_all(path: Path) -> Events:
    with ReferenceStore(path, "read") as store:
        return np.concatenate([np.zeros(0, EVENT), *(each.copy() for each in store.snapshot().scan())])


def live(store: Any, path: Path | None, **options: Any) -> ThreadWriter:
    made = DrainOptions(batch=BATCH, live=True, spill_folder=path, **options)
    return ThreadWriter(store, store.session, made, ring_capacity=RING)


def test_a_store_that_stalls_is_spilled_over_and_catches_up(tmp_path: Path, make_events: Make) -> None:
    path = tmp_path / "store"
    store = SlowStore(path, "create", Session())
    store.sync_s = 0.6  # the first sync, at once, holds the store's thread
    writer = live(store, path, sync_interval_s=0.05, thresholds=Thresholds(calm_s=0.001))
    assert feed(writer, make_events, 60_000)
    assert list(path.glob("*.spill"))
    store.sync_s = 0.0
    writer.finish()
    writer.raise_error()
    store.close()
    report = writer.report()
    rungs = {rung["level"]: rung for rung in report.line["ladder"]}
    assert report.full_waits == 0
    assert report.line["dropped"] == 0
    assert report.stored == report.durable_seq == 60_000
    assert report.line["spilled_events"] > 0
    for name in ("ShedSync", "ShedIndex", "RawSpill"):
        assert rungs[name]["entered"] == rungs[name]["returned"] > 0
    assert store.levels[0] == max(store.levels) or Pressure.RAW_SPILL in store.levels
    assert store.levels[-1] is Pressure.NORMAL
    assert np.array_equal(read_all(path), make_events(0, 60_000))
    assert not list(path.glob("*.spill"))


def test_syncs_are_put_off_under_pressure_but_not_for_ever(tmp_path: Path, make_events: Make) -> None:
    path = tmp_path / "store"
    store = SlowStore(path, "create", Session())
    store.append_s = 0.004  # slower than the feed: the ring stays half full
    writer = live(
        store, None, sync_interval_s=0.02, shed_sync_max_s=0.2,
        thresholds=Thresholds(up=(0.1, 0.8, 0.9), down=(0.0, 0.1, 0.2)),
    )  # fmt: skip
    assert feed(writer, make_events, 50_000, pause_s=0.003)
    writer.finish()
    store.close()
    line = writer.report().line
    assert line["syncs_deferred"] >= 5
    assert 2 <= line["syncs"] < line["syncs_deferred"]
    assert line["spilled_events"] == 0


def test_without_pressure_the_store_is_synced_though_nothing_comes(tmp_path: Path, make_events: Make) -> None:
    store = SlowStore(tmp_path / "store", "create", Session())
    writer = live(store, None, sync_interval_s=0.02)
    assert writer.put(make_events(0, 10))
    deadline = time.monotonic() + 20
    while store.stats()["durable_seq"] < 10 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert store.stats()["durable_seq"] == 10
    writer.finish()
    store.close()


def test_a_spill_that_the_disk_refuses_makes_the_book_wait_and_loses_nothing(
    tmp_path: Path, make_events: Make
) -> None:
    path = tmp_path / "store"
    faults = Faults.parse(["write-error=ENOSPC@3+"])
    assert faults is not None
    store = SlowStore(path, "create", Session())
    store.sync_s = 0.4
    writer = live(
        store, path, sync_interval_s=0.05, filesystem=faulty(faults), thresholds=Thresholds(calm_s=0.001)
    )
    assert feed(writer, make_events, 60_000)
    store.sync_s = 0.0
    writer.finish()
    writer.raise_error()
    store.close()
    report = writer.report()
    assert "No space left" in report.line["spill_failure"]
    assert report.full_waits > 0
    assert report.stored == 60_000
    assert np.array_equal(read_all(path), make_events(0, 60_000))


def test_a_store_that_fails_under_spill_leaves_the_spill_for_the_next_opening(
    tmp_path: Path, make_events: Make
) -> None:
    path = tmp_path / "store"

    class Failing(SlowStore):
        def sync(self) -> int:
            time.sleep(0.4)
            raise StoreError("the disk is gone")

    store = Failing(path, "create", Session())
    writer = live(store, path, sync_interval_s=0.01)
    feed(writer, make_events, 40_000)
    writer.finish()
    with pytest.raises(StoreError, match="the disk is gone"):
        writer.raise_error()
    store._writer.release()
    assert list(path.glob("*.spill"))
    with ReferenceStore(path, "append") as again:
        assert again.recovery.spilled_events > 0
        assert again.stats()["durable_seq"] == again.recovery.events
    events = read_all(path)
    assert np.array_equal(events, make_events(0, len(events)))


def test_a_line_that_goes_on_with_a_store_spills_behind_its_last_event(
    tmp_path: Path, make_events: Make
) -> None:
    path = tmp_path / "store"
    with ReferenceStore(path, "create", Session()) as first:
        first.append(make_events(0, 100))
    store = SlowStore(path, "append")
    faults = Faults.parse(["ring-stall=500ms@1"])
    writer = live(store, path, faults=faults)
    for start in range(100, 20_100, BATCH):
        assert writer.put(make_events(start, min(BATCH, 20_100 - start)))
        time.sleep(0.002)
    kept = {each.name: each.read_bytes() for each in path.glob("*.spill")}
    writer.finish()
    store.close()
    assert kept
    assert np.array_equal(read_all(path), make_events(0, 20_100))
