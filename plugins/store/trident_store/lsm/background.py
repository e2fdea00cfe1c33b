"""One thread beside the writer, that does what is due and then waits."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Background:
    """Calls `step` until it is stopped. `step` does what is due and returns after how many seconds it wants
    to be called again (None: not before `wake`). It must not raise; the thread starts with the first wake."""

    def __init__(self, name: str, step: Callable[[], float | None]) -> None:
        self._name, self._step = name, step
        self._wanted = threading.Event()
        self._thread: threading.Thread | None = None
        self.stopping = False

    def wake(self) -> None:
        """Have `step` called soon."""
        self._wanted.set()
        if self._thread is None and not self.stopping:
            self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread after the step it is in; `step` may look at `stopping` to be quick. Idempotent."""
        self.stopping = True
        self._wanted.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _loop(self) -> None:
        while not self.stopping:
            self._wanted.clear()
            wait = self._step()
            if not self.stopping:
                self._wanted.wait(wait)
