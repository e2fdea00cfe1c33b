"""A folder of tables: rows come in batches, a thread of its own writes them, all files appear at the end."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import InputError
from trident_core.export.claim import Claim
from trident_core.export.columns import Layout, SymbolCodes, Symbols
from trident_core.export.files import Format, TableFile
from trident_core.tables.common import Table

#: Rows of a table are gathered up to this size, then become a row group (140,000 rows of `bbo`). Of twice the
#: size the files are as large, and the last group, which nothing else can go on beside, takes twice the time.
GROUP_BYTES: Final = 8 << 20
#: By symbol: up to this size, then a part of every symbol in them.
PARTITION_BYTES: Final = 256 << 20
#: Groups waiting for the writing thread.
WAITING: Final = 2
#: By symbol: the partition of rows without a symbol, by Hive's convention.
NO_SYMBOL: Final = "__HIVE_DEFAULT_PARTITION__"


class TableFolder:
    """Writes tables into a folder. `put` from one thread, then `finish` or `drop`.

    Files are `<table>.<format>`; by symbol `<table>/symbol=<symbol>/part-<n>.<format>`, names quoted as in
    URLs. No file has its name before `finish` has closed all of them. Memory: up to 2 + WAITING buffers of
    GROUP_BYTES (by symbol: PARTITION_BYTES) a table, as far as they are used, and the columns of one. Raises
    InputError for a folder that cannot be made or written, or that another run is writing into.
    """

    def __init__(
        self,
        folder: Path,
        layouts: Mapping[str, Layout],
        form: Format,
        symbols: SymbolCodes,
        metadata: Mapping[str, str],
        *,
        by_symbol: bool = False,
    ) -> None:
        self.rows: dict[str, int] = dict.fromkeys(layouts, 0)
        self._folder, self._layouts, self._form = folder, layouts, form
        self._symbols, self._metadata, self._by_symbol = symbols, metadata, by_symbol
        self._gathered: dict[str, Table] = {}  # a table's buffer, of whose rows some are used
        self._spare: dict[str, deque[Table]] = {name: deque() for name in layouts}
        self._waiting = dict.fromkeys(layouts, 0)  # rows
        self._marked: Symbols | None = None
        self._files: dict[str, TableFile] = {}
        self._parts: list[TableFile] = []
        self._made: list[Path] = []
        self._error: BaseException | None = None
        self._queue: queue.Queue[tuple[str, Table, int, Symbols] | None] = queue.Queue(WAITING)
        self._make(folder)
        self._claim = Claim(folder)
        self._thread = threading.Thread(target=self._run, name="trident-tables", daemon=True)
        self._thread.start()

    def put(self, name: str, rows: Table) -> None:
        """Copy rows of the table `name`. Raises what the writing thread met.

        Into buffers that are used again: to touch fresh memory costs several times what the copy does.
        """
        self.rows[name] += len(rows)
        size = max(1, (PARTITION_BYTES if self._by_symbol else GROUP_BYTES) // rows.itemsize)
        while len(rows):  # groups of one size, however the rows come
            if name not in self._gathered:
                spare = self._spare[name]
                self._gathered[name] = spare.popleft() if spare else np.empty(size, rows.dtype)
            taken = rows[: size - self._waiting[name]]
            rows = rows[len(taken) :]
            place = slice(self._waiting[name], self._waiting[name] + len(taken))
            _raw(self._gathered[name])[place] = _raw(np.ascontiguousarray(taken))
            self._waiting[name] = place.stop
            if place.stop == size:
                self._flush(name)

    def mark(self) -> Callable[[], None]:
        """Keep the symbols that are known now; call what it returns before putting rows that know no more.

        Without marks, rows of which no group is full yet get the names known when it is.
        """
        current = self._symbols.current()

        def use() -> None:
            self._marked = current

        return use

    def finish(self, metadata: Mapping[str, str]) -> dict[str, int]:
        """Write what is left, close all files with `metadata`, name them; -> bytes of each table."""
        for name in self._layouts:
            self._flush(name)
        self._join()
        files = self._opened()
        for file in files:
            file.close(metadata)
        for file in files:
            file.finish()
        sizes = dict.fromkeys(self._layouts, 0)
        for file in files:
            table = file.path.parent.parent.name if self._by_symbol else file.path.stem
            sizes[table] += file.path.stat().st_size
        self._claim.release()
        return sizes

    def drop(self) -> None:
        """Stop, and leave nothing that was not there before."""
        self._error = self._error or InputError("given up")
        self._stop()
        for file in [*self._files.values(), *self._parts]:
            file.drop()
        self._claim.release()
        for folder in reversed(self._made):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def _opened(self) -> list[TableFile]:
        if not self._by_symbol:
            for name in self._layouts:
                self._file(name)
        return [*self._files.values(), *self._parts]

    def _flush(self, name: str) -> None:
        used, self._waiting[name] = self._waiting[name], 0
        if used:
            self._hand_over(name, self._gathered.pop(name), used)

    def _hand_over(self, name: str, rows: Table, used: int) -> None:
        while self._error is None:
            try:
                self._queue.put((name, rows, used, self._marked or self._symbols.current()), timeout=0.5)
                return
            except queue.Full:
                continue
        raise self._error

    def _join(self) -> None:
        self._stop()
        if self._error:
            raise self._error

    def _stop(self) -> None:
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            if self._error is None:
                try:
                    self._write(*item)
                except BaseException as error:  # handed to the thread that puts
                    self._error = error

    def _write(self, name: str, whole: Table, used: int, symbols: Symbols) -> None:
        layout, rows = self._layouts[name], whole[:used]
        if not self._by_symbol:
            self._file(name).write(layout.batch([rows], symbols, reuse=True))
        else:
            self._write_partitions(name, rows, symbols)
        self._spare[name].append(whole)

    def _write_partitions(self, name: str, rows: Table, symbols: Symbols) -> None:
        layout = self._layouts[name]
        for symbol, part in _partitions(rows, symbols):
            folder = self._folder / name / f"symbol={symbol}"
            self._make(folder)
            number = sum(1 for _ in folder.glob(f".part-*.{self._form}.part"))
            path = folder / f"part-{number:05d}.{self._form}"
            file = TableFile(path, layout, self._form, self._metadata)
            self._parts.append(file)
            file.write(layout.batch([part], symbols, reuse=True))
            file.close({})

    def _file(self, name: str) -> TableFile:
        if name not in self._files:
            path = self._folder / f"{name}.{self._form}"
            self._files[name] = TableFile(path, self._layouts[name], self._form, self._metadata)
        return self._files[name]

    def _make(self, folder: Path) -> None:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot make the folder {folder}: {error.strerror}", hint="name another folder"
            ) from error
        self._made += reversed(missing)


def _raw(rows: Table) -> NDArray[Any]:
    """The same memory without fields: numpy copies structured rows field by field."""
    return rows.view(f"V{rows.dtype.itemsize}")


def _partitions(rows: Table, symbols: Symbols) -> Iterator[tuple[str, Table]]:
    """(quoted symbol, its rows in order) of each locate in `rows`."""
    column = "locate" if "locate" in (rows.dtype.names or ()) else "instrument_id"
    locates = rows[column]
    order = np.argsort(locates, kind="stable")
    near, far, names = symbols
    starts = np.flatnonzero(np.diff(locates[order], prepend=np.uint32(locates[order][:1][0]) + 1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        locate = int(locates[order[start]])
        code = int(near[locate]) if locate < len(near) else far.get(locate, -1)
        symbol = quote(names[code].as_py(), safe="") if code >= 0 else NO_SYMBOL
        yield symbol, rows[order[start:end]]
