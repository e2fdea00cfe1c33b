"""What was spilled is put behind whatever the store ends with, not behind the event that it names."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_core.line import spill_recovery

STORE = "reference"
TRIAL = cut("a2 s a3 p4 s", per_point=12)


def plant(patch: Patch) -> None:
    def already_there(frame: Any, events: Any, last: Any) -> int:
        end = int(last["seq"][0]) if last is not None else 0
        return int((events["seq"] <= end).sum())

    patch.set(spill_recovery, "_already_there", already_there)
