"""One look at a block store's files, for opening and for `verify`: what is there, and all that is amiss.

An engine's commit is atomic, and the mark is written after it: what is there before the mark must be sound
and complete, and what is there behind the mark must be sound. Anything else is damage.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from trident_core.contracts import Finding
from trident_core.errors import StoreError
from trident_core.session import Directory, Instrument, Session
from trident_store.blocks.engine import Engine, EngineError, View
from trident_store.blocks.format import (
    Block,
    End,
    chain_problem,
    content_problem,
    decode_block,
    instruments_of,
    session_of,
)
from trident_store.blocks.mark import MARK_NAME, Mark, Marks, read_marks
from trident_store.checks import FOLDER_ENGINES
from trident_store.filesystem import FileSystem
from trident_store.format import FrameKind
from trident_store.found import damage

_TRIES: Final = 5
_PROBE: Final = 64  # without a mark, how many blocks are looked at for events


class Found(NamedTuple):
    """A block that was read: `header` is None when it does not check. `offset` as far as it is known."""

    number: int
    value: bytes
    header: Block | None
    problem: str
    file: str
    offset: int


@dataclass(slots=True)
class Survey:
    """What a look found. `end` is where the sound prefix ends."""

    store_id: bytes
    marks: Marks
    view: View | None = None
    end: End = field(default_factory=End)
    session: Session | None = None
    instruments: dict[int, Instrument] = field(default_factory=dict)
    bytes: int = 0
    torn: tuple[int, str] = (0, "")
    findings: list[Finding] = field(default_factory=list)
    unfinished: bool = False  # creation was interrupted: no mark, no events

    @property
    def damaged(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)

    def raise_damage(self) -> None:
        """Raise for the first error found; do nothing when there is none."""
        for finding in self.findings:
            if finding.severity == "error":
                raise damage(finding)

    def require_session(self, folder: Path) -> Session:
        """The session. Raises DamagedStoreError, or StoreError for a store that was never finished."""
        if self.unfinished:
            raise StoreError(
                f"the store {folder} was never finished: its creation was interrupted, it holds no events",
                hint="remove the folder and create the store again",
            )
        self.raise_damage()
        assert self.session is not None  # a sound store begins with its session
        return self.session

    def close(self) -> None:
        if self.view is not None:
            self.view.close()
            self.view = None


def survey(files: FileSystem, engine: Engine, folder: Path, *, everything: bool) -> Survey:
    """Look at the store: at its end and its session, or with `everything` at every block.

    Beside a writer the files may change under the look; then it is taken again. Raises StoreError when the
    folder is not a store of this engine, cannot be read, or has another format version.
    """
    try:
        for attempt in range(_TRIES):
            before = _fingerprint(folder)
            found = _survey(files, engine, folder, everything)
            if not found.damaged or attempt == _TRIES - 1:
                break
            time.sleep(0.01)
            if _fingerprint(folder) == before:
                break
            found.close()
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"there is no store at {folder}", hint="is the path right?") from None
    except OSError as error:
        raise StoreError(f"cannot read the store {folder}: {error.strerror or error}") from error
    return found


def open_view(files: FileSystem, engine: Engine, folder: Path) -> View:
    """A view of the blocks that are there now. Raises EngineError."""
    for attempt in range(_TRIES):
        try:
            return _view(engine, folder, read_marks(files, folder).mark)
        except OSError as error:
            raise EngineError(f"cannot be read ({error.strerror or error})", file=MARK_NAME) from None
        except EngineError:
            if attempt == _TRIES - 1:
                raise
            time.sleep(0.01)  # a writer may have been changing the files
    raise AssertionError("not reached")


def _view(engine: Engine, folder: Path, mark: Mark | None) -> View:
    try:
        return engine.view(folder / engine.name, mark.hint if mark else 0)
    except OSError as error:
        name = Path(error.filename).name if error.filename else ""
        raise EngineError(
            f"cannot be read ({error.strerror or error})", file=f"{engine.name}/{name}"
        ) from None


def require_store(files: FileSystem, engine: Engine, folder: Path) -> None:
    """Raises StoreError unless this is a store of the engine, in this format version."""
    try:
        marks = read_marks(files, folder)
    except OSError as error:
        raise StoreError(f"cannot read the store {folder}: {error.strerror or error}") from error
    if not (folder / engine.name).is_dir() and (marks.missing or _others(folder)):
        raise _not_a_store(engine, folder)


def still_as(found: Survey, files: FileSystem, folder: Path) -> bool:
    """Is the mark the one that was found?"""
    try:
        return read_marks(files, folder) == found.marks
    except (OSError, StoreError):
        return False


def _survey(files: FileSystem, engine: Engine, folder: Path, everything: bool) -> Survey:
    require_store(files, engine, folder)
    marks = read_marks(files, folder)
    mark = marks.mark
    found = Survey(mark.store_id if mark else b"", marks)
    try:
        found.view = _view(engine, folder, mark)
        found.torn = found.view.torn
        look = _Look(engine, found, found.view)
        if mark is None:
            look.without_mark()
        elif everything:
            look.at_all(mark)
        else:
            look.at_the_end(mark)
    except EngineError as error:
        last = mark.end.ordinal - 1 if mark and mark.end.ordinal else None
        found.findings.append(Finding(error.file or engine.name, error.offset, 0, last, error.problem))
        found.unfinished = marks.missing  # creation was interrupted in the engine itself
    if found.session is not None:
        found.session.directory = Directory(found.instruments.values())
    found.bytes = sum(size for _, size, _ in _fingerprint(folder / engine.name))
    found.findings += _said_by_the_mark(found)
    return found


def _said_by_the_mark(found: Survey) -> list[Finding]:
    if found.marks.mark is None:
        return [Finding(MARK_NAME, 0, 0, None, "the mark of what is durable is missing or damaged")]
    problem = "one of the two marks does not check; the other is used, no event is affected"
    end = found.marks.mark.end.ordinal
    notes = [Finding(MARK_NAME, slot * 4096, end, None, problem, "note") for slot in found.marks.bad_slots]
    size, file = found.torn
    if size:
        problem = f"torn tail of {size} bytes behind the mark; no acknowledged event is lost"
        notes.append(Finding(file, 0, found.end.ordinal, None, problem, "note"))
    return notes


def _not_a_store(engine: Engine, folder: Path) -> StoreError:
    if not folder.is_dir():
        return StoreError(f"there is no store at {folder}", hint="is the path right?")
    others = _others(folder)
    hint = f"try --store {others[0]}" if others else f"it has no folder {engine.name}"
    return StoreError(f"{folder} is not a store of the engine {engine.name}", hint=hint)


def _others(folder: Path) -> list[str]:
    """Which engines' stores this could be."""
    found = [name for name in FOLDER_ENGINES if (folder / name).is_dir()]
    return found + (["reference"] if any(folder.glob("????????.seg")) else [])


def _fingerprint(folder: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of change of every file; a file that goes meanwhile is left out."""
    found = []
    for path in sorted(folder.rglob("*")):
        try:
            status = path.stat()
        except OSError:
            continue
        if path.is_file():
            found.append((str(path), status.st_size, status.st_mtime_ns))
    return found


class _Look:
    """Blocks of one view, judged one by one. `ordinal` counts the events before the next one."""

    def __init__(self, engine: Engine, found: Survey, view: View) -> None:
        self.name, self.found, self.view = engine.name, found, view
        self.ordinal = 0
        self.open: Finding | None = None  # damage whose last event the next readable block will tell

    def read(self, number: int) -> Found | None:
        """A block, its bytes checked; None when there is none."""
        try:
            value = self.view.get(number)
        except EngineError as error:
            return Found(number, b"", None, error.problem, error.file or self.name, error.offset)
        if value is None:
            return None
        header, problem = decode_block(self.found.store_id, value, number)
        if header is not None and not problem:
            problem = content_problem(value, header)
        return Found(
            number, value, header, problem, *(self.view.place(number) if problem else (self.name, 0))
        )

    # -- the end only --

    def at_the_end(self, mark: Mark) -> None:
        """Find the end of the store and its session: the mark's own block, those behind it, the directory."""
        number = mark.end.blocks - 1
        last = self.read(number)
        if last is None:
            return self.missing(number, mark)
        if last.problem or last.header is None:
            return self.bad(last)
        if last.header.after() != mark.end:
            return self.error("the last durable block is not the one that the mark names", MARK_NAME)
        self.found.end = mark.end
        self.ordinal = mark.end.ordinal
        if not self.session(mark.end.meta):
            return None
        while (block := self.read(self.found.end.blocks)) is not None:
            if not self.accept(block):
                return None
        return None

    def session(self, number: int) -> bool:
        """Follow the chain of session and directory blocks back to the first one."""
        entries: list[Found] = []
        while True:
            block = self.read(number)
            if block is None:
                self.error(f"block {number} is missing", first=0)
                return False
            if block.problem or block.header is None:
                self.bad(block)
                return False
            entries.append(block)
            if number == 0:
                break
            if block.header.kind != FrameKind.DIRECTORY or block.header.meta >= number:
                self.error(f"block {number} is not the directory that it should be", first=0)
                return False
            number = block.header.meta
        for block in reversed(entries):
            self.learn(block)
        return True

    # -- everything --

    def at_all(self, mark: Mark) -> None:
        """Read every block; go on behind those that are bad."""
        for problem in self.view.check():
            self.error(problem.problem, problem.file, problem.offset, first=0)
        number = 0
        while (block := self.read(number)) is not None or number < mark.end.blocks:
            if block is None:
                self.missing(number, mark)
            elif not self.accept(block) and number >= mark.end.blocks:
                break  # how many there are behind the mark, nobody knows
            number += 1
            if number == mark.end.blocks and not self.found.damaged and self.found.end != mark.end:
                self.error("the last durable block is not the one that the mark names", MARK_NAME)
        self.settle(mark.end.ordinal)

    def accept(self, block: Found) -> bool:
        """Judge a block; the sound prefix grows by it when everything before was sound."""
        header = block.header
        if block.problem or header is None:
            self.bad(block)
            return False
        self.settle(header.ordinal)
        self.ordinal = header.after().ordinal
        if self.found.damaged:
            return True
        problem = chain_problem(header, self.found.end)
        if problem:
            place = self.view.place(block.number)
            self.error(f"block {block.number}: {problem}", *place, first=self.found.end.ordinal)
            return False
        self.learn(block)
        self.found.end = header.after()
        return True

    def learn(self, block: Found) -> None:
        """Take the session or the instruments out of a checked block."""
        assert block.header is not None
        if block.header.kind == FrameKind.SESSION:
            self.found.session = session_of(block.value, block.header)
        elif block.header.kind == FrameKind.DIRECTORY:
            self.found.instruments |= instruments_of(block.value, block.header)

    def without_mark(self) -> None:
        """Without a mark there is nothing to judge by; only a store that has no events yet may lack it."""
        for number in range(_PROBE):
            value = self.view.get(number)
            if value is None:
                self.found.unfinished = True
                return
            if value[4:6] == FrameKind.EVENTS.to_bytes(2, "little"):
                return

    # -- findings --

    def error(
        self, problem: str, file: str = "", offset: int = 0, *, first: int | None = None,
        last: int | None = None,
    ) -> None:  # fmt: skip
        """Note damage. Without `last`, the next readable block tells which events it touches."""
        first = self.ordinal if first is None else first
        finding = Finding(file or self.name, offset, first, last, problem)
        self.found.findings.append(finding)
        if last is None and self.open is None:
            self.open = finding

    def bad(self, block: Found) -> None:
        header, problem = block.header, f"block {block.number}: {block.problem}"
        if header is not None and header.kind == FrameKind.EVENTS:  # its header checks: it says what is lost
            first, last = header.ordinal, header.ordinal + header.count - 1
            self.settle(first)
            self.ordinal = last + 1
            return self.error(problem, block.file, block.offset, first=first, last=last)
        if self.open is None or not self.open.problem.endswith(block.problem):  # one cause, one finding
            self.error(problem, block.file, block.offset)
        return None

    def missing(self, number: int, mark: Mark) -> None:
        """A block that should be there; of several in a row only the first is noted."""
        if self.open is None or "missing" not in self.open.problem:
            self.error(f"block {number} of {mark.end.blocks} is missing")

    def settle(self, ordinal: int) -> None:
        if self.open is not None and ordinal > self.open.first:
            self.open.last = ordinal - 1
        self.open = None
