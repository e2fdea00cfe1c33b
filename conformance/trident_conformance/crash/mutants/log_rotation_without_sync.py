"""The next segment is begun while the one before is not durable: two segments may be torn."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.writer import LogWriter

STORE = "reference"
TRIAL = cut("a2 a1 s a3 s a16 a3 s")


def plant(patch: Patch) -> None:
    def rotate(self: LogWriter) -> None:
        self._pad()
        end = self._log.end
        self._log = self._new_segment(end.segment + 1, end, self.extents)

    patch.set(LogWriter, "_rotate", rotate)
