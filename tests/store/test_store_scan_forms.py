"""What a scan gives in other forms: into the caller's array, and as Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.dtypes import EVENT
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_store.crashcheck import make_events
from trident_store.lsm.engine import LsmStore
from trident_store.reference import ReferenceStore


@pytest.fixture(params=[LsmStore, ReferenceStore])
def snapshot(request: Any, tmp_path: Path) -> Any:
    """700 events, most of them in tables, the last ones in the log."""
    with LsmStore(tmp_path / "s", "create", Session(), background=False) as store:
        store.append(make_events(0, 500))
        store.flush()
        store.append(make_events(500, 200))
    return request.param(tmp_path / "s", "read").snapshot()


@pytest.mark.parametrize("size", [1, 64, 10_000])
@pytest.mark.parametrize("filters", [{}, {"types": b"AU"}, {"seq": (300, 1_100), "locates": range(20, 200)}])
def test_a_scan_into_an_array(snapshot: Any, size: int, filters: dict[str, Any]) -> None:
    out = np.empty(size, EVENT)
    got = [out[:count].tobytes() for count in snapshot.scan_into(out, **filters)]
    assert b"".join(got) == b"".join(each.tobytes() for each in snapshot.scan(**filters))
    assert all(len(each) == 64 * size for each in got[:-1])


@pytest.mark.parametrize(
    "out",
    [np.empty(4, np.uint64), np.empty((2, 2), EVENT), np.empty(8, EVENT)[::2], np.empty(0, EVENT), None,
     np.frombuffer(bytes(64), EVENT)],
)  # fmt: skip
def test_other_arrays_are_refused_at_once(snapshot: Any, out: Any) -> None:
    with pytest.raises(UsageError, match="scan_into"):
        snapshot.scan_into(out)


def test_a_scan_as_arrow(snapshot: Any) -> None:
    pytest.importorskip("pyarrow")
    batches = list(snapshot.scan_arrow(types=b"AF", batch=50))
    events = np.concatenate(list(snapshot.scan(types=b"AF")))
    assert [batch.num_rows for batch in batches[:-1]] == [50] * (len(batches) - 1)
    for name in EVENT.names or ():
        got = [value for batch in batches for value in batch.column(name).to_pylist()]
        expected = [row.tobytes() for row in events["aux"]] if name == "aux" else events[name].tolist()
        assert got == expected, name
    with pytest.raises(UsageError):
        snapshot.scan_arrow(batch=0)
