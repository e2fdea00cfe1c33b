"""`trident simulate OUT`: a simulated day as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, number, progress, table

if TYPE_CHECKING:
    from rich.console import Console

    from trident_sim.files import Written

_KINDS_HELP = "Of these kinds only: unknown_ref,duplicate_ref,over_execution."


def simulate(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file to write; .gz and .zst are compressed.")
    ],
    messages: Annotated[int, typer.Option("--messages", "-n", help="Messages of the day.")] = 1_000_000,
    symbols: Annotated[int, typer.Option("--symbols", "-s", help="Symbols of the day.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Another seed is another day.")] = 1,
    anomalies: Annotated[
        float, typer.Option("--anomalies", help="Share of messages made wrong on purpose, 0 to 0.2.")
    ] = 0.0,
    kinds: Annotated[str, typer.Option("--anomaly-kinds", help=_KINDS_HELP)] = "",
    date: Annotated[
        str | None, typer.Option("--date", help="Named in the summary only: ITCH carries no date.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    json: common.Json = False,
) -> None:
    """Write a deterministic, book-consistent ITCH 5.0 day with all 23 message types to OUT.

    Equal options give equal bytes on every machine. What is realistic and what is not: docs/simulator.md.
    """
    from trident_sim.files import write_day
    from trident_sim.spec import ANOMALY_KINDS, SimSpec

    spec = SimSpec(
        messages=messages,
        symbols=symbols,
        seed=seed,
        date=common.parse_date(date),
        anomalies=anomalies,
        anomaly_kinds=common.parse_symbols(kinds) or ANOMALY_KINDS,
    )
    with progress("simulating", unit="messages", quiet=json) as advance:
        written = write_day(out, spec, force=force, progress=lambda done, total: advance(done, total, done))
    emit(written.to_json(), as_json=json, render=lambda console: _render(console, written))


def _render(console: Console, written: Written) -> None:
    rows = table(written.path, "what", "~value")
    rows.add_row("messages", number(written.messages))
    rows.add_row("symbols, seed", f"{number(written.symbols)}, {written.seed}")
    rows.add_row("live orders at the end, at the peak",
                 f"{number(written.live_orders)}, {number(written.live_orders_peak)}")  # fmt: skip
    rows.add_row("bytes, in the file", f"{number(written.bytes)}, {number(written.file_bytes)}")
    for kind, count in written.anomalies.items():
        rows.add_row(f"made wrong: {kind}", number(count))
    rate = written.messages / max(written.seconds, 1e-9) / 1e6
    rows.add_row("wall time", f"{written.seconds:.2f} s, {rate:.3f} M messages/s")
    console.print(rows)
    counts = table("messages by type", "type", ">count", ">share")
    for letter, count in sorted(written.counts.items(), key=lambda item: -item[1]):
        counts.add_row(letter, number(count), f"{100 * count / written.messages:.3f} %")
    console.print(counts)
