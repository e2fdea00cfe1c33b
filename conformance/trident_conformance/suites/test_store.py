"""Stores against docs/contracts/store.md. The rules' ids (STORE-n) stand with the tests that hold them."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from trident_conformance import damage, drive, stores, streams
from trident_conformance.engines import Engine
from trident_core.dtypes import EVENT
from trident_core.errors import TridentError, UsageError
from trident_core.session import Instrument, Session

EVENTS, filled, contents = stores.EVENTS, stores.filled, stores.contents


class TestRecords:
    @pytest.mark.parametrize("sizes", [(900,), (1, 7, 100, 400), (1, 2)], ids=["at-once", "mixed", "small"])
    def test_in_is_out(self, store_engine: Engine, tmp_path: Path, sizes: tuple[int, ...]) -> None:
        """STORE-1: the same records in the same order, however they were batched: while open, to a reader,
        after reopening."""
        store = store_engine.make(tmp_path / "s", "create", streams.session())
        for events in drive.batches(EVENTS, sizes):
            store.append(events)
        drive.same(damage.scanned(store.snapshot()), EVENTS, "the writer's own snapshot")
        store.close()
        drive.same(contents(store_engine, tmp_path / "s"), EVENTS, "a reader")
        again = store_engine.make(tmp_path / "s", "append")
        assert again.recovery.events == len(EVENTS)
        drive.same(damage.scanned(again.snapshot()), EVENTS, "after reopening")
        again.close()

    def test_every_bit_of_a_record(self, store_engine: Engine, tmp_path: Path, prove: Any) -> None:
        """STORE-1: a store does not judge events: any bytes in any column but seq come back."""
        serial = iter(range(10**6))

        def check(data: bytes) -> None:
            events = np.frombuffer(data[: len(data) // 64 * 64], EVENT).copy()
            events["seq"] = np.arange(1, len(events) + 1)
            folder = tmp_path / str(next(serial))
            store = store_engine.make(folder, "create", Session())
            store.append(events)
            store.close()
            assert contents(store_engine, folder).tobytes() == events.tobytes()

        prove(check, data=st.binary(max_size=64 * 9), examples=12)

    def test_many_at_once(self, store_engine: Engine, tmp_path: Path, quick: bool) -> None:
        """One append of far more than a frame, a block or a segment of small options holds."""
        events = np.zeros(20_000 if quick else 150_000, EVENT)
        events["seq"] = np.arange(1, len(events) + 1)
        events["ref"] = events["seq"] * np.uint64(0x9E3779B97F4A7C15)
        store = store_engine.make(tmp_path / "s", "create", Session())
        assert store.append(events) == len(events)
        assert store.sync() == len(events)
        drive.same(damage.scanned(store.snapshot(), batch=4_096), events, "scan")
        assert store.verify().events == len(events)
        store.close()

    def test_the_callers_array_is_not_kept(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-1: append copies; the caller's buffer is filled again before a sync. It may be read-only."""
        store = store_engine.make(tmp_path / "s", "create", Session())
        buffer = EVENTS[:100].copy()
        store.append(buffer)
        buffer.view(np.uint8)[:] = 0xFF
        locked = EVENTS[100:200].copy()
        locked.flags.writeable = False
        store.append(locked)
        store.close()
        drive.same(contents(store_engine, tmp_path / "s"), EVENTS[:200], "events")

    def test_a_snapshots_events_are_the_callers(self, store_engine: Engine, tmp_path: Path) -> None:
        """Writing to what a scan gave, where that is possible at all, changes nothing that is read later."""
        filled(store_engine, tmp_path / "s")
        store = store_engine.make(tmp_path / "s", "read")
        snapshot = store.snapshot()
        for events in snapshot.scan(batch=64):
            if events.flags.writeable:
                events.view(np.uint8)[:] = 0xFF
        drive.same(damage.scanned(snapshot), EVENTS, "events")
        store.close()


class TestOrder:
    def test_seq_must_grow(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-2: within a call, across calls and across reopening: UsageError, nothing is written."""
        folder = tmp_path / "s"
        store = store_engine.make(folder, "create", Session())
        store.append(EVENTS[:10])
        for wrong in (EVENTS[9:12], EVENTS[:1], EVENTS[[11, 10]], EVENTS[[10, 11, 11, 12]]):
            with pytest.raises(UsageError):
                store.append(np.ascontiguousarray(wrong))
        drive.same(damage.scanned(store.snapshot()), EVENTS[:10], "after refusals")
        store.close()
        again = store_engine.make(folder, "append")
        with pytest.raises(UsageError):
            again.append(EVENTS[9:12])
        assert again.append(EVENTS[10:12]) == EVENTS["seq"][11]
        again.close()
        drive.same(contents(store_engine, folder), EVENTS[:12], "events")

    def test_gaps_are_the_feeds(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-2: seq may jump, up to the greatest u64."""
        events = EVENTS[:4].copy()
        events["seq"] = [5, 1000, 1 << 40, (1 << 64) - 1]
        store = store_engine.make(tmp_path / "s", "create", Session())
        assert store.append(events[:2]) == 1000
        assert store.append(events[2:]) == (1 << 64) - 1
        store.close()
        drive.same(contents(store_engine, tmp_path / "s"), events, "events")

    @pytest.mark.parametrize(
        "events",
        [np.zeros(3, np.uint8), np.zeros((2, 2), EVENT), EVENTS[:10:2], [1, 2]],
        ids=["not-events", "two-dimensions", "strided", "list"],
    )
    def test_wrong_arrays(self, store_engine: Engine, tmp_path: Path, events: Any) -> None:
        """STORE-3: UsageError, and nothing is written."""
        store = store_engine.make(tmp_path / "s", "create", Session())
        with pytest.raises(UsageError):
            store.append(events)
        assert store.append(EVENTS[:2]) == 2
        store.close()
        drive.same(contents(store_engine, tmp_path / "s"), EVENTS[:2], "events")

    def test_an_append_of_nothing(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-4."""
        store = store_engine.make(tmp_path / "s", "create", Session())
        assert store.append(EVENTS[:0]) == 0
        store.append(EVENTS[:5])
        assert store.append(EVENTS[:0]) == 5
        store.close()
        drive.same(contents(store_engine, tmp_path / "s"), EVENTS[:5], "events")

    def test_sync_and_stats(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-10, 16: sync says the last durable seq, 0 when empty; stats has at least five figures."""
        store = store_engine.make(tmp_path / "s", "create", Session())
        assert store.sync() == 0
        store.append(EVENTS[:10])
        assert store.sync() == 10
        store.append(EVENTS[10:15])
        stats = store.stats()
        assert {"events", "segments", "bytes", "last_seq", "durable_seq"} <= set(stats)
        assert (stats["events"], stats["last_seq"]) == (15, 15)
        assert 10 <= stats["durable_seq"] <= 15
        assert store.sync() == 15
        assert store.stats()["durable_seq"] == 15
        store.close()
        store.close()  # idempotent


class TestOpening:
    def test_create_wants_an_empty_place(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-40: and a session; what is refused is not changed."""
        (tmp_path / "empty").mkdir()
        store_engine.make(tmp_path / "empty", "create", Session()).close()
        folder = filled(store_engine, tmp_path / "s")
        before = damage.files_of(folder)
        with pytest.raises(TridentError):
            store_engine.make(folder, "create", Session())
        assert damage.files_of(folder) == before
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "letter.txt").write_text("dear")
        with pytest.raises(TridentError):
            store_engine.make(tmp_path / "other", "create", Session())
        with pytest.raises(TridentError):
            store_engine.make(tmp_path / "no-session", "create")

    @pytest.mark.parametrize("mode", ["append", "read"])
    def test_nothing_there(self, store_engine: Engine, tmp_path: Path, mode: str) -> None:
        """STORE-41: no store, an empty folder, a folder of something else: an error of Trident's, and
        nothing is made."""
        (tmp_path / "empty").mkdir()
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "letter.txt").write_text("dear")
        for name in ("absent", "empty", "other"):
            with pytest.raises(TridentError):
                store_engine.make(tmp_path / name, mode).snapshot()
        assert not (tmp_path / "absent").exists()
        assert (tmp_path / "other" / "letter.txt").read_text() == "dear"

    def test_one_writer_at_a_time(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-31, 35: in one process, too (where POSIX record locks would not tell); readers may."""
        folder = tmp_path / "s"
        store = store_engine.make(folder, "create", streams.session())
        store.append(EVENTS[:100])
        store.sync()
        with pytest.raises(TridentError):
            store_engine.make(folder, "append")
        store.append(EVENTS[100:200])
        reader = store_engine.make(folder, "read")
        found = damage.scanned(reader.snapshot())
        assert len(found) >= 100
        assert damage.is_prefix(found, EVENTS)
        store.append(EVENTS[200:300])
        store.sync()
        drive.same(damage.scanned(reader.snapshot()), EVENTS[:300], "the reader's next snapshot")
        reader.close()
        store.close()
        again = store_engine.make(folder, "append")
        again.close()

    def test_reading_changes_no_byte(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-34."""
        folder = filled(store_engine, tmp_path / "s")
        before = damage.files_of(folder)
        reader = store_engine.make(folder, "read")
        snapshot = reader.snapshot()
        damage.scanned(snapshot)
        snapshot.get(5)
        assert reader.verify().ok
        assert reader.stats()["events"] == len(EVENTS)
        with pytest.raises(TridentError):
            reader.append(EVENTS[:1])
        snapshot.close()
        reader.close()
        assert damage.files_of(folder) == before


class TestSession:
    def test_round_trip(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-5: every field, symbols of any length and script, details of text and number."""
        session = Session("XTST", dt.date(2019, 12, 30), "Europe/Zurich", 8, 3, "itch50")
        session.directory.put(Instrument(1, "AAPL", {"round_lot_size": 100, "ipo_flag": " "}))
        session.directory.put(Instrument(2, "BTC/USDT perpetual, quarterly", {"näme": "ü"}))
        session.directory.put(Instrument(4_294_967_295, "Z" * 200))
        store = store_engine.make(tmp_path / "s", "create", session)
        store.append(EVENTS[:3])
        store.close()
        for mode in ("read", "append"):
            again = store_engine.make(tmp_path / "s", mode)
            assert again.session.to_json() == session.to_json()
            assert again.snapshot().session.to_json() == session.to_json()
            again.close()

    @pytest.mark.parametrize("mode", ["append", "read"])
    def test_the_session_given_must_be_the_stores(
        self, store_engine: Engine, tmp_path: Path, mode: str
    ) -> None:
        """STORE-42: its directory aside, which a writer's object is completed with."""
        filled(store_engine, tmp_path / "s")
        with pytest.raises(UsageError):
            store_engine.make(tmp_path / "s", mode, Session(price_decimals=8))
        mine = Session()
        store = store_engine.make(tmp_path / "s", mode, mine)
        assert store.session.directory == streams.session().directory
        if mode == "append":
            assert store.session is mine
        store.close()

    def test_a_directory_that_grows(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-5, 30: what the directory gained before an append is in the store with it, changes too."""
        session = Session()
        store = store_engine.make(tmp_path / "s", "create", session)
        store.append(EVENTS[:10])
        early = store.snapshot()
        session.directory.put(Instrument(7, "LATE"))
        store.append(EVENTS[10:20])
        session.directory.put(Instrument(7, "LATE", {"authenticity": "P"}))
        session.directory.put(Instrument(8, "LATER"))
        store.append(EVENTS[20:30])
        assert len(early.session.directory) == 0
        assert early.count == 10
        store.close()
        again = store_engine.make(tmp_path / "s", "read")
        assert again.snapshot().session.directory == session.directory
        again.close()


class TestSnapshots:
    def test_isolation(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-30, 31: a snapshot never changes, not in a scan under way, and never blocks the writer."""
        store = store_engine.make(tmp_path / "s", "create", streams.session())
        store.append(EVENTS[:200])
        snapshot = store.snapshot()
        scan = snapshot.scan(batch=50)
        parts = [next(scan).copy()]
        for start in range(200, 900, 100):
            store.append(EVENTS[start : start + 100])
            store.sync()
            part = next(scan, None)
            parts += [] if part is None else [part.copy()]
        drive.same(np.concatenate(parts), EVENTS[:200], "the scan that was under way")
        drive.same(damage.scanned(snapshot), EVENTS[:200], "a scan begun later")
        assert (snapshot.count, snapshot.last_seq) == (200, 200)
        late = store.snapshot()
        assert (late.count, late.last_seq) == (900, 900)
        snapshot.close()
        drive.same(damage.scanned(late), EVENTS, "another snapshot, after the first was closed")
        late.close()
        again = store.snapshot()
        store.close()
        drive.same(damage.scanned(again), EVENTS, "a snapshot that outlives its store")

    def test_after_close(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-43: every method of a closed store raises UsageError."""
        filled(store_engine, tmp_path / "s")
        for mode in ("append", "read"):
            store = store_engine.make(tmp_path / "s", mode)
            store.close()
            store.close()
            for method in ("snapshot", "verify", "stats"):
                with pytest.raises(UsageError):
                    getattr(store, method)()
            for call in (store.sync, lambda store=store: store.append(EVENTS[:0])):
                with pytest.raises(UsageError):
                    call()

    def test_of_an_empty_store(self, store_engine: Engine, tmp_path: Path) -> None:
        store = store_engine.make(tmp_path / "s", "create", Session())
        snapshot = store.snapshot()
        assert (snapshot.count, snapshot.last_seq) == (0, 0)
        assert len(damage.scanned(snapshot)) == 0
        assert len(snapshot.get(1)) == 0
        store.close()
        assert len(contents(store_engine, tmp_path / "s")) == 0

    def test_filters(self, store_engine: Engine, tmp_path: Path, prove: Any) -> None:
        """STORE-32: scan against the same filter in numpy; ranges are closed, None is open, all filters hold
        together."""
        store = store_engine.make(filled(store_engine, tmp_path / "s"), "read")
        snapshot = store.snapshot()
        times = sorted({int(ts) for ts in EVENTS["ts"]})

        def check(seq: Any, ts: Any, locates: Any, types: Any, batch: int, as_array: bool) -> None:
            keep = np.ones(len(EVENTS), bool)
            for column, (low, high) in (("seq", seq), ("ts", ts)):
                if low is not None:
                    keep &= EVENTS[column] >= low
                if high is not None:
                    keep &= EVENTS[column] <= high
            if locates is not None:
                keep &= np.isin(EVENTS["locate"], locates)
            if types is not None:
                keep &= np.isin(EVENTS["type"], np.frombuffer(types, np.uint8))
            given = np.array(locates, np.uint32) if as_array and locates is not None else locates
            found = damage.scanned(snapshot, seq=seq, ts=ts, locates=given, types=types, batch=batch)
            drive.same(found, EVENTS[keep], "scan")

        bound = st.none() | st.integers(0, len(EVENTS) + 2)
        time_bound = st.none() | st.sampled_from(times) | st.integers(0, (1 << 48) - 1)
        prove(
            check,
            seq=st.tuples(bound, bound),
            ts=st.tuples(time_bound, time_bound),
            locates=st.none() | st.lists(st.sampled_from([0, 1, 2, 5, 65535, 70_000]), max_size=4),
            types=st.none() | st.text("AFEXDUSRHPz", max_size=4).map(str.encode),
            batch=st.sampled_from([1, 7, 100, 65_536]),
            as_array=st.booleans(),
        )
        store.close()

    def test_get(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-33: every event that names a reference, as its own or as a replace's new one, in append
        order."""
        store = store_engine.make(filled(store_engine, tmp_path / "s"), "read")
        snapshot = store.snapshot()
        replaced = EVENTS[EVENTS["type"] == ord("U")]
        wanted = {*EVENTS["ref"][:200].tolist(), *replaced["ref2"][:20].tolist(), 1 << 50, (1 << 64) - 1} - {
            0
        }
        for ref in wanted:
            new = (EVENTS["type"] == ord("U")) & (EVENTS["ref2"] == ref)
            drive.same(snapshot.get(ref), EVENTS[(EVENTS["ref"] == ref) | new], f"get({ref})")
        assert len(snapshot.get(0)) == 0
        store.close()
