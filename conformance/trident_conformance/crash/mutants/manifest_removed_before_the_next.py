"""The old manifest goes, durably, before the new one is written."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.lsm.layout import manifest_name
from trident_store.lsm.manifest import ManifestWriter, manifest_numbers

STORE = "lsm"
TRIAL = cut("a30 s r a30", per_point=8)


def plant(patch: Patch) -> None:
    def replace(self: Any, *rest: Any) -> Any:
        for number in manifest_numbers(self._files.list_directory(self._folder)):
            self._files.remove(self._folder / manifest_name(number))
        self._files.sync_directory(self._folder)
        return real(self, *rest)

    real = patch.set(ManifestWriter, "_replace", replace)
