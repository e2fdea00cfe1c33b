"""A sync that failed is tried again: the second one says yes, and the data is gone."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import refuse
from trident_store.writer import LogWriter

STORE = "reference"
TRIAL = refuse("sync", "a3 s s a2 s s")


def plant(patch: Patch) -> None:
    def sync(self: LogWriter) -> None:
        self.sync_failure = self._write_failure = ""
        real(self)

    real = patch.set(LogWriter, "sync", sync)
    patch.set(LogWriter, "require_writable", lambda self: None)
