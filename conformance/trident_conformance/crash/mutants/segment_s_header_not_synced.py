"""The next segment has its name, durably, before its header is durable: there stands what the
file was before."""

from typing import Any

from trident_conformance.crash.mutants import Patch, deaf
from trident_conformance.crash.trials import cut
from trident_store.writer import LogWriter

STORE = "lsm"
TRIAL = cut("a16 s a16 s a16 s a3", per_point=8)


def plant(patch: Patch) -> None:
    def new_segment(self: Any, *rest: Any) -> Any:
        with deaf(self._files, "sync"):
            return real(self, *rest)

    real = patch.set(LogWriter, "_new_segment", new_segment)
