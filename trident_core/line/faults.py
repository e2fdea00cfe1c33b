"""Faults on request: `--inject fsync-stall=77ms@3s`: what the store's disk does, and when.

    KIND[=VALUE]@WHEN

WHEN: `3s`, `250ms` (the first call after that long), `7` (the seventh call), `64MiB` (once so many bytes were
written); with a `+` behind it, every call from then on. Time starts when the store is opened.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from trident_core.errors import UsageError
from trident_core.filesystem import Buffer, FileSystem, OsFileSystem

#: kind -> (what the value is: "time", "errno" or "" for none, its default, the calls it strikes, help)
KINDS: Final[dict[str, tuple[str, str, str, str]]] = {
    "fsync-stall": ("time", "77ms", "sync", "a sync takes so much longer"),
    "fsync-error": ("errno", "EIO", "sync", "a sync fails"),
    "slow-write": ("time", "5ms", "write", "a write takes so much longer"),
    "write-error": ("errno", "EIO", "write", "a write fails"),
    "short-write": ("", "", "write", "a write takes half of its bytes"),
    "enospc": ("", "", "write", "the disk is full: first a short write, then every one fails"),
    "ring-stall": ("time", "500ms", "ring", "the store's thread stands still, so that the ring fills"),
    "kill": ("", "", "write", "SIGKILL to the process that writes, in the middle of a write"),
}
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_BYTES: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_WHEN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|min|KiB|MiB|GiB)?(\+?)")
_TIME: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|min)")
_EXAMPLE: Final = "fsync-stall=77ms@3s, write-error=EIO@1000, enospc@64MiB, slow-write=5ms@1s+"


@dataclass(slots=True)
class Fault:
    """One fault: what, and when. `at` is seconds, a number of calls or bytes written, as `unit` says.
    `again`: from then on, always. `fired`: how often it struck."""

    text: str
    kind: str
    unit: str  # "s", "calls" or "bytes"
    at: float
    again: bool = False
    seconds: float = 0.0
    errno: int = 0
    fired: int = 0

    @property
    def call(self) -> str:
        return KINDS[self.kind][2]

    def due(self, seconds: float, calls: int, nbytes: int) -> bool:
        """Does it strike the call that comes `seconds` after the start, as number `calls`, after `nbytes`?"""
        if self.fired and not self.again:
            return False
        return {"s": seconds, "calls": calls, "bytes": nbytes}[self.unit] >= self.at


def parse_fault(text: str) -> Fault:
    """The fault that a text describes. Raises UsageError, which says what is wrong and what is right."""
    what, at, when = text.partition("@")
    kind, equals, value = what.partition("=")
    if kind not in KINDS:
        raise UsageError(f"--inject {text}: no fault {kind!r}", hint=f"there are {', '.join(KINDS)}")
    takes, default, _, _ = KINDS[kind]
    if not at or not (found := _WHEN.fullmatch(when)):
        raise UsageError(
            f"--inject {text}: when? {when!r} is no time, call or size",
            hint=f"@3s, @250ms, @7 (the seventh call), @64MiB, with + from then on: {_EXAMPLE}",
        )
    if equals and not takes:
        raise UsageError(f"--inject {text}: {kind} takes no value", hint=f"{kind}@{when}")
    number, suffix, again = found.groups()
    if suffix in _BYTES:
        fault = Fault(text, kind, "bytes", float(number) * _BYTES[suffix])
    elif suffix:
        fault = Fault(text, kind, "s", float(number) * _SECONDS[suffix])
    elif number.isdigit() and int(number):
        fault = Fault(text, kind, "calls", int(number))
    else:
        raise UsageError(f"--inject {text}: calls are counted from 1", hint=_EXAMPLE)
    if fault.unit == "bytes" and fault.call == "ring":
        raise UsageError(f"--inject {text}: a ring has no bytes written", hint="ring-stall=500ms@1s")
    fault.again = bool(again) or kind == "enospc"
    _set_value(fault, takes, value or default)
    return fault


def _set_value(fault: Fault, takes: str, value: str) -> None:
    if takes == "time":
        if not (found := _TIME.fullmatch(value)):
            raise UsageError(f"--inject {fault.text}: {value!r} is no time", hint="77ms, 1.5s, 200us")
        fault.seconds = float(found[1]) * _SECONDS[found[2]]
        if fault.seconds > 3_600:
            raise UsageError(f"--inject {fault.text}: longer than an hour", hint=_EXAMPLE)
    elif takes == "errno":
        number = getattr(errno, value, None)
        if not isinstance(number, int):
            raise UsageError(f"--inject {fault.text}: no error {value!r}", hint="EIO, ENOSPC, EROFS …")
        fault.errno = number


class Faults:
    """The faults of a run, and how far its calls have come. For any thread."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = list(faults)
        self._began = time.monotonic()
        self._calls = {"write": 0, "sync": 0, "ring": 0}
        self._bytes = 0
        self._lock = threading.Lock()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Faults | None:
        """Of the command line's texts; None when there are none. Raises UsageError."""
        return cls([parse_fault(text) for text in texts]) if texts else None

    def start(self) -> None:
        """From now on time is counted."""
        self._began = time.monotonic()

    def strike(self, call: str, nbytes: int = 0) -> list[Fault]:
        """The faults that this call meets, marked as fired. Their times are slept by the caller."""
        with self._lock:
            self._calls[call] += 1
            self._bytes += nbytes
            seconds = time.monotonic() - self._began
            due = [
                each
                for each in self.faults
                if each.call == call and each.due(seconds, self._calls[call], self._bytes)
            ]
            for each in due:
                each.fired += 1
        return due

    def ring(self) -> None:
        """The store's thread is about to take events out of the ring."""
        for fault in self.strike("ring"):
            time.sleep(fault.seconds)

    def to_json(self) -> list[dict[str, Any]]:
        return [{"fault": each.text, "fired": each.fired} for each in self.faults]


class FaultyFileSystem:
    """A file system whose writes and syncs meet faults. Everything else goes to the one behind it."""

    def __init__(self, faults: Faults, behind: FileSystem) -> None:
        self._faults, self._behind = faults, behind

    def write(self, handle: int, data: Buffer, offset: int) -> int:
        data = memoryview(data)
        for fault in self._faults.strike("write", len(data)):
            half = max(len(data) // 2, 1)
            if fault.kind == "slow-write":
                time.sleep(fault.seconds)
            elif fault.kind == "short-write":
                data = data[:half]
            elif fault.kind == "kill":
                self._behind.write(handle, data[:half], offset)
                os.kill(os.getpid(), signal.SIGKILL)
            elif fault.kind == "enospc" and fault.fired == 1 and len(data) > 1:
                data = data[:half]  # as a disk does: what fits, and the error next time
            else:
                number = fault.errno or errno.ENOSPC
                raise OSError(number, os.strerror(number))
        return self._behind.write(handle, data, offset)

    def sync(self, handle: int) -> None:
        self._meet_sync()
        self._behind.sync(handle)

    def sync_directory(self, path: Path) -> None:
        self._meet_sync()
        self._behind.sync_directory(path)

    def _meet_sync(self) -> None:
        for fault in self._faults.strike("sync"):
            time.sleep(fault.seconds)
            if fault.errno:
                raise OSError(fault.errno, os.strerror(fault.errno))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)


def faulty(faults: Faults, behind: FileSystem | None = None) -> FileSystem:
    """A file system that meets `faults`, in front of the real one or another."""
    return cast(FileSystem, FaultyFileSystem(faults, behind or OsFileSystem()))
