"""The main job on every real capture: the whole line into a store, then query and verify."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from trident_core.cli.run import run_line
from trident_core.cli.verify import verify_store
from trident_core.contracts import Kind
from trident_core.errors import InputError
from trident_core.inputs import open_input
from trident_core.plugins import registry
from trident_core.search import find


@pytest.mark.parametrize(
    ("folder", "lenient", "captures", "messages", "types"),
    [
        ("Nasdaq.Equities.TotalView.Itch.v5.0", False, 8, 46, "AFDLIEUH"),
        ("Nasdaq.Equities.TotalView.Itch.v5.0.20230822", True, 15, 71, "AFQJLIPXDECUYHS"),
    ],
    ids=["numbered", "zeroed headers"],
)
def test_every_message_is_stored_found_and_verified(
    shared: Callable[..., Path], tmp_path: Path, folder: str, lenient: bool, captures: int, messages: int,
    types: str,
) -> None:  # fmt: skip
    paths = sorted(shared("data", "pcap", folder).glob("*.pcap"))
    assert len(paths) == captures
    compiler = registry().select(Kind.QUERY).load()()
    stored: Counter[str] = Counter()
    for path in paths:
        opened = open_input(str(path), lenient=lenient)
        stats = run_line(opened, tmp_path / path.stem, engine=None, resume=False)
        assert stats.stored == stats.durable_seq - stats.first_seq + 1 - stats.anomalies.count("gap_messages")
        report = verify_store(tmp_path / path.stem, None)
        assert report.ok
        assert report.events == stats.stored
        with registry().select(Kind.STORE).load()(tmp_path / path.stem, "read") as store:
            snapshot = store.snapshot()
            assert snapshot.session.date is not None
            assert snapshot.session.date.isoformat() == "2023-08-22"
            found = find(snapshot, compiler, types=f"[{types}]").counts_by("type")
            snapshot.close()
        assert sum(found.values()) == stats.stored
        stored.update(found)
    assert sum(stored.values()) == messages
    assert set(stored) == set(types)


def test_zeroed_headers_are_refused_without_the_lenient_mode(
    shared: Callable[..., Path], tmp_path: Path
) -> None:
    for path in shared("data", "pcap", "Nasdaq.Equities.TotalView.Itch.v5.0.20230822").glob("*.pcap"):
        with pytest.raises(InputError, match="--lenient"):
            run_line(open_input(str(path)), tmp_path / path.stem, engine=None, resume=False)
        assert not (tmp_path / path.stem).exists()
