"""What finds a broken protocol: power cuts, failing calls, damage, a second writer. Each trial says by which
state it was found; nothing when every promise was kept."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from trident_conformance.crash.cases import Case, opener_of, options_of
from trident_conformance.crash.lab import run_case
from trident_conformance.engines import Engine
from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError
from trident_core.session import Session
from trident_store.crashcheck import Judge, Opener, Run, make_events, read_all
from trident_store.crashmodel import CrashFileSystem
from trident_store.diskstates import Disk


class Found(NamedTuple):
    """Where a promise was broken, and which."""

    state: str
    problem: str


Trial = Callable[[Engine], Found | None]


def cut(*scripts: str, per_point: int = 16, first_key: int = 0, keys: int = 1) -> Trial:
    """Power cuts at every call of these scripts, each with so many keys (seeds of what a cut leaves)."""

    def trial(engine: Engine) -> Found | None:
        options = tuple(options_of(engine)[0].items())
        for script in scripts:
            for key in range(first_key, first_key + keys):
                report = run_case(engine, Case(key, script, options), per_point)
                for each in report.violations:
                    return Found(f"{script!r}, power cut {each.state}", each.problem)
        return None

    return trial


def refuse(call: str, script: str, *, error: int = errno.EIO, per_point: int = 6, most: int = 60) -> Trial:
    """The disk refuses one call of this name, the first, the second …; the caller goes on as if nothing had
    been, and then the power fails. `call` "short": writes are short, and from the nth on there is no room."""

    def trial(engine: Engine) -> Found | None:
        opener = opener_of(engine, Case(0, script, tuple(options_of(engine)[0].items())))
        judge = Judge(opener)
        for nth in range(1, most):
            files = ShortWrites(nth) if call == "short" else CrashFileSystem(exists=False)
            run = Run(opener, files, str(nth))
            try:
                run.create()
            except StoreError:  # no store, and none acknowledged
                continue
            if call != "short":
                files.before = _once(call, nth, OSError(error, "refused"))
            failed = _going_on(run, script)
            files.before = lambda call: None
            where = f"{script!r}, {call} {nth} refused"
            if isinstance(failed, str):
                return Found(where, failed)
            found = _judged(run, judge, where, per_point)
            if found is not None:
                return found
            if not failed:
                break
        return None

    return trial


class ShortWrites(CrashFileSystem):
    """Writes take at most 100 bytes; the nth write of a kibibyte and more ends with "no space left"."""

    def __init__(self, nth: int) -> None:
        super().__init__(exists=False)
        self._left = nth * 7

    def write(self, handle: int, data: Any, offset: int) -> int:
        self._left -= 1
        if self._left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(handle, data[:100], offset)


def _once(call: str, nth: int, error: OSError) -> Callable[[str], None]:
    left = nth

    def before(name: str) -> None:
        nonlocal left
        if name == call:
            left -= 1
            if left == 0:
                raise error

    return before


def _going_on(run: Run, script: str) -> bool | str:
    """Play the script, whatever is refused; whether something was, or what no store may do."""
    failed = False
    for step in script.split():
        try:
            if failed and step == "r":
                _opened_again(run)
            else:
                run.step(step)
        except StoreError:
            failed = True
            if step == "r":
                _opened_again(run)
            else:
                run.expected = run.expected[: run.store.stats()["events"] * EVENT.itemsize]
        except Exception as error:  # a broken protocol may break in any way
            return f"! {error!r}"
    run._point()
    failure = getattr(run.store, "maintenance_failure", "")
    return failed or bool(failure)


def _opened_again(run: Run) -> None:
    """Close, which after a failure acknowledges nothing, and open; once more if just that is refused."""
    with contextlib.suppress(StoreError):
        run.store.close()
    try:
        run.resume()
    except StoreError:
        run.resume()


def _judged(run: Run, judge: Judge, where: str, per_point: int) -> Found | None:
    for number, point in list(enumerate(run.points))[-12:]:
        acked, attempted, life = point.note
        for state in range(min(per_point, point.count + 2)):
            verdict = judge(point.state(state, where))
            problem = verdict.against(acked, run.meant[life][: attempted * EVENT.itemsize])
            if problem:
                return Found(f"{where}, power cut {number}.{state}", problem)
    return None


def rot(script: str, *, flips: int = 60, files: str = "") -> Trial:
    """Damage to what was acknowledged, in the files with this ending: bits flipped at so many places of each,
    all over it, the file cut and gone. Exact answers or a refusal, nothing else."""

    def trial(engine: Engine) -> Found | None:
        opener = opener_of(engine, Case(0, script, tuple(options_of(engine)[0].items())))
        disk = _closed(opener, script)
        expected = read_all(opener("read", None, CrashFileSystem(disk)))
        sound = _answer(opener, disk, expected, None)
        if sound:
            return Found(f"{script!r}, undamaged", sound)
        for where, damaged in _damages({n: d for n, d in disk.items() if n != "lock"}, flips, files):
            problem = _answer(opener, damaged, expected, disk)
            if problem:
                return Found(f"{script!r}, {where}", problem)
        return None

    return trial


def rot_of_work(script: str, *, ending: str, flips: int = 8, most: int = 100) -> Trial:
    """A process is killed after a change to the disk that leaves a file of this ending, the first such one,
    the second …; then a bit is flipped in it, or in a file of the same number that the store does without: no
    event may be lost by that, and nothing refused."""

    def trial(engine: Engine) -> Found | None:
        opener = opener_of(engine, Case(0, script, tuple(options_of(engine)[0].items())))
        files = CrashFileSystem(exists=False)
        run = Run(opener, files)
        left: list[tuple[Disk, int, bytes]] = []

        def look() -> None:
            disk = files.visible()
            if any(name.endswith(ending) for name in disk) and len(left) < most:
                left.append((disk, run.acked, run.expected))

        files.on_change = look
        run.create()
        run.play(script)
        judge = Judge(opener)
        for number, (disk, acked, meant) in enumerate(left):
            numbers = {name[:8] for name in disk if name.endswith(ending)}
            for name in (each for each in disk if each[:8] in numbers):
                data = disk[name]
                if judge({other: disk[other] for other in disk if other != name}).against(acked, meant):
                    continue  # the store needs it
                for at in range(number % 16, len(data), len(data) // flips + 1):
                    flipped = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
                    problem = judge(disk | {name: flipped}).against(acked, meant)
                    if problem:
                        return Found(f"{script!r}, change {number}, {name} flipped at {at}", problem)
        return None

    return trial


def _closed(opener: Opener, script: str) -> Disk:
    run = Run(opener, CrashFileSystem(exists=False))
    run.create()
    run.play(script)
    run.store.close()
    return run.files.visible()


def _damages(disk: Disk, flips: int, ending: str) -> Iterator[tuple[str, Disk]]:
    for name, data in sorted(disk.items()):
        if not name.endswith(ending):
            continue
        step = max(len(data) // flips, 1)
        for at in range(step // 2, len(data), step):
            flipped = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
            yield f"{name} flipped at {at}", disk | {name: flipped}
        for at in range(0, len(data), max(len(data) // 8 // 512 * 512, 512)):
            yield f"{name} cut to {at}", disk | {name: data[:at]}
        yield f"{name} gone", {other: content for other, content in disk.items() if other != name}


def _answer(opener: Opener, disk: Disk, expected: Events, undamaged: Disk | None) -> str:
    for mode in ("read", "append"):
        try:
            store = opener(mode, None, CrashFileSystem(disk))
            if mode == "read" and undamaged is not None and not store.verify().findings:
                return "verify finds nothing amiss"
            snapshot = store.snapshot()
            got = np.concatenate([np.empty(0, EVENT), *snapshot.scan()])
            if len(got) < len(expected) and got.tobytes() == expected[: len(got)].tobytes():
                return f"{len(expected) - len(got)} acknowledged events are left out, without a word"
            if got.tobytes() != expected.tobytes():
                return "wrong data"
            for ref in expected["ref"][::4].tolist():
                named = (expected["ref"] == ref) | (
                    (expected["ref2"] == ref) & (expected["type"] == ord("U"))
                )
                if snapshot.get(ref).tobytes() != expected[named].tobytes():
                    return f"a wrong answer for order {ref}"
        except StoreError:
            continue
        except Exception as error:  # a broken protocol may break in any way
            return f"! {error!r}"
    return ""


def two_writers(engine: Engine) -> Found | None:
    """A second writer beside the first, in the same process and on the same disk."""
    opener = opener_of(engine, Case(0, "", tuple(options_of(engine)[0].items())))
    files = CrashFileSystem(exists=False)
    first = opener("create", Session(), files)
    first.append(make_events(0, 3))
    first.sync()
    try:
        opener("append", None, files)
    except StoreError:
        return None
    return Found("opened for writing twice", "the second writer was let in")


def beside(script: str) -> Trial:
    """Readers beside the writer: what each snapshot showed when it was taken it shows to the end."""

    def trial(engine: Engine) -> Found | None:
        opener = opener_of(engine, Case(0, script, tuple(options_of(engine)[0].items())))
        files = CrashFileSystem(exists=False)
        run = Run(opener, files)
        run.create()
        taken: list[tuple[int, Any, bytes]] = []
        for number, step in enumerate(script.split()):
            run.step(step)
            snapshot = opener("read", None, files).snapshot()
            taken.append((number, snapshot, run.expected[: snapshot.count * EVENT.itemsize]))
            for before, old, meant in taken:
                try:
                    got = b"".join(events.tobytes() for events in old.scan())
                except Exception as error:  # a broken protocol may break in any way
                    return Found(f"{script!r}, snapshot of step {before} at step {number}", f"! {error!r}")
                if got != meant:
                    return Found(f"{script!r}, snapshot of step {before} at step {number}", "it changed")
        return None

    return trial
