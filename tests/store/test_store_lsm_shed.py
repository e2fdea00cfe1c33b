"""The store's part of the line's ladder: what it puts off, what it does not, and that it makes up for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from trident_core.contracts import Pressure, Sheddable
from trident_core.session import Session
from trident_store.crashcheck import make_events
from trident_store.lsm.engine import LsmStore


def until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return condition()


def test_a_timed_commit_is_put_off_and_made_up_for(tmp_path: Path) -> None:
    """STORE-50."""
    store = LsmStore(tmp_path / "store", "create", Session(), commit="interval", commit_seconds=0.02)
    assert isinstance(store, Sheddable)
    store.shed(Pressure.SHED_SYNC)
    store.append(make_events(0, 10))
    time.sleep(0.2)
    assert store.stats()["durable_seq"] == 0
    assert store.sync() == 19  # whoever asks is still answered
    store.append(make_events(10, 10))
    time.sleep(0.1)
    assert store.stats()["durable_seq"] == 19
    store.shed(Pressure.NORMAL)
    assert until(lambda: store.stats()["durable_seq"] == 39)
    store.close()


def test_what_append_owes_its_caller_is_not_put_off(tmp_path: Path) -> None:
    with LsmStore(tmp_path / "store", "create", Session(), commit="always") as store:
        store.shed(Pressure.RAW_SPILL)
        store.append(make_events(0, 10))
        assert store.stats()["durable_seq"] == 19


def test_tables_wait_until_the_pressure_is_gone(tmp_path: Path) -> None:
    store = LsmStore(tmp_path / "store", "create", Session(), segment_bytes=16_384, frame_events=64, fanout=4)
    store.shed(Pressure.SHED_INDEX)
    for start in range(0, 4_000, 100):
        store.append(make_events(start, 100))
    time.sleep(0.2)
    assert (store.stats()["tables"], store.stats()["segments"] > 10) == (0, True)
    store.shed(Pressure.SHED_SYNC)
    assert until(lambda: store.stats()["tables"] > 0 and store.stats()["segments"] == 1)
    assert np.array_equal(np.concatenate(list(store.snapshot().scan())), make_events(0, 4_000))
    store.close()


def test_closing_under_pressure_does_not_hang(tmp_path: Path) -> None:
    store = LsmStore(tmp_path / "store", "create", Session(), segment_bytes=16_384, frame_events=64, fanout=2)
    for start in range(0, 4_000, 100):
        store.append(make_events(start, 100))
    store.shed(Pressure.RAW_SPILL)
    began = time.monotonic()
    store.close()
    assert time.monotonic() - began < 20
    with LsmStore(tmp_path / "store", "read") as again:
        assert again.snapshot().count == 4_000
