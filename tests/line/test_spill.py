"""The spill as a queue, and what a crash leaves of it: nothing acknowledged is lost, and never a gap."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError
from trident_core.filesystem import FileSystem, OsFileSystem
from trident_core.line.faults import Faults, faulty
from trident_core.line.spill import Spill
from trident_core.line.spill_format import HEADER_BYTES, decode_header, encode_header, spill_name
from trident_core.line.spill_recovery import merge_left
from trident_core.session import Instrument, Session
from trident_store.crashmodel import CrashFileSystem
from trident_store.reference import ReferenceStore

Make = Callable[[int, int], Events]
PATH = Path("/store")


def take_all(spill: Spill, size: int = 7) -> Events:
    parts, out = [np.zeros(0, EVENT)], np.zeros(size, EVENT)
    while count := spill.take(out):
        parts.append(out[:count].copy())
    return np.concatenate(parts)


def fill(spill: Spill, make: Make, first: int, counts: list[int], before: Events | None = None) -> None:
    for count in counts:
        events = make(first, count)
        spill.put(events, before)
        before, first = events[-1:].copy(), first + count


@pytest.mark.parametrize("file_bytes", [1, 4_000, 1 << 20])
def test_events_come_out_as_they_went_in(tmp_path: Path, make_events: Make, file_bytes: int) -> None:
    spill = Spill(OsFileSystem(), tmp_path, Session(), file_bytes=file_bytes)
    fill(spill, make_events, 0, [5, 100, 1, 40])
    assert spill.pending == spill.events == spill.peak_events == 146
    out = np.zeros(30, EVENT)
    assert spill.take(out) == 5  # a frame at a time
    fill(spill, make_events, 146, [10], make_events(145, 1))
    rest = take_all(spill)
    assert np.array_equal(np.concatenate([out[:5], rest]), make_events(0, 156))
    assert spill.pending == 0
    spill.release()
    assert list(tmp_path.iterdir()) == []


def test_files_go_only_when_their_events_are_taken_and_synced(tmp_path: Path, make_events: Make) -> None:
    spill = Spill(OsFileSystem(), tmp_path, Session(), file_bytes=1)
    fill(spill, make_events, 0, [4, 4, 4])
    assert len(list(tmp_path.iterdir())) == 3
    out = np.zeros(4, EVENT)
    spill.take(out)
    spill.take(out)
    assert len(list(tmp_path.iterdir())) == 3  # taken, but nobody synced
    spill.release()
    assert sorted(path.name for path in tmp_path.iterdir()) == [spill_name(2), spill_name(3)]
    spill.take(out)
    spill.release()
    assert list(tmp_path.iterdir()) == []


def test_events_that_changed_on_the_disk_are_not_given_out(tmp_path: Path, make_events: Make) -> None:
    spill = Spill(OsFileSystem(), tmp_path, Session())
    fill(spill, make_events, 0, [4])
    data = bytearray((tmp_path / spill_name(1)).read_bytes())
    data[HEADER_BYTES + 10] ^= 1
    (tmp_path / spill_name(1)).write_bytes(data)
    with pytest.raises(StoreError, match="were changed on the disk"):
        spill.take(np.zeros(4, EVENT))


def left(
    tmp_path: Path, make: Make, stored: int, counts: list[int], first: int | None = None, synced: bool = True
) -> Path:
    """A store of `stored` events, and a spill that a crash left, from event `first` on."""
    path = tmp_path / "store"
    session = Session()
    with ReferenceStore(path, "create", session) as store:
        store.append(make(0, stored))
    start = stored if first is None else first
    spill = Spill(OsFileSystem(), path, session)
    session.directory.put(Instrument(2, "LATE"))
    fill(spill, make, start, counts, make(start - 1, 1) if start else None)
    spill.close()
    return path


def read_all(path: Path) -> tuple[Events, Session]:
    with ReferenceStore(path, "read") as store:
        snapshot = store.snapshot()
        parts = [events.copy() for events in snapshot.scan()]
        return np.concatenate([np.zeros(0, EVENT), *parts]), snapshot.session


def test_opening_for_appending_merges_what_continues_the_store(tmp_path: Path, make_events: Make) -> None:
    """STORE-52."""
    path = left(tmp_path, make_events, 50, [10, 20])
    with ReferenceStore(path, "append") as store:
        assert (store.recovery.spilled_events, store.recovery.spill_left_out) == (30, 0)
        assert store.stats()["durable_seq"] == 80
    events, session = read_all(path)
    assert np.array_equal(events, make_events(0, 80))
    assert session.directory.symbol(2) == "LATE"
    assert not list(path.glob("*.spill"))


def test_events_that_the_store_has_already_are_not_put_there_twice(tmp_path: Path, make_events: Make) -> None:
    path = left(tmp_path, make_events, 55, [10, 20], first=40)
    with ReferenceStore(path, "append") as store:
        assert store.recovery.spilled_events == 15
    assert np.array_equal(read_all(path)[0], make_events(0, 70))


def test_behind_a_gap_nothing_is_merged(tmp_path: Path, make_events: Make) -> None:
    """STORE-52."""
    path = left(tmp_path, make_events, 50, [10, 20], first=60)
    with ReferenceStore(path, "append") as store:
        assert (store.recovery.spilled_events, store.recovery.spill_left_out) == (0, 30)
    assert np.array_equal(read_all(path)[0], make_events(0, 50))
    assert not list(path.glob("*.spill"))


def test_the_spill_of_another_history_is_not_merged(tmp_path: Path, make_events: Make) -> None:
    path = left(tmp_path, make_events, 50, [10])
    other = make_events(0, 50)
    other["qty"][-1] += 1  # the same sequence numbers, another last event
    with ReferenceStore(tmp_path / "other", "create", Session()) as store:
        store.append(other)
    (path / spill_name(1)).rename(tmp_path / "other" / spill_name(1))
    with ReferenceStore(tmp_path / "other", "append") as store:
        assert (store.recovery.spilled_events, store.recovery.spill_left_out) == (0, 10)


@pytest.mark.parametrize("cut", [1, 63, 64, 100, 10 * 64 + 64 + 1, 11 * 64 + 64])
def test_a_torn_spill_is_merged_up_to_the_tear(tmp_path: Path, make_events: Make, cut: int) -> None:
    path = left(tmp_path, make_events, 50, [10, 20])
    file = path / spill_name(1)
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    with ReferenceStore(path, "append") as store:
        assert store.recovery.spill_left_out == 1
        assert store.recovery.spilled_events == 10
    assert np.array_equal(read_all(path)[0], make_events(0, 60))


def test_every_flipped_byte_gives_a_prefix(tmp_path: Path, make_events: Make) -> None:
    path = left(tmp_path, make_events, 3, [2, 2])
    file, data = path / spill_name(1), (path / spill_name(1)).read_bytes()
    law = make_events(0, 7)
    for at in range(0, len(data), 3):
        changed = bytearray(data)
        changed[at] ^= 0x10
        file.write_bytes(changed)
        copy = CrashFileSystem({each.name: each.read_bytes() for each in path.iterdir()})
        store = ReferenceStore(PATH, "append", filesystem=copy)
        events = np.concatenate(list(store.snapshot().scan()))
        assert np.array_equal(events, law[: len(events)]), at
        assert len(events) in (3, 5)


def test_a_spill_of_a_format_to_come_is_refused_before_anything_is_written(
    tmp_path: Path, make_events: Make
) -> None:
    path = left(tmp_path, make_events, 50, [10])
    file = path / spill_name(1)
    data = bytearray(file.read_bytes())
    frame = decode_header(bytes(data[:64]), file.name)
    assert frame is not None
    header = bytearray(encode_header(frame))
    header[6] = 2
    from trident_core.line.spill_format import crc32c

    header[60:64] = crc32c(bytes(header[:60])).to_bytes(4, "little")
    data[:64] = header
    file.write_bytes(data)
    before = {each.name: each.read_bytes() for each in path.iterdir() if each.name != "lock"}
    with pytest.raises(StoreError, match="format 2"):
        ReferenceStore(path, "append")
    assert {each.name: each.read_bytes() for each in path.iterdir() if each.name != "lock"} == before


def script(files: CrashFileSystem, make: Make, acked: list[int], session: Session) -> None:
    """A run in miniature: the store, a spill of three files, the merging, and the syncs between them."""
    store = ReferenceStore(PATH, "create", session, sector_bytes=512, filesystem=files)
    acked[0] = 0
    spill = Spill(files, PATH, session, file_bytes=200)
    store.append(make(0, 3))
    session.directory.put(Instrument(2, "B"))
    fill(spill, make, 3, [2, 3, 2], make(2, 1))
    acked[0] = store.sync()
    out = np.zeros(4, EVENT)
    for _ in range(2):
        count = spill.take(out)
        store.append(out[:count])
    acked[0] = store.sync()
    spill.release()
    fill(spill, make, 10, [2], make(9, 1))
    while count := spill.take(out):
        store.append(out[:count])
    acked[0] = store.sync()
    spill.release()
    spill.close()
    store.close()


def test_every_crash_leaves_a_prefix_that_has_what_was_acknowledged(make_events: Make) -> None:
    files, acked, session = CrashFileSystem(exists=False), [-1], Session()
    points = []
    files.on_change = lambda: points.append(files.crash_point(acked[0]))
    script(files, make_events, acked, session)
    law, rng, merged, states = make_events(0, 12), random.Random(4), 0, 0
    for point in points:
        for disk in point.states(6, rng):
            if point.note[0] < 0:
                continue
            states += 1
            again = CrashFileSystem(disk)
            store = ReferenceStore(PATH, "append", sector_bytes=512, filesystem=again)
            events = np.concatenate([np.zeros(0, EVENT), *store.snapshot().scan()])
            assert np.array_equal(events, law[: len(events)])
            assert len(events) >= point.note[0]
            assert store.stats()["durable_seq"] == len(events)
            if len(events) > 3:
                assert store.session.directory.symbol(2) == "B"
            merged += store.recovery.spilled_events
            store.append(make_events(len(events), 2))
            store.close()
            assert not [name for name in again.visible() if name.endswith(".spill")]
    assert states > 200
    assert merged > 0


def test_a_merge_that_is_cut_short_is_done_at_the_next_opening(make_events: Make) -> None:
    base = CrashFileSystem(exists=False)
    session = Session()
    store = ReferenceStore(PATH, "create", session, sector_bytes=512, filesystem=base)
    store.append(make_events(0, 3))
    spill = Spill(base, PATH, session, file_bytes=200)
    fill(spill, make_events, 3, [2, 3, 2], make_events(2, 1))
    store.close()
    start = base.visible()
    law, rng = make_events(0, 10), random.Random(5)
    files = CrashFileSystem(start)
    points = []
    files.on_change = lambda: points.append(files.crash_point())
    ReferenceStore(PATH, "append", sector_bytes=512, filesystem=files).close()
    assert len(points) > 10
    for point in points:
        for disk in point.states(6, rng):
            again = ReferenceStore(PATH, "append", sector_bytes=512, filesystem=CrashFileSystem(disk))
            assert np.array_equal(np.concatenate(list(again.snapshot().scan())), law)


def test_merging_is_for_any_store(tmp_path: Path, make_events: Make) -> None:
    """STORE-51, STORE-52. A store that knows nothing of spills: whoever opens it calls `merge_left`."""

    class Plain(ReferenceStore):
        def _merge_spill(self) -> None:
            pass

    path = left(tmp_path, make_events, 50, [10, 20])
    with Plain(path, "append") as store:
        assert store.stats()["events"] == 50
        assert merge_left(store, OsFileSystem(), path)[:3] == (30, 0, 0)
        assert store.stats()["durable_seq"] == 80


def test_a_spill_that_cannot_be_written_still_gives_out_what_it_has(
    tmp_path: Path, make_events: Make
) -> None:
    faults = Faults.parse(["enospc@3KiB"])
    assert faults is not None
    files: FileSystem = faulty(faults)
    spill = Spill(files, tmp_path, Session())
    with pytest.raises(OSError, match="No space left"):
        fill(spill, make_events, 0, [20, 20, 20])
    assert np.array_equal(take_all(spill), make_events(0, spill.events))
    assert spill.events == 40


def test_new_symbols_are_never_in_another_file_than_their_events(tmp_path: Path, make_events: Make) -> None:
    """A power cut may take one file and leave the next: events would be merged whose symbols are lost."""
    path = tmp_path / "store"
    session = Session()
    with ReferenceStore(path, "create", session) as store:
        store.append(make_events(0, 3))
    spill = Spill(OsFileSystem(), path, session, file_bytes=200)
    for first in (3, 5, 7):
        for locate in range(first, first + 9):
            session.directory.put(Instrument(locate, f"SYMBOL{locate}", {"lot": 100}))
        fill(spill, make_events, first, [2], make_events(first - 1, 1))
    spill.close()
    assert sorted(each.name for each in path.glob("*.spill")) == [spill_name(n) for n in (1, 2, 3)]
    for gone in (1, 2, 3):
        disk = {each.name: each.read_bytes() for each in path.iterdir() if each.name != spill_name(gone)}
        again = ReferenceStore(PATH, "append", filesystem=CrashFileSystem(disk))
        assert again.stats()["events"] == 1 + 2 * gone
        assert all(f"SYMBOL{n}" in again.session.directory.symbols() for n in range(3, 12 * (gone > 1)))
