"""Benchmarks of stores: the selected engine beside a raw file and other people's stores, in one run."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from trident_core.benchmarks.setting import BATCH, Setting
from trident_core.benchmarks.store_peers import PEERS, Lookup, Peer
from trident_core.contracts import Kind
from trident_core.dtypes import Events
from trident_core.measure import Comparison, Percentiles, compare

LOOKUPS: Final = 100
#: Events in the comparison of look-ups: a store without an index reads all of them each time.
LOOKUP_EVENTS: Final = 200_000
#: How often the day is appended where work in the background has to keep up.
REPEATS: Final = 20
_TOUCH_BYTES: Final = 2 << 30
Runs = dict[str, Callable[[], object]]


class _Writer(Protocol):
    """A store that takes groups of events, each durable or not."""

    folder: Path

    def append(self, group: Events) -> None: ...

    def close(self) -> None: ...


class _Ours:
    """A store of ours as a `_Writer`."""

    def __init__(self, store: Any, sync: bool) -> None:
        self.store, self.folder, self._sync = store, store.path, sync

    def append(self, group: Events) -> None:
        self.store.append(group)
        if self._sync:
            self.store.sync()

    def settle(self) -> None:
        """Put everything where it stays, as far as the engine has such a place."""
        for step in ("flush", "compact"):
            getattr(self.store, step, self.store.sync)()

    def close(self) -> None:
        self.store.close()


@dataclass
class _Bench:
    """What the comparisons share: groups of events, contenders, fresh folders."""

    setting: Setting
    events: Events
    peers: Sequence[type[Peer]]
    notes: list[str]
    _made: int = 0
    _handles: list[Any] = field(default_factory=list)

    @property
    def ours(self) -> tuple[str, Any]:
        return self.setting.engine(Kind.STORE)

    def groups(self) -> list[Events]:
        return [self.events[start : start + BATCH] for start in range(0, len(self.events), BATCH)]

    def fresh(self) -> Path:
        self._made += 1
        return self.setting.folder / f"store-{self._made}"

    def writer(self, *, sync: bool) -> _Ours:
        made = _Ours(self.ours[1](self.fresh(), "create", self.setting.session), sync)
        self.hold(made)
        return made

    def writers(self, peers: Sequence[type[Peer]], *, sync: bool) -> list[_Writer]:
        """Empty stores: ours, and those of the peers."""
        made = [peer(self.fresh(), sync=sync) for peer in peers]
        self._handles += made
        return [self.writer(sync=sync), *made]

    def fill(self, *, sync: bool, events: Events | None = None) -> Any:
        """Ours, filled and left open."""
        store = self.ours[1](self.fresh(), "create", self.setting.session)
        whole = self.events if events is None else events
        for start in range(0, len(whole), BATCH):
            store.append(whole[start : start + BATCH])
            if sync:
                store.sync()
        return store

    def fill_peer(self, peer: type[Peer], *, sync: bool) -> Peer:
        made = peer(self.fresh(), sync=sync)
        for group in self.groups():
            made.append(group)
        return made

    def hold(self, handle: Any) -> None:
        self._handles.append(handle)

    def drop(self) -> None:
        """Close what was held, outside the clock."""
        while self._handles:
            with contextlib.suppress(ValueError):
                self._handles.pop().close()

    def clear(self) -> None:
        """Close what was held, remove all stores, and have the disk done with it: the first contender would
        wait for it otherwise."""
        self.drop()
        for folder in self.setting.folder.glob("store-*"):
            shutil.rmtree(folder)
        os.sync()

    def compare(self, title: str, runs: Runs, *, unit: str = "events", units: int, **more: Any) -> Comparison:
        notes = self.notes + more.pop("notes", [])
        day, rounds = self.setting.day.describe(), more.pop("rounds", self.setting.rounds)
        return compare(title, runs, day, unit=unit, units=units, rounds=rounds, notes=notes, **more)


def bench_store(setting: Setting) -> list[Comparison]:
    """Appends in groups of 4,096 with a sync each, without, and at length; opening after a kill, a column,
    orders."""
    peers = [peer for peer in PEERS if not peer.missing()]
    missing = sorted({module for peer in PEERS for module in peer.missing()})
    notes = [f"not installed, left out: {', '.join(missing)}"] if missing else []
    bench = _Bench(setting, setting.events, peers, notes)
    return [
        _append(bench, sync=True), _append(bench, sync=False), _at_length(bench), _reopen(bench),
        _column(bench), _orders(bench),
    ]  # fmt: skip


def _append(bench: _Bench, *, sync: bool) -> Comparison:
    """Groups of 4,096 into an empty store, up to the last one; making it and closing it are off the clock."""
    peers = [peer for peer in bench.peers if sync or peer.unsynced]
    names = [bench.ours[0], *(peer.name for peer in peers)]
    made: dict[str, _Writer] = {}

    def prepare() -> None:
        bench.clear()
        made.update(zip(names, bench.writers(peers, sync=sync), strict=True))
        os.sync()

    def append(name: str) -> None:
        for group in bench.groups():
            made[name].append(group)

    runs: Runs = {name: partial(append, name) for name in names}
    title = f"store: append in groups of {BATCH:,}, {'a sync for each' if sync else 'no sync'}"
    found = bench.compare(title, runs, units=len(bench.events), prepare=prepare)
    bench.drop()
    sizes = [f"{name} {_bytes(made[name].folder) / len(bench.events):.1f}" for name in names]
    found.notes.append(f"bytes on disk per event, closed: {', '.join(sizes)}")
    if not sync:
        left_out = [peer.name for peer in bench.peers if not peer.unsynced]
        found.notes.append("what the operating system holds back when the clock stops is not waited for")
        found.notes += [f"{name}: left out, it syncs every commit" for name in left_out]
    bench.clear()
    return found


def _at_length(bench: _Bench) -> Comparison:
    """The day so often that work in the background has to keep up: up to the last event, and until everything
    is where it stays."""
    groups = list(_many_days(bench.events, REPEATS))
    total = sum(len(group) for group in groups)
    peers = [peer for peer in bench.peers if peer.at_length]
    settled = f"{bench.ours[0]}, until all is in tables"
    names = [bench.ours[0], *(peer.name for peer in peers), settled]
    made: dict[str, _Writer] = {}

    def prepare() -> None:
        bench.clear()
        # A virtual machine pays for memory that it has not used lately, which is not what is asked here.
        np.ones(min(4 * total * groups[0].itemsize, _TOUCH_BYTES), np.uint8)
        made.update(zip(names, [*bench.writers(peers, sync=False), bench.writer(sync=False)], strict=True))

    def append(name: str) -> None:
        for group in groups:
            made[name].append(group)
        if isinstance(ours := made[name], _Ours) and name == settled:
            ours.settle()

    runs: Runs = {name: partial(append, name) for name in names}
    title = f"store: append at length, no sync: the day {REPEATS} times"
    found = bench.compare(title, runs, units=total, prepare=prepare, rounds=min(bench.setting.rounds, 3))
    bench.clear()
    return found


def _many_days(events: Events, times: int) -> Iterator[Events]:
    """Groups of a day that goes on: seq, ts and references grow from one time to the next."""
    step = {name: events[name].max() + np.uint64(1) for name in ("seq", "ts", "ref")}
    for k in range(times):
        day = events.copy()
        for name, by in step.items():
            day[name] += np.uint64(k) * by
        day["ref2"][day["ref2"] > 0] += np.uint64(k) * step["ref"]
        yield from (day[start : start + BATCH] for start in range(0, len(day), BATCH))


def _reopen(bench: _Bench) -> Comparison:
    """Open for writing what a kill left: the files as they are with every group synced and no close."""
    images: dict[str, Path] = {}
    store = bench.fill(sync=True)
    images[bench.ours[0]] = _image(bench, store.path)
    store.close()
    peers = [peer for peer in bench.peers if peer.reopens]
    for peer in peers:
        made = bench.fill_peer(peer, sync=True)
        images[peer.name] = _image(bench, made.folder)
        made.close()
    copies: dict[str, Path] = {}

    def prepare() -> None:
        bench.drop()
        for name, image in images.items():
            copies[name] = copy = image.with_name(image.name + "-copy")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(image, copy)

    def ours() -> None:
        again = bench.ours[1](copies[bench.ours[0]], "append")
        bench.hold(again)
        if again.recovery.events != len(bench.events):
            raise RuntimeError(f"{again.recovery.events} events after a kill, not {len(bench.events)}")

    def reopen(peer: type[Peer]) -> None:
        bench.hold(peer.reopen(copies[peer.name]))

    runs: Runs = {bench.ours[0]: ours, **{peer.name: partial(reopen, peer) for peer in peers}}
    notes = ["ours checks every byte; the others open, check what they check, and find the last event"]
    title, units = "store: open after a kill", len(bench.events)
    found = bench.compare(title, runs, units=units, prepare=prepare, notes=notes)
    bench.drop()
    return found


def _image(bench: _Bench, folder: Path) -> Path:
    target = bench.setting.folder / f"image-{folder.name}"
    shutil.copytree(folder, target)
    return target


def _settled(store: Any) -> Any:
    """A snapshot of a store whose events are where they stay: in tables, if the engine makes any."""
    flush = getattr(store, "flush", store.sync)
    flush()
    return store.snapshot()


def _prices(snapshot: Any) -> Iterator[Any]:
    """Arrays of the prices of all events, in any order: a column as it is, where the engine gives one."""
    if hasattr(snapshot, "column"):
        return iter(snapshot.column("price"))
    return (events["price"] for events in snapshot.scan())


def _column(bench: _Bench) -> Comparison:
    """The sum of all prices, from files that are in memory already."""
    wanted = int(bench.events["price"].sum())
    store = bench.fill(sync=False)
    snapshot = _settled(store)
    sums: dict[str, Callable[[], int]] = {
        bench.ours[0]: lambda: sum(int(prices.sum()) for prices in _prices(snapshot))
    }
    source, target = bench.events["price"].copy(), np.empty(len(bench.events), np.int64)
    for peer in bench.peers:
        made = bench.fill_peer(peer, sync=False)
        made.close()
        sums[peer.name] = peer.prices(made.folder)
    for name, run in sums.items():
        if run() != wanted:
            raise RuntimeError(f"{name} finds another sum of prices")
    runs: Runs = {**sums, "copy of the column in memory": lambda: np.copyto(target, source)}
    if hasattr(snapshot, "column_into"):
        runs[f"{bench.ours[0]}, into an array"] = lambda: snapshot.column_into("price", target)
    found = bench.compare("store: scan one column (sum of prices)", runs, units=len(bench.events))
    store.close()
    return found


def _orders(bench: _Bench) -> Comparison:
    """All events of an order, for orders taken evenly from the day."""
    events = bench.events[:LOOKUP_EVENTS]
    known = np.unique(events["ref"][events["ref"] > 0])
    refs = [int(ref) for ref in known[:: max(1, len(known) // LOOKUPS)][:LOOKUPS]]
    store = bench.fill(sync=False, events=events)
    snapshot = _settled(store)
    lookups: dict[str, Lookup] = {bench.ours[0]: lambda ref: len(snapshot.get(ref))}
    for peer in bench.peers:
        made = peer(bench.fresh(), sync=False)
        for start in range(0, len(events), BATCH):
            made.append(events[start : start + BATCH])
        made.close()
        lookup = peer.lookup(made.folder, events)
        if lookup is not None:
            lookups[peer.name] = lookup
    nanoseconds: dict[str, list[int]] = {name: [] for name in lookups}
    runs: Runs = {name: _timed(lookup, refs, nanoseconds[name]) for name, lookup in lookups.items()}
    title = f"store: all events of an order, of {len(events):,} events"
    found = bench.compare(title, runs, unit="look-ups", units=len(refs), notes=[_ORDERS_NOTE])
    for name, spent in nanoseconds.items():
        at = Percentiles.of(np.array(spent[len(refs) :], np.int64), 1e-3)  # without the round that warms up
        found.notes.append(f"{name}: p50 {at.p50:,.1f} µs, p99 {at.p99:,.1f} µs")
    store.close()
    return found


_ORDERS_NOTE: Final = (
    "SQLite has an index, RocksDB and LMDB a key (order, seq) for each event, made before the clock starts; "
    "DuckDB has no index"
)


def _timed(lookup: Lookup, refs: Sequence[int], spent: list[int]) -> Callable[[], object]:
    def run() -> None:
        for ref in refs:
            start = time.perf_counter_ns()
            count = lookup(ref)
            spent.append(time.perf_counter_ns() - start)
            if not count:
                raise RuntimeError(f"order {ref} is not found")

    return run


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
