"""`python -m trident_conformance power`: real failures of a real Linux, where the machine allows them.

- `strace`: a store's process whose nth system call is refused (EIO, ENOSPC), made short, delayed or answered
  with SIGKILL;
- `cut`: ext4 on a loop device that is shut down while a store appends, without its journal being written (the
  ioctl that stands in for a power cut), and mounted again;
- `full`: a sparse ext4 image in a tmpfs that fills up, so that writing back fails and an fsync says EIO.

Each trial is run or skipped with the reason. In each, what was acknowledged must be there afterwards, as a
prefix, and the process must have said what was wrong in one line.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gc
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console
from rich.table import Table

from trident_conformance import streams
from trident_conformance.crash.progress import report_console
from trident_conformance.engines import Engine, select
from trident_core.contracts import Kind
from trident_core.dtypes import EVENT
from trident_core.errors import TridentError

SEED: Final = 5
EVENTS: Final = 4_000
TRIAL_S: Final = 120
#: EXT4_IOC_SHUTDOWN is _IOR('X', 125, u32); 2 is NOLOGFLUSH: nothing more reaches the device.
SHUTDOWN: Final = 0x8004587D
NOLOGFLUSH: Final = 2
#: What strace injects: a name for it, and its -e inject= expression; {n} is which call.
INJECTIONS: Final = {
    "EIO from fdatasync": "fdatasync:error=EIO:when={n}",
    "EIO from fsync": "fsync:error=EIO:when={n}",
    "ENOSPC from pwrite64": "pwrite64:error=ENOSPC:when={n}+",
    "EIO from pwrite64": "pwrite64:error=EIO:when={n}",
    "EIO from pread64": "pread64,preadv:error=EIO:when={n}",
    "ENOSPC from openat": "openat:error=ENOSPC:when={n}",
    "slow fdatasync": "fdatasync:delay_exit=20000:when={n}+3",
    "SIGKILL at fdatasync": "fdatasync:signal=SIGKILL:when={n}",
    "SIGKILL at pwrite64": "pwrite64:signal=SIGKILL:when={n}",
    "SIGKILL at unlink and rename": "unlink,rename:signal=SIGKILL:when={n}",
}


@dataclass
class Row:
    """One kind of trial of one store: how it went, or why it was not run."""

    store: str
    trial: str
    runs: int = 0
    refused: int = 0  # the process ended with a StoreError, as it should
    killed: int = 0
    acknowledged: int = 0  # events, in all runs
    found: int = 0
    skipped: str = ""
    violations: list[str] = field(default_factory=list)


class SkipError(Exception):
    """Why a trial cannot be run here."""


# -- a process that stores --


def victim(engine: Engine, folder: Path, prefix: Sequence[str] = ()) -> tuple[int, int, str]:
    """Let a process append and sync a known day, below a command such as strace: its exit status, the last
    ordinal that it called durable, and what it said on standard error."""
    child = [sys.executable, "-m", "trident_conformance.crash.power_child"]
    command = [*prefix, *child, engine.name, str(folder), str(SEED), str(EVENTS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            said, wrong = process.communicate(timeout=TRIAL_S)
        except subprocess.TimeoutExpired:
            process.kill()
            said, wrong = process.communicate()
            return -1, _durable(said), "no end in time"
    return process.returncode, _durable(said), wrong


def _durable(said: str) -> int:
    lines = [line.split() for line in said.splitlines(keepends=True) if line.endswith("\n")]
    return max((int(words[1]) for words in lines if words[:1] == ["durable"]), default=0)


def looked_at(engine: Engine, folder: Path, acked: int) -> tuple[int, str]:
    """How many events are there, by a reader and after recovery; what is wrong."""
    day = streams.day(SEED, EVENTS)
    counts = []
    for mode in ("read", "append"):
        try:
            store = engine.make(folder, mode)
        except TridentError as error:
            text = str(error)
            if acked == 0 and ("never finished" in text or "no store" in text or "not a store" in text):
                return 0, ""
            return 0, f"{mode}: {text}"
        try:
            got = np.concatenate([np.empty(0, EVENT), *store.snapshot().scan()])
        except TridentError as error:
            return 0, f"{mode}: {error}"
        finally:
            store.close()
        if got.tobytes() != day[: len(got)].tobytes():
            return len(got), f"{mode}: not the first events of the day"
        if len(got) < acked:
            return len(got), f"{mode}: {len(got)} events of {acked} acknowledged"
        counts.append(len(got))
    return counts[1], "" if counts[0] == counts[1] else f"a reader saw {counts[0]}, recovery {counts[1]}"


def _took(row: Row, what: str, status: int, acked: int, said: str, found: int, problem: str) -> None:
    row.runs += 1
    row.killed += status in (-9, 137)
    refused = status == 4
    row.refused += refused
    row.acknowledged += acked
    row.found += found
    if problem:
        row.violations.append(f"{what}: {problem}")
    elif refused and len([line for line in said.splitlines() if line.startswith("error: ")]) != 1:
        row.violations.append(f"{what}: not one clear line, but {said.strip()[-200:]!r}")
    elif status not in (0, 4, -9, 137):
        row.violations.append(f"{what}: the process ended with {status}: {said.strip()[-200:]!r}")


# -- strace --


def strace(engine: Engine, scratch: Path, runs: int, seed: int) -> Iterator[Row]:
    """Each injection, at several calls."""
    if shutil.which("strace") is None:
        raise SkipError("strace is not installed (apt-get install strace)")
    tried = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    if tried.returncode:
        raise SkipError("strace may not trace here (ptrace is not permitted)")
    rng = random.Random(seed)
    for name, expression in INJECTIONS.items():
        row = Row(engine.name, f"strace: {name}")
        for _ in range(runs):
            folder = scratch / "store"
            shutil.rmtree(folder, ignore_errors=True)
            n = rng.choice((1, 2, 3, 5, 8, 13, 21, 34))
            inject = expression.format(n=n)
            # Only what concerns the store's files is traced: a library's own files are left alone.
            only = ["-P", str(folder), *(f"-P{folder / each}" for each in _names())]
            prefix = ["strace", "-f", "-qq", "-o", "/dev/null", *only, "-e", f"inject={inject}"]
            status, acked, said = victim(engine, folder, prefix)
            found, problem = looked_at(engine, folder, acked)
            _took(row, inject, status, acked, said, found, problem)
        yield row


def _names() -> list[str]:
    """Files of a store that an injection may meet."""
    numbers = range(12)
    return ["durable", *(f"{n:08d}.{end}" for n in numbers for end in ("seg", "tab", "man", "old"))]


# -- ext4 on a loop device --


@contextlib.contextmanager
def ext4(image: Path, mount: Path, *, make: bool, megabytes: int = 64) -> Iterator[Path]:
    """The image, mounted. Raises SkipError when this machine does not let us."""
    if os.geteuid() != 0:
        raise SkipError("mounting needs root")
    if shutil.which("mkfs.ext4") is None:
        raise SkipError("mkfs.ext4 is not installed (apt-get install e2fsprogs)")
    if make:
        with image.open("wb") as file:
            file.truncate(megabytes << 20)
        _run(["mkfs.ext4", "-q", "-F", str(image)])
    mount.mkdir(exist_ok=True)
    _run(["mount", "-o", "loop", str(image), str(mount)])
    try:
        yield mount
    finally:
        gc.collect()  # tables are mapped files: what still maps one keeps the mount busy
        for _ in range(20):
            if subprocess.run(["umount", str(mount)], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        else:
            subprocess.run(["umount", "-l", str(mount)], capture_output=True, check=False)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SkipError(f"{command[0]} does not work here: {done.stderr.strip()[:200]}")


def shut_down(mount: Path) -> None:
    """As a power cut: nothing that is not on the device gets there. Raises SkipError."""
    handle = os.open(mount, os.O_RDONLY)
    try:
        fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", NOLOGFLUSH))
    except OSError as error:
        raise SkipError(f"ext4 cannot be shut down here ({error.strerror})") from None
    finally:
        os.close(handle)


def cut(engine: Engine, scratch: Path, runs: int, seed: int) -> Iterator[Row]:
    """The power fails while a process appends: the device is shut down, and looked at after another mount."""
    rng, row = random.Random(seed), Row(engine.name, "ext4: power cut")
    for _ in range(runs):
        image, mount = scratch / "cut.img", scratch / "mnt"
        acked, delay = 0, rng.random() * 0.6
        with ext4(image, mount, make=True):
            command = [sys.executable, "-m", "trident_conformance.crash.power_child", engine.name]
            with subprocess.Popen(
                [*command, str(mount / "store"), str(SEED), str(EVENTS)], stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, text=True,
            ) as process:  # fmt: skip
                assert process.stdout is not None
                first = process.stdout.readline()
                time.sleep(delay)
                shut_down(mount)
                process.kill()
                acked = _durable(first + process.stdout.read())
        with ext4(image, mount, make=False):
            found, problem = looked_at(engine, mount / "store", acked)
        _took(row, f"cut after {delay:.3f} s", -9, acked, "", found, problem)
    yield row


def full(engine: Engine, scratch: Path, runs: int, seed: int) -> Iterator[Row]:
    """The device below ext4 has no room: what was written cannot be written back, and an fsync says so."""
    if os.geteuid() != 0:
        raise SkipError("mounting needs root")
    row = Row(engine.name, "ext4: fsync fails")
    for turn in range(runs):
        small, mount = scratch / "small", scratch / "mnt"
        small.mkdir(exist_ok=True)
        _run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(small)])
        try:
            left = (64 + 48 * turn) << 10
            with ext4(small / "image", mount, make=True, megabytes=256):
                free = os.statvfs(small)
                (small / "ballast").write_bytes(bytes(max(free.f_bavail * free.f_bsize - left, 0)))
                status, acked, said = victim(engine, mount / "store")
            (small / "ballast").unlink()  # the disk can be read, and written, again
            with ext4(small / "image", mount, make=False):
                found, problem = looked_at(engine, mount / "store", acked)
            _took(row, f"room for {left >> 10} KiB", status, acked, said, found, problem)
        finally:
            subprocess.run(["umount", str(small)], capture_output=True, check=False)
    yield row


TRIALS: Final[dict[str, Callable[[Engine, Path, int, int], Iterator[Row]]]] = {
    "strace": strace, "cut": cut, "full": full,
}  # fmt: skip


# -- the command --


def run(engine: Engine, trials: Sequence[str], runs: int, seed: int) -> Iterator[Row]:
    """The rows of these trials; of one that cannot be run, why."""
    for name in trials:
        with tempfile.TemporaryDirectory(prefix="trident-power-") as folder:
            try:
                yield from TRIALS[name](engine, Path(folder), runs, seed)
            except SkipError as reason:
                yield Row(engine.name, name, skipped=str(reason))


def main(arguments: Sequence[str]) -> int:
    """The command. Returns 0 (skipped trials are none that failed), 1 when a promise was broken, 4 for an
    unknown engine."""
    parser = argparse.ArgumentParser(prog="python -m trident_conformance power", description=__doc__)
    parser.add_argument("--store", metavar="NAME[,NAME…]", default="reference,lsm", help="(default: both)")
    parser.add_argument("--trial", choices=TRIALS, action="append", help="only this one; may be repeated")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="of each kind of failure (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    given = parser.parse_args(arguments)
    errors, rows = Console(stderr=True, highlight=False), []
    try:
        for engine in select(Kind.STORE, given.store.split(",")):
            for row in run(engine, given.trial or list(TRIALS), given.runs, given.seed):
                errors.print(f"{row.store}: {row.trial}: {row.skipped or f'{row.runs} runs'}", markup=False)
                rows.append(row)
    except TridentError as error:
        errors.print(f"error: {error.message}\nhint: {error.hint}", markup=False)
        return 4
    bad = any(row.violations for row in rows)
    if given.json:
        print(json.dumps({"ok": not bad, "rows": [asdict(row) for row in rows]}, indent=1))
    else:
        _show(rows, report_console())
    return int(bad)


def _show(rows: Sequence[Row], out: Console) -> None:
    table = Table(title="Failures of a real system", title_justify="left")
    for title in ("store", "trial", "runs", "refused", "killed", "acknowledged", "found", "broken"):
        table.add_column(title, justify="left" if title in ("store", "trial") else "right")
    for row in rows:
        if not row.skipped:
            cells = (row.runs, row.refused, row.killed, row.acknowledged, row.found, len(row.violations))
            table.add_row(row.store, row.trial, *(f"{cell:,}" for cell in cells))
    out.print(table)
    for row in rows:
        if row.skipped:
            out.print(f"{row.store}, {row.trial}: skipped: {row.skipped}", markup=False, soft_wrap=True)
        for each in row.violations:
            out.print(f"{row.store}, {row.trial}: {each}", markup=False, soft_wrap=True)
