"""The marks say that there are tables before there is a manifest that names them."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.format import TABLES
from trident_store.lsm.maintenance import Maintenance

STORE = "lsm"
TRIAL = cut("a30 s a16 s", per_point=8)


def plant(patch: Patch) -> None:
    def publish(self: Any, *rest: Any) -> None:
        if not self._writer.minor & TABLES:
            self._home.upgrade()
        published(self, *rest)

    published = patch.set(Maintenance, "_publish", publish)
