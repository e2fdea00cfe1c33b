"""A segment's file is written over although a reader's snapshot has it open."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import beside
from trident_store.crashmodel import CrashFileSystem

STORE = "lsm"
TRIAL = beside("a16 s a16 s a16 s a9 s a16 s a16 s a16 s")


def plant(patch: Patch) -> None:
    def set_aside(self: Any, path: Any, to: Any) -> bool:
        self.rename(path, to)
        return True

    patch.set(CrashFileSystem, "set_aside", set_aside)
