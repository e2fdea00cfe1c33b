"""Putting the pieces of one numbered stream in order: MoldUDP64 messages and TCP bytes alike."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

#: What is held back while something before it is missing; when it is full, the gap is given up.
HELD_RUNS_MAX: Final = 1024
HELD_BYTES_MAX: Final = 1 << 20
#: Gaps that are remembered, to tell late pieces from duplicates. Older ones count as duplicates.
GAPS_KEPT: Final = 1024


class Run(NamedTuple):
    """Units (messages or bytes) [start, end) of a stream. `offset`: where the capture has them."""

    start: int
    end: int
    data: bytes
    offset: int


class Reorder:
    """Runs in any order in, runs in strictly rising order out, none of their units twice.

    A run that comes too early is held until what is missing before it arrives, or until HELD_RUNS_MAX runs or
    HELD_BYTES_MAX bytes are held, or until `flush`; then the gap is given up. The result depends on the
    order of the runs alone. `cut(data, k)` is data without its first k units. `report(kind, units, offset)`
    is told of every "gap" (given up), "duplicate" (used before) and "late" (of a gap given up, or before the
    first unit).
    """

    def __init__(self, cut: Callable[[bytes, int], bytes], report: Callable[[str, int, int], None]) -> None:
        #: The number of the next unit; None before the first run.
        self.next: int | None = None
        self._cut = cut
        self._report = report
        self._first = 0
        self._held: list[Run] = []
        self._held_bytes = 0
        self._gaps: deque[tuple[int, int]] = deque(maxlen=GAPS_KEPT)
        self._announced = (0, 0)

    def push(self, run: Run) -> list[Run]:
        """The runs that `run` makes available. A jump between two of them is a gap that was given up."""
        if self.next is None:
            self.next = self._first = run.start
        if run.start > self.next:
            heapq.heappush(self._held, run)
            self._held_bytes += len(run.data)
            full = len(self._held) > HELD_RUNS_MAX or self._held_bytes > HELD_BYTES_MAX
            return self._give_up() if full else []
        return self._use(run) + self._release()

    def announce(self, following: int, offset: int) -> None:
        """The sender says that unit `following` comes next: what is before it must have been sent."""
        if self.next is None:
            self.next = self._first = following
        self._announced = max(self._announced, (following, offset))

    def flush(self) -> list[Run]:
        """Give up every gap, the one before what was announced too."""
        out: list[Run] = []
        while self._held:
            out += self._give_up()
        following, offset = self._announced
        if self.next is not None and following > self.next:
            self._lose(following, offset)
        return out

    def _give_up(self) -> list[Run]:
        self._lose(self._held[0].start, self._held[0].offset)
        return self._release()

    def _lose(self, upto: int, offset: int) -> None:
        assert self.next is not None
        self._report("gap", upto - self.next, offset)
        self._gaps.append((self.next, upto))
        self.next = upto

    def _release(self) -> list[Run]:
        out: list[Run] = []
        while self._held and self.next is not None and self._held[0].start <= self.next:
            run = heapq.heappop(self._held)
            self._held_bytes -= len(run.data)
            out += self._use(run)
        return out

    def _use(self, run: Run) -> list[Run]:
        """The part of `run` that is new."""
        assert self.next is not None
        stale = min(run.end, self.next) - run.start
        if stale > 0:
            self._report_stale(run.start, run.start + stale, run.offset)
        if run.end <= self.next:
            return []
        if stale > 0:
            run = Run(self.next, run.end, self._cut(run.data, stale), run.offset)
        self.next = run.end
        return [run]

    def _report_stale(self, start: int, end: int, offset: int) -> None:
        late = max(0, min(end, self._first) - start)
        for low, high in reversed(self._gaps):
            if high <= start:
                break
            late += max(0, min(end, high) - max(start, low))
        if late:
            self._report("late", late, offset)
        if end - start > late:
            self._report("duplicate", end - start - late, offset)
