"""How far a long run is: its rate and when it will be over."""

from __future__ import annotations

import os
import sys
import time
from typing import Final

from rich.console import Console

#: Seconds between two lines: on a terminal, where one takes the other's place, and elsewhere.
_TERMINAL_S: Final = 0.5
_ELSEWHERE_S: Final = 20.0

#: Columns of an output that is no terminal: a table there is as wide as it is.
_WIDTH: Final = 200


def report_console() -> Console:
    """For standard output; a pipe or a file has no width, so that no table is cut short there."""
    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if narrow else _WIDTH)


class Progress:
    """Says `name: 12,400 of 100,000 states, 1,530/s, 57 s left` on standard error."""

    def __init__(self, console: Console, name: str, total: int, what: str = "states") -> None:
        self._console, self._name, self._total, self._what = console, name, total, what
        self._began = self._told = time.perf_counter()
        self._done = self._violations = 0

    def add(self, count: int, violations: int = 0) -> None:
        self._done += count
        self._violations += violations
        now = time.perf_counter()
        if now - self._told >= (_TERMINAL_S if self._console.is_terminal else _ELSEWHERE_S):
            self._told = now
            self._console.print(
                self.line(now), end="\r" if self._console.is_terminal else "\n", soft_wrap=True
            )

    def line(self, now: float) -> str:
        rate = self._done / max(now - self._began, 1e-9)
        left = max(self._total - self._done, 0) / rate if rate else 0.0
        said = (
            f"{self._name}: {self._done:,} of {self._total:,} {self._what}, {rate:,.0f}/s, {left:,.0f} s left"
        )
        return said + (f", {self._violations} violations" if self._violations else "")

    def close(self) -> None:
        if self._console.is_terminal:
            self._console.print(" " * 78, end="\r")
