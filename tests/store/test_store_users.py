"""What users of stores meet first: the wrong engine, a disk without room, ranges one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trident_core.contracts import EngineSpec
from trident_core.errors import StoreError
from trident_core.session import Session
from trident_store.crashcheck import make_events
from trident_store.plugin import trident_register_stores

SPECS = {spec.name: spec for spec in trident_register_stores()}
BLOCKS = sorted(name for name, spec in SPECS.items() if ".blocks." in spec.factory)


@pytest.fixture(params=BLOCKS)
def spec(request: pytest.FixtureRequest) -> EngineSpec:
    spec = SPECS[request.param]
    for module in spec.requires:
        pytest.importorskip(module)
    return spec


def test_the_hint_names_the_engine(spec: EngineSpec, tmp_path: Path) -> None:
    spec.load()(tmp_path / "s", "create", Session()).close()
    for name in ("lsm", "reference"):
        for mode in ("read", "append"):
            with pytest.raises(StoreError, match="not a store") as caught:
                SPECS[name].load()(tmp_path / "s", mode)
            assert caught.value.hint == f"try --store {spec.name}"


def refuse(*_: Any) -> None:
    from trident_store.blocks.engine import EngineError

    raise EngineError("No space left on device")


def test_an_engine_that_cannot_close_after_a_failure(
    spec: EngineSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RocksDB raises again when it is closed; the first error is the one to see, and the lock is free."""
    store = spec.load()(tmp_path / "s", "create", Session())
    store.append(make_events(0, 10))
    writer = store._log._writer
    closing = writer.close
    with monkeypatch.context() as patch:
        patch.setattr(writer, "commit", refuse)
        patch.setattr(writer, "close", lambda: (closing(), refuse()))
        with pytest.raises(StoreError, match=r"cannot write.*No space"):
            store.sync()
        store.close()
    spec.load()(tmp_path / "s", "append").close()


def test_an_engine_that_cannot_close(
    spec: EngineSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = spec.load()(tmp_path / "s", "create", Session())
    events = make_events(0, 10)
    store.append(events)
    writer = store._log._writer
    closing = writer.close
    with monkeypatch.context() as patch:
        patch.setattr(writer, "close", lambda: (closing(), refuse()))
        with pytest.raises(StoreError, match="No space"):
            store.close()
    again = spec.load()(tmp_path / "s", "append")
    assert again.recovery.events == len(events)
    again.close()


def test_ranges_one_after_the_other_read_few_blocks(spec: EngineSpec, tmp_path: Path) -> None:
    store = spec.load()(tmp_path / "s", "create", Session())
    events = make_events(0, 640)
    for start in range(0, len(events), 10):  # a block each
        store.append(events[start : start + 10])
        store.sync()
    snapshot, reads = store.snapshot(), []
    source, found = snapshot._source, []
    get = source.get
    source.get = lambda number: (reads.append(number), get(number))[1]
    for event in events[::10]:
        found += [e["seq"] for batch in snapshot.scan(seq=(int(event["seq"]),) * 2) for e in batch]
    assert found == events["seq"][::10].tolist()
    assert len(reads) < 64 * 4, "each bisection read its blocks anew"
    snapshot.close()
    store.close()


def test_duckdb_interrupted_right_after_a_transaction_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb")
    store = SPECS["duckdb"].load()(tmp_path / "s", "create", Session())
    events = make_events(0, 10)
    store.append(events)
    writer = store._log._writer
    tail = writer._tail

    class Interrupted:
        def execute(self, text: str, *rest: Any) -> Any:
            done = tail.execute(text, *rest)
            if text == "BEGIN":
                raise KeyboardInterrupt
            return done

    with monkeypatch.context() as patch:
        patch.setattr(writer, "_tail", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            store.sync()
    assert store.sync() == events["seq"][-1]
    store.close()
