"""A sync is padded to 256 bytes where the disk writes 512 at once."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store import recovery, writer
from trident_store.format import pad_frame

STORE = "reference"
TRIAL = cut("a1 s a1 s a3 s a1 s a2 s", keys=4)


def plant(patch: Patch) -> None:
    def half(here: Any, sector_bytes: int) -> Any:
        return pad_frame(here, sector_bytes // 2)

    for module in (writer, recovery):
        patch.set(module, "pad_frame", half)
