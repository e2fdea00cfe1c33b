"""Texts: candidates from the scan's code, spans from the walk over them."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_query.glushkov import Glushkov
from trident_query.llvm.host import Host, object_code
from trident_query.llvm.kernels import Kernel, kernels
from trident_query.llvm.objects import Stored
from trident_query.llvm.scan import NAME, scan_code
from trident_query.llvm.verify import LazyTable, Verifier
from trident_query.llvm.windows import prefix

#: Candidates, and spans, of one batch.
ROOM: Final = 1 << 15

_POINTER, _I64 = ctypes.c_void_p, ctypes.c_int64
_ARGUMENTS: Final = (_POINTER, _I64, _I64, _POINTER, _I64, _POINTER)

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]


class TextScan:
    """A pattern's scan of texts. For several threads at once.

    `exact`: all matches are `shortest` bytes long, and a candidate is one. Raises RefusedError (caps "empty",
    "nothing", "rate") where windows are of no use.
    """

    def __init__(self, key: str, automaton: Callable[[], Glushkov], host: Host) -> None:
        def make() -> Stored:
            scan = scan_code(prefix(automaton()), host)
            return Stored(object_code(scan.ir, host), scan.facts())

        self.kernel: Kernel = kernels().get(key, host, NAME, _ARGUMENTS, make)
        self._automaton = automaton
        facts = self.kernel.facts
        self.block, self.reach = int(facts["block"]), int(facts["reach"])
        self.shortest, self.exact = int(facts["shortest"]), bool(facts["exact"])
        self._tables: deque[LazyTable] = deque(maxlen=4)  # one for each thread at work, kept for the next

    # --- candidates -----------------------------------------------------------------------------------------

    def candidates(self, data: Bytes) -> Iterator[Positions]:
        """Where a match may begin, ascending, in batches of up to ROOM, each valid until the next."""
        out, reached = np.empty(ROOM, np.int64), np.zeros(1, np.int64)
        call, at, end = self.kernel.call, 0, len(data) - self.reach
        while end - at >= self.block:
            count = call(data.ctypes.data, at, end, out.ctypes.data, ROOM, reached.ctypes.data)
            at = int(reached[0])
            if count:
                yield out[:count]
        rest = self._rest(data, at)
        if len(rest):
            yield rest

    def _rest(self, data: Bytes, start: int) -> Positions:
        """The candidates from `start` on: less than a block and the reach, copied so that a block fits."""
        left = len(data) - start
        if left < self.shortest:
            return np.empty(0, np.int64)
        end = -(-left // self.block) * self.block
        padded = np.zeros(end + self.reach, np.uint8)
        padded[:left] = data[start:]
        out, reached = np.empty(end + self.block, np.int64), np.zeros(1, np.int64)
        count = self.kernel.call(padded.ctypes.data, 0, end, out.ctypes.data, len(out), reached.ctypes.data)
        found = out[:count]
        return found[found <= left - self.shortest] + start

    def count_ends(self, data: Bytes) -> int:
        """How many positions matches end at, overlapping ones too. Only if `exact`."""
        reached = np.zeros(1, np.int64)
        count = self.kernel.call(data.ctypes.data, 0, len(data) - self.reach, None, 0, reached.ctypes.data)
        return count + len(self._rest(data, int(reached[0])))

    # --- spans ----------------------------------------------------------------------------------------------

    def spans(self, data: Bytes) -> Iterator[Positions]:
        """Leftmost-longest spans, i64[k, 2], ascending, in batches, each valid until the next.

        Raises SpentError where the walks take too long.
        """
        table = self._take_table()
        verifier = Verifier(table, data, ROOM)
        try:
            for found in self.candidates(data):
                if self.exact and self._apart(found, verifier.last_end):
                    verifier.last_end = int(found[-1]) + self.shortest
                    yield np.stack((found, found + self.shortest), axis=1)
                    continue
                verifier.feed(found)
                done = False
                while not done:
                    given, done = verifier.run()
                    if len(given):
                        yield given
        finally:
            self._tables.append(table)

    def _apart(self, found: Positions, last_end: int) -> bool:
        """No match of the batch overlaps another, or what came before."""
        return bool(found[0] >= last_end and (np.diff(found) >= self.shortest).all())

    def _take_table(self) -> LazyTable:
        try:
            return self._tables.pop()
        except IndexError:
            return LazyTable(self._automaton())

    def facts(self) -> dict[str, Any]:
        """What was compiled, for `explain`."""
        tables = list(self._tables)
        states = max((table.states for table in tables), default=0)
        return {**self.kernel.facts, "code_bytes": self.kernel.library.bytes, "states": states}
