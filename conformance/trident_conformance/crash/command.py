"""`python -m trident_conformance crash`: power cuts at every call of scripted runs, every state judged.

A store that takes a file-system object (capability `filesystem`) runs on a disk in memory; any other runs on
a FUSE mount that notes what it does, where there is one. A script is played; at each change to the disk the
power may fail, and a state is any mix of what was not synced by then: sectors kept, lost or garbled, names
and renames kept or lost. In each state the store must open, have all that it acknowledged, be a prefix of
what was appended, go on, and be sound. Scripts cut the power themselves and go on, so that recoveries are
cut short, too.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from rich.console import Console
from rich.table import Table

from trident_conformance.crash import foreign
from trident_conformance.crash.cases import case_of, modelled, option_of
from trident_conformance.crash.lab import CaseReport, replay, run_case, run_seed
from trident_conformance.crash.progress import Progress, report_console
from trident_conformance.engines import Engine, select
from trident_core.contracts import Kind
from trident_core.errors import TridentError

VIOLATIONS_MAX = 20


@dataclass
class Row:
    """What was tried of one store; `skipped` says why nothing was."""

    store: str
    how: str
    cases: list[CaseReport] = field(default_factory=list)
    seconds: float = 0.0
    skipped: str = ""
    interrupted: bool = False

    def total(self, name: str) -> Any:
        return sum(getattr(case, name) for case in self.cases)

    @property
    def violations(self) -> list[Any]:
        return [each for case in self.cases for each in case.violations]

    def to_json(self) -> dict[str, Any]:
        names = ("points", "enumerated", "cuts", "states", "distinct")
        return {
            "store": self.store, "how": self.how, "skipped": self.skipped, "interrupted": self.interrupted,
            "cases": len(self.cases),
            **{name: self.total(name) for name in names}, "seconds": round(self.seconds, 3),
            "states_per_cpu_s": round(self.total("states") / cpu, 1) if (cpu := self.total("cpu_s")) else 0,
            "states_per_s": round(self.total("states") / self.seconds, 1) if self.seconds else 0,
            "violations": [v for case in self.cases for v in case.to_json()["violations"]],
        }  # fmt: skip


def explore(
    engine: Engine, states: int, *, seed: int = 0, per_point: int = 24, jobs: int = 1,
    progress: Callable[[CaseReport], None] = lambda report: None,
) -> Row:  # fmt: skip
    """Cases from `seed` on, until `states` states are judged or VIOLATIONS_MAX violations are found.

    Raises TridentError for an engine that cannot be loaded.
    """
    row = Row(engine.name, "memory" if modelled(engine) else "FUSE")
    if not modelled(engine) and foreign.whole_sectors(engine):
        row.how += ", sectors whole"
    began = time.perf_counter()
    try:
        for report in _reports(engine, seed, per_point, jobs, lambda: _enough(row, states)):
            row.cases.append(report)
            progress(report)
    except (KeyboardInterrupt, BrokenProcessPool):  # what was tried so far counts
        row.interrupted = True
    finally:
        row.seconds = time.perf_counter() - began
    row.cases.sort(key=lambda report: report.seed)
    return row


def _enough(row: Row, states: int) -> bool:
    return row.total("states") >= states or len(row.violations) >= VIOLATIONS_MAX


def _reports(
    engine: Engine, seed: int, per_point: int, jobs: int, enough: Callable[[], bool]
) -> Iterator[CaseReport]:
    if not modelled(engine):
        while not enough():
            yield foreign.run_case(engine, seed, per_point)
            seed += 1
        return
    if jobs == 1:
        while not enough():
            yield run_case(engine, case_of(engine, seed), per_point)
            seed += 1
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        running: set[Future[CaseReport]] = set()
        try:
            while not enough():
                while len(running) < jobs:
                    running.add(pool.submit(run_seed, option_of(engine), seed, per_point))
                    seed += 1
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
            yield from (future.result() for future in running)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def main(arguments: Sequence[str]) -> int:
    """The command. Returns 0, 1 when a promise was broken, 2 for wrong usage, 4 for an unknown engine, 130
    when it was interrupted: the table then has what was tried so far."""
    given = _parser().parse_args(arguments)
    errors = Console(stderr=True, highlight=False)
    try:
        engines = select(Kind.STORE, given.store.split(",") if given.store else None)
        if given.replay:
            return _replay(engines, given.replay, given.json)
        if given.mutants:
            from trident_conformance.crash import mutants

            return mutants.main(given.json, given.only, errors)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        rows: list[Row] = []
        while engines and not any(row.interrupted for row in rows):
            rows.append(_row(engines.pop(0), given, errors))
    except TridentError as error:
        errors.print(f"error: {error.message}\nhint: {error.hint}", markup=False)
        return error.exit_code if error.exit_code == 2 else 4
    bad = [violation for row in rows for violation in row.violations]
    if given.json:
        print(json.dumps({"ok": not bad, "rows": [row.to_json() for row in rows]}, indent=1))
    else:
        _show(rows, report_console())
    return 1 if bad else 130 if any(row.interrupted for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m trident_conformance crash", description=__doc__)
    add = parser.add_argument
    add("--store", metavar="NAME[,NAME…]", help="these store engines, by name or factory (default: all)")
    add("--states", type=_count, default=10_000, metavar="N", help="of each store (default: 10000)")
    add("--seed", type=int, default=0, metavar="S", help="the first case (default: 0)")
    add("--per-point", type=_count, default=24, metavar="N", help="states of one crash point (default: 24)")
    add("--jobs", type=_count, default=1, metavar="N", help="processes (default: 1)")
    add("--replay", metavar="SEED:POINT.STATE", help="meet one state again, as a violation names it")
    add("--mutants", action="store_true", help="plant each broken protocol, and say what catches it")
    add("--only", metavar="WORD", help="with --mutants: those with this word in the name")
    add("--json", action="store_true", help="the rows as JSON")
    return parser


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 1_000_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1000000000")
    return int(text)


def _row(engine: Engine, given: argparse.Namespace, errors: Console) -> Row:
    if engine.missing:
        return Row(
            engine.name, "", skipped=f"requires {', '.join(engine.missing)}: {engine.spec.install_hint}"
        )
    if not modelled(engine) and (reason := foreign.unavailable()):
        return Row(engine.name, "", skipped=f"takes no file-system object, and {reason}")
    progress = Progress(errors, engine.name, given.states)
    try:
        return explore(
            engine, given.states, seed=given.seed, per_point=given.per_point, jobs=given.jobs,
            progress=lambda report: progress.add(report.states, len(report.violations)),
        )  # fmt: skip
    finally:
        progress.close()


def _replay(engines: Sequence[Engine], text: str, as_json: bool) -> int:
    if len(engines) != 1:
        raise TridentError("a state belongs to one store", hint="--store NAME --replay SEED:POINT.STATE")
    found = replay(engines[0], text) if modelled(engines[0]) else foreign.replay(engines[0], text)
    files = {name: len(data) for name, data in sorted(found.disk.items())}
    if as_json:
        said = {"case": found.case.shown(), "acknowledged": found.acked, "appended": found.attempted}
        print(json.dumps({**said, "files": files, "problem": found.problem}, indent=1))
    else:
        out = report_console()
        out.print(f"seed {found.case.seed}: {found.case.shown()}", markup=False)
        out.print(f"events acknowledged {found.acked}, appended {found.attempted}")
        out.print("files: " + ", ".join(f"{name} {size}" for name, size in files.items()), markup=False)
        out.print(found.problem or "every promise is kept", markup=False)
    return 1 if found.problem else 0


def _show(rows: Sequence[Row], out: Console) -> None:
    table = Table(title="Power cuts", title_justify="left")
    titles = (
        "store",
        "on",
        "cases",
        "points",
        "of these all",
        "cuts",
        "states",
        "disks",
        "states/s",
        "per CPU s",
    )
    for title in (*titles, "broken"):
        table.add_column(title, justify="left" if title in ("store", "on") else "right")
    for row in rows:
        if row.skipped:
            continue
        figures = [row.total(name) for name in ("points", "enumerated", "cuts", "states", "distinct")]
        rate = f"{row.total('states') / row.seconds:,.0f}"
        count = len(row.violations)
        shown = [f"{figure:,}" for figure in (len(row.cases), *figures)]
        cpu = row.total("cpu_s")
        shown += [rate, f"{row.total('states') / cpu:,.0f}" if cpu else "-"]
        table.add_row(row.store, row.how, *shown, f"[red]{count}[/]" if count else "0")
    out.print(table)
    for row in rows:
        if row.skipped:
            out.print(f"{row.store}: skipped: {row.skipped}", markup=False, soft_wrap=True)
        for each in row.violations:
            out.print(f"{row.store} {each.state}: {each.problem}", markup=False, soft_wrap=True)
            out.print(f"  {each.case}\n  {each.command}", markup=False, soft_wrap=True)
