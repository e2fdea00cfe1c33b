"""`parse_tables(frames, types)`: only these types, with the same state as for all."""

from __future__ import annotations

import numpy as np
import pytest

from trident_core.session import Session
from trident_parser.numba_parser import NumbaParser
from trident_parser.reference import ReferenceParser
from trident_sim.spec import SimSpec
from trident_sim.stream import Day


@pytest.fixture(scope="module")
def frames() -> np.ndarray:
    parts = Day(SimSpec(messages=3_000, symbols=8, seed=4)).frames()
    return np.frombuffer(b"".join(part.tobytes() for part in parts), np.uint8)


@pytest.mark.parametrize("engine", [ReferenceParser, NumbaParser])
@pytest.mark.parametrize("types", ["", "I", "RVKO", "zI"])
def test_only_the_types_that_are_named(engine, frames, types):
    whole, part = engine(Session()), engine(Session())
    everything = whole.parse_tables(frames)
    chosen = part.parse_tables(frames, types)
    assert set(chosen) == {letter for letter in everything if not types or letter in types}
    assert chosen
    for letter, rows in chosen.items():
        assert (rows == everything[letter]).all()
    assert (part.next_seq, part.position) == (whole.next_seq, whole.position)
    assert (part.counts == whole.counts).all()
    assert part.session.directory == whole.session.directory
