"""Records of the manifest are not filled up to a sector: a torn append spoils the record in force."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.lsm import manifest

STORE = "lsm"
TRIAL = cut("a30 s a16 s", per_point=12, keys=8)


def plant(patch: Patch) -> None:
    def encode_record(store_id: bytes, state: Any, epoch: int, sector_bytes: int) -> bytes:
        record: bytes = real(store_id, state, epoch, 64)
        return record

    real = patch.set(manifest, "encode_record", encode_record)
