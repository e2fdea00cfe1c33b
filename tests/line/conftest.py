"""What the tests of the line share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from trident_core.dtypes import EVENT, Events


def make(first: int, count: int) -> Events:
    ordinal = np.arange(first, first + count, dtype=np.uint64)
    events = np.zeros(count, EVENT)
    events["seq"], events["ts"], events["ref"] = ordinal + 1, ordinal * 1_000, ordinal * 7 + 3
    events["locate"], events["type"], events["qty"] = ordinal % 5 + 1, ord("A"), 100
    return events


@pytest.fixture(scope="session")
def make_events() -> Callable[[int, int], Events]:
    """`make_events(first, count)`: events with the sequence numbers first + 1, …, of one fixed sequence."""
    return make
