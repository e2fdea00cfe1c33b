"""Block stores on RocksDB, LMDB and DuckDB: what the conformance suite cannot see from outside."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.contracts import EngineSpec, Snapshot, Store
from trident_core.dtypes import EVENT, Events
from trident_core.errors import DamagedStoreError, StoreError, UsageError
from trident_core.session import Instrument, Session
from trident_store.crashcheck import make_events
from trident_store.plugin import trident_register_stores

ENGINES = {spec.name: spec for spec in trident_register_stores() if ".blocks." in spec.factory}


@pytest.fixture(params=sorted(ENGINES))
def spec(request: pytest.FixtureRequest) -> EngineSpec:
    spec = ENGINES[request.param]
    for module in spec.requires:
        pytest.importorskip(module)
    return spec


@pytest.fixture
def make(spec: EngineSpec) -> Any:
    return spec.load()


def scanned(snapshot: Snapshot, **filters: Any) -> Events:
    return np.concatenate([np.empty(0, EVENT), *snapshot.scan(**filters)])


def test_they_satisfy_the_contract_and_refuse_wrong_arguments(make: Any, tmp_path: Path) -> None:
    store: Store = make(tmp_path / "s", "create", Session())
    snapshot: Snapshot = store.snapshot()
    assert snapshot.count == 0
    store.close()
    for wrong in ({"commit_blocks": 0}, {"store_id": b"short"}):
        with pytest.raises(UsageError):
            make(tmp_path / "t", "create", Session(), **wrong)
    with pytest.raises(UsageError):
        make(tmp_path / "s", "write")


def test_another_engines_store(spec: EngineSpec, make: Any, tmp_path: Path) -> None:
    make(tmp_path / "s", "create", Session()).close()
    for other in trident_register_stores():
        if other.name != spec.name:
            with pytest.raises(StoreError) as caught:
                other.load()(tmp_path / "s", "read")
            assert other.name not in ENGINES or spec.name in caught.value.hint


def test_small_commits_and_a_growing_directory(make: Any, tmp_path: Path) -> None:
    """Many commits, reopened in between, snapshots of every moment kept to the end."""
    session = Session()
    store = make(tmp_path / "s", "create", session)
    events, snapshots = make_events(0, 160), []
    for i, start in enumerate(range(0, 160, 8)):
        session.directory.put(Instrument(i, f"S{i}"))
        store.append(events[start : start + 8])
        store.sync()
        snapshots.append(store.snapshot())
        if i % 7 == 6:
            store.close()
            store = make(tmp_path / "s", "append", session)
            assert store.recovery.events == start + 8
    store.close()
    for i, snapshot in enumerate(snapshots):
        assert snapshot.count == 8 * i + 8
        assert len(snapshot.session.directory) == i + 1
        assert scanned(snapshot).tobytes() == events[: snapshot.count].tobytes()


def test_a_range_is_found_by_bisection(make: Any, tmp_path: Path) -> None:
    events = np.zeros(200, EVENT)
    events["seq"] = np.arange(10, 10 + 3 * 200, 3)
    store = make(tmp_path / "s", "create", Session())
    for start in range(0, 200, 5):
        store.append(events[start : start + 5])
        store.sync()
    snapshot = store.snapshot()
    for low, high in ((0, 9), (10, 10), (11, 12), (300, 411), (607, 607), (608, None), (None, 50)):
        wanted = events[
            (events["seq"] >= (low or 0)) & (events["seq"] <= (1 << 40 if high is None else high))
        ]
        assert scanned(snapshot, seq=(low, high)).tobytes() == wanted.tobytes()
    store.close()


def test_an_interrupt_leaves_a_valid_store(make: Any, tmp_path: Path) -> None:
    """STORE-6, with a real signal at moments that are not chosen."""
    events = np.zeros(40_000, EVENT)
    events["seq"] = np.arange(1, len(events) + 1)
    store = make(tmp_path / "s", "create", Session(), commit_blocks=1)
    previous = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for delay in (0.0005, 0.002, 0.005):
            at = store.stats()["last_seq"]
            signal.setitimer(signal.ITIMER_REAL, delay)
            signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
            try:
                for start in range(at, len(events), 3000):
                    store.append(events[start : start + 3000])
                    store.sync()
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            reached = store.stats()["last_seq"]
            assert scanned(store.snapshot()).tobytes() == events[:reached].tobytes()
            assert reached >= at
    finally:
        signal.signal(signal.SIGINT, previous)
    reached = store.stats()["last_seq"]
    store.append(events[reached:])
    store.close()
    again = make(tmp_path / "s", "read")
    assert scanned(again.snapshot()).tobytes() == events.tobytes()
    assert again.verify().ok
    again.close()


def test_a_silently_lost_tail_is_noticed(spec: EngineSpec, make: Any, tmp_path: Path) -> None:
    """The engine's files of an earlier moment under today's mark: what it looks like when an engine drops
    the end of its log without a word."""
    store = make(tmp_path / "s", "create", Session())
    store.append(make_events(0, 50))
    store.sync()
    store.close()
    shutil.copytree(tmp_path / "s" / spec.name, tmp_path / "old")
    store = make(tmp_path / "s", "append")
    store.append(make_events(50, 50))
    store.close()
    shutil.rmtree(tmp_path / "s" / spec.name)
    shutil.copytree(tmp_path / "old", tmp_path / "s" / spec.name)
    with pytest.raises(DamagedStoreError) as caught:
        make(tmp_path / "s", "append")
    assert (caught.value.first, caught.value.last) == (50, 99)
