"""A write that took only some of the bytes is taken for a whole one."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import refuse
from trident_store import writer

STORE = "reference"
TRIAL = refuse("short", "a3 s a2 s a9 s")


def plant(patch: Patch) -> None:
    def write_once(files: Any, handle: int, data: Any, offset: int) -> None:
        files.write(handle, memoryview(data), offset)

    patch.set(writer, "write_all", write_once)
