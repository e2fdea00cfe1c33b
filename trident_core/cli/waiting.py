"""What a user is told while kernels compile: a line that counts on a terminal, one line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from trident_core import compiling
from trident_core.compiling import Compiling

#: Shows a line in place of the one before; "" takes it away.
Show = Callable[[str], None]

#: All of the project's kernels take about this long on an idle server core (`trident warm` says how long).
SECONDS_IN_ALL = 100


class Waiting:
    """Turns what `trident_core.compiling` tells into lines on stderr."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._bars: list[Show] = []
        self.one_line = True  # where stderr is no terminal

    def __call__(self, news: Compiling) -> None:
        first = self._began is None
        began = self._began = time.monotonic() if self._began is None else self._began
        with suppress(OSError, ValueError):  # nobody reads it
            if not sys.stderr.isatty():
                if first and self.one_line:
                    print("compiling kernels, once; `trident warm` compiles all", file=sys.stderr)
                return
            text = ""
            if news.busy:
                text = (
                    f"compiling kernels, once: {news.package}, {news.done} of about {news.known}, "
                    f"{time.monotonic() - began:.0f} s (all there are: ~{SECONDS_IN_ALL} s)"
                )
            (self._bars[-1] if self._bars else _rewrite)(text)

    @contextmanager
    def shown_by(self, show: Show) -> Iterator[None]:
        """While a progress bar has the terminal, the line is the bar's note."""
        self._bars.append(show)
        try:
            yield
        finally:
            self._bars.remove(show)


def _rewrite(text: str) -> None:
    """The terminal's line, anew."""
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


_waiting = Waiting()
shown_by = _waiting.shown_by


def begin() -> None:
    """From now on, kernels that compile are shown."""
    compiling.tell(_waiting)


def expected() -> None:
    """The command is there to compile, and says itself what it does."""
    _waiting.one_line = False
