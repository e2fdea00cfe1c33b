"""The part of `trident convert` that writes LOBSTER's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trident_core.cli import common
from trident_core.cli.output import coloured, number, render_anomalies
from trident_core.errors import UsageError
from trident_core.session import format_time, parse_time

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.convert_lobster import LobsterConverted
    from trident_core.inputs import Opened

#: The word after --format.
LOBSTER: Final = "lobster"


def lobster_run(
    symbols: str, start: str | None, until: str | None, *, refused: Mapping[str, object], **rest: Any
) -> Callable[[Opened, Path, Any], tuple[LobsterConverted, Callable[[Console], None]]]:
    """What converts an opened input, and returns the outcome and what prints it.

    `refused`: the options that LOBSTER's layout leaves no choice for -> were they used?
    """
    from trident_core.convert_lobster import CLOSE, OPEN, LobsterOptions, run_lobster

    used = [option for option, value in refused.items() if value]
    if used:
        raise UsageError(
            f"--format lobster leaves nothing to choose for {', '.join(used)}",
            hint="it takes --depth, --symbols, --from and --to; tables are csv, arrow or parquet",
        )
    options = LobsterOptions(
        symbols=common.parse_symbols(symbols),
        start=parse_time(start) if start else OPEN,
        until=parse_time(until) if until else CLOSE,
        **rest,
    )

    def run(opened: Opened, out: Path, advance: Any) -> tuple[LobsterConverted, Callable[[Console], None]]:
        done = run_lobster(opened, out, options, advance=advance)
        return done, lambda console: _render(console, done)

    return run


def _render(out: Console, done: LobsterConverted) -> None:
    from trident_core.tables.lobster import COUNTED

    stats, options = done.stats, done.options
    if stats.interrupted:
        out.print(coloured(("interrupted: no file was written", "yellow")))
        return
    megabytes = sum(done.bytes.values()) / 1e6
    pairs = "pair" if len(done.symbols) == 1 else "pairs"
    out.print(
        f"{stats.source} → {done.folder}: {number(len(done.symbols))} {pairs} {done.files}, "
        f"{number(done.rows)} rows, {megabytes:,.1f} MB",
        soft_wrap=True, markup=False,
    )  # fmt: skip
    seconds = stats.wall_s or 1e-9
    out.print(
        f"{number(stats.events)} messages, rows of {format_time(options.start)} to "
        f"{format_time(options.until)}, in {seconds:.1f} s: {stats.events / seconds / 1e6:.2f} M messages/s"
    )
    out.print(", ".join(f"{kind} {name}" for kind, name in stats.engines.items()))
    for name, count in done.counted.items():
        out.print(f"{number(count)} {COUNTED[name][1]}")
    if not done.rows:
        out.print("no row lies in that time: --from and --to choose another")
    if done.missing:
        out.print(f"not in this input: {', '.join(done.missing)}")
    render_anomalies(out, stats.anomalies.to_json())
