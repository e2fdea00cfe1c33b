"""What commands share: a table on a terminal, JSON with --json, progress on stderr, one line for an error."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
    from rich.table import Table
    from rich.text import Text

    from trident_core.errors import TridentError
    from trident_core.stats import RunStats

#: Called with the amount done, the amount in all (None: unknown) and a count of events (or of another unit).
Advance = Callable[[int, int | None, int], None]


#: Columns of an output that is no terminal.
UNLIMITED_WIDTH = 1 << 12
#: Of a column that may wrap, no less than this many characters are kept in a line.
WRAPPED_WIDTH = 16


def printable(text: str) -> str:
    """`text` with what would steer a terminal, or cannot be encoded, as backslash escapes; newlines stay.

    Names of files and of symbols are strangers' bytes.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def coloured(*parts: tuple[str, str]) -> Text:
    """(text, colour) parts as one line. Strings are literal: brackets in them are a symbol's or a file's."""
    from rich.text import Text

    return Text.assemble(*((printable(text), colour) for text, colour in parts))


def console(*, stderr: bool = False) -> Console:
    """A rich console that takes strings literally; made when needed, for importing rich costs more than most
    commands."""
    from rich.console import Console

    class Literal(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(printable(text), **options)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # a terminal that has no → or … still gets the figures
    # A pipe or a file has no width: there, nothing wraps.
    width = None if stream.isatty() or "COLUMNS" in os.environ else UNLIMITED_WIDTH
    return Literal(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def emit(data: Any, *, as_json: bool, render: Callable[[Console], None]) -> None:
    """Print `data` as JSON, or call `render` to print it for a reader.

    A reader who has gone (| head) is no error; what the command says by its exit code still stands.
    """
    try:
        if as_json:
            print(json.dumps(data, indent=2, default=str))
        else:
            render(console())
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """From now on standard output goes nowhere."""
    with suppress(OSError, ValueError):  # not a file: captured by a caller
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def table(title: str, *columns: str, gap: int = 2) -> Table:
    """A plain table, `gap` + 1 blanks between columns. A column named ">…" is right-justified, "~…" wraps
    first.

    Nothing is ever cropped: where the terminal is too narrow for the other columns, they wrap as well.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    class Lossless(Table):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            needed = (gap + 1) * len(self.columns)
            for column in self.columns:
                texts = (c.plain if isinstance(c, Text) else str(c) for c in (column.header, *column.cells))
                widest = max(max(map(len, text.split("\n"))) for text in texts)
                needed += widest if column.no_wrap else min(widest, WRAPPED_WIDTH)
            if needed > options.max_width:
                for column in self.columns:
                    column.no_wrap = False
            title = self.title
            if title and len(str(title)) > min(needed, options.max_width):
                # Rich would fold it to the width of the columns, in the middle of a path.
                yield Text(str(title), style="bold", overflow="fold")
                self.title = None
            try:
                yield from super().__rich_console__(console, options)
            finally:
                self.title = title

        def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
            """Every row is one row, whatever a name has in it."""
            flat = (cell.replace("\n", "\\n") if isinstance(cell, str) else cell for cell in cells)
            super().add_row(*flat, **options)

    made = Lossless(
        title=title.replace("\n", "\\n") or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, gap - gap // 2, 0, gap // 2),
        pad_edge=False,
    )
    for column in columns:
        justify: JustifyMethod = "right" if column[0] == ">" else "left"
        made.add_column(column.lstrip(">~"), justify=justify, no_wrap=column[0] != "~", overflow="fold")
    return made


def program() -> str:
    """How the user can call this program again: `trident`, or the script's path when it is not on PATH."""
    if shutil.which("trident") or not sys.argv[0].endswith("trident"):
        return "trident"
    return os.path.relpath(sys.argv[0])


def number(value: float) -> str:
    """A whole number with thin grouping: 1,234,567."""
    return f"{value:,.0f}"


@contextmanager
def progress(
    label: str, *, unit: str = "events", quiet: bool = False, start: str = "starting"
) -> Iterator[Advance]:
    """A bar with rate and ETA on stderr; silent when stderr is not a terminal or `quiet`.

    `start` stands where the figures will, until the first of them.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda done, total, count: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from trident_core.cli import waiting

    columns = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[note]}"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None, note=start)

        began = time.monotonic()

        def compiling(text: str) -> None:
            nonlocal began
            began = time.monotonic()  # waiting for a compiler is not part of the rate
            bar.update(task, note=text or start)

        def advance(done: int, total: int | None, count: int) -> None:
            seconds = time.monotonic() - began
            rate = f"{count / seconds / 1e6:.2f} M {unit}/s" if seconds > 0.2 else ""
            bar.update(task, completed=done, total=total, note=f"{count:,} {unit} {rate}")

        with waiting.shown_by(compiling):
            yield advance


def print_error(error: TridentError) -> None:
    """One line of what happened, one of what to do; the pattern with its caret for a pattern."""
    from trident_core.errors import PatternError

    with suppress(OSError):  # nobody reads it: the exit code remains
        if isinstance(error, PatternError):
            print(printable(error.caret()), file=sys.stderr)
        for name, text in (("error", error.message), ("hint", error.hint)):
            if text:
                line = printable(text).replace("\n", "\\n")
                print(f"{name}: {line}", file=sys.stderr)


def print_notices(stats: RunStats) -> None:
    """What a run did otherwise than asked, on stderr."""
    with suppress(OSError):
        for text in stats.notices:
            print(f"note: {printable(text)}", file=sys.stderr)


def anomaly_rows(anomalies: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, str, str]]:
    """(name, count, first positions, meaning) for each anomaly of a `to_json` mapping."""
    from trident_core.stats import KNOWN_ANOMALIES

    return [
        (
            name,
            number(item["count"]),
            ", ".join(map(str, item["first_at"][:3])),
            KNOWN_ANOMALIES.get(name, ""),
        )
        for name, item in anomalies.items()
    ]


def render_run(out: Console, stats: RunStats) -> None:
    """The closing summary of a run: what was read, how fast, what was odd."""
    from trident_core.cli.behind import render_line
    from trident_core.session import format_time

    rows = table(stats.source, "what", "~value")
    rows.add_row("messages read", number(stats.events))
    if "book" in stats.engines and stats.applied != stats.events:
        rows.add_row("messages of the symbols named", number(stats.applied))
    if stats.events:
        rows.add_row("time of day", f"{format_time(stats.first_ts)} to {format_time(stats.last_ts)}")
        rows.add_row("sequence numbers", f"{number(stats.first_seq)} to {number(stats.last_seq)}")
    rows.add_row("symbols", number(stats.symbols))
    if "book" in stats.engines:
        rows.add_row("live orders at the end", number(stats.live_orders))
        rows.add_row("book digest", stats.digest[:16] + "…")
    if "store" in stats.engines:
        rows.add_row("events stored", number(stats.stored))
        rows.add_row("durable up to sequence number", number(stats.durable_seq))
        rows.add_row("waits for the ring", number(stats.ring_full_waits))
    rows.add_row("engines", ", ".join(f"{kind} {name}" for kind, name in stats.engines.items()))
    seconds = stats.wall_s or 1e-9
    rows.add_row("wall time", f"{stats.wall_s:.2f} s, {stats.events / seconds / 1e6:.3f} M messages/s")
    out.print(rows)
    render_line(out, stats)
    render_anomalies(out, stats.anomalies.to_json())
    if stats.interrupted:
        out.print(coloured(("interrupted: the figures are those up to the interruption", "yellow")))


def render_anomalies(out: Console, anomalies: Mapping[str, Mapping[str, Any]]) -> None:
    if not anomalies:
        out.print("no anomalies")
        return
    # Feeds and parsers know bytes, books know sequence numbers.
    rows = table("anomalies", "name", ">count", "first at byte, or seq", "~meaning")
    for row in anomaly_rows(anomalies):
        rows.add_row(*row)
    out.print(rows)
