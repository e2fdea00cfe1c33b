"""A sync after "no space left" writes the mark while half a frame still stands behind the log: a crash may
tear both, and then nobody can tell a torn tail from damage. (Trident's own until the laboratory found it.)"""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import refuse
from trident_store.writer import LogWriter

STORE = "reference"
TRIAL = refuse("short", "a3 s a2 s a9 s a2 s a1 s")


def plant(patch: Patch) -> None:
    patch.set(LogWriter, "_cut", lambda self: None)
