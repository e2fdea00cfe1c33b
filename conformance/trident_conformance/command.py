"""A run of the suites: pytest behind it, the matrix, the report and the failures in front."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from rich.console import Console

from trident_conformance import page
from trident_conformance.engines import KINDS
from trident_conformance.matrix import Case, Matrix, by_reason
from trident_conformance.progress import Progress
from trident_conformance.spread import Spread, processors

#: The suite is run by its own rules, whatever project the current folder belongs to.
FIXED: Final = [
    "-o", "addopts=", "-p", "trident_conformance.plugin", "-p", "no:cacheprovider", "--import-mode=importlib",
]  # fmt: skip
SUITES: Final = ["--pyargs", "trident_conformance"]
#: Failures that are shown whole unless --show says how many; of the others the id is told.
SHOWN: Final = 5
#: Reasons of skipped cases that are told.
REASONS: Final = 12


def run(arguments: Sequence[str]) -> int:
    """Run the suites; print the matrix and the first failures, or with --json the same as JSON, and what goes
    on meanwhile on standard error. `--report PATH` writes an HTML page, too; `--jobs N` sets how many
    processes share the work. Other arguments go to pytest; the suites then run in this process.

    Returns pytest's exit status (0: all passed), 1 when no engine was tested.
    """
    given, others = _options().parse_known_args(list(arguments))
    if others and (given.jobs or 1) > 1:
        print(f"ERROR: --jobs does not go with options of pytest: {' '.join(others)}", file=sys.stderr)
        return int(pytest.ExitCode.USAGE_ERROR)
    if (shown := _shown(given.show)) is None:
        print(f"ERROR: --show {given.show}: a number, or all", file=sys.stderr)
        return int(pytest.ExitCode.USAGE_ERROR)
    words = _suite_options(given)
    began = time.monotonic()
    # hypothesis keeps notes in the current folder; a stranger's folder is left as it was.
    with tempfile.TemporaryDirectory(prefix="trident-conformance-") as scratch:
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", scratch)
        few = others or given.case or given.keyword or given.tb not in (None, "no")
        processes = given.jobs or (1 if few else processors())
        if processes == 1:
            status, matrix = _here(words, others, given.tb, quietly=given.json)
        else:
            status, matrix = _spread(words, processes, quietly=given.json)
    if status == 0 and not matrix.cases:
        status = 1
    command = shlex.join(["trident", "conform", *arguments])
    if given.report and matrix.cases:
        page.write(Path(given.report), matrix, command=command, seconds=time.monotonic() - began)
    if given.json:
        _print_json(matrix, status, time.monotonic() - began)
    else:
        _print(matrix, given.report, time.monotonic() - began, processes, shown)
    return status


def _options() -> argparse.ArgumentParser:
    """The options that are the suite's, with or without a value; what it does not know is pytest's."""
    parser = argparse.ArgumentParser(prog="trident conform", allow_abbrev=False, add_help=False)
    for name in (*map(str, KINDS), "examples", "seed", "example", "contract", "known-failures"):
        parser.add_argument(f"--{name}")
    for name in ("report", "tb", "show"):
        parser.add_argument(f"--{name}")
    for name in ("case", "sample"):
        parser.add_argument(f"--{name}", action="append", default=[])
    for name in ("pairs", "quick", "json"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("-k", dest="keyword")
    return parser


def _suite_options(given: argparse.Namespace) -> list[str]:
    """What the pytest plugin is told."""
    words = [f"--{name}" for name in ("pairs", "quick") if getattr(given, name)]
    for name in (*map(str, KINDS), "examples", "seed", "example", "contract", "known-failures"):
        value = getattr(given, name.replace("-", "_"))
        words += [] if value is None else [f"--{name}={value}"]
    words += [f"--{name}={one}" for name in ("case", "sample") for one in getattr(given, name)]
    return words + (["-k", given.keyword] if given.keyword is not None else [])


def _shown(text: str | None) -> int | None:
    """How many failures are shown whole; None: the text says no number."""
    if text is None:
        return SHOWN
    if text == "all":
        return sys.maxsize
    return int(text) if text.isdecimal() and text.isascii() else None


def _here(
    words: Sequence[str], others: Sequence[str], tb: str | None, *, quietly: bool
) -> tuple[int, Matrix]:
    """In this process, with pytest's own report of what goes on. The failures' ids are told at the end."""
    matrix = Matrix()
    usual = [] if any(word.startswith(("-v", "-q", "--verbose", "--quiet")) for word in others) else ["-q"]
    usual += [] if any(word.startswith("-r") for word in others) else ["-rN"]
    line = [*FIXED, *usual, f"--tb={tb or 'no'}", *words, *others, *SUITES]
    with contextlib.redirect_stdout(sys.stderr) if quietly else contextlib.nullcontext():
        return int(pytest.main(line, plugins=[matrix])), matrix


def _spread(words: Sequence[str], jobs: int, *, quietly: bool) -> tuple[int, Matrix]:
    """In `jobs` processes."""
    with Progress(Console(stderr=quietly, highlight=False)) as progress:
        spread = Spread([*FIXED, "-q", "--tb=no", *words, *SUITES], jobs, progress.told)
        try:
            spread.run()
        except KeyboardInterrupt:
            return int(pytest.ExitCode.INTERRUPTED), spread.matrix
    if spread.output:
        print(spread.output, file=sys.stderr)
    return spread.status, spread.matrix


def _print_json(matrix: Matrix, status: int, seconds: float) -> None:
    failures = [_told(case) for case in matrix.failed()]
    answer = {
        "ok": status == 0, "seconds": round(seconds, 1), "engines": matrix.to_json(), "failures": failures,
    }  # fmt: skip
    print(json.dumps(answer, indent=1))


def _told(case: Case) -> dict[str, object]:
    return {"id": case.id, "rules": case.rules, "reason": case.reason, **case.evidence}


def _print(matrix: Matrix, report: str | None, seconds: float, processes: int, shown: int) -> None:
    out = Console(highlight=False)
    failed = matrix.failed()
    for case in failed[:shown]:
        _print_failure(out, case)
    more = failed[shown:]
    if more:
        out.print(f"\n{_failures(len(more))} more:")
        for case in more:
            out.print(f"  {case.id}", markup=False, soft_wrap=True)
    if not matrix.cases:
        return
    out.print()
    out.print(matrix.table())
    _print_skips(out, matrix)
    for (kind, name), said in matrix.notes.items():
        for note in said:
            out.print(f"note: {kind} {name}: {note}", markup=False, soft_wrap=True)
    ended = sum(bool(case.outcome) for case in matrix.cases.values())
    verdict = f"[red]{len(failed)} failed[/]" if failed else "[green]none failed[/]"
    shared = f" in {processes} processes" if processes > 1 else ""
    out.print(f"{ended:,} cases, {verdict}, {seconds:.0f} s{shared}")
    if ended < len(matrix.cases):
        out.print(f"[red]{len(matrix.cases) - ended:,} cases were not run[/]")
    if more:
        out.print(
            f"{_failures(len(more))} not shown above: --show all (or --show N), or --report PAGE.html, shows "
            "each with its input and both outputs",
            soft_wrap=True,
        )
    if report:
        out.print(f"report: {report}", markup=False)


def _failures(n: int) -> str:
    return f"{n:,} failure" if n == 1 else f"{n:,} failures"


def _print_failure(out: Console, case: Case) -> None:
    held = f" ({case.held()})" if case.rules else ""
    out.print(f"\n[bold red]failed[/] {_plain(case.id)}{held}", soft_wrap=True)
    out.print(case.reason, markup=False, soft_wrap=True)
    for title, text in case.evidence.items():
        out.print(f"\n[bold]{_plain(title)}[/]", soft_wrap=True)
        out.print(text, markup=False, soft_wrap=True)


def _print_skips(out: Console, matrix: Matrix) -> None:
    """Why cases were skipped, the commonest reasons first."""
    reasons = by_reason(case for case in matrix.cases.values() if case.outcome == "skipped")
    for reason, cases in list(reasons.items())[:REASONS]:
        out.print(f"skipped {len(cases):,}: {reason}", markup=False, soft_wrap=True)
    if len(reasons) > REASONS:
        out.print(f"and {len(reasons) - REASONS} more reasons (--report has them all)")


def _plain(text: str) -> str:
    """Ids have brackets, which are no markup."""
    return text.replace("[", "\\[")
