"""Stores against docs/contracts/store.md: power cuts, on a disk that forgets what was not synced."""

from __future__ import annotations

import pytest

from trident_conformance.crash.cases import FIXED, case_of
from trident_conformance.crash.lab import run_case
from trident_conformance.engines import Engine
from trident_core.contracts import Capability

#: A script with three power cuts in it, and one of its own making.
SEEDS = (8, len(FIXED) + 4)


@pytest.mark.needs_capability(Capability.FILESYSTEM)
class TestPowerCut:
    def test_promises_hold_in_every_state(self, store_engine: Engine, quick: bool) -> None:
        """STORE-5, 10 to 12, 16, 17, 22, 34: at every call the power fails, and the store is looked at in the
        states that this may leave. `python -m trident_conformance crash` tries as many as you like."""
        for seed in SEEDS[: 1 if quick else 2]:
            report = run_case(store_engine, case_of(store_engine, seed), 2 if quick else 4)
            told = [f"{each.problem}: {each.command}" for each in report.violations]
            assert not told, "\n".join(told)
            assert report.points > 20
            assert report.distinct > 20
