"""A mark that is not synced is written to both slots in turns: one power cut may spoil both."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.writer import LogWriter

STORE = "lsm"
TRIAL = cut("a2 s a1 s a3 s a1 s", per_point=24, keys=3)


def plant(patch: Patch) -> None:
    def set_mark(self: Any, *rest: Any, **more: Any) -> None:
        real(self, *rest, **more)
        if more.get("trailing"):
            self._slot = 1 - self._slot

    real = patch.set(LogWriter, "_set_mark", set_mark)
