"""A compaction goes on where a close, a kill or a power cut ended it, and nothing it left can do harm."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.errors import StoreError
from trident_core.session import Session
from trident_store.crashcheck import explore, make_events, read_all
from trident_store.crashmodel import CrashFileSystem
from trident_store.format import crc32c
from trident_store.lsm.engine import LsmStore
from trident_store.lsm.layout import HEADER_BYTES, Shape
from trident_store.lsm.merging import Merge
from trident_store.reference import ReferenceStore
from trident_store.tools.opening import opening

PATH = Path("/store")
COUNT = 40
OPTIONS: dict[str, Any] = {
    "segment_bytes": 2_048, "sector_bytes": 512, "frame_events": 2, "fanout": 2, "background": False,
    "shape": Shape(4, 8, 3), "checkpoint_events": 8,
}  # fmt: skip


class Steps:
    """Counts the steps of compactions; at the one that `end` names it does what `stop` says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen, self.end, self.stop = 0, -1, lambda: None
        self.blocks: list[int] = []  # that were there already when a compaction was begun or gone on with
        real_step, real_init = Merge.step, Merge.__init__

        def step(merge: Merge) -> Any:
            if self.seen == self.end:
                self.end = -1
                self.stop()
            self.seen += 1
            return real_step(merge)

        def init(merge: Merge, *rest: Any, **more: Any) -> None:
            real_init(merge, *rest, **more)
            self.blocks.append(len(merge.job.blocks))

        monkeypatch.setattr(Merge, "step", step)
        monkeypatch.setattr(Merge, "__init__", init)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


def half_merged(files: Any, steps: Steps, stop: Any = KeyboardInterrupt, after: int = 3) -> LsmStore:
    """A store of COUNT events whose largest compaction was interrupted after so many of its steps."""
    options: dict[str, Any] = {"filesystem": files, "table_events": COUNT // 2, "store_id": bytes(16)}
    store = LsmStore(PATH, "create", Session(), **OPTIONS, **options)
    store.append(make_events(0, COUNT))
    store.flush()
    store.compact()
    maintenance: Any = store._maintenance
    maintenance.settings = maintenance.settings._replace(table_events=1_000)
    steps.end = steps.seen + after

    def interrupt() -> None:
        raise stop

    steps.stop = interrupt
    with pytest.raises(KeyboardInterrupt if stop is KeyboardInterrupt else StoreError):
        store.compact()
    return store


def job_of(files: CrashFileSystem) -> str:
    (name,) = (name for name in files.visible() if name.endswith(".job"))
    return name


def test_an_interrupted_compaction_goes_on_in_the_same_session(steps: Steps) -> None:
    files = CrashFileSystem(exists=False)
    store = half_merged(files, steps)
    assert job_of(files)
    tables, written = store.stats()["tables"], store.stats()["compacted_bytes"]
    store.compact()
    assert steps.blocks[-1] >= 4
    assert store.stats()["tables"] < tables
    assert store.stats()["compacted_bytes"] > written
    assert not [name for name in files.visible() if name.endswith(".job")]
    assert read_all(store).tobytes() == make_events(0, COUNT).tobytes()
    store.close()


def test_a_closed_one_goes_on_at_the_next_opening_and_writes_no_block_twice(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = CrashFileSystem(exists=False)
    half_merged(files, steps).close()
    table = job_of(files).replace(".job", ".tab")
    there = len(files.visible()[table])
    writes: list[int] = []
    write = files.write

    def noted(handle: int, data: Any, offset: int) -> int:
        if files._handles[handle] == files._names.get(table) and offset >= HEADER_BYTES:
            writes.append(offset)
        return write(handle, data, offset)

    monkeypatch.setattr(files, "write", noted)
    with LsmStore(PATH, "append", **OPTIONS, filesystem=files) as again:
        assert again.stats()["tables"] >= 1
        assert again.verify().findings == []
        assert read_all(again).tobytes() == make_events(0, COUNT).tobytes()
    assert steps.blocks[-1] >= 4
    assert writes
    assert min(writes) >= there, "what was there is written again"


def test_what_is_gone_on_with_is_the_same_table_byte_for_byte(steps: Steps) -> None:
    made = []
    for after in (0, 1, 3, 6):
        files = CrashFileSystem(exists=False)
        half_merged(files, steps, after=after).compact()
        made.append({name: data for name, data in files.visible().items() if name.endswith(".tab")})
    assert all(each == made[0] for each in made[1:])


def test_a_killed_one_goes_on_and_so_it_does_after_the_reference_was_here(steps: Steps) -> None:
    files = CrashFileSystem(exists=False)
    half_merged(files, steps)
    files.release()
    job = job_of(files)
    with ReferenceStore(PATH, "append", filesystem=files, segment_bytes=2_048, sector_bytes=512) as other:
        other.append(make_events(COUNT, 3))
        assert job_of(files) == job
    assert all(job[:8] not in step.file for step in opening(files, PATH).steps)
    with LsmStore(PATH, "append", **OPTIONS, filesystem=files) as again:
        assert steps.blocks[-1] >= 4
        assert read_all(again).tobytes() == make_events(0, COUNT + 3).tobytes()
        assert again.verify().findings == []
    assert not [name for name in files.visible() if name.endswith(".job")]


def opener(mode: str, session: Session | None, files: CrashFileSystem) -> LsmStore:
    return LsmStore(PATH, mode, session, **OPTIONS, filesystem=files)


def test_power_cuts_while_it_is_made_and_while_it_is_gone_on_with(steps: Steps) -> None:
    """STORE-10 to 12, 22."""
    found = explore(opener, "a30 s a16 s", states_per_point=6, nested=2)
    assert found.violations == []
    assert sum(blocks > 0 for blocks in steps.blocks) > 20


def test_damage_to_what_it_left_costs_time_and_no_event(steps: Steps) -> None:
    files = CrashFileSystem(exists=False)
    half_merged(files, steps).close()
    disk = files.visible()
    job = job_of(files)
    for name in (job, job.replace(".job", ".tab")):
        for at in range(0, len(disk[name]), 29):
            data = disk[name][:at] + bytes([disk[name][at] ^ 0x10]) + disk[name][at + 1 :]
            harmless(disk | {name: data}, f"{name} flipped at {at}")
        harmless(disk | {name: disk[name][: len(disk[name]) // 2]}, f"{name} cut")
        harmless({other: data for other, data in disk.items() if other != name}, f"{name} gone")
    assert {0, 4} <= set(steps.blocks)  # some damage was seen, some was where nothing is looked at


def harmless(disk: dict[str, bytes], what: str) -> None:
    files = CrashFileSystem(disk)
    with LsmStore(PATH, "append", **OPTIONS, filesystem=files) as store:
        assert store.maintenance_failure == "", what
        assert read_all(store).tobytes() == make_events(0, COUNT).tobytes(), what
        assert store.verify().findings == [], what
    assert not [name for name in files.visible() if name.endswith(".job")], what


def test_a_job_whose_table_is_in_force_goes_and_the_table_stays(steps: Steps) -> None:
    files = CrashFileSystem(exists=False)
    store = half_merged(files, steps)
    name, job = job_of(files), files.visible()[job_of(files)]
    store.compact()
    store.close()
    assert name.replace(".job", ".tab") in files.visible()
    harmless(files.visible() | {name: job}, "an old job")


def test_a_job_of_a_version_to_come_is_begun_anew(steps: Steps) -> None:
    files = CrashFileSystem(exists=False)
    half_merged(files, steps).close()
    data = bytearray(files.visible()[job_of(files)])
    data[10:12] = (9).to_bytes(2, "little")
    data[60:64] = crc32c(bytes(data[:60])).to_bytes(4, "little")
    harmless(files.visible() | {job_of(files): bytes(data)}, "a job of version 1.9")
    assert steps.blocks[-1] == 0


def test_a_disk_that_refuses_ends_it_and_takes_what_it_made_away(steps: Steps) -> None:
    files = CrashFileSystem(exists=False)
    store = half_merged(files, steps, StoreError("No space left on device"))
    assert store.maintenance_failure == "No space left on device"
    named = {table.name for table in store._tables}
    assert {name for name in files.visible() if name.endswith(".tab")} == named
    assert not [name for name in files.visible() if name.endswith(".job")]


def test_a_slow_compaction_keeps_no_flush_waiting(tmp_path: Path) -> None:
    slow: dict[str, Any] = {"segment_bytes": 200_000, "fanout": 4, "compaction_bytes_per_s": 1}
    events = make_events(0, 60_000)
    with LsmStore(tmp_path / "s", "create", Session(), **slow) as store:
        for part in (events[:30_000], events[30_000:]):
            for first in range(0, 30_000, 1_000):
                store.append(part[first : first + 1_000])
            until = time.monotonic() + 60
            while time.monotonic() < until:
                if store.stats()["segments"] == 1 and list((tmp_path / "s").glob("*.job")):
                    break
                time.sleep(0.02)
        assert store.stats()["segments"] == 1
        assert store.stats()["tables"] > 8
        began = time.monotonic()
    assert time.monotonic() - began < 60
    assert list((tmp_path / "s").glob("*.job"))
    with LsmStore(tmp_path / "s", "append", **(slow | {"compaction_bytes_per_s": 0})) as again:
        again.compact()
        assert np.array_equal(read_all(again), events)
    assert not list((tmp_path / "s").glob("*.job"))
