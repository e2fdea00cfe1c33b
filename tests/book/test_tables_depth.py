"""The fast depth is the slow one, whatever the day and the batches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_book.reference import ReferenceBook
from trident_core import tables
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.tables.ladder import Ladder


def climbed(day, n: int, cuts: list[int]) -> np.ndarray:
    ladder = Ladder(Session(), n)
    edges = [0, *sorted(cut % len(day.events) for cut in cuts), len(day.events)]
    parts = [ladder.apply(day.events[a:b], day.effects[a:b], day.tops[a:b]) for a, b in pairwise(edges)]
    return np.concatenate(parts)


@pytest.mark.parametrize("n", [1, 2, 3, 10])
@pytest.mark.parametrize(("seed", "anomalies"), [(1, 0.0), (2, 0.3), (3, 0.6)])
def test_equal_to_the_law(chance, applied, n, seed, anomalies):
    """BOOK-43."""
    day = applied(chance(seed, 2_000, anomalies=anomalies))
    law = tables.depth(ReferenceBook(Session()), day.events, n)
    np.testing.assert_array_equal(climbed(day, n, []), law)
    assert len(law) > 80


@pytest.fixture(scope="module")
def sample(chance, applied):
    return applied(chance(9, 600, anomalies=0.4))


@given(st.lists(st.integers(0, 10_000), max_size=8))
@settings(deadline=None, max_examples=40)
def test_any_split_gives_the_same_rows(sample, cuts):
    """BOOK-44."""
    np.testing.assert_array_equal(climbed(sample, 3, cuts), climbed(sample, 3, []))


def test_many_levels_many_symbols_far_locates(stream, applied):
    """The pool of levels moves and grows, and locates need not be small."""
    day = stream()
    for ref in range(1, 3001):
        day.add(ref, "BS"[ref % 2], 10, 5_000 + (ref * 7919) % 2_000, locate=(1 << 31) + ref % 5)
    for ref in range(1, 3001, 3):
        day.delete(ref, locate=(1 << 31) + ref % 5)
    made = applied(day)
    law = tables.depth(ReferenceBook(Session()), made.events, 4)
    np.testing.assert_array_equal(climbed(made, 4, [100, 1000]), law)


def test_references_of_64_bits(stream, applied):
    top = (1 << 64) - 1
    day = applied(stream().add(top, "B", 5, 100).add(0, "S", 5, 200).execute(top, 5).delete(0))
    np.testing.assert_array_equal(climbed(day, 2, []), tables.depth(ReferenceBook(Session()), day.events, 2))


def test_levels_out_of_range_are_refused():
    for n in (0, tables.DEPTH_MAX + 1):
        with pytest.raises(UsageError, match="levels"):
            Ladder(Session(), n)
