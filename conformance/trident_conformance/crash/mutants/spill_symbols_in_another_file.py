"""A spill file may end between new symbols and the events that need them. (Trident's own until the laboratory
found it.)"""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_core.line.spill import Spill

STORE = "reference"
TRIAL = cut("a3 s p2 p5", per_point=48)


def plant(patch: Patch) -> None:
    def write(self: Any, frame: Any, payload: Any) -> None:
        if self._queue[-1].end >= self._file_bytes:
            self._queue.append(self._begin())
        real(self, frame, payload)

    real = patch.set(Spill, "_write", write)
