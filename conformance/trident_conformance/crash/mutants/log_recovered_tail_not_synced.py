"""Recovery counts events that were never synced, says so in the mark, and does not sync them."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import recovery, writer
from trident_store.format import MARK_NAME

STORE = "reference"
TRIAL = cut("a3 s a4 x a1 s", per_point=32, first_key=2, keys=20)


def plant(patch: Patch) -> None:
    real: Any = recovery.recover

    def recover(files: Any, *rest: Any) -> Any:
        sync, opened = files.sync, files.open
        marks: set[int] = set()

        def only_marks(handle: int) -> None:
            if handle in marks:
                sync(handle)

        def watched(path: Any, **how: Any) -> int:
            handle: int = opened(path, **how)
            if path.name == MARK_NAME:
                marks.add(handle)
            return handle

        files.sync, files.open = only_marks, watched
        try:
            return real(files, *rest)
        finally:
            del files.sync, files.open

    patch.set(writer, "recover", recover)
