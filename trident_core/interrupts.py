"""Ctrl-C and SIGTERM between batches, never inside one.

A KeyboardInterrupt can strike between any two bytecodes: inside a book it would leave an order without its
level. While a batch is held, a signal is only noted; `release` raises it. A signal that some library
swallowed (numba's compiler does) is raised at the next release, too.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """A context in which signals wait for `release`. Signals without a handler of Python's are left alone,
    and so is everything outside the main thread, where no handler runs."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._held = self._pending = False

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        self._held = False
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hold(self) -> None:
        """From now on a signal is noted only."""
        self._held = True

    def release(self) -> None:
        """Raise KeyboardInterrupt if a signal came, and let later ones act at once."""
        self._held = False
        if self._pending:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._pending = True
        if not self._held:
            self._before[number](number, frame)
