"""The store's folder is made, and the folder above it not synced: a crash may take the whole store."""

from pathlib import Path
from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.crashmodel import CrashFileSystem

STORE = "reference"
TRIAL = cut("a2 s")


def plant(patch: Patch) -> None:
    def sync_directory(self: Any, path: Path) -> None:
        if path.name:
            real(self, path)

    real = patch.set(CrashFileSystem, "sync_directory", sync_directory)
