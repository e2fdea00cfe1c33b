"""The book's side of the ring, with the store behind it in a thread of this process."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from trident_core.contracts import Store
from trident_core.dtypes import Events
from trident_core.line.drain import Drain, DrainOptions
from trident_core.line.pinning import pin
from trident_core.ring import Ring
from trident_core.session import Session


@dataclass(slots=True)
class WriterReport:
    """What the writer did. `line`: as `Drain.report`. `notices`: what was done otherwise than asked."""

    stored: int = 0
    durable_seq: int = 0
    busy_s: float = 0.0
    full_waits: int = 0
    full_wait_s: float = 0.0
    line: dict[str, Any] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)


class Writer(Protocol):
    """Where the line puts events: the producer's end of a ring with a store behind it."""

    def put(self, events: Events) -> bool:
        """Hand events over; False when the store has failed. Waits while the ring is full, which the ladder
        prevents in live mode."""
        ...

    def finish(self) -> None:
        """Let the store take what is in the ring, and sync; a second Ctrl-C does not cut that short."""
        ...

    def raise_error(self) -> None:
        """Raise what the store raised, if it did."""
        ...

    def report(self) -> WriterReport: ...


class ThreadWriter:
    """A ring, and a thread that drains it into the store."""

    def __init__(
        self, store: Store, session: Session, options: DrainOptions, *, ring_capacity: int,
        cpu: int | None = None,
    ) -> None:  # fmt: skip
        self.ring = Ring(ring_capacity)
        self._drain = Drain(self.ring, store, session, options)
        self._error: BaseException | None = None
        self._notices: list[str] = []
        self._cpu = cpu
        self.ring.warm_up()
        if options.faults is not None:
            options.faults.start()
        self._thread = threading.Thread(target=self._run, name="trident-store", daemon=True)
        self._thread.start()

    def put(self, events: Events) -> bool:
        """See `Writer.put`."""
        return self.ring.push(np.ascontiguousarray(events), give_up=self._failed) == len(events)

    def finish(self) -> None:
        """See `Writer.finish`."""
        self.ring.close()
        while self._thread.is_alive():
            with suppress(KeyboardInterrupt):
                self._thread.join()

    def raise_error(self) -> None:
        """See `Writer.raise_error`."""
        if self._error:
            raise self._error

    def report(self) -> WriterReport:
        """See `Writer.report`."""
        drain = self._drain
        return WriterReport(
            drain.stored, drain.durable_seq, drain.busy_s, self.ring.full_waits,
            self.ring.full_wait_ns / 1e9,
            {"stages": "threads", "dropped": self.ring.pushed - drain.stored} | drain.report(), self._notices,
        )  # fmt: skip

    def _failed(self) -> bool:
        return self._error is not None

    def _run(self) -> None:
        try:
            if self._cpu is not None and (refusal := pin(self._cpu)):
                self._notices.append(refusal)
            self._drain.run()
        except BaseException as error:  # handed to the calling thread, which raises it
            self._error = error
