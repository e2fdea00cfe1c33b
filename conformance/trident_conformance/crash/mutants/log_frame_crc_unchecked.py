"""A frame's payload is believed without a look at its CRC."""

from typing import Any

from trident_conformance.crash.mutants import Patch, Right
from trident_conformance.crash.trials import cut
from trident_store import logfiles, survey

STORE = "reference"
TRIAL = cut("a2 a1 s a3 s a16")


def plant(patch: Patch) -> None:
    def crc32c(data: Any, seed: int = 0) -> int:
        return Right()

    for module in (survey, logfiles):
        patch.set(module, "crc32c", crc32c)
        patch.set(module, "seq_problem", lambda frame, events: "")
