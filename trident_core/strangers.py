"""Calling code of strangers at discovery: bounded in time, and whatever it raises or prints is contained.

A plugin's module is imported and its hooks are called in a thread of their own, so that one that hangs can be
left behind; it ends with the process. What cannot be bounded is code that never gives the interpreter lock
back (a C extension that loops): nothing in the same process can.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

#: How long one import or one hook of a stranger may take, s; and all of them together.
LIMIT_S: Final = 5.0
TOTAL_S: Final = 10.0
#: And how long one that was late in an earlier run, s, unless it is asked for by `trident plugins`.
AGAIN_S: Final = 0.2
#: So many late plugins are remembered between runs.
REMEMBERED: Final = 64


class TookTooLongError(Exception):
    """A call that had not returned in its time and was left behind. `before`: it was so in an earlier run."""

    def __init__(self, seconds: float, *, before: bool = False) -> None:
        late = f"did not return within {seconds:g} s"
        if before:
            late = (
                f"did not return within {LIMIT_S:g} s before, nor now; `trident plugins` waits for it again"
            )
        super().__init__(late if seconds else "was not tried: the plugins before it took all the time")
        self.seconds = seconds


class Budget:
    """Time for a series of calls: `limit` seconds each, `total` seconds together."""

    def __init__(self, limit: float = LIMIT_S, total: float = TOTAL_S) -> None:
        self._limit, self._end, self._before = limit, time.monotonic() + total, False

    @property
    def waits_long(self) -> bool:
        """Does a call get the usual time?"""
        return self._limit >= LIMIT_S

    def for_one_that_was_late(self) -> Budget:
        """The same budget, with little time for each call."""
        made = Budget(min(self._limit, AGAIN_S))
        made._end, made._before = self._end, True
        return made

    def call(self, function: Callable[[], Any]) -> Any:
        """What `function()` returns or raises (SystemExit included). Raises TookTooLongError.

        Standard output goes to standard error meanwhile: what a plugin prints must not end up in --json.
        """
        allowed = min(self._limit, self._end - time.monotonic())
        if allowed <= 0:
            raise TookTooLongError(0)
        outcome: list[tuple[Any, BaseException | None]] = []

        def run() -> None:
            try:
                outcome.append((function(), None))
            except BaseException as error:  # handed to the caller, whatever it is
                outcome.append((None, error))

        thread = threading.Thread(target=run, name="trident-plugin", daemon=True)
        with contextlib.redirect_stdout(sys.stderr):
            thread.start()
            thread.join(allowed)
        if not outcome:  # left behind: to stop a thread inside an import would leave its locks taken
            raise TookTooLongError(allowed, before=self._before)
        value, error = outcome[0]
        if error is not None:
            raise error
        return value


class LatePlugins:
    """Which plugins were waited for in vain in earlier runs: a small file in the user's cache, so that one
    that hangs costs its seconds once and not with every command. A file that cannot be read or written is
    as good as none."""

    def __init__(self) -> None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self._path = Path(home) / "trident" / "late-plugins.json"
        self._keys = self._read()

    def __contains__(self, key: str) -> bool:
        return self._full(key) in self._keys

    def note(self, key: str, *, late: bool) -> None:
        """Remember that a plugin was late, or that it was not."""
        full = self._full(key)
        if late == (full in self._keys):
            return
        kept = [other for other in self._keys if other != full]
        self._keys = [*kept, full][-REMEMBERED:] if late else kept
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(self._keys), encoding="utf-8")
            part.replace(self._path)

    def _full(self, key: str) -> str:
        return f"{sys.prefix} {key}"

    def _read(self) -> list[str]:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [key for key in found if isinstance(key, str)] if isinstance(found, list) else []
