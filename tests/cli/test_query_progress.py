"""Searching in steps, to tell the progress, finds the same events as one scan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_core.cli import query
from trident_core.dtypes import EVENT
from trident_core.session import Session
from trident_store.reference import ReferenceStore

Bound = st.none() | st.integers(0, 2**64 - 1) | st.integers(0, 50)


def scanned(snapshot: Any, **filters: Any) -> bytes:
    return b"".join(events.tobytes() for events in snapshot.scan(**filters))


@pytest.fixture(scope="module", params=["dense", "far apart", "empty"])
def snapshot(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    seqs = {"dense": range(1, 200), "far apart": [3, 14_764_496, 2**40, 2**63], "empty": []}[request.param]
    events = np.zeros(len(seqs), EVENT)
    events["seq"], events["type"] = list(seqs), ord("S")
    path: Path = tmp_path_factory.mktemp("store") / "s"
    with ReferenceStore(path, "create", Session(), frame_events=16) as store:
        if len(events):
            store.append(events)
        yield store.snapshot()


@given(low=Bound, high=Bound)
def test_steps_find_what_one_scan_finds(snapshot: Any, low: int | None, high: int | None) -> None:
    if low is not None and high is not None and low > high:
        low, high = high, low
    told: list[tuple[int, int | None, int]] = []
    watched = query.Watched(snapshot, lambda *figures: told.append(figures))
    assert scanned(watched, seq=(low, high)) == scanned(snapshot, seq=(low, high))
    assert scanned(watched, types=b"S", batch=7) == scanned(snapshot, types=b"S")
    assert len(told) <= 2 * (query.SCAN_STEPS + 1)
    assert all(total is not None and done <= total for done, total, _ in told)
