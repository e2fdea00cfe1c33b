"""The mark is created last, and the folder not synced behind it: acknowledged events, and no mark."""

from pathlib import Path
from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.crashmodel import CrashFileSystem
from trident_store.format import MARK_NAME

STORE = "reference"
TRIAL = cut("a2 s")


def plant(patch: Patch) -> None:
    def sync_directory(self: Any, path: Path) -> None:
        if MARK_NAME not in self.visible():
            real(self, path)

    real = patch.set(CrashFileSystem, "sync_directory", sync_directory)
