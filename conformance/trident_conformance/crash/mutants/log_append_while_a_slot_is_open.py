"""After an interrupted sync events are appended while a slot of the mark is not durable: both may be torn."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.writer import LogWriter

STORE = "reference"
TRIAL = cut("a1 i3 a2 i1 a1 i2 a1 s a1 i4 a3 s i1 a1")


def plant(patch: Patch) -> None:
    LogWriter._mark_open = False
    patch.set(LogWriter, "_mark_open", property(lambda self: False, lambda self, value: None))
