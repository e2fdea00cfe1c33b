"""The next segment is created, and the folder not synced: events acknowledged in it go with its name."""

from pathlib import Path
from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.crashmodel import CrashFileSystem

STORE = "reference"
TRIAL = cut("a2 a1 s a3 s a16 a3 s r a1 s a2")


def plant(patch: Patch) -> None:
    def sync_directory(self: Any, path: Path) -> None:
        if "00000001.seg" not in self.visible():
            real(self, path)

    real = patch.set(CrashFileSystem, "sync_directory", sync_directory)
