"""The store against a list: any order of append, sync, close, reopen, snapshot, scan and get."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from trident_core.dtypes import EVENT, Events
from trident_core.session import Instrument, Session
from trident_store.crashcheck import PATH
from trident_store.crashmodel import CrashFileSystem
from trident_store.reference import ReferenceStore

MACHINE_SETTINGS = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def joined(parts: Any) -> bytes:
    return b"".join(part.tobytes() for part in parts)


class StoreMachine(RuleBasedStateMachine):
    """`model` is the list of what was appended, `snapshots` what each snapshot must show for ever."""

    @initialize(frame_events=st.integers(1, 9), segment_bytes=st.sampled_from([1_024, 4_096]))
    def create(self, frame_events: int, segment_bytes: int) -> None:
        self.options = {"frame_events": frame_events, "segment_bytes": segment_bytes, "sector_bytes": 512}
        self.files = CrashFileSystem(exists=False)
        self.store = self.open("create", Session())
        self.model = np.empty(0, EVENT)
        self.durable = 0
        self.symbols: dict[int, str] = {}
        self.snapshots: list[tuple[Any, int]] = []

    def open(self, mode: str, session: Session | None = None) -> ReferenceStore:
        return ReferenceStore(PATH, mode, session, filesystem=self.files, **self.options)  # type: ignore[arg-type]

    @rule(
        gaps=st.lists(st.integers(1, 1 << 20), max_size=25),
        refs=st.integers(0, 6),
        symbol=st.none() | st.tuples(st.integers(0, 5), st.text(max_size=12)),
    )
    def append(self, gaps: list[int], refs: int, symbol: tuple[int, str] | None) -> None:
        if symbol is not None:
            self.store.session.directory.put(Instrument(*symbol))
            self.symbols[symbol[0]] = symbol[1]
        last = int(self.model["seq"][-1]) if len(self.model) else 0
        events = np.zeros(len(gaps), EVENT)
        events["seq"] = list(itertools.accumulate(gaps, initial=last))[1:]
        for name, every in (("ref", 7), ("ref2", 5), ("locate", 3)):
            events[name] = (np.arange(len(gaps)) + refs) % every
        events["ts"] = events["seq"] * np.uint64(3)
        events["type"] = np.frombuffer(b"AUE", np.uint8)[np.arange(len(gaps)) % 3]
        self.model = np.concatenate([self.model, events])
        expected = int(self.model["seq"][-1]) if len(self.model) else 0
        assert self.store.append(events) == expected

    @rule()
    def sync(self) -> None:
        self.durable = int(self.model["seq"][-1]) if len(self.model) else 0
        assert self.store.sync() == self.durable
        assert self.store.stats()["durable_seq"] == self.durable

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.open("append")
        assert self.store.recovery.torn_bytes == 0
        got = {each.locate: each.symbol for each in self.store.session.directory}
        assert got == self.symbols

    @rule()
    def snapshot(self) -> None:
        self.snapshots.append((self.store.snapshot(), len(self.model)))

    @rule()
    def read_beside_the_writer(self) -> None:
        reader = self.open("read")
        assert joined(reader.snapshot().scan()) == self.model.tobytes()
        assert reader.stats()["durable_seq"] >= self.durable

    @rule(
        low=st.none() | st.integers(0, 1 << 22),
        high=st.none() | st.integers(0, 1 << 22),
        locates=st.none() | st.lists(st.integers(0, 4), max_size=3),
        types=st.none() | st.sampled_from([b"A", b"EU", b""]),
        batch=st.integers(1, 40),
    )
    def scan(self, low: Any, high: Any, locates: Any, types: Any, batch: int) -> None:
        keep = np.ones(len(self.model), np.bool_)
        if low is not None:
            keep &= self.model["seq"] >= np.uint64(low)
        if high is not None:
            keep &= self.model["ts"] <= np.uint64(high)
        if locates is not None:
            keep &= np.isin(self.model["locate"], locates)
        if types is not None:
            keep &= np.isin(self.model["type"], list(types))
        got = self.store.snapshot().scan(
            seq=(low, None), ts=(None, high), locates=locates, types=types, batch=batch
        )
        assert joined(got) == self.model[keep].tobytes()

    @rule(ref=st.integers(0, 7))
    def get(self, ref: int) -> None:
        model: Events = self.model
        named = (model["ref"] == ref) | ((model["ref2"] == ref) & (model["type"] == ord("U")))
        expected = model[named] if ref else model[:0]
        assert self.store.snapshot().get(ref).tobytes() == expected.tobytes()

    @invariant()
    def snapshots_hold(self) -> None:
        for snapshot, count in getattr(self, "snapshots", [])[-3:]:
            assert snapshot.count == count
            assert joined(snapshot.scan()) == self.model[:count].tobytes()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            found = self.open("read").verify()
            assert (found.findings, found.events) == ([], len(self.model))


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = MACHINE_SETTINGS
