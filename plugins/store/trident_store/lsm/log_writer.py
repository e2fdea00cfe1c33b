"""The writing end of the log, by kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events
from trident_store.checks import check_events
from trident_store.filesystem import Buffer
from trident_store.lsm.append_kernels import copy_crc, not_growing
from trident_store.staging import Staging
from trident_store.writer import LogWriter


class LsmStaging(Staging):
    """A `Staging`, faster."""

    def copy(self, payload: Buffer, to: NDArray[np.uint8]) -> int:
        """See `Staging.copy`."""
        if len(to) % 8:
            return super().copy(payload, to)
        return int(copy_crc(_address(np.frombuffer(payload, np.uint8)), to.view("<u8")))


class LsmLogWriter(LogWriter):
    """A `LogWriter`, faster."""

    _new_staging = LsmStaging
    PADDED_BYTES = 1 << 16

    def check(self, events: Events) -> None:
        """See `LogWriter.check`."""
        right = isinstance(events, np.ndarray) and events.dtype == EVENT and events.ndim == 1
        if right and events.flags.c_contiguous:
            last_seq = np.uint64(self.end.last_seq)
            if not_growing(_address(events), len(events), last_seq) < 0:
                return
        check_events(events, self.end.last_seq)  # says what is wrong


def _address(array: NDArray[np.generic]) -> np.uint64:
    return np.uint64(array.ctypes.data)  # __array_interface__ of structures takes longer than an append
