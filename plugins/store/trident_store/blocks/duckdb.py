"""Blocks in DuckDB: files of up to 256 blocks, each a database with one table."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb

from trident_store.blocks.engine import EngineError, guarded
from trident_store.blocks.store import BlockStore
from trident_store.filesystem import OsFileSystem

_NAME: Final = "duckdb"
_NEW: Final = ".new"
FILE_BLOCKS: Final = 256
_CONFIG: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "threads": "1",
}


def file_name(file: int) -> str:
    """Name of the database that holds blocks `file` * 256 up to 255 more."""
    return f"{file:08d}.duckdb"


def _last_file(folder: Path) -> int:
    files = [int(n[:8]) for n in os.listdir(folder) if n.endswith(".duckdb") and n[:8].isdigit()]
    if not files:
        raise EngineError("there is no database", file=_NAME)
    return max(files)


@contextlib.contextmanager
def _guarded(file: str) -> Iterator[None]:
    with guarded("DuckDB", f"{_NAME}/{file}"):
        try:
            yield
        except RuntimeError as error:
            if "interrupted" in str(error):  # Ctrl-C, which DuckDB takes for itself
                raise KeyboardInterrupt from error
            raise


def _connect(path: Path, *, read_only: bool) -> Any:
    with _guarded(path.name):
        if not path.exists():  # DuckDB would make it
            raise FileNotFoundError("the file has gone")
        return duckdb.connect(str(path), read_only=read_only, config=dict(_CONFIG))


class _Files:
    """Reading: `last` is open as the view or the writer has it, of the full files before it one at a time."""

    torn = (0, "")

    def __init__(self, folder: Path, last: int) -> None:
        self._folder, self.last = folder, last
        self._tail: Any = None
        self._full: tuple[int, Any] = (-1, None)

    def get(self, number: int) -> bytes | None:
        file = number // FILE_BLOCKS
        if file > self.last or (file == self.last and self._tail is None):
            return None
        connection = self._tail if file == self.last else self._enter(file)
        with _guarded(file_name(file)):
            rows = connection.execute("SELECT data FROM block WHERE number = ?", [number]).fetchall()
        if len(rows) > 1:
            raise EngineError(f"{len(rows)} rows of block {number}", file=self.place(number)[0])
        return rows[0][0] if rows else None

    def _enter(self, file: int) -> Any:
        """The connection to a full file: nobody writes to it, so it is opened where it stands."""
        if self._full[0] != file:
            self._leave()
            self._full = (file, _connect(self._folder / file_name(file), read_only=True))
        return self._full[1]

    def _leave(self) -> None:
        (_, connection), self._full = self._full, (-1, None)
        if connection is not None:
            connection.close()

    def place(self, number: int) -> tuple[str, int]:
        return f"{_NAME}/{file_name(number // FILE_BLOCKS)}", 0

    def check(self) -> list[EngineError]:
        return []

    def close(self) -> None:
        self._leave()
        tail, self._tail = self._tail, None
        if tail is not None:
            with _guarded(file_name(self.last)):
                tail.close()


class _DuckView(_Files):
    """The last file, which a writer may have locked, is read from a copy, with its log.

    DuckDB refuses a log whose last commit a crash left half written. `hint` is how much of it is durable:
    what follows was never acknowledged, and is left out.
    """

    def __init__(self, folder: Path, hint: int) -> None:
        super().__init__(folder, _last_file(folder))
        self._copy = Path(tempfile.mkdtemp(prefix="trident-duckdb-"))
        self._closer = weakref.finalize(self, shutil.rmtree, self._copy, ignore_errors=True)
        try:
            self._open_copy(hint)
        except BaseException:
            self.close()
            raise

    def _open_copy(self, hint: int) -> None:
        name = file_name(self.last)
        shutil.copyfile(self._folder / name, self._copy / name)
        log = self._copy / f"{name}.wal"
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(self._folder / f"{name}.wal", log)
        try:
            self._tail = _connect(self._copy / name, read_only=True)
        except EngineError:
            size = log.stat().st_size if log.exists() else 0
            if hint >= size:
                raise
            os.truncate(log, hint) if hint else log.unlink()
            self._tail = _connect(self._copy / name, read_only=True)
            self.torn = (size - hint, f"{_NAME}/{name}.wal")

    def close(self) -> None:
        super().close()
        self._closer()


class _DuckWriter(_Files):
    """DuckDB makes every commit durable, in a log that is written into the file when the file is full or
    closed. `hint`: the bytes of that log."""

    def __init__(self, folder: Path, last: int) -> None:
        super().__init__(folder, last)
        self._named = False  # is the name of the log durable?
        self._begin()

    @property
    def hint(self) -> int:
        log = self._folder / f"{file_name(self.last)}.wal"
        return log.stat().st_size if log.exists() else 0

    def _begin(self) -> None:
        """Open the last file, made if there is none: under another name until it has its table."""
        path = self._folder / file_name(self.last)
        crashed = self.hint > 0
        if not path.exists():
            new = path.with_name(path.name + _NEW)
            with _guarded(new.name):
                new.unlink(missing_ok=True)
                with contextlib.closing(duckdb.connect(str(new), config=dict(_CONFIG))) as connection:
                    connection.execute("CREATE TABLE block (number UBIGINT, data BLOB)")
                new.rename(path)
            OsFileSystem().sync_directory(self._folder)
        tail = _connect(path, read_only=False)
        with _guarded(path.name):
            # Nothing is appended to a log that a crash left: what follows a torn commit would be lost.
            if crashed:
                tail.execute("CHECKPOINT")
            # From here on the log only grows, so that the mark can say how much of it is durable.
            tail.execute("SET checkpoint_threshold = '1TB'")
        self._tail = tail

    def commit(self, first: int, blocks: Sequence[bytes]) -> None:
        """A commit for each file: after a crash, a prefix of `blocks` is there."""
        rows = list(enumerate(blocks, first))
        while rows:
            file = rows[0][0] // FILE_BLOCKS
            if file != self.last:
                self._next(file)
            if self._tail is None:
                self._begin()
            count = min((file + 1) * FILE_BLOCKS - rows[0][0], len(rows))
            with _guarded(file_name(file)):
                self._insert(rows[:count])
            if not self._named:  # DuckDB syncs the log that it has just made, and not the folder
                OsFileSystem().sync_directory(self._folder)
                self._named = True
            rows = rows[count:]

    def _insert(self, rows: list[tuple[int, bytes]]) -> None:
        try:  # an interrupt may come behind each of these
            self._tail.execute("BEGIN")
            for row in rows:
                self._tail.execute("INSERT INTO block VALUES (?, ?)", row)
            self._tail.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(duckdb.Error):
                self._tail.execute("ROLLBACK")
            raise

    def _next(self, file: int) -> None:
        with _guarded(file_name(self.last)):
            if self._tail is not None:  # an interrupt may have come behind this
                self._tail.execute("CHECKPOINT")
                self._tail.close()
            self._tail, self._named = None, False
        self.last = file


class DuckEngine:
    """See `trident_store.blocks.engine.Engine`."""

    name = _NAME

    def create(self, folder: Path) -> _DuckWriter:
        folder.mkdir()
        return _DuckWriter(folder, 0)

    def write(self, folder: Path, hint: int) -> _DuckWriter:
        last = _last_file(folder)
        try:
            return _DuckWriter(folder, last)
        except EngineError:
            log = folder / f"{file_name(last)}.wal"
            if not log.exists() or log.stat().st_size <= hint:
                raise
            os.truncate(log, hint)  # as the view did with its copy
            return _DuckWriter(folder, last)

    def view(self, folder: Path, hint: int) -> _DuckView:
        return _DuckView(folder, hint)


class DuckStore(BlockStore):
    """A store on DuckDB. Options and errors: `trident_store.blocks.store.BlockStore`."""

    engine = DuckEngine()
