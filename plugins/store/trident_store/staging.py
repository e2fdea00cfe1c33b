"""The frame that is being written, in memory of its own: the caller's array may change meanwhile."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trident_store.filesystem import Buffer
from trident_store.format import RECORD_BYTES, Frame, crc32c, encode_frame


class Staging:
    """Room for one frame and its padding, used again for the next."""

    def __init__(self) -> None:
        self._room = np.empty(0, np.uint8)

    def encode(
        self, store_id: bytes, frame: Frame, payload: Buffer, pad: tuple[Frame, bytes] | None = None
    ) -> Buffer:
        """The bytes of a frame, whose CRC is that of the copy, and of what pads it; valid until the next."""
        size = RECORD_BYTES + len(payload)
        total = size + RECORD_BYTES + len(pad[1]) if pad else size
        if len(self._room) < total:
            self._room = np.empty(total, np.uint8)
        data = self._room[:total]
        crc = self.copy(payload, data[RECORD_BYTES:size])
        header = encode_frame(store_id, frame._replace(payload_crc=crc))
        data[:RECORD_BYTES] = np.frombuffer(header, np.uint8)
        if pad:
            data[size:] = np.frombuffer(encode_frame(store_id, pad[0]) + pad[1], np.uint8)
        return data.data

    def copy(self, payload: Buffer, to: NDArray[np.uint8]) -> int:
        """Copy a payload; the CRC of the copy."""
        to[...] = np.frombuffer(payload, np.uint8)
        return crc32c(to)
