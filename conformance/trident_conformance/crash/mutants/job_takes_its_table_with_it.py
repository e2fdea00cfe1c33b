"""A job file left behind by a compaction that came to its end is removed together with the table it names."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import recovery
from trident_store.lsm.layout import file_number

STORE = "lsm"
TRIAL = cut("a30", per_point=8)


def plant(patch: Patch) -> None:
    def leftovers(names: Any, state: Any, job: int | None = None) -> list[str]:
        found: list[str] = real(names, state, job)
        jobs = {number for each in found if (number := file_number(each, "job")) is not None}
        return found + [each for each in names if file_number(each, "tab") in jobs and each not in found]

    real = patch.set(recovery, "leftovers", leftovers)
