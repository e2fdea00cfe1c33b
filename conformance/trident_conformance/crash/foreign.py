"""The crash model for stores that take no file-system object: behind a FUSE mount, where there is one."""

from __future__ import annotations

import contextlib
import ctypes.util
import importlib.util
import json
import os
import pickle
import select as polling
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from trident_conformance.crash.cases import Case, option_of
from trident_conformance.crash.lab import CaseReport, Replay, Violation
from trident_conformance.engines import Engine
from trident_core.errors import StoreError, UsageError
from trident_store.diskstates import CrashPoint, Disk

#: What is played; the seed says which, and what a crash leaves.
SCRIPTS: Final = ("a3 s a2 a1 s a4", "a1 s r a2 s a1", "a20 s a1 s a30 s", "a2 a2 s a5 r a1 s a3")
MOUNT_S: Final = 10
JUDGE_S: Final = 60

Point = tuple[CrashPoint, tuple[str, ...]]


def unavailable() -> str:
    """Why there is no FUSE here; empty when there is."""
    if importlib.util.find_spec("mfusepy") is None:
        return "mfusepy is not installed (pip install mfusepy)"
    if not (ctypes.util.find_library("fuse3") or ctypes.util.find_library("fuse")):
        return "libfuse3 is not installed (apt-get install libfuse3-3 fuse3)"
    if shutil.which("fusermount3") is None and os.geteuid() != 0:
        return "fusermount3 is not installed (apt-get install fuse3)"
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        return f"/dev/fuse cannot be opened ({error.strerror})"
    return ""


def case_of(seed: int) -> Case:
    return Case(seed, SCRIPTS[seed % len(SCRIPTS)], ())


def run_case(engine: Engine, seed: int, per_point: int) -> CaseReport:
    """Play a script on the mount, then judge states of each crash point. Raises StoreError when the mount or
    the script fails."""
    began = time.perf_counter()
    case = case_of(seed)
    report = CaseReport(engine.name, seed)
    known: dict[tuple[tuple[str, bytes], ...], dict[str, Any]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="trident-crash-") as scratch,
        _judge(engine, Path(scratch)) as ask,
    ):
        for number, (point, folders) in enumerate(recorded(engine, case, Path(scratch))):
            report.points += 1
            report.enumerated += point.count <= per_point
            numbers = range(2, point.count + 2) if point.count <= per_point else range(per_point)
            for state in numbers:
                report.states += 1
                disk = point.state(state, f"{case.key}:{number}")
                key = tuple(sorted(disk.items()))
                if key not in known:
                    report.distinct += 1
                    known[key] = ask(disk, folders)
                problem = against(known[key], *point.note)
                if problem and len(report.violations) < 5:
                    where = f"{seed}:{number}.{state}"
                    report.violations.append(Violation(option_of(engine), where, problem, case.shown()))
    report.seconds = time.perf_counter() - began
    return report


def against(verdict: dict[str, Any], acked: int, attempted: int) -> str:
    """The broken promise; empty when there is none. Of a store whose creation never returned nothing is
    promised."""
    events, problem = int(verdict["events"]), str(verdict["problem"])
    if events < 0:
        return "" if acked < 0 else problem
    if problem:
        return problem
    if events < acked:
        return f"{events} events are left of {acked} acknowledged"
    return f"{events} events where {attempted} were appended" if events > attempted else ""


def recorded(engine: Engine, case: Case, scratch: Path) -> list[Point]:
    """Every crash point of a run of the script on a FUSE mount. Raises StoreError."""
    mount, dump = scratch / "mount", scratch / "points"
    mount.mkdir()
    module = "trident_conformance.crash"
    server = subprocess.Popen(
        [sys.executable, "-m", f"{module}.fuse_server", str(mount)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        _wait_for(mount, server)
        done = subprocess.run(
            [sys.executable, "-m", f"{module}.foreign_child", "drive", engine.name, str(mount), case.script],
            capture_output=True, text=True, timeout=JUDGE_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise StoreError(f"{engine.name} cannot run on the mount: {done.stderr.strip()[-400:]}")
        os.setxattr(mount, "user.dump", str(dump).encode())
    finally:
        _unmount(mount, server)
    points: list[Point] = pickle.loads(dump.read_bytes())  # our own process wrote it
    for point, _ in points:
        point.garbling = not whole_sectors(engine)
    return points


def whole_sectors(engine: Engine) -> bool:
    """Does the engine's class say that its library relies on sectors that are written whole or not at all?"""
    return bool(getattr(engine.spec.load(), "whole_sectors", False))


def _wait_for(mount: Path, server: subprocess.Popen[str]) -> None:
    until = time.monotonic() + MOUNT_S
    while not mount.is_mount():
        if server.poll() is not None or time.monotonic() > until:
            said = server.stderr.read() if server.poll() is not None and server.stderr else "no mount in time"
            raise StoreError(f"FUSE does not mount: {said.strip()[-300:]}")
        time.sleep(0.05)


def _unmount(mount: Path, server: subprocess.Popen[str]) -> None:
    for command in (["fusermount3", "-u", str(mount)], ["umount", "-l", str(mount)]):
        if mount.is_mount():
            with contextlib.suppress(FileNotFoundError):
                subprocess.run(command, capture_output=True, check=False)
    try:
        server.wait(MOUNT_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if server.stderr:
        server.stderr.close()


@contextlib.contextmanager
def _judge(engine: Engine, scratch: Path) -> Iterator[Any]:
    """A function that judges a disk in a child; a child that dies or hangs is a verdict, too."""
    child: subprocess.Popen[str] | None = None
    folder = scratch / "state"

    def ask(disk: Disk, folders: tuple[str, ...]) -> dict[str, Any]:
        nonlocal child
        write_disk(folder, disk, folders)
        if child is None:
            command = [sys.executable, "-m", "trident_conformance.crash.foreign_child", "judge", engine.name]
            pipe = subprocess.PIPE
            child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        assert child.stdin is not None and child.stdout is not None  # noqa: PT018
        line = ""
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(f"{folder / 'store'}\n")
            child.stdin.flush()
            if polling.select([child.stdout], [], [], JUDGE_S)[0]:
                line = child.stdout.readline()
        if line.endswith("\n"):
            found: dict[str, Any] = json.loads(line)
            return found
        _end(child)
        code, child = child.returncode, None
        return {"events": -1, "problem": f"! the process that opened it ended with {code}"}

    try:
        yield ask
    finally:
        if child is not None:
            _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def write_disk(folder: Path, disk: Disk, folders: tuple[str, ...]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("/", *folders):
        (folder / name.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name, data in disk.items():
        (folder / name.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (folder / name.lstrip("/")).write_bytes(data)


def replay(engine: Engine, text: str) -> Replay:
    """One state met again. Engines with threads of their own may not do the same in each run: then it says
    that there is no such state, or finds another. Raises UsageError, StoreError."""
    seed, _, rest = text.partition(":")
    number, _, state = rest.partition(".")
    if not (seed.isdigit() and number.isdigit() and state.isdigit()):
        raise UsageError(
            f"{text!r} is no state", hint="a violation prints it: SEED:POINT.STATE, as in 7:120.4"
        )
    case = case_of(int(seed))
    with (
        tempfile.TemporaryDirectory(prefix="trident-crash-") as scratch,
        _judge(engine, Path(scratch)) as ask,
    ):
        points = recorded(engine, case, Path(scratch))
        if int(number) >= len(points):
            raise UsageError(
                f"the case {seed} has {len(points)} crash points", hint="is it the same version?"
            )
        point, folders = points[int(number)]
        disk = point.state(int(state), f"{case.key}:{number}")
        problem = against(ask(disk, folders), *point.note)
    return Replay(case, disk, point.note[0], point.note[1], problem)
