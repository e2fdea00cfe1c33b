"""Tables: against the reference in any order of operations, beside readers, as columns."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.session import Instrument, Session
from trident_store.crashcheck import PATH, make_events, read_all
from trident_store.crashmodel import CrashFileSystem
from trident_store.filters import conditions
from trident_store.lsm.engine import LsmStore
from trident_store.lsm.layout import Shape
from trident_store.lsm.maintenance import Settings, due
from trident_store.lsm.manifest import Entry
from trident_store.lsm.table_reader import LsmTable
from trident_store.reference import ReferenceStore

TINY = {"segment_bytes": 2_048, "sector_bytes": 512, "frame_events": 4}


def wild(rng: np.random.Generator, count: int, last_seq: int) -> Events:
    """Any bytes at all, but few locates, references and types, and a `seq` that grows."""
    events = np.frombuffer(rng.bytes(count * 64), EVENT).copy()
    events["seq"] = last_seq + np.cumsum(rng.integers(1, 1 << int(rng.integers(1, 30)), count)).astype(
        np.uint64
    )
    events["locate"] = rng.choice([0, 1, 2, 5, 70_000, 2**32 - 1], count)
    events["ref"] = rng.choice(np.array([0, 1, 2, 3, 1 << 40, 2**64 - 1], np.uint64), count)
    events["ref2"] = rng.choice(np.array([0, 1, 2, 9, 2**64 - 1], np.uint64), count)
    events["type"] = rng.choice(list(b"AUEDX\x00\xff"), count)
    if rng.random() < 0.5:
        events["ts"] = np.sort(events["ts"] >> np.uint64(20))
    return events


def check_reads(rng: np.random.Generator, snapshot: Any, model: Events) -> None:
    """A few scans and look-ups against numpy."""
    assert (snapshot.count, snapshot.last_seq) == (len(model), int(model["seq"][-1]) if len(model) else 0)
    for _ in range(4):
        where: dict[str, Any] = {"batch": int(rng.integers(1, 50))}
        keep = np.ones(len(model), bool)
        for column in ("seq", "ts"):
            if len(model) and rng.random() < 0.4:
                low, high = sorted(int(each) for each in rng.choice(model[column], 2))
                where[column] = (low if rng.random() < 0.8 else None, high if rng.random() < 0.8 else None)
                if where[column][0] is not None:
                    keep &= model[column] >= np.uint64(low)
                if where[column][1] is not None:
                    keep &= model[column] <= np.uint64(high)
        if rng.random() < 0.5:
            where["locates"] = [int(each) for each in rng.choice([0, 1, 5, 6, 2**32 - 1], rng.integers(0, 4))]
            keep &= np.isin(model["locate"], where["locates"])
        if rng.random() < 0.5:
            where["types"] = bytes(rng.choice(list(b"AUEq\xff"), rng.integers(0, 4)).tolist())
            keep &= np.isin(model["type"], list(where["types"]))
        got = b"".join(events.tobytes() for events in snapshot.scan(**where))
        assert got == model[keep].tobytes(), where
    for ref in (0, 1, 2, 3, 9, 10, 1 << 40, 2**64 - 1):
        named = (model["ref"] == np.uint64(ref)) | (
            (model["ref2"] == np.uint64(ref)) & (model["type"] == ord("U"))
        )
        expected = model[named] if ref else model[:0]
        assert snapshot.get(ref).tobytes() == expected.tobytes(), ref


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_operations_gives_what_was_appended(seed: int) -> None:
    """Append, sync, flush, compact, reopen by either engine, read by either engine; old snapshots stay."""
    rng = np.random.default_rng(seed)
    files = CrashFileSystem(exists=False)
    shape = Shape(int(rng.integers(1, 9)), int(rng.integers(1, 9)), int(rng.integers(1, 9)))
    options: dict[str, Any] = {"filesystem": files, **TINY}
    mine = {"fanout": int(rng.integers(2, 4)), "shape": shape, "background": False, "table_events": 300}
    store: Any = LsmStore(PATH, "create", Session(), **mine, **options)
    model, symbols = np.empty(0, EVENT), 0
    kept: list[tuple[Any, int]] = []
    for _ in range(50):
        action = rng.choice(["append", "append", "append", "sync", "flush", "reopen", "look", "snapshot"])
        if action == "append":
            if rng.random() < 0.3:
                symbols += 1
                store.session.directory.put(Instrument(symbols, f"SYM{symbols}"))
            new = wild(rng, int(rng.integers(0, 40)), int(model["seq"][-1]) if len(model) else 0)
            model = np.concatenate([model, new])
            assert store.append(new) == (int(model["seq"][-1]) if len(model) else 0)
        elif action == "sync":
            store.sync()
        elif action == "flush" and isinstance(store, LsmStore):
            store.flush()
        elif action == "reopen":
            store.close()
            if rng.random() < 0.3:
                store = ReferenceStore(PATH, "append", **options)
            else:
                store = LsmStore(PATH, "append", **mine, **options)
            assert len(store.session.directory) == symbols
        elif action == "look":
            engine = rng.choice([LsmStore, ReferenceStore])
            reader = engine(PATH, "read", filesystem=files)
            check_reads(rng, reader.snapshot(), model)
            assert reader.verify().ok  # what a segment's file has behind the log is noted
        elif action == "snapshot":
            kept.append((store.snapshot(), len(model)))
        assert getattr(store, "maintenance_failure", "") == ""
    for snapshot, count in kept:
        assert b"".join(each.tobytes() for each in snapshot.scan()) == model[:count].tobytes()
    store.close()
    with LsmStore(PATH, "append", **mine, **options) as again:
        again.flush()
        check_reads(rng, again.snapshot(), model)
        assert again.stats()["tables"] > 0
        assert again.verify().findings == []


def test_the_session_and_its_whole_directory_survive_the_segments(lsm_opener: Any) -> None:
    files = CrashFileSystem(exists=False)
    session = Session(venue="XBOS")
    store = lsm_opener("create", session, files)
    for i in range(40):
        session.directory.put(Instrument(i, f"S{i}", {"lot": i}))
        store.append(make_events(i, 1))
    session.directory.put(Instrument(3, "RENAMED"))
    store.append(make_events(40, 60))
    store.flush()
    store.close()
    assert "00000000.seg" not in files.visible()
    for engine in (LsmStore, ReferenceStore):
        assert engine(PATH, "read", filesystem=files).session == session
    again = lsm_opener("append", None, files)
    assert again.session == session


# -- bit rot --


def test_snapshots_survive_flush_compaction_and_close(lsm_opener: Any, same: Any) -> None:
    files = CrashFileSystem(exists=False)
    store = lsm_opener("create", Session(), files)
    reader = None
    kept = []
    for first in range(0, 200, 10):
        store.append(make_events(first, 10))
        reader = reader or lsm_opener("read", None, files)
        kept += [(store.snapshot(), first + 10), (reader.snapshot(), first + 10)]
    store.flush()
    store.compact()
    store.close()
    for snapshot, count in kept:
        assert same(snapshot.scan(), make_events(0, count))
        assert same(snapshot.get(10), make_events(1, 1))


def test_a_reader_in_the_middle_of_every_step(lsm_opener: Any, same: Any) -> None:
    """At each change to the disk a reader sees all that was synced, and what it sees is a prefix."""
    files = CrashFileSystem(exists=False)
    store = lsm_opener("create", Session(), files)
    store.append(make_events(0, 1))
    synced, seen = 0, 0
    long_lived = lsm_opener("read", None, files)

    def look() -> None:
        nonlocal seen
        seen += 1
        for reader in (long_lived, lsm_opener("read", None, files)):
            events = read_all(reader)
            assert len(events) >= synced
            assert same(events, make_events(0, len(events)))

    files.on_change = look
    for first in range(1, 60, 6):
        store.append(make_events(first, 6))
        store.sync()
        synced = first + 6
    assert seen > 200
    assert store.stats()["tables"] > 0


def test_a_real_folder_with_the_thread_at_work(tmp_path: Path, same: Any) -> None:
    """Flushes and compactions in the background, a reader of the other engine beside."""
    options: dict[str, Any] = {"segment_bytes": 200_000, "fanout": 2}
    events = make_events(0, 60_000)
    with LsmStore(tmp_path / "s", "create", Session(), **options) as store:
        reader = ReferenceStore(tmp_path / "s", "read")
        for first in range(0, 60_000, 1_000):
            store.append(events[first : first + 1_000])
            if first % 7_000 == 0:
                store.sync()
                assert same(reader.snapshot().scan(), events[: first + 1_000])
        store.flush()
        store.compact()
        assert store.stats()["tables"] <= 6
        assert store.stats()["compacted_bytes"] > 0
        assert same(store.snapshot().scan(), events)
    assert len(list((tmp_path / "s").glob("*.seg"))) == 1
    with LsmStore(tmp_path / "s", "read") as again:
        assert again.verify().findings == []
        assert same(again.snapshot().get(700), events[events["ref"] == 700])


def test_options_of_tables_are_checked(tmp_path: Path) -> None:
    for wrong in ({"fanout": 1}, {"table_events": 0}, {"compaction_bytes_per_s": -1}, {"shape": Shape(0)}):
        with pytest.raises(UsageError):
            LsmStore(tmp_path / "s", "create", Session(), **wrong)  # type: ignore[arg-type]
    store = LsmStore(tmp_path / "s", "create", Session(), tables=False)
    with pytest.raises(UsageError, match="tables=False"):
        store.flush()
    store.close()
    with LsmStore(tmp_path / "s", "read") as reader, pytest.raises(UsageError, match="reading"):
        reader.flush()


# -- columns, levels, rates --


@pytest.mark.parametrize("column", ["price", "seq", "type", "flags", "aux"])
def test_a_column_is_the_values_of_all_events(lsm_opener: Any, column: str) -> None:
    files = CrashFileSystem(exists=False)
    store = lsm_opener("create", Session(), files)
    events = wild(np.random.default_rng(3), 150, 0)
    for first in range(0, 150, 15):
        store.append(events[first : first + 15])
    snapshot = store.snapshot()
    for locates in (None, [1, 70_000], [], [9]):
        keep = np.ones(150, bool) if locates is None else np.isin(events["locate"], locates)
        parts = [part.reshape(-1, *EVENT[column].shape) for part in snapshot.column(column, locates=locates)]
        got = np.concatenate([events[column][:0], *parts])
        assert sorted(got.tolist()) == sorted(events[column][keep].tolist())
    everything = conditions((None, None), (None, None), None, None, 1)
    assert all(not part.flags.writeable for part in store._tables[0].column(column, everything))
    with pytest.raises(UsageError, match="no column"):
        snapshot.column("prize")


@pytest.mark.parametrize("column", ["price", "locate", "aux"])
def test_a_column_of_ranges_is_copied_into_the_caller_s_array(lsm_opener: Any, column: str) -> None:
    files = CrashFileSystem(exists=False)
    store = lsm_opener("create", Session(), files)
    rng = np.random.default_rng(5)
    events = wild(rng, 150, 0)
    for first in range(0, 150, 15):
        store.append(events[first : first + 15])
    snapshot = store.snapshot()
    out = np.empty((150, *EVENT[column].shape), EVENT[column].base)
    for _ in range(40):
        seq = sorted(rng.choice(events["seq"], 2).tolist()) if rng.random() < 0.7 else [None, None]
        ts = sorted(rng.choice(events["ts"], 2).tolist()) if rng.random() < 0.7 else [None, None]
        locates = [1, 70_000] if rng.random() < 0.3 else None
        wanted = list(snapshot.scan(seq=tuple(seq), ts=tuple(ts), locates=locates))
        expected = np.concatenate([events[:0], *wanted])[column]
        count = snapshot.column_into(column, out, seq=tuple(seq), ts=tuple(ts), locates=locates)
        assert sorted(out[:count].tolist()) == sorted(expected.tolist())
    assert snapshot.column_into(column, out) == 150
    for wrong in (out[:149], out.astype(np.uint16), out[::2], [0] * 150):
        with pytest.raises(UsageError):
            snapshot.column_into(column, wrong)


def test_zone_maps_pass_over_blocks(lsm_opener: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    files = CrashFileSystem(exists=False)
    store = lsm_opener("create", Session(), files)
    store.append(make_events(0, 60))
    store.flush()
    store.compact()
    snapshot = store.snapshot()
    looked: list[int] = []
    real = LsmTable._column_of

    def column_of(self: LsmTable, number: int, block: int, blocks: int) -> Any:
        looked.extend(range(block, block + blocks))
        return real(self, number, block, blocks)

    monkeypatch.setattr(LsmTable, "_column_of", column_of)
    assert sum(part.size for part in snapshot.column("qty")) == 60
    every = len(set(looked))
    looked.clear()
    assert sum(part.size for part in snapshot.column("qty", seq=(21, 40))) == 10
    assert 0 < len(set(looked)) <= every // 2


def entries(levels: str, count: int = 10) -> list[Entry]:
    return [Entry(i + 1, int(level), 1, 0, i * count, count, 0, 0, 0) for i, level in enumerate(levels)]


@pytest.mark.parametrize(
    ("levels", "table_events", "expected"),
    [
        ("", 100, None),
        ("00", 100, None),
        ("000", 100, (0, 3)),
        ("0000", 100, (0, 3)),
        ("11000", 100, (2, 5)),
        ("111000", 100, (3, 6)),
        ("1110", 100, (0, 3)),
        ("0100", 100, None),
        ("000", 29, None),
        ("111000", 30, (3, 6)),
    ],
)
def test_which_tables_are_merged(levels: str, table_events: int, expected: Any) -> None:
    """The oldest neighbours of the lowest level that has `fanout` of them, if they fit in one table."""
    assert due(entries(levels), Settings(fanout=3, table_events=table_events)) == expected


def test_compaction_keeps_to_its_rate_and_ends_with_the_store(tmp_path: Path) -> None:
    options: dict[str, Any] = {"segment_bytes": 200_000, "fanout": 2, "background": False}
    with LsmStore(tmp_path / "s", "create", Session(), compaction_bytes_per_s=500_000, **options) as store:
        began = time.monotonic()
        for first in range(0, 8_000, 1_000):
            store.append(make_events(first, 1_000))
        assert store.stats()["compacted_bytes"] > 400_000
        assert time.monotonic() - began > 0.8
    slow: dict[str, Any] = {"segment_bytes": 200_000, "fanout": 2, "compaction_bytes_per_s": 1}
    store = LsmStore(tmp_path / "t", "create", Session(), **slow)
    store.append(make_events(0, 20_000))
    began = time.monotonic()
    store.close()
    assert time.monotonic() - began < 60
    with LsmStore(tmp_path / "t", "append", **(slow | {"compaction_bytes_per_s": 0})) as again:
        again.compact()
        assert again.maintenance_failure == ""
        assert read_all(again).tobytes() == make_events(0, 20_000).tobytes()
