"""A spill file is removed when its events were appended, before they are durable."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import reference

STORE = "reference"
TRIAL = cut("a2 s p4 p5 r a1", per_point=12)


def plant(patch: Patch) -> None:
    def merge_left(store: Any, *rest: Any) -> Any:
        store.sync = lambda: None
        try:
            return real(store, *rest)
        finally:
            del store.sync

    real = patch.set(reference, "merge_left", merge_left)
