"""Stores that declare PORTABLE_FORMAT: the files of docs/store-format.md, shared with the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from trident_conformance import damage, drive, stores, streams
from trident_conformance.engines import Engine, reference
from trident_core.contracts import Capability, Kind

EVENTS, filled, contents = stores.EVENTS, stores.filled, stores.contents


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
