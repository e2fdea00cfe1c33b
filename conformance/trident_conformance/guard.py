"""`python -m trident_conformance.guard FACTORY`: does a parser read past its input?

Each vector is put at the very end of a page whose neighbour may not be read (mprotect): a load of one byte
too many ends this process with SIGSEGV. It runs in a process of its own, so that the suite lives to tell.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np

from trident_conformance import vectors
from trident_core.contracts import EngineSpec, Kind
from trident_core.dtypes import EVENT, Frames
from trident_core.session import Session

_PAGES = 4


class _Guarded:
    """A mapping whose last page is forbidden."""

    def __init__(self) -> None:
        self.size = _PAGES * mmap.PAGESIZE
        self._map = mmap.mmap(-1, self.size + mmap.PAGESIZE)
        self._bytes = np.frombuffer(self._map, np.uint8)
        address = self._bytes.ctypes.data + self.size
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")

    def put(self, data: Frames) -> Frames:
        """`data` so that it ends where reading ends."""
        view = self._bytes[self.size - len(data) : self.size]
        view[:] = data
        return view


def main(factory: str) -> None:
    make = EngineSpec(Kind.PARSER, "guarded", factory, "").load()
    guarded = _Guarded()
    out = np.zeros(64, EVENT)
    for vector in vectors.load("parser"):
        if vector.data.get("lenient"):
            continue
        whole = vectors.to_frames(vector.data["frames"])
        for size in range(max(len(whole) - 12, 0), len(whole) + 1):  # whole, and with its last field cut
            make(Session()).parse_into(guarded.put(whole[:size]), out)


if __name__ == "__main__":
    main(sys.argv[1])
