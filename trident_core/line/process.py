"""The book's side of a ring that another process drains: `--stages processes`.

Neither process outlives the other for longer than it takes to store what is in the ring: the child sees its
standard input end, this one sees the child's exit. The ring's memory has no name that could be left over.
"""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trident_core import errors
from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError, TridentError
from trident_core.line.shared import SharedRing
from trident_core.line.writer import WriterReport
from trident_core.session import Session


@dataclass(slots=True)
class StoreOrders:
    """What the store's process is to do. `engine`: a store engine's name; `inject`: faults, as texts."""

    path: Path
    mode: str
    engine: str
    live: bool = False
    batch: int = 1 << 14
    sync_interval_s: float = 1.0
    inject: tuple[str, ...] = ()
    cpu: int | None = None


class ProcessWriter:
    """A shared ring, and a process that drains it into the store. `stats` and `last_event` are the store's as
    it was opened, `final` its figures when it was closed. See `trident_core.line.writer.Writer`.

    Raises what opening the store raises, in the other process; StoreError when that dies.
    """

    def __init__(self, orders: StoreOrders, session: Session, *, ring_capacity: int) -> None:
        self._orders, self._session = orders, session
        self._error: TridentError | None = None
        self._done: dict[str, Any] | None = None
        self._shared = SharedRing.create(ring_capacity)
        self.ring = self._shared.ring
        try:
            self.ring.warm_up()
            self._child = self._start(ring_capacity)
        except BaseException:
            self._shared.close()
            raise
        try:
            ready = self._read()
            if "ready" not in ready:
                raise self._died() if not ready else _error_of(ready)
        except BaseException:
            self._abandon()
            raise
        self.stats: dict[str, int] = ready["ready"]["stats"]
        raw = base64.b64decode(ready["ready"]["last_event"])
        self.last_event: Events | None = np.frombuffer(raw, EVENT).copy() if raw else None
        self.final: dict[str, int] = {}
        self._listener = threading.Thread(target=self._listen, name="trident-store-process", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Of the store's process."""
        return self._child.pid

    # -- Writer --

    def put(self, events: Events) -> bool:
        """See `Writer.put`."""
        if self._error is not None:
            return False
        self._shared.publish(self._session)
        return self.ring.push(np.ascontiguousarray(events), give_up=self._failed) == len(events)

    def finish(self) -> None:
        """See `Writer.finish`. Idempotent."""
        if self._error is None and self._shared.handle >= 0:
            with suppress(TridentError):
                self._shared.publish(self._session)
        self.ring.close()
        while self._listener.is_alive():
            with suppress(KeyboardInterrupt):
                self._listener.join()
        self._shared.close()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def raise_error(self) -> None:
        """See `Writer.raise_error`."""
        if self._error is not None:
            raise self._error

    def report(self) -> WriterReport:
        """See `Writer.report`."""
        done = self._done or {}
        stored = done.get("stored", 0)
        line = {"stages": "processes", "dropped": self.ring.pushed - stored} | done.get("line", {})
        return WriterReport(
            stored, done.get("durable_seq", 0), done.get("busy_s", 0.0), self.ring.full_waits,
            self.ring.full_wait_ns / 1e9, line, done.get("notices", []),
        )  # fmt: skip

    # -- the other process --

    def _start(self, capacity: int) -> subprocess.Popen[str]:
        orders, handle = self._orders, self._shared.handle
        child = subprocess.Popen(
            [sys.executable, "-m", "trident_core.line.child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, pass_fds=(handle,), process_group=0,  # Ctrl-C is for this process
        )  # fmt: skip
        assert child.stdin is not None
        words = {
            "handle": handle, "capacity": capacity, "path": str(orders.path.absolute()), "mode": orders.mode,
            "engine": orders.engine, "live": orders.live, "batch": orders.batch, "cpu": orders.cpu,
            "sync_interval_s": orders.sync_interval_s, "inject": list(orders.inject),
            "session": self._session.to_json(),
        }  # fmt: skip
        with suppress(BrokenPipeError):  # it died; what it said is read next
            child.stdin.write(json.dumps(words) + "\n")
            child.stdin.flush()
        return child

    def _read(self) -> dict[str, Any]:
        """The child's next message; empty when there is none, for it has ended."""
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        try:
            found: dict[str, Any] = json.loads(line or "{}")
        except ValueError:  # cut short by its death
            return {}
        return found

    def _listen(self) -> None:
        message = self._read()
        if "done" in message:
            self._done = message["done"]
            self.final = message["done"]["stats"]
            self._child.wait()
        elif message:
            self._error = _error_of(message)
            self._child.wait()
        else:
            self._error = self._died()

    def _died(self) -> StoreError:
        code = self._child.wait()
        how = f"ended with code {code}"
        if code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        return StoreError(
            f"the store's process {self._child.pid} {how}; the store {self._orders.path} has what was synced",
            hint="what it had acknowledged is safe; go on with --resume",
        )

    def _abandon(self) -> None:
        """Opening failed or was interrupted: no process stays behind."""
        self.ring.close()
        assert self._child.stdin is not None
        with suppress(OSError):
            self._child.stdin.close()
        try:
            self._child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        if self._child.stdout is not None:
            self._child.stdout.close()
        self._shared.close()

    def _failed(self) -> bool:
        return self._error is not None


def _error_of(message: dict[str, Any]) -> TridentError:
    """The error that the other process told."""
    told = message["error"]
    kind = getattr(errors, told["type"], None)
    if kind in (errors.UsageError, errors.InputError, errors.PluginError, errors.StoreError):
        made: TridentError = kind(told["message"], hint=told["hint"])
        return made
    if isinstance(kind, type) and issubclass(kind, StoreError):  # with a place in it: in words already
        return StoreError(told["message"], hint=told["hint"])
    return TridentError(f"a bug in the store's process: {told['message']}")
