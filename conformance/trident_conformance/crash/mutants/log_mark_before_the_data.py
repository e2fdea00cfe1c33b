"""The mark says that events are durable before their segment is synced."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.writer import LogWriter

STORE = "reference"
TRIAL = cut("a2 a1 s a3 s")


def plant(patch: Patch) -> None:
    def sync(self: LogWriter) -> None:
        self.settle()
        if self.end.place != self.durable.place:
            self._pad()
            self._set_mark(self.end)
            self._files.sync(self._log.handle)

    patch.set(LogWriter, "sync", sync)
