"""Stores against docs/contracts/store.md: crashes and damage."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from trident_conformance import damage, drive, stores, streams
from trident_conformance.engines import Engine
from trident_core.errors import TridentError

EVENTS, filled, contents = stores.EVENTS, stores.filled, stores.contents


class TestCrash:
    def test_kill(self, store_engine: Engine, tmp_path: Path, quick: bool) -> None:
        """STORE-10 to 12, 35: SIGKILL at any moment: a gap-free prefix, at least all that was called
        durable; then it goes on."""
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
        pipe = subprocess.PIPE
        with subprocess.Popen([*command, "5", str(count)], stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdout is not None
            try:
                for _ in range(pick.randint(2, 12)):
                    line = process.stdout.readline().split()
                    assert line, "the appending process died by itself"
                    durable = int(line[1]) if line[0] == "durable" else durable
                    if line[0] == "full":
                        break
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
        """STORE-10 to 13, 22: what was appended after a sync may be there in part: recovered up to some
        event, cut off, and said."""
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
            outcome = damage.read_outcome(store_engine, image, EVENTS[:330], streams.session(), durable=300)
            assert outcome != "refused", f"{what}: a crash explains it"
            found = contents(store_engine, image)
            again = store_engine.make(image, "append")
            drive.same(damage.scanned(again.snapshot()), found, f"{what}: recovery")
            assert 300 <= len(found) <= 330, what
            left = sum(map(len, files.values())) - sum(map(len, synced.values()))
            assert again.recovery.torn_bytes or len(found) > 300 or not left, (
                f"{what}: cut off without a word"
            )
            again.append(EVENTS[len(found) :])
            again.close()
            drive.same(contents(store_engine, image), EVENTS, f"{what}: gone on")
            final = store_engine.make(image, "read")
            assert final.verify().ok, what
            final.close()


class TestDamage:
    def test_a_sound_store_verifies(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-23."""
        folder = filled(store_engine, tmp_path / "s")
        store = store_engine.make(folder, "read")
        verification = store.verify()
        assert verification.ok
        assert verification.findings == []
        assert (verification.events, verification.last_seq) == (len(EVENTS), int(EVENTS["seq"][-1]))
        assert verification.bytes >= EVENTS.nbytes // 8
        store.close()

    def test_never_wrong_data_in_silence(self, store_engine: Engine, tmp_path: Path, quick: bool) -> None:
        """STORE-20, 21, 23: any byte of any file flipped, files cut, zeroed in part, grown, gone: exact
        data, or it is said."""
        folder = filled(store_engine, tmp_path / "s")
        outcomes = {"exact": 0, "refused": 0}
        judge = self._reader(store_engine)
        self._try_all(folder, tmp_path / "copy", (16, 4) if quick else (20, 8), outcomes, judge)
        assert outcomes["refused"], "no damage was noticed at all"

    def test_recovery_never_cuts_in_silence(self, store_engine: Engine, tmp_path: Path, quick: bool) -> None:
        """STORE-21: the same, opened for appending: all is there, or it is refused and not changed."""
        folder = filled(store_engine, tmp_path / "s")
        outcomes = {"exact": 0, "refused": 0}
        self._try_all(
            folder, tmp_path / "copy", (10, 4) if quick else (10, 8), outcomes,
            lambda copy: damage.append_outcome(store_engine, copy, EVENTS),
        )  # fmt: skip
        assert outcomes["refused"], "no damage was noticed at all"

    def _reader(self, engine: Engine) -> Callable[[Path], str]:
        return lambda copy: damage.read_outcome(engine, copy, EVENTS, streams.session())

    def _try_all(
        self,
        folder: Path,
        copy: Path,
        per_file: tuple[int, int],
        outcomes: dict[str, int],
        judge: Callable[[Path], str],
    ) -> None:
        for what, name, data in damage.damages(damage.files_of(folder), 3, *per_file):
            try:
                outcomes[judge(damage.damaged_copy(folder, copy, name, data))] += 1
            except AssertionError as error:
                raise AssertionError(f"{name}, {what}: {error}") from None

    def test_files_of_another_store(self, store_engine: Engine, tmp_path: Path) -> None:
        """STORE-24: a file of another store in the place of one's own is damage, too."""
        folder = filled(store_engine, tmp_path / "s")
        other = store_engine.make(tmp_path / "other", "create", streams.session())
        strange = EVENTS.copy()
        strange["price"] += 1
        for events in drive.batches(strange, (1, 7, 100, 400)):
            other.append(events)
        other.close()
        theirs, tried = damage.files_of(tmp_path / "other"), 0
        for name, data in damage.files_of(folder).items():
            if theirs.get(name, data) != data:
                tried += 1
                copy = damage.damaged_copy(folder, tmp_path / "copy", name, theirs[name])
                try:
                    damage.read_outcome(store_engine, copy, EVENTS, streams.session())
                except AssertionError as error:
                    raise AssertionError(f"{name}: {error}") from None
        assert tried, "no file of the two stores differs"
