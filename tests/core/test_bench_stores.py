"""The stores that ours are compared with do what they are timed for."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.benchmarks.setting import Setting, SimulatedDay
from trident_core.benchmarks.store_peers import PEERS, Peer
from trident_core.benchmarks.stores import bench_store
from trident_core.contracts import Kind
from trident_core.dtypes import EVENT
from trident_core.measure import compare


@pytest.fixture(params=PEERS, ids=lambda peer: peer.__name__)
def peer(request: pytest.FixtureRequest) -> Any:
    for module in request.param.missing():
        pytest.skip(f"{module} is not installed")
    return request.param


@pytest.mark.parametrize("sync", [True, False])
def test_a_peer_keeps_what_it_is_given(peer: type[Peer], sync: bool, tmp_path: Path) -> None:
    events = np.zeros(300, EVENT)
    events["seq"] = np.arange(1, 301)
    events["ref"] = np.arange(300) % 7 + 1
    events["price"] = np.arange(300) * 3 - 50
    events["aux"] = np.arange(8)
    made = peer(tmp_path / "s", sync=sync)
    for start in range(0, 300, 100):
        made.append(events[start : start + 100])
    made.close()
    if peer.reopens:
        peer.reopen(tmp_path / "s").close()
    assert peer.prices(tmp_path / "s")() == events["price"].sum()
    lookup = peer.lookup(tmp_path / "s", events)
    if lookup is not None:
        assert [lookup(ref) for ref in (1, 7, 8)] == [43, 42, 0]


def test_preparing_is_off_the_clock() -> None:
    steps: list[str] = []

    def prepare() -> None:
        steps.append("p")
        time.sleep(0.2)

    found = compare(
        "t", {"a": lambda: steps.append("a"), "b": lambda: steps.append("b")}, "nothing", unit="u", units=1,
        rounds=2, prepare=prepare,
    )  # fmt: skip
    assert "".join(steps) == "pab" * 3
    assert min(found.timings["a"].wall) < 0.2
    assert len(found.timings["a"].wall) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reference", "lsm", "lmdb"])
def test_the_benchmark(name: str, tmp_path: Path) -> None:
    from trident_core.cli.simulated import simulate_day

    simulate_day(tmp_path / "day.itch", messages=9_000, symbols=20)
    day = SimulatedDay(tmp_path / "day.itch", "", 9_000, 20)
    found = bench_store(Setting(day, {Kind.STORE: name}, rounds=1, folder=tmp_path))
    assert [comparison.title.split(":")[1].split()[0] for comparison in found] == [
        "append", "append", "append", "open", "scan", "all",
    ]  # fmt: skip
    for comparison in found:
        data = json.loads(json.dumps(comparison.to_json()))
        assert next(iter(data["contenders"])) == f"trident store {name}"
        assert all(timing.median > 0 for timing in comparison.timings.values())
    assert any("bytes on disk per event" in note for note in found[0].notes)
    assert any("p50" in note for note in found[-1].notes)
