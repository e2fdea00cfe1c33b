"""`python -m trident_conformance kill`: what is recovered makes the book that was live.

Model kill points: a day is appended and synced on a disk in memory; power fails at random calls, and on a
random state of the disk the store is opened and a book is made of nothing but what it holds, by the reference
and by the numba engine. Real kills: `trident run` in a process of its own, ended by SIGKILL at random moments
and resumed, until the day is over, again and again. Each time what the store holds must be a prefix of the
day, at least all that the process had said to be durable, and the book of it must have the digest that the
live book had after so many events.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table

from trident_conformance import streams
from trident_conformance.crash.cases import Case, modelled, opener_of, options_of
from trident_conformance.crash.progress import Progress, report_console
from trident_conformance.engines import Engine, select
from trident_core.contracts import Kind
from trident_core.dtypes import EVENT, Events
from trident_core.errors import TridentError
from trident_core.session import Session
from trident_store.crashcheck import read_all
from trident_store.crashmodel import CrashFileSystem

#: Events of the day of a model run, and of one that a process stores.
MODEL_EVENTS: Final = 240
DAY_EVENTS: Final = 40_000
BOOKS: Final = ("reference", "numba")
#: A process is killed at most this long after it first said that something is durable, in seconds.
KILL_S: Final = 0.8
START_S: Final = 240


@dataclass
class Row:
    """Kills of one kind of one store. `least` and `most`: events that were found."""

    store: str
    how: str
    points: int = 0
    digests: int = 0
    acknowledged: int = 0  # kills after something had been called durable
    least: int = -1
    most: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)

    def saw(self, events: int, acked: int) -> None:
        self.points += 1
        self.acknowledged += acked > 0
        self.least = events if self.least < 0 else min(self.least, events)
        self.most = max(self.most, events)


class Live:
    """The digests of a live book after so many events of a day, by both engines."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._known: dict[int, str] = {}

    def at(self, counts: Sequence[int]) -> dict[int, str]:
        """Digest by count. Raises AssertionError when the two engines differ."""
        wanted = sorted({count for count in counts if count not in self._known})
        if wanted:
            books = [select(Kind.BOOK, [name])[0].make(streams.session()) for name in BOOKS]
            done = 0
            for count in wanted:
                for book in books:
                    book.apply(self._events[done:count])
                done = count
                digests = {book.digest().hex() for book in books}
                assert len(digests) == 1, f"the live books differ after {count} events"
                self._known[count] = digests.pop()
        return self._known


def rebuilt(events: Events) -> list[str]:
    """The digests of books made of these events alone."""
    found = []
    for name in BOOKS:
        book = select(Kind.BOOK, [name])[0].make(streams.session())
        book.apply(events)
        found.append(book.digest().hex())
    return found


# -- the model --


def model(engine: Engine, points: int, seed: int, progress: Progress | None = None) -> Row:
    """So many kill points on a disk in memory, of as many runs as it takes."""
    began, row = time.perf_counter(), Row(engine.name, "model")
    day = streams.day(seed, MODEL_EVENTS)
    live = Live(day)
    known = live.at(range(len(day) + 1))
    books: dict[int, list[str]] = {}
    turn = 0
    while row.points < points and len(row.violations) < 20:
        before = row.points
        for events, acked in _model_run(engine, day, seed + turn, min(points - row.points, 60)):
            row.saw(len(events), acked)
            problem = _problem(events, day, acked)
            if not problem:
                # Two equal prefixes make the same book: it is made once.
                books.setdefault(len(events), rebuilt(events))
                row.digests += len(BOOKS)
                if set(books[len(events)]) != {known[len(events)]}:
                    problem = f"the book rebuilt of {len(events)} events is not the live one"
            if problem:
                row.violations.append(f"run {seed + turn}: {problem}")
        if progress is not None:
            progress.add(row.points - before, 0)
        turn += 1
    row.seconds = time.perf_counter() - began
    return row


def _model_run(engine: Engine, day: Events, seed: int, most: int) -> Iterator[tuple[Events, int]]:
    """What is recovered at up to `most` random moments of one run, and what was acknowledged by then."""
    rng = random.Random(seed)
    variants = options_of(engine)
    case = Case(seed, "", tuple(variants[seed % len(variants)].items()))
    opener, files = opener_of(engine, case), CrashFileSystem(exists=False)
    points: list[Any] = []
    acked = 0

    def point() -> None:
        points.append(files.crash_point(acked))

    store = opener("create", streams.session(), files)
    files.on_change = point
    at = 0
    while at < len(day):
        size = rng.choice((1, 2, 5, 17, 40))
        store.append(day[at : at + size])
        at = min(at + size, len(day))
        if rng.random() < 0.4:
            acked = int(np.searchsorted(day["seq"], store.sync(), "right"))
        point()
    for number in sorted(rng.sample(range(len(points)), min(most, len(points)))):
        disk = points[number].state(rng.randrange(50), f"{seed}:{number}")
        recovered = opener("append", None, CrashFileSystem(disk))
        yield read_all(recovered), points[number].note[0]


def _problem(events: Events, day: Events, acked: int) -> str:
    if events.tobytes() != day[: len(events)].tobytes():
        return f"{len(events)} events that are not the first of the day"
    return f"{len(events)} events of {acked} acknowledged" if len(events) < acked else ""


# -- real processes --


def real(engine: Engine, kills: int, seed: int, folder: Path, progress: Progress | None = None) -> Row:
    """So many SIGKILLs of `trident run`, resumed after each until its day is stored, then begun anew."""
    began, row, rng = time.perf_counter(), Row(engine.name, "SIGKILL of trident run"), random.Random(seed)
    path, store = folder / "day.itch50", folder / "store"
    path.write_bytes(streams.day_bytes(seed, DAY_EVENTS, faults=False))
    day = parsed(path)
    found: list[tuple[int, list[str]]] = []
    while row.points < kills and len(row.violations) < 20:
        acked, killed = _one_run(engine, path, store, rng)
        events = _stored(engine, store)
        row.saw(len(events), acked)
        problem = _problem(events, day, int(np.searchsorted(day["seq"], acked, "right")))
        if problem:
            row.violations.append(f"kill {row.points}: {problem}")
        else:
            found.append((len(events), rebuilt(events)))
            row.digests += len(BOOKS)
        if not killed or len(events) == len(day) or rng.random() < 0.1:
            shutil.rmtree(store, ignore_errors=True)
        if progress is not None:
            progress.add(1, len(row.violations))
    known = Live(day).at([count for count, _ in found])
    for count, digests in found:
        if set(digests) != {known[count]}:
            row.violations.append(f"the book rebuilt of {count} events is not the live one")
    row.seconds = time.perf_counter() - began
    return row


def _one_run(engine: Engine, path: Path, store: Path, rng: random.Random) -> tuple[int, bool]:
    """Run and kill: the greatest seq that was called durable, and whether the kill came before the end."""
    module = "trident_conformance.crash.run_child"
    resume = ["--resume"] if store.exists() and any(store.iterdir()) else []
    command = [sys.executable, "-m", module, engine.name, "run", str(path), str(store), "--store", "told"]
    acked = 0
    with subprocess.Popen(
        [*command, "--json", *resume], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            wanted = rng.choice((0, 2, 3, 4, 6))  # lines to wait for; without one the kill meets an opening
            for _ in range(wanted):
                acked = max(acked, _durable(process.stdout.readline()))
            time.sleep(rng.random() * KILL_S if wanted else rng.random() * 2)
        finally:
            process.kill()
        for line in process.stdout:
            acked = max(acked, _durable(line))
        killed = process.wait() < 0
    return acked, killed


def _durable(line: str) -> int:
    """A line that the kill cut short says nothing."""
    words = line.split() if line.endswith("\n") else []
    return int(words[1]) if words[:1] == ["durable"] and len(words) == 2 else 0


def _stored(engine: Engine, store: Path) -> Events:
    """All that the store holds; nothing, if it was killed before it was one."""
    try:
        opened = engine.make(store, "read")
        return np.concatenate([np.empty(0, EVENT), *opened.snapshot().scan()])
    except TridentError as error:
        if "never finished" in str(error) or "no store at" in str(error) or "is not a store" in str(error):
            shutil.rmtree(store, ignore_errors=True)
            return np.empty(0, EVENT)
        raise


def parsed(path: Path) -> Events:
    """The events of a day file, as the line has them."""
    data = np.frombuffer(path.read_bytes(), np.uint8)
    events = np.zeros(DAY_EVENTS + 64, EVENT)
    result = select(Kind.PARSER, ["reference"])[0].make(Session()).parse_into(data, events)
    return events[: result.count]


# -- the command --


def main(arguments: Sequence[str]) -> int:
    """The command. Returns 0, 1 when something was lost or wrong, 4 for an unknown engine."""
    parser = argparse.ArgumentParser(prog="python -m trident_conformance kill", description=__doc__)
    parser.add_argument("--store", metavar="NAME[,NAME…]", default="reference,lsm", help="(default: both)")
    parser.add_argument("--points", type=int, default=1_000, metavar="N", help="model kill points (1000)")
    parser.add_argument("--real", type=int, default=20, metavar="N", help="real kills (default: 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    given = parser.parse_args(arguments)
    if given.points < 0 or given.real < 0:
        parser.error("--points and --real are at least 0")
    errors = Console(stderr=True, highlight=False)
    try:
        rows = list(_rows(select(Kind.STORE, given.store.split(",")), given, errors))
    except TridentError as error:
        errors.print(f"error: {error.message}\nhint: {error.hint}", markup=False)
        return 4
    bad = any(row.violations for row in rows)
    if given.json:
        print(json.dumps({"ok": not bad, "rows": [asdict(row) for row in rows]}, indent=1))
    else:
        _show(rows, report_console())
    return int(bad)


def _rows(engines: Sequence[Engine], given: argparse.Namespace, errors: Console) -> Iterator[Row]:
    for engine in engines:
        if given.points and modelled(engine):
            progress = Progress(errors, f"{engine.name}, model", given.points, "kill points")
            yield model(engine, given.points, given.seed, progress)
            progress.close()
        if given.real:
            progress = Progress(errors, f"{engine.name}, processes", given.real, "kills")
            with tempfile.TemporaryDirectory(prefix="trident-kill-") as folder:
                yield real(engine, given.real, given.seed, Path(folder), progress)
            progress.close()


def _show(rows: Sequence[Row], out: Console) -> None:
    table = Table(title="Recovery: the book of what is left is the live book", title_justify="left")
    for title in ("store", "how", "kills", "acknowledged", "events found", "digests", "s", "broken"):
        table.add_column(title, justify="left" if title in ("store", "how") else "right")
    for row in rows:
        spread = f"{max(row.least, 0):,} to {row.most:,}"
        cells = [f"{row.points:,}", f"{row.acknowledged:,}", spread, f"{row.digests:,}", f"{row.seconds:.0f}"]
        table.add_row(row.store, row.how, *cells, f"{len(row.violations)}")
    out.print(table)
    for row in rows:
        for each in row.violations:
            out.print(f"{row.store}, {row.how}: {each}", markup=False, soft_wrap=True)
