"""Short scripted runs of a store, and in every state a crash may leave: does it keep its promises?

The promises: opening succeeds (a crash never looks like damage); everything up to the last returned `sync` is
there; what is there is a prefix of what was appended, exactly; the symbols of these events are known; a
reader sees the same and changes nothing; the store can be written on, and what is found then is durable too.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from trident_core.contracts import Store
from trident_core.dtypes import EVENT, Events
from trident_core.errors import DamagedStoreError, StoreError, UsageError
from trident_core.line.spill import Spill
from trident_core.line.spill_recovery import merge_left
from trident_core.session import Instrument, Session
from trident_store.crashmodel import CrashFileSystem
from trident_store.diskstates import CrashPoint, Disk

PATH: Final = Path("/store")
SPILL_BYTES: Final = 100  # of a spill file: a put or two
#: makes a store: (mode, session or None, file system)
Opener = Callable[[str, Session | None, CrashFileSystem], Store]


def make_events(first: int, count: int, life: int = 0) -> Events:
    """EVENT[count]: events `first`, `first` + 1, … of one fixed sequence; event i has seq 2 i + 1. `life`
    gives other prices: what was appended after a crash is not what the crash took away."""
    ordinal = np.arange(first, first + count, dtype=np.uint64)
    events = np.zeros(count, EVENT)
    for column, factor in (("ts", 1_000), ("ref", 7), ("ref2", 11), ("qty", 100), ("price", 12_345)):
        events[column] = ordinal * np.uint64(factor) + np.uint64(3)
    events["price"] += life << 32
    events["seq"] = ordinal * np.uint64(2) + np.uint64(1)
    events["locate"] = ordinal // np.uint64(3) + np.uint64(1)
    events["type"] = np.frombuffer(b"AFECXDUP", np.uint8)[(ordinal % np.uint64(8)).astype(np.intp)]
    events["aux"] = (ordinal[:, None] + np.arange(8, dtype=np.uint64)) % np.uint64(251)
    return events


def opened(opener: Opener, files: CrashFileSystem) -> tuple[Store, int, int]:
    """A store opened for writing, as the line does it: the events that were its own, and those of a spill."""
    store = opener("append", None, files)
    spilled = store.recovery.spilled_events
    try:
        return store, store.recovery.events - spilled, spilled + merge_left(store, files, PATH).events
    except OSError as error:
        store.close()
        raise StoreError(f"cannot merge the spill: {error}") from error


def read_all(store: Store) -> Events:
    parts = list(store.snapshot().scan())
    return np.concatenate([np.empty(0, EVENT), *parts])


@dataclass(slots=True)
class Report:
    """How many crash points and disk states were tried, and every broken promise (at most `limit`)."""

    points: int = 0
    states: int = 0
    violations: list[str] = field(default_factory=list)
    limit: int = 5

    @property
    def full(self) -> bool:
        return len(self.violations) >= self.limit


class _Killed(BaseException):
    """The process has come to its end."""


class Run:
    """One scripted run: "a5" appends 5 events, "s" syncs, "r" closes and opens again for writing.

    "i3" syncs and is interrupted, as by Ctrl-C, after the third change to the disk. "x" is a power cut: the
    run goes on with a store that is opened on one of the states it may leave. "k7" appends 16 events, syncs,
    and is killed after the seventh change: what was written is all there, durable or not. "f" and "c" flush
    and compact a store that can. "p5" puts 5 events into a spill beside the store, as the line does when the
    store is slow, and so does each append behind it until "u" has the store take them up. `points` are all
    moments at which power may fail, those during recoveries included.
    """

    def __init__(self, opener: Opener, files: CrashFileSystem, key: str = "") -> None:
        self.opener, self.files = opener, files
        self.points: list[CrashPoint] = []
        self.meant: list[bytes] = []  # for each life: what was appended, as bytes
        self.acked = -1  # events acknowledged; -1: the store's creation has not returned
        self.expected = b""  # what was found at opening and what was appended since
        self.life = -1
        self.session = Session()
        self.spill: Spill | None = None  # what the line has spilled and the store not yet taken
        self._rng = random.Random(key)
        files.on_change = self._point

    @property
    def attempted(self) -> int:
        return len(self.expected) // EVENT.itemsize

    def create(self) -> None:
        self._new_life(b"")
        self.store = self.opener("create", self.session, self.files)
        self.acked = 0

    def resume(self) -> None:
        """Open for writing; what is found, and what is taken up of a spill, is acknowledged by that."""
        self.spill = None
        self.store, own, spilled = opened(self.opener, self.files)
        self.session = self.store.session
        found = own + spilled
        self._new_life(self.expected[: found * EVENT.itemsize])
        self.acked = found

    def play(self, script: str) -> None:
        for step in script.split():
            self.step(step)
        self._point()

    def step(self, step: str) -> None:
        self._take(step)
        durable = (self.store.stats()["durable_seq"] + 1) // 2
        if durable > self.attempted:
            raise AssertionError(f"{durable} events are called durable, {self.attempted} were appended")
        self.acked = max(self.acked, durable)

    def _take(self, step: str) -> None:
        if step == "s":
            self.store.sync()
            self.acked = self.attempted - self._spilled
        elif step == "r":
            self.store.close()
            self.acked = self.attempted - self._spilled
            self.resume()
        elif step == "u":
            self._take_up()
        elif step == "x":
            self._power_cut()
        elif step in ("f", "c"):
            with contextlib.suppress(UsageError):  # it was opened without tables
                getattr(self.store, {"f": "flush", "c": "compact"}[step], lambda: None)()
        elif step[0] == "i":
            self._interrupted_sync(int(step[1:]))
        elif step[0] == "k":
            self._kill(int(step[1:]))
        else:
            events = make_events(self.attempted, int(step[1:]), self.life)
            for locate in np.unique(events["locate"]):
                self.session.directory.put(Instrument(int(locate), f"SYM{locate}", {"round_lot": 100}))
            before = np.frombuffer(self.expected, EVENT)[-1:]
            self._expect(self.expected + events.tobytes())
            if step[0] == "p" and self.spill is None:
                self.spill = Spill(self.files, PATH, self.session, file_bytes=SPILL_BYTES)
            if self.spill is not None:
                self.spill.put(events, before)
            else:
                self.store.append(events)

    @property
    def _spilled(self) -> int:
        return self.spill.pending if self.spill is not None else 0

    def _take_up(self) -> None:
        """The store takes everything that was spilled; it is durable before a spill file goes."""
        if self.spill is not None:
            out = np.zeros(3, EVENT)
            while count := self.spill.take(out):
                self.store.append(out[:count])
            self.store.sync()
            self.acked = self.attempted
            self.spill.release()
            self.spill = None

    def _new_life(self, found: bytes) -> None:
        self.life += 1
        self.meant.append(found)
        self.expected = found

    def _expect(self, events: bytes) -> None:
        self.expected = self.meant[-1] = events

    def _power_cut(self) -> None:
        point = self.files.crash_point()
        key = str(self._rng.random())
        number = self._rng.randrange(min(point.count + 2, 1_000))
        self.files = CrashFileSystem(point.state(number, key))
        self.files.on_change = self._point
        self._point()
        self.resume()

    def _interrupted_sync(self, changes: int) -> None:
        left = changes

        def interrupt() -> None:
            nonlocal left
            self._point()
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

        self.files.on_change = interrupt
        with contextlib.suppress(KeyboardInterrupt):
            self.store.sync()
        self.files.on_change = self._point

    def _kill(self, changes: int) -> None:
        left = changes

        def dead(*_: str) -> None:
            raise _Killed

        def change() -> None:
            nonlocal left
            self._point()
            left -= 1
            if left == 0:  # whatever would tidy up can do nothing any more
                self.files.before = dead
                dead()

        self.files.on_change = change
        with contextlib.suppress(_Killed):
            self._take("a16")
            self._take("s")
        self.files.before, self.files.on_change = (lambda call: None), self._point
        self.files.release()
        self.resume()

    def _point(self) -> None:
        self.points.append(self.files.crash_point(self.acked, self.attempted, self.life))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a store on some disk is worth: its events, None if it cannot be opened; what is wrong with it."""

    events: bytes | None
    problem: str

    def against(self, acked: int, meant: bytes) -> str:
        """The broken promise to someone who appended `meant`; empty when there is none."""
        if self.events is None:
            return "" if acked < 0 and not self.problem.startswith("!") else self.problem
        if self.events[: len(meant)] != meant[: len(self.events)]:
            return "wrong data"
        if self.problem:
            return self.problem
        count, most = len(self.events) // EVENT.itemsize, len(meant) // EVENT.itemsize
        if count < acked:
            return f"{count} events are left of {acked} acknowledged"
        return f"{count} events where {most} were appended" if count > most else ""


class Judge:
    """Opens the store on a disk, for reading and for writing, and checks all that can be checked.

    A disk that was judged before is not judged again; nor is a store written on again that an earlier one
    was equal to, in every byte of its folder, once it was opened for writing. `distinct` counts disks.
    """

    def __init__(self, opener: Opener, *, known_max: int = 50_000) -> None:
        self._opener, self._known_max = opener, known_max
        self._known: dict[tuple[tuple[str, bytes], ...], Verdict] = {}
        self._written_on: dict[tuple[tuple[str, bytes], ...], str] = {}
        self.distinct = 0

    def __call__(self, disk: Disk) -> Verdict:
        key = tuple(sorted(disk.items()))
        if key not in self._known:
            self.distinct += 1
            if len(self._known) >= self._known_max:
                self._known.clear()
                self._written_on.clear()
            self._known[key] = self._judge(disk)
        return self._known[key]

    def _judge(self, disk: Disk) -> Verdict:
        try:
            files = CrashFileSystem(disk, exists=bool(disk))
            seen = read_all(self._opener("read", None, files))
            problem = "" if files.visible() == disk else "a reader changed the disk"
            return self._writer_s(disk, seen, problem)
        except DamagedStoreError as error:
            return Verdict(None, f"! a crash looks like damage: {error}")
        except StoreError as error:
            return Verdict(None, f"cannot be opened: {error}")
        except Exception as error:  # a broken protocol may break in any way
            return Verdict(None, f"! {error!r}")

    def _writer_s(self, disk: Disk, seen: Events, problem: str) -> Verdict:
        """The verdict of a writer, who also takes up what was spilled."""
        files = CrashFileSystem(disk)
        store, own, spilled = opened(self._opener, files)
        if own != len(seen):
            problem = problem or f"a reader sees {len(seen)} events, recovery {own}"
        events = seen
        if spilled:
            events = read_all(store)
            if not _same(events[:own], seen) or len(events) != own + spilled:
                problem = problem or f"with {spilled} spilled events there are {len(events)} of {own}"
        key = tuple(sorted(files.visible().items()))
        if not problem and key not in self._written_on:
            self._written_on[key] = self._on_writing_on(store, files, events)
        return Verdict(events.tobytes(), problem or self._written_on[key])

    def _on_writing_on(self, store: Store, files: CrashFileSystem, seen: Events) -> str:
        unknown = {int(locate) for locate in seen["locate"]} - set(store.session.directory.as_mapping())
        if unknown:
            return f"the symbols of locates {sorted(unknown)} are lost"
        if not _same(read_all(store), seen):
            return "wrong data after recovery"
        more = make_events(len(seen), 3, 99)
        store.append(more)
        store.close()
        again = self._opener("read", None, CrashFileSystem(files.visible()))
        if not _same(read_all(again), np.concatenate([seen, more])):
            return "wrong data after writing on"
        found = again.verify()
        return "" if found.ok and not found.findings else f"verify says {found.findings}"


def explore(
    opener: Opener, script: str, *, states_per_point: int = 64, nested: int = 0, seed: int = 0,
    resume: tuple[Disk, int, int] | None = None,
) -> Report:  # fmt: skip
    """Run the script, then judge the states of every crash point in it.

    `nested`: so many states are chosen and the crash is repeated while they are recovered. `resume`: start
    from this disk, with so many events acknowledged and attempted, instead of creating a store.
    """
    report = Report()
    judge, kept = Judge(opener), []
    run, failure = played(opener, script, str(seed), resume)
    if failure:
        report.violations.append(failure)
        return report
    for n, point in enumerate(run.points):
        report.points += 1
        acked, attempted, life = point.note
        meant = run.meant[life][: attempted * EVENT.itemsize]
        for number in range(min(states_per_point, point.count + 2)):
            disk = point.state(number, f"{seed}:{n}")
            report.states += 1
            verdict = judge(disk)
            problem = verdict.against(acked, meant)
            if problem:
                report.violations.append(f"acked {acked}, attempted {attempted}: {problem}")
                if report.full:
                    return report
            elif verdict.events is not None and life == 0:
                kept.append((disk, acked, attempted))
    _again_while_recovering(opener, kept, nested, seed, report)
    return report


def _again_while_recovering(
    opener: Opener, kept: list[tuple[Disk, int, int]], nested: int, seed: int, report: Report
) -> None:
    rng = random.Random(seed)
    for start in rng.sample(kept, min(nested, len(kept))):
        inner = explore(opener, "a2 s", states_per_point=8, seed=rng.randrange(1 << 30), resume=start)
        report.points += inner.points
        report.states += inner.states
        report.violations += [f"during recovery: {each}" for each in inner.violations]
        if report.full:
            break


def played(
    opener: Opener, script: str, key: str, resume: tuple[Disk, int, int] | None = None
) -> tuple[Run, str]:
    """A run of the script; why it failed, or nothing. `resume`: see `explore`."""
    run = Run(opener, CrashFileSystem(resume[0] if resume else None, exists=resume is not None), key)
    try:
        if resume is None:
            run.create()
        else:
            _, run.acked, attempted = resume
            run._new_life(make_events(0, attempted).tobytes())
            run.resume()
        run.play(script)
    except Exception as error:  # a broken protocol may break in any way
        return run, f"the run itself failed: {error!r}"
    return run, ""


def judge(opener: Opener, disk: Disk) -> Verdict:
    return Judge(opener)(disk)


def _same(one: Events, other: Events) -> bool:
    return one.tobytes() == other.tobytes()
