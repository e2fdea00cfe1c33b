"""`python -m trident_conformance [--json] [--quick] [pytest arguments…]`: every engine against every
suite. `python -m trident_conformance bitrot`: what stores say of damaged files."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

try:
    import pytest
except ModuleNotFoundError:  # the suite's own tools are an extra
    sys.exit("error: pytest is missing\nhint: pip install 'trident-core[conformance]'")
from rich.console import Console
from rich.table import Table

from trident_conformance.engines import engines_of

_SUITES: Final = ("parser", "book", "store", "query", "pipeline")


@dataclass
class Cell:
    """One engine in one suite. `failures` are the test ids."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def shown(self) -> str:
        colour = "red" if self.failed else "green" if self.passed else "yellow"
        parts = [f"[{colour}]{self.passed} passed[/]" if self.passed or not self.failed else ""]
        parts += [f"[red]{self.failed} failed[/]" if self.failed else ""]
        parts += [f"[yellow]{self.skipped} skipped[/]" if self.skipped else ""]
        return ", ".join(filter(None, parts)) + f" [dim]{self.seconds:.1f} s[/]"


class Matrix:
    """A pytest plugin that counts outcomes by engine and suite."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], dict[str, Cell]] = {}
        self._places: dict[str, tuple[list[tuple[str, str]], str]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            suite = item.path.stem.split("_")[1]
            engines = [(str(engine.kind), engine.name) for engine in engines_of(item)]
            if suite in _SUITES and engines:
                self._places[item.nodeid] = (engines, suite)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        engines, suite = self._places.get(report.nodeid, ([], ""))
        for engine in engines:
            self._count(self.cells.setdefault(engine, {}).setdefault(suite, Cell()), report)

    @staticmethod
    def _count(cell: Cell, report: pytest.TestReport) -> None:
        cell.seconds += report.duration
        if report.failed:
            cell.failed += 1
            cell.failures.append(report.nodeid)
        elif report.skipped:
            cell.skipped += 1
        elif report.when == "call":
            cell.passed += 1

    def ordered(self) -> Iterator[tuple[str, str, dict[str, Cell]]]:
        for kind, name in sorted(self.cells, key=lambda engine: (_SUITES.index(engine[0]), engine[1])):
            yield kind, name, self.cells[kind, name]

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {"kind": kind, "engine": name, "suites": {suite: asdict(cell) for suite, cell in cells.items()}}
            for kind, name, cells in self.ordered()
        ]

    def table(self) -> Table:
        table = Table(title="Conformance", title_justify="left")
        for column in ("kind", "engine", "its own suite", "in the line"):
            table.add_column(column)
        for kind, name, cells in self.ordered():
            own, line = cells.get(kind), cells.get("pipeline")
            table.add_row(kind, name, own.shown() if own else "-", line.shown() if line else "-")
        return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites; print the matrix, or with --json the same as JSON and pytest's report on standard
    error.

    Other arguments go to pytest. Returns pytest's exit status (0: all passed), 1 when no engine was tested.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["bitrot"]:
        from trident_conformance import bitrot

        return bitrot.main(given[1:])
    as_json = "--json" in given
    matrix = Matrix()
    # The suite is run by its own rules, whatever project the current folder belongs to.
    fixed = [
        "-o",
        "addopts=",
        "-p",
        "trident_conformance.plugin",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
    ]
    verbosity = [] if any(a.startswith(("-v", "-q", "--verbose", "--quiet")) for a in given) else ["-q"]
    command = [*fixed, *verbosity, *(a for a in given if a != "--json"), "--pyargs", "trident_conformance"]
    # hypothesis keeps notes in the current folder; a stranger's folder is left as it was.
    scratch = tempfile.TemporaryDirectory(prefix="trident-conformance-")
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", scratch.name)
    with scratch, contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        status = int(pytest.main(command, plugins=[matrix]))
    if status == 0 and not matrix.cells:
        status = 1
    if as_json:
        print(json.dumps({"ok": status == 0, "engines": matrix.to_json()}, indent=1))
    else:
        Console().print(matrix.table())
    return status


if __name__ == "__main__":
    sys.exit(main())
