"""The store in a process of its own: the same store, and no trace of either process after any death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError, UsageError
from trident_core.line.process import ProcessWriter, StoreOrders
from trident_core.session import Instrument, Session
from trident_store.reference import ReferenceStore

Make = Callable[[int, int], Events]


def orders(path: Path, mode: str = "create", **more: object) -> StoreOrders:
    return StoreOrders(path, mode, "reference", **more)  # type: ignore[arg-type]


def read_all(path: Path) -> tuple[Events, Session]:
    with ReferenceStore(path, "read") as store:
        snapshot = store.snapshot()
        parts = [each.copy() for each in snapshot.scan()]
        return np.concatenate([np.zeros(0, EVENT), *parts]), snapshot.session


def is_gone(pid: int, seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "Z":  # nobody has asked for its exit code yet
            return True
        time.sleep(0.02)
    return not Path(f"/proc/{pid}").exists()


def test_events_and_symbols_arrive_and_the_figures_come_back(tmp_path: Path, make_events: Make) -> None:
    session = Session()
    writer = ProcessWriter(orders(tmp_path / "store"), session, ring_capacity=1 << 10)
    session.directory.put(Instrument(1, "ONE", {"authenticity": "T"}))
    assert writer.put(make_events(0, 3_000))  # more than the ring holds
    session.directory.put(Instrument(2, "TWO"))
    assert writer.put(make_events(3_000, 10))
    writer.finish()
    writer.raise_error()
    report = writer.report()
    assert (report.stored, report.durable_seq, report.line["dropped"]) == (3_010, 3_010, 0)
    assert report.line["stages"] == "processes"
    assert writer.final["events"] == 3_010
    events, stored = read_all(tmp_path / "store")
    assert np.array_equal(events, make_events(0, 3_010))
    assert stored.directory == session.directory
    assert is_gone(writer.pid)

    again = ProcessWriter(orders(tmp_path / "store", "append"), Session(), ring_capacity=1 << 10)
    assert again.stats["last_seq"] == 3_010
    assert again.last_event is not None
    assert again.last_event.tobytes() == events[-1:].tobytes()
    again.finish()
    again.finish()


def test_what_opening_raises_is_raised_here(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "file").write_text("x")
    with pytest.raises(StoreError, match="is not empty"):
        ProcessWriter(orders(tmp_path / "store"), Session(), ring_capacity=64)
    with pytest.raises(UsageError, match="power of two"):
        ProcessWriter(orders(tmp_path / "other"), Session(), ring_capacity=100)


def test_a_disk_that_refuses_there_is_a_store_error_here(tmp_path: Path, make_events: Make) -> None:
    told = orders(tmp_path / "store", inject=("write-error=ENOSPC@8+",))
    writer = ProcessWriter(told, Session(), ring_capacity=1 << 10)
    while writer.put(make_events(0, 1_000)):
        break
    writer.finish()
    with pytest.raises(StoreError, match="No space left"):
        writer.raise_error()
    assert is_gone(writer.pid)


def test_the_death_of_the_stores_process_is_one_error(tmp_path: Path, make_events: Make) -> None:
    writer = ProcessWriter(orders(tmp_path / "store"), Session(), ring_capacity=64)
    assert writer.put(make_events(0, 10))
    os.kill(writer.pid, signal.SIGKILL)
    start = 10
    deadline = time.monotonic() + 30
    while writer.put(make_events(start, 50)) and time.monotonic() < deadline:
        start += 50
    writer.finish()
    with pytest.raises(StoreError, match="was killed by SIGKILL"):
        writer.raise_error()
    with ReferenceStore(tmp_path / "store", "append") as store:
        events = np.concatenate([np.zeros(0, EVENT), *store.snapshot().scan()])
        assert np.array_equal(events, make_events(0, len(events)))


FEEDER = """
import os, sys, time
import numpy as np
from pathlib import Path
from trident_core.dtypes import EVENT
from trident_core.line.process import ProcessWriter, StoreOrders
from trident_core.session import Session
orders = StoreOrders(Path(sys.argv[1]), "create", "reference")
writer = ProcessWriter(orders, Session(), ring_capacity=1 << 16)
events = np.zeros(5_000, EVENT)
events["seq"] = np.arange(1, 5_001)
writer.put(events)
print(writer.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)], ids=lambda n: n.name
)
def test_when_the_line_is_killed_its_ring_is_still_stored(tmp_path: Path, number: signal.Signals) -> None:
    feeder = subprocess.Popen(
        [sys.executable, "-c", FEEDER, str(tmp_path / "store")], stdout=subprocess.PIPE, text=True
    )
    assert feeder.stdout is not None
    pid = int(feeder.stdout.readline())
    feeder.send_signal(number)
    feeder.wait(timeout=30)
    feeder.stdout.close()
    assert is_gone(pid)
    events, _ = read_all(tmp_path / "store")
    assert events["seq"].tolist() == list(range(1, 5_001))
    with ReferenceStore(tmp_path / "store", "read") as store:
        assert store.stats()["durable_seq"] == 5_000
        assert store.recovery.torn_bytes == 0


def test_signals_to_the_stores_process_do_not_end_it(tmp_path: Path, make_events: Make) -> None:
    """A supervisor signals the whole group; it is the line that ends, and the store with it."""
    writer = ProcessWriter(orders(tmp_path / "store"), Session(), ring_capacity=1 << 10)
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(writer.pid, number)
    assert writer.put(make_events(0, 500))
    writer.finish()
    writer.raise_error()
    assert writer.report().durable_seq == 500


def test_the_ring_has_no_name_in_shared_memory(tmp_path: Path, make_events: Make) -> None:
    before = set(os.listdir("/dev/shm"))
    writer = ProcessWriter(orders(tmp_path / "store"), Session(), ring_capacity=1 << 10)
    writer.put(make_events(0, 10))
    assert set(os.listdir("/dev/shm")) - before == set()
    writer.finish()
