"""A frame's header is believed without a look at its CRC: a flipped count or time of writing counts."""

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import rot
from trident_store import format as bytes_of
from trident_store import logfiles, survey
from trident_store.format import FRAME_MAGIC, RECORD_BYTES, Frame

STORE = "reference"
TRIAL = rot("a2 a1 s a3 s", flips=400, files=".seg")


def plant(patch: Patch) -> None:
    def decode_frame(store_id: bytes, data: bytes) -> Frame | None:
        if len(data) != RECORD_BYTES or data[:4] != FRAME_MAGIC:
            return None
        _, kind, _, *rest = bytes_of._FRAME.unpack(data[:60])
        return Frame(kind, *rest)

    for module in (survey, logfiles):
        patch.set(module, "decode_frame", decode_frame)
