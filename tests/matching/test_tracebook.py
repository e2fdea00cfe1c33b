"""data/tracebook_v1 and traces by chance, judged by the reference of PyPI `tracebook-conformance`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from trident_conformance import tracebook
from trident_core.contracts import Capability, Kind
from trident_core.plugins import registry

pytest.importorskip("tracebook")

ENGINES = [spec.name for spec in registry().engines(Kind.BOOK) if Capability.MATCH in spec.capabilities]


def _theirs() -> Any:
    from tracebook.conformance import model, reference
    from tracebook.events import load_market_events

    return model, reference, load_market_events


@pytest.mark.shared
@pytest.mark.parametrize("book", ENGINES)
def test_all_cases(shared: Any, book: str) -> None:
    """Outcome, reason, every trade and the whole book, queues in order, after each event (MATCH-12, 13, 14,
    17, 18, 34, 51, 52)."""
    model, reference, load = _theirs()
    folder = Path(shared("data/tracebook_v1"))
    cases = json.loads((folder / "manifest.json").read_text())["cases"]
    assert len(cases) == 8
    trades = 0
    for case in cases:
        config = model.ConformanceConfig.from_dict(case["config"])
        law, mine = reference.ReferenceEngineAdapter(config), tracebook.Adapter(config, book)
        for at, event in enumerate(load(folder / case["events"]), 1):
            wanted, found = law.apply(event, at), mine.apply(event, at)
            where = f"{case['name']}, event {at}"
            assert (found.outcome.status, found.outcome.reason) == (
                wanted.outcome.status, wanted.outcome.reason
            ), where  # fmt: skip
            assert found.trades == wanted.trades, where
            assert mine.snapshot() == law.snapshot(), where
            trades += len(found.trades)
    assert trades == 15


@pytest.mark.parametrize("book", ENGINES)
@pytest.mark.parametrize("profile", ["fifo-limit-v1", "fifo-full-v1", "fifo-partial-fill-v1"])
def test_traces_that_its_campaign_generates(profile: str, book: str) -> None:
    """By the generator and the judge of its `qualify`, here in this process."""
    from tracebook.conformance import campaign, compare

    chosen = campaign.get_campaign_profile(profile)
    for seed in (1337, 1338):
        events = campaign.generate_campaign_trace(chosen, seed=seed, event_count=60)
        report = compare.run_conformance(
            events, candidate_factory=lambda config: tracebook.Adapter(config, book), config=chosen.config
        )
        assert report.conformant, report.to_dict()


def test_its_protocol_is_spoken(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[dict[str, Any]] = [
        {"type": "hello", "protocol": "tracebook.conformance", "protocol_version": 1, "config": {}},
        {
            "type": "event", "index": 1,
            "event": {"op": "new", "symbol": "A", "order_id": 7, "side": "BUY", "price": 10, "quantity": 3},
        },
        {"type": "snapshot", "index": 1},
        {"type": "finish", "event_count": 1},
    ]  # fmt: skip
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(map(json.dumps, lines)) + "\n"))
    assert tracebook.main(["--book", "reference"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [message["type"] for message in told] == ["ready", "observation", "snapshot", "complete"]
    assert told[0]["engine"]["name"] == "trident-reference"
    [order] = told[2]["state"]["books"][0]["bids"]
    assert (order["order_id"], order["price"], order["remaining_quantity"]) == (7, "10", "3")
