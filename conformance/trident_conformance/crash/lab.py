"""Every state of every crash point of a case, judged; and one state, met again."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from trident_conformance.crash.cases import Case, case_of, opener_of, option_of
from trident_conformance.engines import Engine
from trident_core.contracts import Kind
from trident_core.dtypes import EVENT
from trident_core.errors import UsageError
from trident_store.crashcheck import Judge, Run, played
from trident_store.diskstates import CrashPoint, Disk

#: Violations kept of one case.
VIOLATIONS_MAX: Final = 5


@dataclass
class Violation:
    """A broken promise: the number of the state it was met in, `SEED:POINT.STATE`, and what is wrong."""

    store: str
    state: str
    problem: str
    case: str

    @property
    def command(self) -> str:
        """Shows it again."""
        return f"python -m trident_conformance crash --store {self.store} --replay {self.state}"


@dataclass
class CaseReport:
    """What was tried of one seed. `distinct` counts different disks, `cuts` those in the script."""

    store: str
    seed: int
    points: int = 0
    states: int = 0
    distinct: int = 0
    cuts: int = 0
    enumerated: int = 0  # points all of whose states were tried
    seconds: float = 0.0
    cpu_s: float = 0.0  # of the process that judged
    violations: list[Violation] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "violations": [asdict(each) | {"replay": each.command} for each in self.violations]
        }


def run_case(engine: Engine, case: Case, per_point: int) -> CaseReport:
    """Play the script, then judge up to `per_point` states of each crash point (all, if it has fewer)."""
    began, cpu = time.perf_counter(), time.process_time()
    report = CaseReport(engine.name, case.seed, cuts=case.script.split().count("x"))
    opener = opener_of(engine, case)
    run, failure = played(opener, case.script, case.key)
    judge = Judge(opener)
    for number, point in enumerate(run.points):
        report.points += 1
        report.enumerated += point.count <= per_point
        for state in _numbers(point, per_point):
            report.states += 1
            problem = _problem(run, judge, number, point.state(state, f"{case.key}:{number}"))
            if problem:
                where = f"{case.seed}:{number}.{state}"
                report.violations.append(Violation(option_of(engine), where, problem, case.shown()))
                if len(report.violations) >= VIOLATIONS_MAX:
                    break
        if len(report.violations) >= VIOLATIONS_MAX:
            break
    if failure:
        report.violations.append(Violation(option_of(engine), f"{case.seed}:run", failure, case.shown()))
    report.distinct, report.seconds = judge.distinct, time.perf_counter() - began
    report.cpu_s = time.process_time() - cpu
    return report


def _numbers(point: CrashPoint, per_point: int) -> range:
    """Of a point with few states, the numbers from 2 on are each of them once."""
    return range(2, point.count + 2) if point.count <= per_point else range(per_point)


def _problem(run: Run, judge: Judge, number: int, disk: Disk) -> str:
    acked, attempted, life = run.points[number].note
    return judge(disk).against(acked, run.meant[life][: attempted * EVENT.itemsize])


@dataclass
class Replay:
    """One state met again: the disk, what was acknowledged and appended, and the broken promise, if any."""

    case: Case
    disk: Disk
    acked: int
    attempted: int
    problem: str


def replay(engine: Engine, text: str) -> Replay:
    """The state of that number. Raises UsageError for one that there is not."""
    seed, _, rest = text.partition(":")
    point, _, state = rest.partition(".")
    if not seed.isdigit() or not (rest == "run" or (point.isdigit() and state.isdigit())):
        raise UsageError(
            f"{text!r} is no state", hint="a violation prints it: SEED:POINT.STATE, as in 7:120.4"
        )
    case = case_of(engine, int(seed))
    opener = opener_of(engine, case)
    run, failure = played(opener, case.script, case.key)
    if rest == "run":
        return Replay(case, run.files.visible(), run.acked, run.attempted, failure)
    if int(point) >= len(run.points):
        raise UsageError(
            f"the case {seed} has {len(run.points)} crash points", hint="is it the same version?"
        )
    at = run.points[int(point)]
    disk = at.state(int(state), f"{case.key}:{point}")
    return Replay(case, disk, at.note[0], at.note[1], _problem(run, Judge(opener), int(point), disk))


def run_seed(spec_name: str, seed: int, per_point: int) -> CaseReport:
    """As `run_case`, for another process: the engine by its name or factory."""
    from trident_conformance.engines import select

    engine = select(Kind.STORE, [spec_name])[0]
    return run_case(engine, case_of(engine, seed), per_point)
