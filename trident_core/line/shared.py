"""A ring in memory that two processes share, and the symbols that go with its events.

The memory is a memfd: it has no name, so nothing is left of it when both processes are gone, whatever ended
them.
"""

from __future__ import annotations

import json
import mmap
import os
from typing import Final

import numpy as np

from trident_core.errors import StoreError
from trident_core.ring import CURSOR_WORDS, Ring, check_capacity, words_of
from trident_core.session import Instrument, Session

#: Room for what the directory gains in a run: about 100,000 instruments with all their details.
DIRECTORY_BYTES: Final = 64 << 20
#: The word that counts the bytes of the directory's log; the ring's own counters are before it.
_LOGGED: Final = 128
assert _LOGGED < CURSOR_WORDS


class SharedRing:
    """A ring of `capacity` events and a log of instruments behind it. `handle` is what the other process
    opens it by. The producer calls `publish` before it pushes, the consumer `learn` after it popped."""

    def __init__(self, handle: int, capacity: int) -> None:
        self.handle = handle
        self._memory = mmap.mmap(handle, _size(capacity))
        words = np.frombuffer(self._memory, np.uint64, words_of(capacity))
        self.ring = Ring(capacity, words)
        self._counters = words[:CURSOR_WORDS]
        self._log = np.frombuffer(self._memory, np.uint8, DIRECTORY_BYTES, 8 * words_of(capacity))
        self._known: dict[int, Instrument] = {}
        self._version = -1
        self._learned = 0

    @classmethod
    def create(cls, capacity: int) -> SharedRing:
        """New memory, that a child may inherit. Raises UsageError for a capacity that no ring has, StoreError
        when there is not enough memory."""
        check_capacity(capacity)
        handle = os.memfd_create("trident-ring", os.MFD_CLOEXEC)
        try:
            os.ftruncate(handle, _size(capacity))
            os.posix_fallocate(handle, 0, 8 * words_of(capacity))  # else a full memory would kill at a touch
            return cls(handle, capacity)
        except OSError as error:
            os.close(handle)
            raise StoreError(
                f"no memory for a ring of {capacity:,} events: {error.strerror or error}",
                hint=f"it takes {8 * words_of(capacity) >> 20:,} MiB; --ring makes it smaller",
            ) from error

    def publish(self, session: Session) -> None:
        """Log what the directory gained. Raises StoreError when there is no more room for it."""
        if session.directory.version == self._version:
            return
        self._version = session.directory.version
        gained = [each for each in session.directory if self._known.get(each.locate) is not each]
        self._known.update((each.locate, each) for each in gained)
        if not gained:
            return
        text = json.dumps([[each.locate, each.symbol, dict(each.details)] for each in gained]).encode()
        start = int(self._counters[_LOGGED])
        end = start + 4 + len(text)
        if end > DIRECTORY_BYTES:
            raise StoreError(
                f"the session's symbols take more than {DIRECTORY_BYTES >> 20} MiB",
                hint="use --stages threads",
            )
        self._log[start : start + 4] = np.frombuffer(len(text).to_bytes(4, "little"), np.uint8)
        self._log[start + 4 : end] = np.frombuffer(text, np.uint8)
        self._counters[_LOGGED] = end  # the push that follows releases it

    def learn(self, session: Session) -> None:
        """Put into the directory what was logged since the last call."""
        end = int(self._counters[_LOGGED])
        while self._learned < end:
            start = self._learned + 4
            size = int.from_bytes(self._log[self._learned : start].tobytes(), "little")
            for locate, symbol, details in json.loads(self._log[start : start + size].tobytes()):
                session.directory.put(Instrument(locate, symbol, details))
            self._learned = start + size

    def close(self) -> None:
        """Close the handle; the memory goes with the last process that has it."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


def _size(capacity: int) -> int:
    return 8 * words_of(capacity) + DIRECTORY_BYTES
