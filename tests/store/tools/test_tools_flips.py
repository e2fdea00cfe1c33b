"""The tools on a store with one, or three, damaged bytes: nothing wrong is ever called right."""

from __future__ import annotations

import os

import pytest

from trident_store.tools.flips import flips

#: Only every so manieth byte; TRIDENT_FLIPS=1 is the whole store (five minutes).
EVERY = int(os.environ.get("TRIDENT_FLIPS", "0"))


def test_a_flip_is_reported_mended_or_salvaged_around() -> None:
    census = flips(EVERY or 397)
    assert census.violations == []
    kinds = {kind for kind, _ in census.counts}
    assert kinds == {"tab", "man", "seg", "durable"}
    assert census.counts["tab", "repair: sound"] > 5
    assert census.counts["tab", "salvage: a part, with gaps"] > 5
    assert not any("wrong" in what for _, what in census.counts)


@pytest.mark.slow
def test_more_flips() -> None:
    assert flips(EVERY or 97, seed=1).violations == []


@pytest.mark.slow
def test_three_flips_at_once() -> None:
    census = flips(EVERY or 197, seed=2, faults=3)
    assert census.violations == []
    assert census.counts["tab", "repair: damage left"] > 0
