"""The first record of the manifest that checks counts, not the last."""

from typing import Any

import numpy

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.lsm import manifest

STORE = "lsm"
TRIAL = cut("a30 s a16 s", per_point=4)


class Reversed:
    """numpy, but `flatnonzero` from the end."""

    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy

    def flatnonzero(self, values: Any) -> Any:
        return self._numpy.flatnonzero(values)[::-1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numpy, name)


def plant(patch: Patch) -> None:
    patch.set(manifest, "np", Reversed(numpy))
