"""Where the log ends in a file that is used again, a frame of what it was before is called damage."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import survey

STORE = "lsm"
TRIAL = cut("a16 s a16 s a16 s a3 s a9 s", per_point=6)


def plant(patch: Patch) -> None:
    def frame(self: Any, handle: int, size: int) -> Any:
        try:
            return real(self, handle, size)
        except survey._BrokenError as broken:
            if "was before" in broken.problem:
                broken.torn = False
            raise

    real = patch.set(survey._Walk, "frame", frame)
