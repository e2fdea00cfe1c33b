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
from trident_core.errors import DamagedStoreError, StoreError
from trident_core.session import Instrument, Session
from trident_store.crashmodel import CrashFileSystem, CrashPoint, Disk

PATH: Final = Path("/store")
#: makes a store: (mode, session or None, file system)
Opener = Callable[[str, Session | None, CrashFileSystem], Store]


def make_events(first: int, count: int) -> Events:
    """EVENT[count]: events `first`, `first` + 1, … of one fixed sequence; event i has seq 2 i + 1."""
    ordinal = np.arange(first, first + count, dtype=np.uint64)
    events = np.zeros(count, EVENT)
    for column, factor in (("ts", 1_000), ("ref", 7), ("ref2", 11), ("qty", 100), ("price", 12_345)):
        events[column] = ordinal * np.uint64(factor) + np.uint64(3)
    events["seq"] = ordinal * np.uint64(2) + np.uint64(1)
    events["locate"] = ordinal // np.uint64(3) + np.uint64(1)
    events["type"] = np.frombuffer(b"AFECXDUP", np.uint8)[(ordinal % np.uint64(8)).astype(np.intp)]
    events["aux"] = (ordinal[:, None] + np.arange(8, dtype=np.uint64)) % np.uint64(251)
    return events


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


class Run:
    """One scripted run: "a5" appends 5 events, "s" syncs, "r" closes and opens again for writing, "i3" syncs
    and is interrupted, as by Ctrl-C, after the third change to the disk."""

    def __init__(self, opener: Opener, files: CrashFileSystem) -> None:
        self.opener, self.files = opener, files
        self.points: list[CrashPoint] = []
        self.acked = -1  # events acknowledged; -1: the store's creation has not returned
        self.attempted = 0
        self.session = Session()
        files.on_change = self._point

    def create(self) -> None:
        self.store = self.opener("create", self.session, self.files)
        self.acked = 0

    def resume(self) -> None:
        """Open for writing; what is found is acknowledged by that."""
        self.store = self.opener("append", None, self.files)
        self.session = self.store.session
        self.acked = self.attempted = self.store.recovery.events

    def play(self, script: str) -> None:
        for step in script.split():
            if step == "s":
                self.store.sync()
                self.acked = self.attempted
            elif step == "r":
                self.store.close()
                self.acked = self.attempted
                self.resume()
            elif step[0] == "i":
                self._interrupted_sync(int(step[1:]))
            else:
                events = make_events(self.attempted, int(step[1:]))
                for locate in np.unique(events["locate"]):
                    self.session.directory.put(Instrument(int(locate), f"SYM{locate}", {"round_lot": 100}))
                self.attempted += len(events)
                self.store.append(events)
        self._point()

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

    def _point(self) -> None:
        self.points.append(self.files.crash_point(self.acked, self.attempted))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a store on some disk is worth: its events, or -1 if it cannot be opened; what is wrong with it."""

    events: int
    problem: str

    def against(self, acked: int, attempted: int) -> str:
        """The broken promise; empty when there is none."""
        if self.events < 0:
            return "" if acked < 0 and not self.problem.startswith("!") else self.problem
        if self.problem:
            return self.problem
        if self.events < acked:
            return f"{self.events} events are left of {acked} acknowledged"
        return f"{self.events} events where {attempted} were appended" if self.events > attempted else ""


def explore(
    opener: Opener, script: str, *, states_per_point: int = 64, nested: int = 0, seed: int = 0,
    resume: tuple[Disk, int, int] | None = None,
) -> Report:  # fmt: skip
    """Run the script, then judge the states of every crash point in it.

    `nested`: so many states are chosen and the crash is repeated while they are recovered. `resume`: start
    from this disk, with so many events acknowledged and attempted, instead of creating a store.
    """
    report, rng = Report(), random.Random(seed)
    run = Run(opener, CrashFileSystem(resume[0] if resume else None, exists=resume is not None))
    try:
        if resume is None:
            run.create()
        else:
            run.acked, run.attempted = resume[1:]
            run.resume()
        run.play(script)
    except Exception as error:  # a broken protocol may break in any way
        report.violations.append(f"the run itself failed: {error!r}")
        return report
    known: dict[tuple[tuple[str, bytes], ...], Verdict] = {}
    kept: list[tuple[Disk, int, int]] = []
    for point in run.points:
        report.points += 1
        acked, attempted = point.note
        for disk in point.states(states_per_point, rng):
            report.states += 1
            key = tuple(sorted(disk.items()))
            if key not in known:
                known[key] = judge(opener, disk)
            problem = known[key].against(acked, attempted)
            if problem:
                report.violations.append(f"acked {acked}, attempted {attempted}: {problem}")
                if report.full:
                    return report
            elif known[key].events >= 0:
                kept.append((disk, acked, attempted))
    for start in rng.sample(kept, min(nested, len(kept))):
        inner = explore(opener, "a2 s", states_per_point=8, seed=rng.randrange(1 << 30), resume=start)
        report.points += inner.points
        report.states += inner.states
        report.violations += [f"during recovery: {each}" for each in inner.violations]
        if report.full:
            break
    return report


def judge(opener: Opener, disk: Disk) -> Verdict:
    """Open the store on this disk, for reading and for writing, and check all that can be checked."""
    try:
        files = CrashFileSystem(disk)
        seen = read_all(opener("read", None, files))
        problem = "" if files.visible() == disk else "a reader changed the disk"
        if not _same(seen, make_events(0, len(seen))):
            problem = "wrong data"
        return Verdict(len(seen), problem or _writer_problem(opener, disk, seen))
    except DamagedStoreError as error:
        return Verdict(-1, f"! a crash looks like damage: {error}")
    except StoreError as error:
        return Verdict(-1, f"cannot be opened: {error}")
    except Exception as error:
        return Verdict(-1, f"! {error!r}")


def _writer_problem(opener: Opener, disk: Disk, seen: Events) -> str:
    files = CrashFileSystem(disk)
    store = opener("append", None, files)
    if store.recovery.events != len(seen):
        return f"a reader sees {len(seen)} events, recovery {store.recovery.events}"
    symbols = store.session.directory.as_mapping()
    unknown = {int(locate) for locate in seen["locate"]} - set(symbols)
    if unknown:
        return f"the symbols of locates {sorted(unknown)} are lost"
    store.append(make_events(len(seen), 3))
    store.close()
    again = opener("read", None, CrashFileSystem(files.visible()))
    if not _same(read_all(again), make_events(0, len(seen) + 3)):
        return "wrong data after writing on"
    found = again.verify()
    return "" if found.ok and not found.findings else f"verify says {found.findings}"


def _same(one: Events, other: Events) -> bool:
    return one.tobytes() == other.tobytes()
