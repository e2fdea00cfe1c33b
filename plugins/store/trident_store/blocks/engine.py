"""What a block store needs of an engine underneath, and how the engine's failures are told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

_OURS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)


class EngineError(Exception):
    """The engine underneath refused, or its files are not what they should be."""

    def __init__(self, problem: str, *, file: str = "", offset: int = 0) -> None:
        super().__init__(problem)
        self.problem, self.file, self.offset = problem, file, offset


class View(Protocol):
    """A view of the engine's blocks. It may or may not show blocks that were written after it was made.

    Usable from one thread at a time. `torn` is (bytes, file) of an unfinished last write that was left out.
    """

    torn: tuple[int, str]

    def get(self, number: int) -> bytes | None:
        """The value of a block; None when there is no such block. Raises EngineError."""
        ...

    def place(self, number: int) -> tuple[str, int]:
        """File and offset of a block, as far as they can be known. Never raises."""
        ...

    def check(self) -> list[EngineError]:
        """What is wrong with the engine's own structures beyond the blocks, as far as it can be known."""
        ...

    def close(self) -> None: ...


class Writer(View, Protocol):
    """The view of the one writer. `hint` is the engine's note for the mark that is written after a commit;
    `Engine.view` and `Engine.write` get it back."""

    @property
    def hint(self) -> int: ...

    def commit(self, first: int, blocks: Sequence[bytes]) -> None:
        """Add blocks of the numbers `first`, `first` + 1 …; durable when it returns.

        After a crash, or an EngineError, the first few of them are there, or all, or none.
        """
        ...


class Engine(Protocol):
    """Someone else's key-value store or database. `name` names it and its folder in the store."""

    name: str

    def create(self, folder: Path) -> Writer:
        """Make the folder and an empty database in it. Raises EngineError or OSError."""
        ...

    def view(self, folder: Path, hint: int) -> View:
        """Open for reading: changes no byte in `folder`, needs no permission to.

        Raises EngineError or OSError.
        """
        ...

    def write(self, folder: Path, hint: int) -> Writer:
        """Open for writing, recovering what a crash left. Raises EngineError or OSError."""
        ...


@contextmanager
def guarded(name: str, file: str = "") -> Iterator[None]:
    """Everything that the engine raises (a panic of its Rust parts is no Exception) as EngineError."""
    try:
        yield
    except (*_OURS, EngineError):
        raise
    except BaseException as error:
        raise EngineError(
            f"{name}: {' '.join(str(error).split()) or type(error).__name__}", file=file
        ) from None


class Source:
    """Blocks by number for snapshots, in any thread: from the writer's view while that is open, then from
    views opened for reading. Blocks never change, so every view that has a block is as good."""

    def __init__(self, reopen: Callable[[], View], view: View | None, *, live: bool = False) -> None:
        self._reopen = reopen
        self._view = view
        self._live = live
        self._lock = threading.Lock()

    def get(self, number: int) -> bytes | None:
        """As `View.get`; a reader's view that has lost its files to the writer is opened again."""
        with self._lock:
            if self._view is not None:
                try:
                    value = self._view.get(number)
                except EngineError:
                    if self._live:
                        raise
                    value = None
                if value is not None or self._live:
                    return value
                self._view.close()
                self._view = None
            self._view = self._reopen()
            return self._view.get(number)

    def place(self, number: int) -> tuple[str, int]:
        """As `View.place`."""
        with self._lock:
            return ("", 0) if self._view is None else self._view.place(number)

    def detach(self) -> None:
        """The writer closes its view: from now on, use others."""
        with self._lock:
            self._view, self._live = None, False
