"""The kernels of an append, held against what they take the place of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.dtypes import EVENT
from trident_core.errors import UsageError
from trident_store.checks import check_events
from trident_store.format import crc32c
from trident_store.lsm.append_kernels import copy_crc, not_growing


@settings(deadline=None)  # the first example compiles
@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=40), st.integers(0, (1 << 64) - 1), st.booleans())
def test_what_may_not_follow_is_found_where_the_reference_finds_it(seqs, last, grow) -> None:
    if grow:
        seqs = sorted(set(seqs))
    events = np.zeros(len(seqs), EVENT)
    events["seq"] = seqs
    found = not_growing(np.uint64(events.ctypes.data), len(events), np.uint64(last))
    if found == -1:
        check_events(events, last)
    else:
        with pytest.raises(UsageError, match=f"event {found} has {seqs[found]}"):
            check_events(events, last)


@pytest.mark.parametrize("words", [0, 1, 7, 767, 768, 769, 5_000, 32_768])
@pytest.mark.parametrize("shift", [0, 1, 8])
def test_a_copy_and_its_crc(words, shift) -> None:
    source = np.random.default_rng(words).integers(0, 256, words * 8 + shift, np.uint8)
    to = np.zeros(words, np.uint64)
    crc = copy_crc(np.uint64(source.ctypes.data + shift), to)
    assert to.tobytes() == source[shift:].tobytes()
    assert int(crc) == crc32c(source[shift:])
