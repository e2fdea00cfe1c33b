"""A real day of one symbol, through the parser into the store and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.dtypes import EVENT
from trident_core.session import Session
from trident_parser.reference import ReferenceParser
from trident_store.reference import ReferenceStore


@pytest.mark.shared
def test_a_real_day_comes_back(shared: Callable[..., Path], tmp_path: Path, same: Any) -> None:
    data = np.fromfile(shared("data", "itch50_runk", "locate-13-10k.bin"), np.uint8)
    session = Session()
    parser = ReferenceParser(session)
    out = np.zeros(700, EVENT)
    events = np.empty(0, EVENT)
    with ReferenceStore(tmp_path / "s", "create", session, segment_bytes=100_000, frame_events=500) as store:
        consumed = 0
        while consumed < len(data):
            result = parser.parse_into(data[consumed:], out)
            consumed += result.consumed
            events = np.concatenate([events, out[: result.count]])
            assert store.append(out[: result.count]) == out["seq"][result.count - 1]
    assert len(events) == 10_000
    with ReferenceStore(tmp_path / "s", "read") as reader:
        snapshot = reader.snapshot()
        assert same(snapshot.scan(), events)
        assert snapshot.session == session
        assert snapshot.session.directory.symbol(13) == session.directory.symbol(13) != ""
        assert reader.verify().findings == []
        assert reader.stats()["segments"] > 6
        for kind in set(events["type"].tolist()):
            assert same(snapshot.scan(types=bytes([kind])), events[events["type"] == kind])
        half = int(events["ts"][5_000])
        assert same(snapshot.scan(ts=(half, None)), events[events["ts"] >= half])
        replaced = events[events["type"] == ord("U")][0]
        for ref in (int(replaced["ref"]), int(replaced["ref2"])):
            named = (events["ref"] == ref) | ((events["ref2"] == ref) & (events["type"] == ord("U")))
            assert named.sum() > 1
            assert same(snapshot.get(ref), events[named])
