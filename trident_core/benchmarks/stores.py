"""Benchmarks of stores: the selected engine beside a raw file and other people's stores, in one run."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from trident_core.benchmarks.setting import BATCH, Setting
from trident_core.benchmarks.store_peers import PEERS, Lookup, Peer
from trident_core.contracts import Kind
from trident_core.dtypes import Events
from trident_core.measure import Comparison, Percentiles, compare

LOOKUPS: Final = 100
#: Events in the comparison of look-ups: a store without an index reads all of them each time.
LOOKUP_EVENTS: Final = 200_000
Runs = dict[str, Callable[[], object]]


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

    def fill(self, *, sync: bool, folder: Path | None = None, events: Events | None = None) -> Any:
        """Ours, filled and left open."""
        store = self.ours[1](folder or self.fresh(), "create", self.setting.session)
        whole = self.events if events is None else events
        for start in range(0, len(whole), BATCH):
            store.append(whole[start : start + BATCH])
            if sync:
                store.sync()
        return store

    def fill_peer(self, peer: type[Peer], *, sync: bool, folder: Path | None = None) -> Peer:
        made = peer(folder or self.fresh(), sync=sync)
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

    def compare(self, title: str, runs: Runs, *, unit: str = "events", units: int, **more: Any) -> Comparison:
        notes = self.notes + more.pop("notes", [])
        day, rounds = self.setting.day.describe(), self.setting.rounds
        return compare(title, runs, day, unit=unit, units=units, rounds=rounds, notes=notes, **more)


def bench_store(setting: Setting) -> list[Comparison]:
    """Appends in groups of 4,096 with a sync each and without, opening after a kill, a column, orders."""
    peers = [peer for peer in PEERS if not peer.missing()]
    missing = sorted({module for peer in PEERS for module in peer.missing()})
    notes = [f"not installed, left out: {', '.join(missing)}"] if missing else []
    bench = _Bench(setting, setting.events, peers, notes)
    return [
        _append(bench, sync=True), _append(bench, sync=False), _reopen(bench), _column(bench), _orders(bench)
    ]  # fmt: skip


def _append(bench: _Bench, *, sync: bool) -> Comparison:
    """Groups of 4,096 into a new store, up to the last one; closing is off the clock."""
    folders: dict[str, Path] = {}
    peers = [peer for peer in bench.peers if sync or peer.unsynced]

    def ours() -> None:
        folder = folders[bench.ours[0]] = bench.fresh()
        bench.hold(bench.fill(sync=sync, folder=folder))

    def fill(peer: type[Peer]) -> None:
        folder = folders[peer.name] = bench.fresh()
        bench.hold(bench.fill_peer(peer, sync=sync, folder=folder))

    def prepare() -> None:
        bench.drop()
        while folders:
            shutil.rmtree(folders.popitem()[1])

    runs: Runs = {bench.ours[0]: ours, **{peer.name: partial(fill, peer) for peer in peers}}
    title = f"store: append in groups of {BATCH:,}, {'a sync for each' if sync else 'no sync'}"
    found = bench.compare(title, runs, units=len(bench.events), prepare=prepare)
    bench.drop()
    sizes = [f"{name} {_bytes(folders[name]) / len(bench.events):.1f}" for name in runs]
    found.notes.append(f"bytes on disk per event, closed: {', '.join(sizes)}")
    if not sync:
        left_out = [peer.name for peer in bench.peers if not peer.unsynced]
        found.notes.append("what the operating system holds back when the clock stops is not waited for")
        found.notes += [f"{name}: left out, it syncs every commit" for name in left_out]
    prepare()
    return found


def _reopen(bench: _Bench) -> Comparison:
    """Open for writing what a kill left: the files as they are with every group synced and no close."""
    images: dict[str, Path] = {}
    store = bench.fill(sync=True, folder=bench.fresh())
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
