"""Behind the ring: events go into the store, and durable, by the thread or process that calls `run`.

In live mode a second thread watches how full the ring is. It moves the ladder, and on its last rung takes
events out of the ring into the spill, so that the book never meets a full ring; the store's thread then takes
them from there, oldest first, before it takes anything from the ring again. One lock guards who takes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from trident_core.contracts import Pressure, Sheddable, Store
from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError
from trident_core.filesystem import FileSystem, OsFileSystem
from trident_core.line.faults import Faults
from trident_core.line.ladder import Ladder, Thresholds
from trident_core.line.spill import Spill
from trident_core.line.spill_recovery import last_event
from trident_core.ring import Ring
from trident_core.session import Session

#: The watch looks at the ring this often, in seconds.
WATCH_S: Final = 0.001
#: Even while syncs are put off, one is made after so long, in seconds.
SHED_SYNC_MAX_S: Final = 10.0
#: Events that the watch spills at a time.
SPILL_BATCH: Final = 1 << 15
_NAP_FIRST, _NAP_LAST = 20e-6, 1e-3


@dataclass(slots=True)
class DrainOptions:
    """`batch`: events appended at a time. `sync_interval_s`: the store is synced at least this often while it
    has something new. `live`: the ladder is used, the book does not wait. `spill_folder`: where spill files
    go; None: the ladder ends at ShedIndex. `shed_sync_max_s`: the longest that a sync is put off."""

    batch: int = 1 << 14
    sync_interval_s: float = 1.0
    live: bool = False
    spill_folder: Path | None = None
    shed_sync_max_s: float = SHED_SYNC_MAX_S
    thresholds: Thresholds = field(default_factory=Thresholds)
    filesystem: FileSystem | None = None
    faults: Faults | None = None


class Drain:
    """One run of the store behind a ring. `before_append` is called when events were taken, before they are
    appended: what the session gained must be there then.

    `stored`, `durable_seq`, `busy_s` and `report` are for whoever waited for `run`.
    """

    def __init__(
        self,
        ring: Ring,
        store: Store,
        session: Session,
        options: DrainOptions,
        before_append: Callable[[], None] = lambda: None,
    ) -> None:
        self.stored, self.durable_seq, self.busy_s = 0, 0, 0.0
        self.syncs = self.syncs_deferred = 0
        self._ring, self._store, self._session, self._options = ring, store, session, options
        self._before_append = before_append
        folder = options.spill_folder if options.live else None
        highest = Pressure.SHED_INDEX if folder is None else Pressure.RAW_SPILL
        self._ladder = Ladder(time.monotonic(), options.thresholds, highest=highest)
        self._files = options.filesystem or OsFileSystem()
        self._spill = Spill(self._files, folder, session) if folder is not None else None
        self._spill_failure = ""
        self._pocket: Events = np.zeros(0, EVENT)  # taken for the spill, which then refused them
        self._last = (
            last_event(store) if self._spill else None
        )  # EVENT[1]: what was taken out of the ring last
        self._taking = threading.Lock()
        self._over = threading.Event()
        self._synced = self._sync_at = time.perf_counter()  # the last sync, and the last that was due
        self._watch_error: BaseException | None = None

    def run(self) -> None:
        """Until the ring is closed and drained, and everything in the store is durable. Raises what the store
        raises; what was spilled then stays on the disk, for the next opening."""
        watch = threading.Thread(target=self._watch, name="trident-watch", daemon=True)
        if self._options.live:
            watch.start()
        try:
            self._loop()
        finally:
            self._over.set()
            if self._options.live:
                watch.join()
            self._ladder.finish(time.monotonic())
            self._shed(Pressure.NORMAL)
            if self._spill is not None:
                self._spill.close()
        if self._watch_error is not None:
            raise self._watch_error

    def report(self) -> dict[str, Any]:
        """What happened behind the ring, for the statistics of the run."""
        spill = self._spill
        return {
            "mode": "live" if self._options.live else "backpressure",
            "ladder": list(self._ladder.census()) if self._options.live else [],
            "syncs": self.syncs,
            "syncs_deferred": self.syncs_deferred,
            "spilled_events": spill.events if spill else 0,
            "spilled_bytes": spill.bytes if spill else 0,
            "spill_peak_events": spill.peak_events if spill else 0,
            "spill_failure": self._spill_failure,
            "injected": self._options.faults.to_json() if self._options.faults else [],
        }

    # -- the store's thread --

    def _loop(self) -> None:
        out = np.zeros(self._options.batch, EVENT)
        clock, nap = time.perf_counter, _NAP_FIRST
        self._synced = self._sync_at = clock()
        dirty = False
        while (count := self._take(out)) >= 0:
            if not count:
                if dirty and self._sync_is_due(clock()):
                    dirty = not self._sync()
                time.sleep(nap)
                nap = min(nap * 2, _NAP_LAST)
                continue
            began, nap, dirty = clock(), _NAP_FIRST, True
            if self._options.faults is not None:
                self._options.faults.ring()
            self._before_append()
            if self._spill is not None:
                self._spill.note_symbols()
            self._store.append(out[:count])
            self.stored += count
            if self._sync_is_due(began):
                dirty = not self._sync()
            self.busy_s += clock() - began
        began = clock()
        self._sync()
        self.busy_s += clock() - began

    def _take(self, out: Events) -> int:
        """The next events: spilled ones, else of the ring; 0: none yet, -1: there will be none."""
        with self._taking:
            if self._spill is not None and self._spill.pending:
                return self._spill.take(out)
            if len(self._pocket):
                count = min(len(out), len(self._pocket))
                out[:count], self._pocket = self._pocket[:count], self._pocket[count:]
                return count
            count = self._ring.try_pop(out)
            if count > 0:
                self._last = out[count - 1 : count].copy()
            return count

    def _sync_is_due(self, now: float) -> bool:
        """By the interval; put off while the ladder stands above Normal, though not for ever."""
        interval = self._options.sync_interval_s
        if now - self._sync_at < interval:
            return False
        if self._ladder.level and now - self._synced < max(interval, self._options.shed_sync_max_s):
            self.syncs_deferred += 1
            self._sync_at = now
            return False
        return True

    def _sync(self) -> bool:
        """Make everything durable; True."""
        self.durable_seq = self._store.sync()
        self.syncs += 1
        self._synced = self._sync_at = time.perf_counter()
        if self._spill is not None:
            with self._taking:
                self._spill.release()
        return True

    # -- the watch's thread --

    def _watch(self) -> None:
        try:
            while not self._over.wait(WATCH_S):
                if not self._ring.pushed:  # the line is still starting
                    self._ladder.begin(time.monotonic())
                    continue
                before = self._ladder.level
                fill = len(self._ring) / self._ring.capacity
                spilled = self._spill is not None and self._spill.pending > 0
                level = self._ladder.look(fill, time.monotonic(), spilled=spilled)
                if level != before:
                    self._shed(level)
                if level is Pressure.RAW_SPILL and not self._spill_failure:
                    self._spill_over()
        except BaseException as error:  # raised by `run`
            self._watch_error = error

    def _shed(self, level: Pressure) -> None:
        if isinstance(self._store, Sheddable):
            self._store.shed(level)

    def _spill_over(self) -> None:
        """Take events out of a ring that is nearly full, until it is down to where the rung is left."""
        keep = int(self._options.thresholds.down[-1] * self._ring.capacity)
        while len(self._ring) > keep and not self._spill_failure and not self._over.is_set():
            with self._taking:
                if self._spill is None or len(self._pocket):
                    return
                buffer = np.empty(SPILL_BATCH, EVENT)
                count = self._ring.try_pop(buffer)
                if count <= 0:
                    return
                events = buffer[:count]
                try:
                    self._spill.put(events, self._last)
                except (OSError, StoreError) as error:
                    self._spill_failure = str(getattr(error, "strerror", None) or error)
                    self._pocket = events
                self._last = events[-1:].copy()
