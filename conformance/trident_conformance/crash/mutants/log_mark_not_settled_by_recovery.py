"""Recovery writes a slot of the mark while the other one, left in the cache by a killed process, is not
durable:
a power cut may tear both. (Trident's own until the laboratory found it.)"""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import recovery, writer
from trident_store.format import MARK_NAME

STORE = "reference"
TRIAL = cut("a3 s k7", "a3 s k18", per_point=24)


def plant(patch: Patch) -> None:
    real: Any = recovery.recover

    def recover(files: Any, *rest: Any) -> Any:
        sync, opened = files.sync, files.open
        fresh: set[int] = set()

        def watched(path: Any, **how: Any) -> int:
            handle: int = opened(path, **how)
            if path.name == MARK_NAME and how.get("write"):
                fresh.add(handle)
            return handle

        def all_but_the_first(handle: int) -> None:
            if handle in fresh:
                fresh.discard(handle)
            else:
                sync(handle)

        files.sync, files.open = all_but_the_first, watched
        try:
            return real(files, *rest)
        finally:
            del files.sync, files.open

    patch.set(writer, "recover", recover)
