"""`python -m trident_conformance bitrot`: what stores say of damaged files, ours beside trusted ones.

Each subject fills a small store whose every record is acknowledged. It is looked at twice: as closed in
order, and as a kill left it. One file is damaged at a time: a byte flipped, a sector zeroed, the file cut,
the file gone. Each trial runs in a process that may die of it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import queue
import random
import select as polling
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from trident_conformance import damage, drive, streams
from trident_conformance.bitrot_child import EVENTS, GROUPS, OUTCOMES
from trident_conformance.bitrot_peers import PEERS, rows_of
from trident_conformance.crash.progress import report_console
from trident_conformance.engines import select
from trident_core.contracts import Kind
from trident_core.errors import TridentError

KINDS: Final = ("flip", "zero", "cut", "gone")
SECTOR_BYTES: Final = 512
TRIAL_SECONDS: Final = 60
_MASKS: Final = (0x01, 0x80, 0xFF, 0x10)


@dataclass(frozen=True)
class Trial:
    """One damage to one file of one image. `data` is the file's new content, None when it is gone."""

    image: str
    file: str
    kind: str
    at: int
    data: bytes | None


@dataclass
class Row:
    """The outcomes of one subject under one kind of damage; `worst` has the first silent or crashed ones."""

    subject: str
    kind: str
    ours: bool
    counts: Counter[str] = field(default_factory=Counter)
    by_file: Counter[tuple[str, str]] = field(default_factory=Counter)
    worst: list[str] = field(default_factory=list)

    def add(self, trial: Trial, outcome: str, detail: str) -> None:
        self.counts[outcome] += 1
        if outcome in ("silent", "crash"):
            self.by_file[outcome, _kind_of_file(trial.file)] += 1
            if len(self.worst) < 20:
                self.worst.append(
                    f"{trial.image}/{trial.file} {trial.kind} at {trial.at}: {outcome}: {detail}"
                )

    def to_json(self) -> dict[str, Any]:
        files = [{"outcome": o, "file": f, "trials": n} for (o, f), n in sorted(self.by_file.items())]
        return {
            "subject": self.subject, "damage": self.kind, "ours": self.ours,
            **{outcome: self.counts[outcome] for outcome in OUTCOMES},
            "by_file": files, "worst": self.worst,
        }  # fmt: skip


def _kind_of_file(name: str) -> str:
    """A file's name with its numbers left out."""
    return "".join("N" if c.isdigit() else c for c in Path(name).name).replace("NNNNNN", "N")


# -- images and damages --


def images(subject: str, folder: Path) -> dict[str, dict[str, bytes]]:
    """The files of a filled store, by relative name: as closed, and as a kill left them."""
    target, found = folder / "filled", {}

    def killed() -> None:
        found["killed"] = damage.files_of(target)

    shutil.rmtree(target, ignore_errors=True)
    groups = list(drive.batches(EVENTS, list(GROUPS)))
    if subject in PEERS:
        target.mkdir()
        PEERS[subject].fill(target, [rows_of(group) for group in groups], killed)
    else:
        store = select(Kind.STORE, [subject])[0].make(target, "create", streams.session())
        for group in groups:
            store.append(group)
            store.sync()
        killed()
        store.close()
    return {"closed": damage.files_of(target), **found}


def trials(image: str, files: dict[str, bytes], per_file: int, seed: int) -> Iterator[Trial]:
    """Damages to each file: `per_file` flips (0: every byte), a quarter as many zeroed sectors and cuts."""
    pick = random.Random(seed)
    for name, data in files.items():
        size = len(data)
        spots = range(size) if not per_file else damage.places(size, per_file, pick)
        for i, at in enumerate(spots):
            flipped = bytearray(data)
            flipped[at] ^= _MASKS[i % len(_MASKS)]
            yield Trial(image, name, "flip", at, bytes(flipped))
        few = max(per_file // 4, 4) if per_file else size
        sectors = range(0, size, SECTOR_BYTES)
        for at in sectors if len(sectors) <= few else sorted(pick.sample(sectors, few)):
            zeroed = data[:at] + bytes(min(SECTOR_BYTES, size - at)) + data[at + SECTOR_BYTES :]
            if zeroed != data:
                yield Trial(image, name, "zero", at, zeroed)
        for at in damage.places(size, few, pick):
            yield Trial(image, name, "cut", at, data[:at])
        yield Trial(image, name, "gone", 0, None)


# -- children --


class Child:
    """A process that judges; when it dies or hangs, that is the trial's outcome, and another is started."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def judge(self, subject: str, folder: Path) -> tuple[str, str]:
        process = self._process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018
        answer = ""
        try:
            process.stdin.write(json.dumps({"subject": subject, "folder": str(folder)}) + "\n")
            process.stdin.flush()
            if polling.select([process.stdout], [], [], TRIAL_SECONDS)[0]:
                answer = process.stdout.readline()
        except BrokenPipeError:
            pass
        if answer.endswith("\n"):
            said = json.loads(answer)
            return said["outcome"], said["detail"]
        self.stop(kill=True)
        if process.returncode == -signal.SIGKILL:
            return "crash", f"no answer in {TRIAL_SECONDS} s"
        code = process.returncode
        return "crash", f"ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "trident_conformance.bitrot_child"]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def stop(self, *, kill: bool = False) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(1 if kill else TRIAL_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def matrix(
    subjects: Sequence[str], *, per_file: int = 100, seed: int = 1, jobs: int = 1, folder: Path | None = None,
    note: Any = lambda line: None,
) -> list[Row]:  # fmt: skip
    """All trials of all subjects: a row for each subject and kind of damage.

    Raises TridentError for an unknown engine.
    """
    rows: list[Row] = []
    children: queue.SimpleQueue[tuple[Child, Path]] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="trident-bitrot-", dir=folder) as scratch:
        made = [Child() for _ in range(jobs)]
        for n, child in enumerate(made):
            children.put((child, Path(scratch) / f"copy-{n}"))

        def run(subject: str, trial: Trial, files: dict[str, bytes]) -> tuple[Trial, str, str]:
            child, place = children.get()
            try:
                changed = {name: data for name, data in files.items() if name != trial.file}
                if trial.data is not None:
                    changed[trial.file] = trial.data
                return trial, *child.judge(subject, damage.write_image(place, changed))
            finally:
                children.put((child, place))

        try:
            with ThreadPoolExecutor(jobs) as pool:
                for subject in subjects:
                    of_kind = {kind: Row(subject, kind, subject not in PEERS) for kind in KINDS}
                    for image, files in images(subject, Path(scratch)).items():
                        todo = trials(image, files, per_file, seed)
                        for trial, outcome, detail in pool.map(lambda t: run(subject, t, files), todo):  # noqa: B023
                            of_kind[trial.kind].add(trial, outcome, detail)
                    rows += of_kind.values()
                    note(f"{subject}: {sum(row.counts.total() for row in of_kind.values())} trials")
        finally:
            for child in made:
                child.stop()
    return rows


# -- the command --


def table(rows: Sequence[Row]) -> Table:
    titles = {
        "right": "right data", "refused": "refused", "prefix": "right prefix, then refused",
        "crash": "process died", "silent": "silent wrong",
    }  # fmt: skip
    made = Table(title="Bit rot: one damage at a time, every record acknowledged", title_justify="left")
    for column in ("store", "damage", "trials", *titles.values()):
        made.add_column(column, justify="left" if column in ("store", "damage") else "right")
    before = ""
    for row in rows:
        if before and row.subject != before:
            made.add_section()
        cells = [f"{row.counts[outcome]}" for outcome in titles]
        for n, outcome in enumerate(titles):
            if outcome in ("crash", "silent") and row.counts[outcome]:
                cells[n] = f"[red]{cells[n]}[/]"
        name = row.subject + ("" if row.ours else " [dim]plain[/]")
        made.add_row(name if row.subject != before else "", row.kind, f"{row.counts.total()}", *cells)
        before = row.subject
    return made


def main(arguments: Sequence[str]) -> int:
    """The command. Returns 0, or 1 when a store of Trident's gave wrong data or lost data in silence, or
    ended the process; 4 for an engine that is not installed."""
    parser = argparse.ArgumentParser(prog="python -m trident_conformance bitrot", description=__doc__)
    parser.add_argument(
        "--store", metavar="NAME[,NAME…]", help="these store engines (default: all installed)"
    )
    parser.add_argument(
        "--peer", metavar="NAME[,NAME…]", help=f"of {', '.join(PEERS)} (default: all installed)"
    )
    parser.add_argument("--no-peers", action="store_true", help="only engines of Trident")
    parser.add_argument("--trials", type=int, default=100, metavar="N", help="flips per file (default: 100)")
    parser.add_argument("--every-byte", action="store_true", help="flip every byte of every file: hours")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    given = parser.parse_args(arguments)
    if given.trials < 1 or given.jobs < 1:
        parser.error("--trials and --jobs are at least 1")
    errors = Console(stderr=True)
    try:
        engines = select(Kind.STORE, given.store.split(",") if given.store else None)
    except TridentError as error:
        errors.print(f"error: {error.message}\nhint: {error.hint}")
        return 4
    subjects = [engine.name for engine in engines if not engine.missing]
    left_out = [engine.name for engine in engines if engine.missing]
    wanted = [] if given.no_peers else given.peer.split(",") if given.peer else list(PEERS)
    if unknown := [name for name in wanted if name not in PEERS]:
        parser.error(f"no peer {unknown[0]}; there are {', '.join(PEERS)}")
    left_out += [name for name in wanted if not PEERS[name].installed]
    subjects += [name for name in wanted if PEERS[name].installed]
    if left_out:
        errors.print(f"note: not installed, left out: {', '.join(left_out)}")
    per_file = 0 if given.every_byte else given.trials
    rows = matrix(subjects, per_file=per_file, seed=given.seed, jobs=given.jobs, note=errors.print)
    bad = [row for row in rows if row.ours and (row.counts["silent"] or row.counts["crash"])]
    if given.json:
        print(
            json.dumps({"ok": not bad, "seed": given.seed, "rows": [row.to_json() for row in rows]}, indent=1)
        )
    else:
        out = report_console()
        out.print(table(rows))
        for row in rows:
            for (outcome, file), n in sorted(row.by_file.items()):
                out.print(f"{row.subject}, {row.kind}: {outcome} {n} in {file}")
        for row in bad:
            out.print(*row.worst, sep="\n", markup=False, soft_wrap=True)
    return 1 if bad else 0
