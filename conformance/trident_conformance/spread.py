"""The suites in several processes, one engine's suite at a time in each.

A process that an engine brings down (a crash of native code, an endless loop) costs the case it was in;
another process goes on with the rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from trident_conformance.matrix import Case, Matrix

#: Seconds that one case may take.
LIMIT_S: Final = 300.0
#: So often an engine may bring its process down; its other cases are not tried then.
DEATHS: Final = 5
#: Bytes that must be free in memory for the files of the cases.
MEMORY: Final = 2 << 30
#: Lines of what a process printed before it died that are shown.
LAST_LINES: Final = 30
#: The kinds whose suites take longest come first, so that no process is left alone with them at the end.
_ORDER: Final = ("store", "sequence", "query", "book", "parser", "feed")

_PYTEST: Final = re.compile(r"/(_pytest|pluggy|pytest)/|^Extension modules|<frozen runpy>|^$")

_Group = tuple[str, str]  # engines, suite file


@dataclass
class _Process:
    """A worker, what it has to do (numbers of cases), and the case it is in since when."""

    started: subprocess.Popen[str]
    printed: Path
    group: _Group | None = None
    left: list[int] = field(default_factory=list)
    case: int | None = None
    since: float = 0.0
    late: bool = False
    engines: set[str] = field(default_factory=set)

    def order(self, group: _Group, cases: list[int]) -> None:
        self.group, self.left, self.since = group, cases, time.monotonic()
        self.engines.add(group[0])
        assert self.started.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its end is about to be read
            self.started.stdin.write(" ".join(map(str, cases)) + "\n")
            self.started.stdin.flush()

    def finish(self) -> None:
        assert self.started.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.started.stdin.close()

    def end(self, grace: float = 2.0) -> None:
        """End it, if it has not ended by itself."""
        if self.started.poll() is None:
            self.started.send_signal(signal.SIGABRT)  # pytest's fault handler says where it is
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.started.wait(grace)
        self.started.kill()
        self.started.wait()

    def last_words(self) -> str:
        """Of a process that crashed, where its threads were, pytest's own frames left out; else its last
        lines."""
        lines = self.printed.read_text(encoding="utf-8", errors="replace").splitlines()
        crashes = [i for i, line in enumerate(lines) if "Fatal Python error" in line]
        if not crashes:
            return "\n".join(lines[-LAST_LINES:])
        told = [line for line in lines[crashes[-1] :] if not _PYTEST.search(line)]
        return "\n".join(told[:LAST_LINES])


class Spread:
    """One run. `told` is called with the matrix and each case that ended."""

    def __init__(
        self, words: Sequence[str], jobs: int, told: Callable[[Matrix, Case], None], limit: float = LIMIT_S
    ) -> None:
        self.matrix, self.status, self.output = Matrix(), 0, ""
        self._words, self._jobs, self._told, self._limit = list(words), jobs, told, limit
        self._events: queue.SimpleQueue[tuple[_Process, dict[str, Any] | None]] = queue.SimpleQueue()
        self._cases: list[Case] = []
        self._waiting: dict[_Group, list[int]] = {}
        self._processes: list[_Process] = []
        self._deaths: dict[str, int] = {}

    def run(self) -> None:
        """Run everything; `matrix` then has the outcomes, `status` pytest's exit status, and `output` what a
        process said that could not even begin."""
        with tempfile.TemporaryDirectory(prefix="trident-conform-", dir=in_memory()) as folder:
            try:
                for _ in range(self._jobs):
                    self._start(Path(folder))
                while self._processes:
                    self._step(Path(folder))
            finally:
                for process in self._processes:
                    process.finish()
                    process.end(0.2)
        if not self.status:
            self.status = 1 if self.matrix.failed() else 0 if self._cases else 5

    def _start(self, folder: Path) -> None:
        own = Path(tempfile.mkdtemp(dir=folder))
        printed = own / "printed.txt"
        with printed.open("w") as stderr:
            command = [sys.executable, "-m", "trident_conformance.worker", *self._words]
            command += [f"--basetemp={own / 'cases'}", "-o", "tmp_path_retention_policy=failed"]
            started = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
            )
        process = _Process(started, printed)
        self._processes.append(process)
        threading.Thread(target=self._listen, args=(process, started.stdout), daemon=True).start()

    def _listen(self, process: _Process, answers: IO[str]) -> None:
        with contextlib.suppress(ValueError):  # a line that a dying process did not finish
            for line in answers:
                self._events.put((process, json.loads(line)))
        answers.close()
        process.started.wait()
        self._events.put((process, None))

    def _step(self, folder: Path) -> None:
        try:
            process, answer = self._events.get(timeout=0.5)
        except queue.Empty:
            self._end_the_late()
            return
        if answer is None:
            self._ended(process, folder)
        elif "cases" in answer:
            self._collected(answer)
            self._give(process)
        elif "begin" in answer:
            process.case, process.since = answer["begin"], time.monotonic()
        else:
            process.case = None
            process.left.remove(answer["end"])
            self._outcome(answer["end"], _case(answer["case"]))
            if not process.left:
                self._give(process)

    def _end_the_late(self) -> None:
        for process in self._processes:
            if process.case is not None and time.monotonic() - process.since > self._limit:
                process.late = True
                process.end()

    def _collected(self, answer: dict[str, Any]) -> None:
        """Every process collects the same; the first one says what."""
        if self._cases:
            return
        self._cases = [_case(each) for each in answer["cases"]]
        self.matrix.cases = {case.id: case for case in self._cases}
        self.matrix.declared = {(kind, name): names for kind, name, names in answer["declared"]}
        self.matrix.notes = {(kind, name): said for kind, name, said in answer["notes"]}
        groups: dict[_Group, list[int]] = {}
        for number, case in enumerate(self._cases):
            engines = " ".join(f"{kind}={name}" for kind, name in case.engines)
            groups.setdefault((engines, case.id.partition("::")[0]), []).append(number)
        self._waiting = dict(sorted(groups.items(), key=lambda group: _weight(self._cases[group[1][0]])))

    def _outcome(self, number: int, case: Case) -> None:
        self._cases[number].__dict__.update(case.__dict__)
        self._told(self.matrix, self._cases[number])

    def _give(self, process: _Process) -> None:
        """The next suite: of an engine that is loaded in this process, else of one that is in none."""
        taken = {name for other in self._processes if other is not process for name in other.engines}
        wanted = sorted(self._waiting, key=lambda group: (group[0] not in process.engines, group[0] in taken))
        if wanted:
            process.order(wanted[0], self._waiting.pop(wanted[0]))
        else:
            process.finish()

    def _ended(self, process: _Process, folder: Path) -> None:
        self._processes.remove(process)
        process.finish()
        status = process.started.returncode
        if not process.left and status in (0, 1, 5):
            return
        if process.case is None:  # not the doing of an engine
            if not self.status:
                self.status, self.output = status if status > 0 else 3, process.last_words()
            self._waiting = {}
            for other in self._processes:
                other.end(0.2)
            return
        self._died(process, status)
        if self._waiting:
            self._start(folder)

    def _died(self, process: _Process, status: int) -> None:
        """The case that a process ended in has failed; the rest of its suite waits for another process."""
        assert process.case is not None
        assert process.group is not None
        how = f"by signal {_signal(-status)}" if status < 0 else f"with status {status}"
        reason = (
            f"took longer than {self._limit:g} s, and its process was ended"
            if process.late
            else f"its process ended {how}"
        )
        case = self._cases[process.case]
        case.evidence = {"what the process said last": process.last_words(), "again": case.again}
        case.outcome, case.reason = "failed", reason
        case.seconds = time.monotonic() - process.since
        process.left.remove(process.case)
        engines = process.group[0]
        self._deaths[engines] = self._deaths.get(engines, 0) + 1
        self._told(self.matrix, case)
        if process.left:
            self._waiting = {process.group: process.left, **self._waiting}
        if self._deaths[engines] >= DEATHS:
            for group in [group for group in self._waiting if group[0] == engines]:
                for number in self._waiting.pop(group):
                    case = self._cases[number]
                    case.outcome, case.reason = (
                        "failed",
                        f"not tried: {engines} ended its process {DEATHS} times",
                    )
                    self._told(self.matrix, case)


def _case(fields: dict[str, Any]) -> Case:
    """A case that went through JSON, which has no tuples."""
    return Case(**{**fields, "engines": [(kind, name) for kind, name in fields["engines"]]})


def _weight(case: Case) -> tuple[bool, int]:
    kinds = [kind for kind, _ in case.engines]
    return case.suite == "pipeline", min(_ORDER.index(k) if k in _ORDER else 0 for k in kinds)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def in_memory() -> str | None:
    """A folder in memory, where no sync waits for a disk: the suites make thousands of small stores. None,
    for the usual place, when TMPDIR names one, or the folder has little room or cannot do what disks can."""
    shared, probe = Path("/dev/shm"), f"trident-probe-{os.getpid()}"
    if "TMPDIR" in os.environ or not shared.is_dir():
        return None
    try:
        free = os.statvfs(shared)
        os.close(os.open(shared / probe, os.O_CREAT | os.O_RDWR | os.O_DIRECT))
        (shared / probe).unlink()
    except OSError:
        (shared / probe).unlink(missing_ok=True)
        return None
    return str(shared) if free.f_bavail * free.f_frsize >= MEMORY else None


def processors() -> int:
    """How many processes are worth while: one a processor, at most 4 (each takes some 500 MB)."""
    return max(1, min(4, len(os.sched_getaffinity(0))))
