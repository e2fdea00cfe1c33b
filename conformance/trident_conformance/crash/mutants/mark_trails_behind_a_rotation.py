"""The next segment is begun while the mark still trails: a power cut leaves a mark that stands before it."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.writer import LogWriter

STORE = "lsm"
TRIAL = cut("a16 s a3 s a16 s a9 s", per_point=24, keys=2)


def plant(patch: Patch) -> None:
    def set_mark(self: Any, end: Any, **more: Any) -> None:
        real(self, end, trailing=True)

    real = patch.set(LogWriter, "_set_mark", set_mark)
