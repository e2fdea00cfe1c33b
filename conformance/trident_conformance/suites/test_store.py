"""Stores against `contracts.Store` and docs/contracts/store.md."""

from __future__ import annotations

import datetime as dt
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from trident_conformance import damage, drive, streams
from trident_conformance.engines import Engine, reference
from trident_core.contracts import Capability, Kind
from trident_core.dtypes import EVENT, Events
from trident_core.errors import TridentError, UsageError
from trident_core.session import Instrument, Session

EVENTS = streams.day(11, 900)


def filled(engine: Engine, folder: Path, sizes: tuple[int, ...] = (1, 7, 100, 400)) -> Path:
    """A closed store that holds EVENTS, appended in batches of these sizes, synced now and then."""
    store = engine.make(folder, "create", streams.session())
    for i, events in enumerate(drive.batches(EVENTS, sizes)):
        assert store.append(events) == events["seq"][-1]
        if i % 2:
            assert store.sync() == events["seq"][-1]
    store.close()
    return folder


def contents(engine: Engine, folder: Path) -> Events:
    store = engine.make(folder, "read")
    events = damage.scanned(store.snapshot())
    store.close()
    return events


class TestRecords:
    @pytest.mark.parametrize("sizes", [(900,), (1, 7, 100, 400), (1, 2)], ids=["at-once", "mixed", "small"])
    def test_in_is_out(self, store_engine: Engine, tmp_path: Path, sizes: tuple[int, ...]) -> None:
        """The same records in the same order, however they were batched: while open, to a reader, after reopening."""
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
        """A store does not judge events: any bytes in any column but seq come back."""
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
        """append copies: the caller fills its buffer again before anything is synced. Input may be read-only."""
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
        """Within a call, across calls and across reopening: UsageError, and nothing of the call is written."""
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
        """seq may jump, up to the greatest u64."""
        events = EVENTS[:4].copy()
        events["seq"] = [5, 1000, 1 << 40, (1 << 64) - 1]
        store = store_engine.make(tmp_path / "s", "create", Session())
        assert store.append(events[:2]) == 1000
        assert store.append(events[2:]) == (1 << 64) - 1
        store.close()
        drive.same(contents(store_engine, tmp_path / "s"), events, "events")

    def test_sync_and_stats(self, store_engine: Engine, tmp_path: Path) -> None:
        """sync says the last durable seq, 0 when empty; stats has at least five figures."""
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
        """No store, an empty folder, a folder of something else: an error of Trident's, and nothing is made."""
        (tmp_path / "empty").mkdir()
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "letter.txt").write_text("dear")
        for name in ("absent", "empty", "other"):
            with pytest.raises(TridentError):
                store_engine.make(tmp_path / name, mode).snapshot()
        assert not (tmp_path / "absent").exists()
        assert (tmp_path / "other" / "letter.txt").read_text() == "dear"

    def test_one_writer_at_a_time(self, store_engine: Engine, tmp_path: Path) -> None:
        """In one process, too (POSIX record locks would not tell); readers are always let in."""
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
        """Every field, symbols of any length and script, details of text and number."""
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

    def test_a_directory_that_grows(self, store_engine: Engine, tmp_path: Path) -> None:
        """What the directory gained before an append is in the store with it; an instrument may change."""
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
        """A snapshot never changes, not in the middle of a scan, and never blocks the writer."""
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
        store.close()

    def test_of_an_empty_store(self, store_engine: Engine, tmp_path: Path) -> None:
        store = store_engine.make(tmp_path / "s", "create", Session())
        snapshot = store.snapshot()
        assert (snapshot.count, snapshot.last_seq) == (0, 0)
        assert len(damage.scanned(snapshot)) == 0
        assert len(snapshot.get(1)) == 0
        store.close()
        assert len(contents(store_engine, tmp_path / "s")) == 0

    def test_filters(self, store_engine: Engine, tmp_path: Path, prove: Any) -> None:
        """scan against the same filter in numpy; ranges are closed, None is open, all filters hold together."""
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
        """Every event that names a reference, as its own or as a replace's new one, in append order."""
        store = store_engine.make(filled(store_engine, tmp_path / "s"), "read")
        snapshot = store.snapshot()
        replaced = EVENTS[EVENTS["type"] == ord("U")]
        wanted = {*EVENTS["ref"][:200].tolist(), *replaced["ref2"][:20].tolist(), 1 << 50, (1 << 64) - 1} - {0}
        for ref in wanted:
            new = (EVENTS["type"] == ord("U")) & (EVENTS["ref2"] == ref)
            drive.same(snapshot.get(ref), EVENTS[(EVENTS["ref"] == ref) | new], f"get({ref})")
        store.close()


class TestCrash:
    def test_kill(self, store_engine: Engine, tmp_path: Path, quick: bool) -> None:
        """SIGKILL at any moment: a gap-free prefix, at least all that was called durable; then it goes on."""
        folder, count = tmp_path / "s", 30_000
        events, pick = streams.day(5, count), random.Random(5)
        for _ in range(1 if quick else 3):
            durable = self._kill(store_engine, folder, count, pick)
            before = contents(store_engine, folder)
            store = store_engine.make(folder, "append")
            found = damage.scanned(store.snapshot())
            assert damage.is_prefix(found, events)
            drive.same(before, found, "a reader before recovery")
            assert len(found) >= durable, f"{len(found)} events, {durable} were called durable"
            assert store.recovery.events == len(found)
            assert store.verify().ok
            if len(found) < count:
                store.append(events[len(found) : len(found) + 1])
            store.close()
            assert damage.is_prefix(contents(store_engine, folder), events)

    def _kill(self, engine: Engine, folder: Path, count: int, pick: random.Random) -> int:
        """Let a process append, kill it at some moment; the last seq it had called durable."""
        command = [sys.executable, "-m", "trident_conformance.victim", engine.spec.factory, str(folder)]
        durable = 0
        with subprocess.Popen([*command, "5", str(count)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                for _ in range(pick.randint(2, 12)):
                    line = process.stdout.readline().split()
                    assert line, "the appending process died by itself"
                    durable = int(line[1]) if line[0] == "durable" else durable
                with pytest.raises(TridentError):  # a writer of another process
                    engine.make(folder, "append")
                time.sleep(pick.random() * 0.02)
            finally:
                process.kill()
            for rest in process.stdout:
                line = rest.split()
                durable = int(line[1]) if line[0] == "durable" else durable
        return durable

    def test_torn_tail(self, store_engine: Engine, tmp_path: Path, quick: bool) -> None:
        """What was appended after a sync may be there in part: recovered up to some event, cut off, and said."""
        store = store_engine.make(tmp_path / "s", "create", streams.session())
        store.append(EVENTS[:300])
        store.sync()
        synced = damage.files_of(tmp_path / "s")
        for events in drive.batches(EVENTS[300:330], [10]):
            store.append(events)
        store.snapshot()  # an engine may hold appends back until they are looked at
        now = damage.files_of(tmp_path / "s")
        store.close()
        for what, files in damage.torn_images(synced, now, 12 if quick else 60):
            image = damage.write_image(tmp_path / "image", files)
            outcome = damage.read_outcome(
                store_engine, image, EVENTS[:330], streams.session(), durable=300
            )
            assert outcome != "refused", f"{what}: a crash explains it"
            found = contents(store_engine, image)
            again = store_engine.make(image, "append")
            drive.same(damage.scanned(again.snapshot()), found, f"{what}: recovery")
            assert 300 <= len(found) <= 330, what
            again.append(EVENTS[len(found) :])
            again.close()
            drive.same(contents(store_engine, image), EVENTS, f"{what}: gone on")
            final = store_engine.make(image, "read")
            assert final.verify().ok, what
            final.close()


class TestDamage:
    def test_a_sound_store_verifies(self, store_engine: Engine, tmp_path: Path) -> None:
        folder = filled(store_engine, tmp_path / "s")
        store = store_engine.make(folder, "read")
        verification = store.verify()
        assert verification.ok
        assert verification.findings == []
        assert (verification.events, verification.last_seq) == (len(EVENTS), int(EVENTS["seq"][-1]))
        assert verification.bytes >= EVENTS.nbytes // 8
        store.close()

    def test_never_wrong_data_in_silence(self, store_engine: Engine, tmp_path: Path, quick: bool) -> None:
        """Any byte of any file flipped, files cut, zeroed in part, grown, gone: exact data, or it is said."""
        folder = filled(store_engine, tmp_path / "s")
        outcomes = {"exact": 0, "reported": 0, "refused": 0}
        self._try_all(folder, tmp_path / "copy", 24 if quick else 160, outcomes, self._reader(store_engine))
        assert outcomes["refused"] + outcomes["reported"] > 0, "no damage was noticed at all"

    def test_recovery_never_cuts_in_silence(self, store_engine: Engine, tmp_path: Path, quick: bool) -> None:
        """The same, opened for appending: refused, or recovered and told."""
        folder = filled(store_engine, tmp_path / "s")
        outcomes = {"exact": 0, "reported": 0, "refused": 0}
        self._try_all(
            folder, tmp_path / "copy", 16 if quick else 80, outcomes,
            lambda copy: damage.append_outcome(store_engine, copy, EVENTS),
        )  # fmt: skip
        assert outcomes["refused"] + outcomes["reported"] > 0, "no damage was noticed at all"

    def _reader(self, engine: Engine) -> Callable[[Path], str]:
        return lambda copy: damage.read_outcome(engine, copy, EVENTS, streams.session())

    def _try_all(
        self, folder: Path, copy: Path, per_file: int, outcomes: dict[str, int], judge: Callable[[Path], str]
    ) -> None:
        for what, name, data in damage.damages(damage.files_of(folder), 3, per_file):
            try:
                outcomes[judge(damage.damaged_copy(folder, copy, name, data))] += 1
            except AssertionError as error:
                raise AssertionError(f"{name}, {what}: {error}") from None

    def test_files_of_another_store(self, store_engine: Engine, tmp_path: Path) -> None:
        """A file of another store in the place of one's own is damage, too."""
        folder = filled(store_engine, tmp_path / "s")
        other = store_engine.make(tmp_path / "other", "create", streams.session())
        strange = EVENTS.copy()
        strange["price"] += 1
        for events in drive.batches(strange, (1, 7, 100, 400)):
            other.append(events)
        other.close()
        theirs = damage.files_of(tmp_path / "other")
        for name, data in damage.files_of(folder).items():
            if theirs.get(name, data) != data:
                copy = damage.damaged_copy(folder, tmp_path / "copy", name, theirs[name])
                try:
                    damage.read_outcome(store_engine, copy, EVENTS, streams.session())
                except AssertionError as error:
                    raise AssertionError(f"{name}: {error}") from None


@pytest.mark.needs_capability(Capability.PORTABLE_FORMAT)
class TestPortableFormat:
    def test_the_reference_reads_it(self, store_engine: Engine, tmp_path: Path) -> None:
        filled(store_engine, tmp_path / "s")
        store = reference(Kind.STORE).make(tmp_path / "s", "read")
        assert store.verify().findings == []
        drive.same(damage.scanned(store.snapshot()), EVENTS, "events")
        assert store.session.to_json() == streams.session().to_json()
        store.close()

    def test_it_reads_the_reference(self, store_engine: Engine, tmp_path: Path) -> None:
        filled(reference(Kind.STORE), tmp_path / "s")
        store = store_engine.make(tmp_path / "s", "read")
        assert store.verify().findings == []
        drive.same(damage.scanned(store.snapshot()), EVENTS, "events")
        assert store.session.to_json() == streams.session().to_json()
        store.close()

    def test_they_take_turns(self, store_engine: Engine, tmp_path: Path) -> None:
        """Each goes on where the other stopped."""
        store = store_engine.make(tmp_path / "s", "create", streams.session())
        store.append(EVENTS[:100])
        store.close()
        for i, engine in enumerate((reference(Kind.STORE), store_engine) * 2, start=1):
            store = engine.make(tmp_path / "s", "append")
            store.append(EVENTS[100 * i : 100 * i + 100])
            store.close()
        drive.same(contents(reference(Kind.STORE), tmp_path / "s"), EVENTS[:500], "events")
        drive.same(contents(store_engine, tmp_path / "s"), EVENTS[:500], "events")
