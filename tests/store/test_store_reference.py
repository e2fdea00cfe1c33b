"""The reference store: the contract, on a real file system."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.contracts import Capability, Snapshot, Store
from trident_core.dtypes import EVENT
from trident_core.errors import StoreError, UsageError
from trident_core.session import Directory, Instrument, Session
from trident_store.crashcheck import make_events
from trident_store.plugin import trident_register_stores
from trident_store.reference import ReferenceStore


@pytest.fixture
def session() -> Session:
    details: dict[str, str | int] = {"authenticity": "P", "round_lot": 100}
    listed = [Instrument(i, f"SYM{i}", details) for i in range(1, 30)]
    return Session(date=dt.date(2019, 12, 30), directory=Directory(listed))


@pytest.fixture
def store(tmp_path: Path, session: Session) -> Any:
    with ReferenceStore(tmp_path / "s", "create", session, segment_bytes=16_384, frame_events=16) as store:
        yield store


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_the_plugin_names_it_and_it_satisfies_the_contract(store: ReferenceStore) -> None:
    (spec,) = [spec for spec in trident_register_stores() if spec.name == "reference"]
    assert spec.load() is ReferenceStore
    assert Capability.PORTABLE_FORMAT in spec.capabilities
    as_store: Store = store
    snapshot: Snapshot = as_store.snapshot()
    assert snapshot.count == 0
    assert list(snapshot.scan()) == []
    assert len(snapshot.get(3)) == 0


def test_records_in_are_records_out(store: ReferenceStore, session: Session, same: Any) -> None:
    events = make_events(0, 1_000)
    assert store.append(events[:300]) == events["seq"][299]
    assert store.append(events[300:301]) == events["seq"][300]
    assert store.append(events[301:301]) == events["seq"][300]
    assert store.append(events[301:]) == events["seq"][-1]
    assert 0 < store.stats()["durable_seq"] < 1_999  # by rotations
    assert store.sync() == events["seq"][-1]
    stats = store.stats()
    assert (stats["events"], stats["last_seq"], stats["durable_seq"]) == (1_000, 1_999, 1_999)
    assert stats["segments"] > 4
    on_disk = [each.stat().st_size for each in store.path.glob("*.seg")]
    assert (stats["segments"], stats["bytes"]) == (len(on_disk), sum(on_disk))
    assert same(store.snapshot().scan(), events)
    for mode in ("read", "append"):
        store.close()
        with ReferenceStore(store.path, mode) as again:
            assert same(again.snapshot().scan(), events)
            assert again.session == again.snapshot().session == session
            assert again.recovery.events == 1_000
            assert (again.recovery.torn_bytes, again.recovery.torn_file) == (0, "")
            found = again.verify()
            assert (found.ok, found.findings, found.events, found.last_seq) == (True, [], 1_000, 1_999)


def test_a_snapshot_never_changes(store: ReferenceStore, same: Any) -> None:
    events = make_events(0, 500)
    store.append(events[:200])
    early = store.snapshot()
    scan = early.scan(batch=50)
    first = next(scan)
    store.session.directory.put(Instrument(77, "LATE"))
    store.append(events[200:])
    assert (early.count, early.last_seq) == (200, 399)
    assert same([first, *scan], events[:200])
    assert early.session.directory.get(77) is None
    assert store.snapshot().session.directory.symbol(77) == "LATE"
    store.close()
    assert same(early.scan(), events[:200])
    early.close()
    early.close()
    with pytest.raises(UsageError, match="closed"):
        early.scan()


def test_a_reader_follows_a_writer(store: ReferenceStore, same: Any) -> None:
    events = make_events(0, 900)
    store.append(events[:100])  # not synced: a reader of the same machine sees it
    reader = ReferenceStore(store.path, "read")
    before = contents(store.path)
    old = reader.snapshot()
    assert (old.count, reader.stats()["durable_seq"]) == (100, 0)
    assert contents(store.path) == before
    store.session.directory.put(Instrument(500, "NEW"))
    store.append(events[100:])
    new = reader.snapshot()
    assert same(new.scan(), events)
    assert same(old.scan(), events[:100])
    assert new.session.directory.symbol(500) == reader.session.directory.symbol(500) == "NEW"


@pytest.mark.parametrize("batch", [1, 7, 16, 100, 65_536])
def test_scan_filters(store: ReferenceStore, same: Any, batch: int) -> None:
    events = make_events(0, 400)
    store.append(events)
    snapshot = store.snapshot()
    seq, ts, locate, kind = (events[name] for name in ("seq", "ts", "locate", "type"))
    cases: list[tuple[dict[str, Any], Any]] = [
        ({}, seq > 0),
        ({"seq": (101, 299)}, (seq >= 101) & (seq <= 299)),
        ({"seq": (100, 100)}, seq == 100),
        ({"seq": (None, 5)}, seq <= 5),
        ({"seq": (790, None)}, seq >= 790),
        ({"seq": (5, 4)}, seq < 0),
        ({"seq": (-5, 1 << 70)}, seq > 0),
        ({"seq": (1 << 64, None)}, seq < 0),
        ({"ts": (5_003, 9_003)}, (ts >= 5_003) & (ts <= 9_003)),
        ({"locates": [3, 9, 9, -1, 1 << 40]}, np.isin(locate, [3, 9])),
        ({"locates": np.array([3], np.uint32)}, locate == 3),
        ({"locates": []}, seq < 0),
        ({"types": b"AU"}, (kind == ord("A")) | (kind == ord("U"))),
        ({"types": b""}, seq < 0),
        ({"types": b"A", "locates": range(20, 60), "ts": (100_000, None), "seq": (None, 500)},
         (kind == ord("A")) & (locate >= 20) & (locate < 60) & (ts >= 100_000) & (seq <= 500)),
    ]  # fmt: skip
    for where, keep in cases:
        got = list(snapshot.scan(batch=batch, **where))
        assert same(got, events[keep]), where
        assert all(1 <= len(each) <= batch for each in got)
        assert all(each.dtype == EVENT and each.flags.c_contiguous for each in got)


@pytest.mark.parametrize(
    "wrong",
    [{"batch": 0}, {"seq": 5}, {"ts": ("a", None)}, {"locates": [1.5]}, {"locates": np.zeros((2, 2), int)}],
)
def test_scan_refuses_at_once(store: ReferenceStore, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        store.snapshot().scan(**wrong)


def test_get_finds_every_event_that_names_an_order(store: ReferenceStore, same: Any) -> None:
    events = np.zeros(6, EVENT)
    events["seq"] = range(1, 7)
    events["type"] = list(b"AEUXEP")
    events["ref"] = [10, 10, 10, 20, 30, 0]
    events["ref2"] = [0, 20, 20, 0, 10, 10]  # a match number that equals a reference does not name it
    store.append(events)
    assert same(store.snapshot().get(10), events[:3])
    assert same(store.snapshot().get(20), events[2:4])
    assert len(store.snapshot().get(0)) == 0
    assert len(store.snapshot().get(99)) == 0
    for wrong in (-1, 1 << 64):
        with pytest.raises(UsageError, match="reference"):
            store.snapshot().get(wrong)


def test_wrong_events_are_refused_and_nothing_is_written(store: ReferenceStore, same: Any) -> None:
    events = make_events(0, 100)
    store.append(events[:50])
    before = contents(store.path)
    swapped = events[50:60].copy()
    swapped["seq"][[4, 5]] = swapped["seq"][[5, 4]]
    twice = events[50:60].copy()
    twice["seq"][7] = twice["seq"][6]
    for wrong, words in [
        (events[49:60], "event 0 has 99, the store ends with 99"),
        (swapped, "event 5 has 109, the one before it 111"),
        (twice, "event 7 has 113, the one before it 113"),
        (np.zeros(3, EVENT), "event 0 has 0"),
        (events[50:60].view(np.uint64), "array of EVENT"),
        (events[50:60:2], "contiguous"),
        (events[50:60].reshape(2, 5), "flat"),
        (list(events[50:60]), "not of list"),
    ]:
        with pytest.raises(UsageError, match=words):
            store.append(wrong)  # type: ignore[arg-type]
    assert contents(store.path) == before
    store.append(events[50:])
    assert same(store.snapshot().scan(), events)


def test_details_that_cannot_be_stored_are_refused(store: ReferenceStore) -> None:
    before = contents(store.path)
    for details in ({"x": object()}, {"x": float("nan")}, {"x": "y" * (17 << 20)}):
        store.session.directory.put(Instrument(40, "ODD", details))  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            store.append(make_events(0, 1))
    assert contents(store.path) == before


def test_the_directory_comes_back_as_it_was(tmp_path: Path) -> None:
    session = Session(venue="BINANCE", tz="UTC", price_decimals=8, qty_decimals=8, protocol="binance")
    store = ReferenceStore(tmp_path / "s", "create", session)
    odd = [
        Instrument(1, "A", {"n": 5}), Instrument(0, ""), Instrument(1, "A2"), Instrument(1, "A"),
        Instrument(2**32 - 1, "BTC-USDT ü\udcff\n", {"k": "é"}),
    ]  # fmt: skip
    for i, instrument in enumerate(odd):
        session.directory.put(instrument)
        store.append(make_events(i, 1))
    many = [Instrument(10 + i, f"M{i}", {"d": "x" * 600}) for i in range(30_000)]
    for instrument in many:
        session.directory.put(instrument)
    store.append(make_events(len(odd), 1))
    store.close()
    with ReferenceStore(tmp_path / "s", "read") as again:
        assert again.session == session
    assert again.session.directory.get(1) == Instrument(1, "A")


def test_opening_for_appending_takes_the_caller_s_session(store: ReferenceStore, session: Session) -> None:
    store.close()
    mine = Session(date=session.date, directory=Directory([Instrument(90, "MINE")]))
    with ReferenceStore(store.path, "append", mine) as again:
        assert again.session is mine
        assert mine.directory.symbol(3) == "SYM3"
        again.append(make_events(0, 2))
    with ReferenceStore(store.path, "read") as reader:
        assert reader.session.directory == mine.directory
    for mode in ("append", "read"):
        with pytest.raises(UsageError, match="venue"):
            ReferenceStore(store.path, mode, Session(venue="XBOS", date=session.date))


def test_one_writer_any_readers(store: ReferenceStore) -> None:
    with pytest.raises(StoreError, match=f"written by process {os.getpid()}"):
        ReferenceStore(store.path, "append")
    readers = [ReferenceStore(store.path, "read") for _ in range(3)]
    assert all(reader.stats()["events"] == 0 for reader in readers)
    store.close()
    ReferenceStore(store.path, "append").close()


def test_readers_need_no_permission_to_write(store: ReferenceStore, same: Any) -> None:
    store.append(make_events(0, 30))
    store.close()
    before = contents(store.path)
    for each in store.path.iterdir():
        each.chmod(0o444)
    store.path.chmod(0o555)
    try:
        with ReferenceStore(store.path, "read") as reader:
            assert same(reader.snapshot().scan(), make_events(0, 30))
            assert reader.verify().ok
        assert contents(store.path) == before
    finally:
        store.path.chmod(0o755)


def test_misuse(store: ReferenceStore, tmp_path: Path, session: Session) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    (tmp_path / "empty").mkdir()
    for mode in ("read", "append"):
        for name, words in [
            ("none", "no store at"),
            ("file", "no store at"),
            ("full", "not a store"),
            ("empty", "not a store"),
        ]:
            with pytest.raises(StoreError, match=words):
                ReferenceStore(tmp_path / name, mode)
    for name, words in [
        ("file", "cannot create"),
        ("full", "not empty"),
        ("no/parent", "cannot create"),
        ("s", "not empty"),
    ]:
        with pytest.raises(StoreError, match=words):
            ReferenceStore(tmp_path / name, "create", session)
    assert [each.name for each in (tmp_path / "full").iterdir()] == ["x"]
    assert list((tmp_path / "empty").iterdir()) == []
    ReferenceStore(tmp_path / "empty", "create", session).close()
    for wrong in [
        {"segment_bytes": 1},
        {"frame_events": 0},
        {"frame_events": 4_097},
        {"sector_bytes": 100},
        {"store_id": b"x"},
    ]:
        with pytest.raises(UsageError):
            ReferenceStore(tmp_path / "new", "create", session, **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="mode"):
        ReferenceStore(store.path, "w")
    with pytest.raises(UsageError, match="session"):
        ReferenceStore(tmp_path / "new", "create")
    assert not (tmp_path / "new").exists()


def test_closed_and_reading_stores_say_so(store: ReferenceStore) -> None:
    reader = ReferenceStore(store.path, "read")
    for call in (lambda: reader.append(make_events(0, 1)), reader.sync):
        with pytest.raises(UsageError, match="reading only"):
            call()
    for each in (store, reader):
        each.close()
        each.close()
        for method in ("append", "sync", "snapshot", "verify", "stats"):
            with pytest.raises(UsageError, match="closed"):
                getattr(each, method)(*[make_events(0, 1)] * (method == "append"))


def test_foreign_files_beside_the_segments_are_left_alone(store: ReferenceStore) -> None:
    (store.path / "NOTES.txt").write_text("mine")
    (store.path / "1.seg").write_text("not a segment's name")
    store.append(make_events(0, 300))
    store.close()
    with ReferenceStore(store.path, "append") as again:
        assert again.verify().ok
    assert (store.path / "NOTES.txt").read_text() == "mine"
