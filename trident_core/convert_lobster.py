"""One pass over an input that writes LOBSTER's files: docs/lobster.md tells what stands in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from trident_core.dtypes import EFFECT, EVENT, TOP
from trident_core.errors import UsageError
from trident_core.export.csv_text import level_lines, message_lines
from trident_core.export.lobster import LobsterFolder
from trident_core.inputs import Opened
from trident_core.pipeline import Line, LineOptions
from trident_core.provenance import SourceMd5, missing_symbols, origin, outcome, write_summary
from trident_core.readahead import ReadAhead
from trident_core.session import Session, parse_time
from trident_core.stats import RunStats
from trident_core.tables.lobster import COUNTED, Block, LobsterRows

BATCH: Final = 1 << 15
#: LOBSTER's own window, and ours unless another is asked for.
OPEN, CLOSE = parse_time("09:30"), parse_time("16:00")


@dataclass(frozen=True, slots=True)
class LobsterOptions:
    """`depth`: levels of the orderbook files. `start`, `until`: times of day in ns, of the rows and in the
    names; both belong to the window. `symbols` empty: all."""

    depth: int = 10
    symbols: tuple[str, ...] = ()
    start: int = OPEN
    until: int = CLOSE
    md5: bool = True


@dataclass(slots=True)
class LobsterConverted:
    """What was written. `symbols` have a pair of files each; `missing` were asked for and are not there;
    `counted` is what the files lack or say otherwise, by the names of `tables.lobster.COUNTED`."""

    folder: Path
    options: LobsterOptions
    stats: RunStats
    rows: int = 0
    bytes: dict[str, int] = field(default_factory=dict)
    symbols: list[str] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    counted: dict[str, int] = field(default_factory=dict)
    files: str = ""
    metadata: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder), "files": self.files, "pairs": len(self.symbols),
            "symbols": self.symbols, "rows": self.rows, "bytes": self.bytes,
            "counted": {name: {"count": n, "what": COUNTED[name][1]} for name, n in self.counted.items()},
            "missing": list(self.missing), "metadata": self.metadata, "run": self.stats.to_json(),
        }  # fmt: skip


def run_lobster(
    opened: Opened,
    folder: Path,
    options: LobsterOptions,
    *,
    advance: Callable[[int, int | None, int], None] | None = None,
) -> LobsterConverted:
    """Write a pair of files for each symbol into `folder`; the caller closes `opened`.

    Raises UsageError for a session without a date, an empty window, or if none of the symbols is in the
    input; InputError for what cannot be read or written. Then, and when interrupted, nothing is left in
    `folder` that was not there before.
    """
    session = opened.session
    if options.until < options.start or session.date is None:
        raise UsageError("LOBSTER's files need a date, and a window that does not end before it starts")
    files = LobsterFolder(folder, session, options.depth, (options.start, options.until))
    path = opened.source.path
    md5 = SourceMd5(path if options.md5 else None)
    metadata = origin(opened) | {"trident.symbols": ",".join(options.symbols) or "all"}
    try:
        warm_up()
        rows = LobsterRows(session, options.depth, files.put, since=options.start)
        feed = ReadAhead(opened.feed) if path and path.is_file() else opened.feed
        line = Line(
            feed, opened.source, opened.parser, opened.book, progress=advance,
            observer=lambda events, tops, effects: rows.apply(events, effects, tops),
            options=LineOptions(symbols=options.symbols, until=options.until, batch=BATCH),
        )  # fmt: skip
        stats = line.run()
        opened.tell(stats)
        done = LobsterConverted(
            folder, options, stats, missing=missing_symbols(session, options.symbols), counted=rows.counts(),
            files=files.file_name("*", "*"),
        )  # fmt: skip
        if stats.interrupted:
            md5.stop()
            files.drop()
            return done
        rows.finish()
        wanted = [name for name in options.symbols if name not in done.missing]
        done.symbols = files.finish(rows.locates(), wanted)
        done.rows, done.bytes = files.rows, files.bytes
        done.metadata = metadata | outcome(stats) | md5.result()
    except BaseException:
        md5.stop()
        files.drop()
        raise
    write_summary(folder, done.to_json())
    return done


def warm_up() -> None:
    """Compile, or load, the kernels that only LOBSTER's files need."""

    def write(block: Block) -> None:
        heads, books, _ = block
        order, ends, text = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1 << 10, np.uint8)
        message_lines(heads[:1], order, text, ends)
        level_lines(books[:1], order, text, ends, np.zeros((2, 5), np.int64))

    rows = LobsterRows(Session(), 1, write)
    rows.warm_up()
    events = np.zeros(2, EVENT)  # of one event, a column would be contiguous: other kernels
    events["type"], events["qty"] = ord("P"), 1
    rows.apply(events, np.zeros(2, EFFECT), np.zeros(2, TOP))
    rows.finish()
