"""A run of the suites: pytest behind it, the matrix, the report and the failures in front."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from rich.console import Console

from trident_conformance import page
from trident_conformance.matrix import Case, Matrix

#: The suite is run by its own rules, whatever project the current folder belongs to.
_FIXED: Final = [
    "-o", "addopts=", "-p", "trident_conformance.plugin", "-p", "no:cacheprovider", "--import-mode=importlib",
]  # fmt: skip
#: Failures that are shown whole; of the others the id is told.
SHOWN: Final = 5


def run(arguments: Sequence[str]) -> int:
    """Run the suites; print the matrix and the first failures, or with --json the same as JSON, and pytest's
    report on standard error. `--report PATH` writes an HTML page, too. Other arguments go to pytest.

    Returns pytest's exit status (0: all passed), 1 when no engine was tested.
    """
    given = list(arguments)
    as_json = "--json" in given
    report = _taken(given, "--report")
    matrix = Matrix()
    quiet = [] if any(a.startswith(("-v", "-q", "--verbose", "--quiet")) for a in given) else ["-q"]
    style = [] if any(a.startswith("--tb") for a in given) else ["--tb=no"]
    words = [*_FIXED, *quiet, *style, *(a for a in given if a != "--json"), "--pyargs", "trident_conformance"]
    # hypothesis keeps notes in the current folder; a stranger's folder is left as it was.
    scratch = tempfile.TemporaryDirectory(prefix="trident-conformance-")
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", scratch.name)
    with scratch, contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        status = int(pytest.main(words, plugins=[matrix]))
    if status == 0 and not matrix.cases:
        status = 1
    if report and matrix.cases:
        page.write(Path(report), matrix, command=shlex.join(["trident", "conform", *arguments]))
    if as_json:
        failures = [_told(case) for case in matrix.failed()]
        print(json.dumps({"ok": status == 0, "engines": matrix.to_json(), "failures": failures}, indent=1))
    else:
        _print(matrix, report)
    return status


def _taken(words: list[str], option: str) -> str | None:
    """The value of an option, which is taken out of `words`. Raises pytest.UsageError without one."""
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == option:
            if not equals and i + 1 == len(words):
                raise pytest.UsageError(f"{option} needs the path of a file")
            taken = value if equals else words[i + 1]
            del words[i : i + (1 if equals else 2)]
            return taken
    return None


def _told(case: Case) -> dict[str, object]:
    return {"id": case.id, "rules": case.rules, "reason": case.reason, **case.evidence}


def _print(matrix: Matrix, report: str | None) -> None:
    out = Console(highlight=False)
    failed = matrix.failed()
    for case in failed[:SHOWN]:
        held = f" ({case.held()})" if case.rules else ""
        out.print(f"\n[bold red]failed[/] {_plain(case.id)}{held}", soft_wrap=True)
        out.print(case.reason, markup=False, soft_wrap=True)
        for title, text in case.evidence.items():
            out.print(f"\n[bold]{_plain(title)}[/]", soft_wrap=True)
            out.print(text, markup=False, soft_wrap=True)
    if len(failed) > SHOWN:
        out.print(f"\nand {len(failed) - SHOWN} more failures:")
        for case in failed[SHOWN:]:
            out.print(f"  {case.id}", markup=False, soft_wrap=True)
    if matrix.cases:
        out.print()
        out.print(matrix.table())
    if report and matrix.cases:
        out.print(f"report: {report}", markup=False)


def _plain(text: str) -> str:
    """Ids have brackets, which are no markup."""
    return text.replace("[", "\\[")
