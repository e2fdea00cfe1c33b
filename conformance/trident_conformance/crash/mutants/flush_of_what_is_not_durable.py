"""A segment is sealed without a sync, and a table is made of it: the log behind it has no beginning."""

from typing import Any

from trident_conformance.crash.mutants import Patch, deaf
from trident_conformance.crash.trials import cut
from trident_store.writer import LogWriter

STORE = "lsm"
TRIAL = cut("a30 s a16 s", per_point=12)


def plant(patch: Patch) -> None:
    def rotate(self: Any) -> None:
        with deaf(self._files, "sync"):
            real(self)

    real = patch.set(LogWriter, "_rotate", rotate)
