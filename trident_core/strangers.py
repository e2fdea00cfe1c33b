"""Calling code of strangers at discovery: bounded in time, and whatever it raises or prints is contained.

A plugin's module is imported and its hooks are called in a thread of their own, so that one that hangs can be
left behind; it ends with the process. What cannot be bounded is code that never gives the interpreter lock
back (a C extension that loops): nothing in the same process can.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

#: How long one import or one hook of a stranger may take, s; and all of them together.
LIMIT_S: Final = 5.0
TOTAL_S: Final = 10.0


class TookTooLongError(Exception):
    """A call that had not returned in its time and was left behind."""

    def __init__(self, seconds: float) -> None:
        late = f"did not return within {seconds:g} s"
        super().__init__(late if seconds else "was not tried: the plugins before it took all the time")
        self.seconds = seconds


class Budget:
    """Time for a series of calls: `limit` seconds each, `total` seconds together."""

    def __init__(self, limit: float = LIMIT_S, total: float = TOTAL_S) -> None:
        self._limit, self._end = limit, time.monotonic() + total

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
            raise TookTooLongError(allowed)
        value, error = outcome[0]
        if error is not None:
            raise error
        return value
