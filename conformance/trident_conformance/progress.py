"""What a run of several processes shows while it goes on."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from typing import Final

from rich.console import Console

from trident_conformance.matrix import Case, Matrix, cells_of

#: Seconds between two looks of the line on a terminal.
_EVERY_S: Final = 0.2


class Progress:
    """On a terminal one line that changes, elsewhere a line for each engine whose cases have all ended."""

    def __init__(self, console: Console) -> None:
        self._console, self._stack = console, ExitStack()
        self._left: Counter[tuple[str, str]] = Counter()
        self._ended = self._failed = 0
        self._looked = 0.0
        self._status = console.status("collecting the cases …") if console.is_terminal else None

    def __enter__(self) -> Progress:
        if self._status:
            self._stack.enter_context(self._status)
        else:
            self._console.print("collecting the cases …")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def told(self, matrix: Matrix, case: Case) -> None:
        """A case has ended."""
        if not self._left:
            self._left.update(engine for each in matrix.cases.values() for engine in each.engines)
        self._ended += 1
        self._failed += case.outcome == "failed"
        self._left.subtract(case.engines)
        if self._status:
            self._line(matrix, case)
            return
        for engine in case.engines:
            if not self._left[engine]:
                suites, _ = cells_of(matrix.cases.values())[engine]
                own = [suites[engine[0]].shown()] if engine[0] in suites else []
                line = [f"in the line {suites['pipeline'].shown()}"] if "pipeline" in suites else []
                self._console.print(f"{' '.join(engine)}: {'; '.join(own + line)}", soft_wrap=True)

    def _line(self, matrix: Matrix, case: Case) -> None:
        assert self._status is not None
        if time.monotonic() - self._looked > _EVERY_S:
            self._looked = time.monotonic()
            failed = f", [red]{self._failed} failed[/]" if self._failed else ""
            now = ", ".join(" ".join(engine) for engine in case.engines)
            self._status.update(f"{self._ended:,} of {len(matrix.cases):,} cases{failed}  [dim]{now}[/]")
