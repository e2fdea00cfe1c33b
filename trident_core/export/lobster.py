"""LOBSTER's files: two csv for each symbol, written by a thread, all of them named at the end."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import InputError
from trident_core.export import csv_text
from trident_core.export.claim import Claim
from trident_core.session import Session
from trident_core.tables.lobster import Block

#: Text of one file that is worth opening it.
FILE_BYTES: Final = 1 << 20
#: Text of all files together that is kept before all is written.
PENDING_BYTES: Final = 128 << 20
#: Blocks waiting for the writing thread.
WAITING: Final = 2
KINDS: Final = ("message", "orderbook")
#: Characters of NASDAQ's symbols that a file name may have besides letters and digits.
_PLAIN: Final = "+=^#*@$!-. "
_NS_PER_MS: Final = 1_000_000


@dataclass(slots=True)
class _Text:
    """What waits to be appended to one file."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0


class LobsterFolder:
    """Writes blocks of rows into a folder. `put` from one thread, then `finish` or `drop`.

    `window` is (first, last) time of day in ns. Lines are kept in memory for each symbol and appended to its
    file when they are FILE_BYTES, or all together PENDING_BYTES; a file is open only then, so that there is
    one open file at a time, however many symbols there are. Memory: PENDING_BYTES, and some 120 MB for blocks
    and lines on their way. Raises InputError for a folder that cannot be made or written,
    or that another run is writing into.
    """

    def __init__(self, folder: Path, session: Session, depth: int, window: tuple[int, int]) -> None:
        self.rows = 0
        self.bytes = dict.fromkeys(KINDS, 0)
        self._folder, self._session, self._depth, self._window = folder, session, depth, window
        self._texts: dict[tuple[int, str], _Text] = defaultdict(_Text)
        self._pending = 0
        self._parts: dict[tuple[int, str], Path] = {}
        self._error: BaseException | None = None
        self._made = [path for path in (folder, *folder.parents) if not path.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot make the folder {folder}: {error.strerror}", hint="name another folder"
            ) from error
        self._claim = Claim(folder)
        self._written: deque[Block] = deque()
        self._buffer: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._queue: queue.Queue[Block | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._run, name="trident-lobster", daemon=True)
        self._thread.start()

    def put(self, block: Block) -> Block | None:
        """Take a block; -> one that was taken before and is written. Raises what the writing thread met."""
        self.rows += block.used
        while self._error is None:
            try:
                self._queue.put(block, timeout=0.5)
                return self._written.popleft() if self._written else None
            except queue.Full:
                continue
        raise self._error

    def finish(self, locates: NDArray[np.uint32], wanted: Sequence[str] = ()) -> list[str]:
        """Write what is left and name all files; -> the symbols that have a pair, in order of their names.

        `locates` are those of the blocks' numbers. Symbols of `wanted` have a pair even without a row.
        """
        self._stop()
        if self._error:
            raise self._error
        self._guard(self._write_all)
        names = self._names(locates)
        for symbol in wanted:
            if symbol not in names.values():
                names[-len(names) - 1] = symbol
        for number, symbol in names.items():
            for kind in KINDS:
                self._name(number, symbol, kind)
        self._claim.release()
        return sorted(names.values())

    def drop(self) -> None:
        """Stop, and leave nothing that was not there before. Never raises."""
        self._error = self._error or InputError("given up")
        self._stop()
        for part in self._parts.values():
            part.unlink(missing_ok=True)
        self._claim.release()
        for folder in self._made:
            with contextlib.suppress(OSError):
                folder.rmdir()

    def file_name(self, symbol: str, kind: str) -> str:
        """The name of a file; what no file name may have in it is quoted as in URLs."""
        start, end = (ns // _NS_PER_MS for ns in self._window)
        ticker = quote(symbol, safe=_PLAIN)
        return f"{ticker}_{self._session.date}_{start}_{end}_{kind}_{self._depth}.csv"

    def _names(self, locates: NDArray[np.uint32]) -> dict[int, str]:
        """Number -> symbol of those that have rows. Two of one name, and none: told by the locate."""
        names: dict[int, str] = {}
        taken: set[str] = set()
        for number in sorted({number for number, _ in self._parts}):
            locate = int(locates[number])
            symbol = self._session.directory.symbol(locate)
            name = symbol or f"locate-{locate}"
            names[number] = f"{name}.locate-{locate}" if name in taken else name
            taken.add(names[number])
        return names

    def _name(self, number: int, symbol: str, kind: str) -> None:
        path = self._folder / self.file_name(symbol, kind)
        part = self._part(number, kind)
        if (number, kind) not in self._parts:
            self._parts[number, kind] = part
            self._guard(part.touch)
        self._guard(lambda: os.replace(part, path))
        del self._parts[number, kind]

    def _part(self, number: int, kind: str) -> Path:
        return self._folder / f".lobster-{number}-{kind}.part"

    def _stop(self) -> None:
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (block := self._queue.get()) is not None:
            if self._error is None:
                try:
                    self._guard(lambda block=block: self._take(block))
                except BaseException as error:  # handed to the thread that puts
                    self._error = error
                self._written.append(block)

    def _take(self, block: Block) -> None:
        """The lines of a block to the texts of their files."""
        heads, books = block.heads[: block.used], block.books[: block.used]
        order = np.argsort(heads[:, 0], kind="stable")
        symbols = heads[order, 0]
        last = np.flatnonzero(np.diff(symbols, append=-1))
        numbers, ends = symbols[last].tolist(), np.zeros(len(order), np.int64)
        csv_text.message_lines(heads, order, self._text(len(order) * csv_text.MESSAGE_BYTES), ends)
        self._share_out("message", numbers, ends[last].tolist())
        places = np.zeros((2, books.shape[1] + 1), np.int64)
        text = self._text(len(order) * books.shape[1] * csv_text.NUMBER_BYTES)
        csv_text.level_lines(books, order, text, ends, places)
        self._share_out("orderbook", numbers, ends[last].tolist())
        if self._pending >= PENDING_BYTES:
            self._write_all()

    def _text(self, size: int) -> NDArray[np.uint8]:
        """The one buffer: fresh memory would cost more than what is written to it."""
        if size > len(self._buffer):
            self._buffer = np.empty(size, np.uint8)
        return self._buffer

    def _share_out(self, kind: str, numbers: list[int], ends: list[int]) -> None:
        """What the buffer holds, symbol after symbol, to their texts."""
        view, start = self._buffer.data, 0
        for number, end in zip(numbers, ends, strict=True):
            text = self._texts[number, kind]
            text.parts.append(bytes(view[start:end]))
            text.size += end - start
            self._pending += end - start
            if text.size >= FILE_BYTES:
                self._write(number, kind, text)
            start = end

    def _write_all(self) -> None:
        for (number, kind), text in self._texts.items():
            if text.size:
                self._write(number, kind, text)

    def _write(self, number: int, kind: str, text: _Text) -> None:
        part = self._part(number, kind)
        first = (number, kind) not in self._parts
        self._parts[number, kind] = part
        with open(part, "wb" if first else "ab", buffering=0) as file:
            left: Any = memoryview(b"".join(text.parts))
            while len(left):
                left = left[file.write(left) :]
        self.bytes[kind] += text.size
        self._pending -= text.size
        text.parts, text.size = [], 0

    def _guard(self, action: Any) -> None:
        """Raise InputError, naming the folder, when the disk refuses."""
        try:
            action()
        except OSError as error:
            raise InputError(
                f"{error.filename or self._folder} cannot be written: {error.strerror or error}",
                hint="is there room, and may you write there?",
            ) from error
