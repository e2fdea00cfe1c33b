"""`trident simulate OUT`: a simulated day as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, number, progress, table
from trident_core.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from trident_agents.files import AgentsWritten
    from trident_sim.files import Written

_KINDS_HELP = "Of these kinds only: unknown_ref,duplicate_ref,over_execution."


def simulate(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The file to write; .gz and .zst are compressed.")
    ],
    messages: Annotated[
        int, typer.Option("--messages", "-n", help="Messages of the day; of agents, about as many.")
    ] = 1_000_000,
    symbols: Annotated[
        int | None,
        typer.Option("--symbols", "-s", help="Symbols of the day.", show_default="200; 10 with agents"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed is another day.")] = 1,
    anomalies: Annotated[
        float, typer.Option("--anomalies", help="Share of messages made wrong on purpose, 0 to 0.2.")
    ] = 0.0,
    kinds: Annotated[str, typer.Option("--anomaly-kinds", help=_KINDS_HELP)] = "",
    agents: Annotated[
        bool,
        typer.Option("--agents", help="Let agents trade on a matching engine instead of the flow model."),
    ] = False,
    minutes: Annotated[
        int | None,
        typer.Option("--minutes", help="Agents: trading from 09:30 for so long.", show_default="390"),
    ] = None,
    parent: Annotated[
        int | None, typer.Option("--parent", help="Agents: shares of the large parent order, 0 for none.")
    ] = None,
    book: Annotated[str | None, typer.Option("--book", help="Agents: the book engine that matches.")] = None,
    date: Annotated[
        str | None, typer.Option("--date", help="Named in the summary only: ITCH carries no date.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    json: common.Json = False,
) -> None:
    """Write a deterministic, book-consistent ITCH 5.0 day with all 23 message types to OUT.

    Equal options give equal bytes on every machine. What is realistic and what is not: docs/simulator.md.
    With --agents, market makers, traders and institutions trade on a matching engine, which publishes it.
    """
    if agents:
        if anomalies or kinds:
            raise UsageError("an exchange publishes no anomalies", hint="leave --agents or --anomalies out")
        _simulate_agents(out, messages, symbols, minutes, seed, parent, book, date, force, json)
        return
    if minutes is not None or parent is not None or book is not None:
        raise UsageError("--minutes, --parent and --book are the agents'", hint="add --agents")
    from trident_sim.files import write_day
    from trident_sim.spec import ANOMALY_KINDS, SimSpec

    spec = SimSpec(
        messages=messages,
        symbols=200 if symbols is None else symbols,
        seed=seed,
        date=common.parse_date(date),
        anomalies=anomalies,
        anomaly_kinds=common.parse_symbols(kinds) or ANOMALY_KINDS,
    )
    with progress("simulating", unit="messages", quiet=json) as advance:
        written = write_day(out, spec, force=force, progress=lambda done, total: advance(done, total, done))
    emit(written.to_json(), as_json=json, render=lambda console: _render(console, written))


def _simulate_agents(
    out: Path, messages: int, symbols: int | None, minutes: int | None, seed: int, parent: int | None,
    book: str | None, date: str | None, force: bool, json: bool,
) -> None:  # fmt: skip
    from trident_agents.files import write_agents_day
    from trident_agents.spec import MINUTES_MAX, AgentSpec

    spec = AgentSpec(
        messages=messages,
        symbols=10 if symbols is None else symbols,
        minutes=MINUTES_MAX if minutes is None else minutes,
        seed=seed,
        parent=parent,
        date=common.parse_date(date),
    )
    with progress("trading", unit="messages", quiet=json) as advance:
        written = write_agents_day(
            out, spec, book=book, force=force, progress=lambda done, total: advance(done, total, done)
        )
    emit(written.to_json(), as_json=json, render=lambda console: _render_agents(console, written))


def _render_agents(console: Console, written: AgentsWritten) -> None:
    rows = table(written.path, "what", "~value")
    rows.add_row("messages", number(written.messages))
    rows.add_row("symbols, minutes, seed", f"{number(written.symbols)}, {written.minutes}, {written.seed}")
    rows.add_row("commands, of these rejected", f"{number(written.commands)}, {number(written.rejected)}")
    rows.add_row("trades, shares", f"{number(written.trades)}, {number(written.shares)}")
    rows.add_row("orders displayed at the end", number(written.live_orders))
    rows.add_row("orders alive at the peak", number(written.live_orders_peak))
    rows.add_row("bytes, in the file", f"{number(written.bytes)}, {number(written.file_bytes)}")
    rows.add_row("matching engine, book digest", f"{written.engine}, {written.digest[:16]}…")
    rate = written.messages / max(written.seconds, 1e-9) / 1e6
    rows.add_row("wall time", f"{written.seconds:.2f} s, {rate:.3f} M messages/s")
    console.print(rows)
    _render_counts(console, written.counts)
    shown = table("agents, at the last price", "kind", ">agents", ">earned, dollars")
    for kind, each in written.agents.items():
        shown.add_row(kind, number(each["agents"]), f"{each['earned']:,.2f}")
    console.print(shown)
    _render_parents(console, written.parents)


def _render_parents(console: Console, parents: list[dict[str, Any]]) -> None:
    """The largest parent orders."""
    columns = ("symbol", "side", "style", ">shares", ">filled", ">of volume", ">cost, bp")
    shown = table(f"parent orders: the largest of {len(parents)}", *columns)
    for parent in sorted(parents, key=lambda each: -int(each["shares"]))[:8]:
        cost = "" if parent["cost_bp"] is None else f"{parent['cost_bp']:.2f}"
        shown.add_row(
            parent["symbol"], parent["side"], parent["style"], number(parent["shares"]),
            number(parent["filled"]), f"{100 * parent['of_volume']:.1f} %", cost,
        )  # fmt: skip
    console.print(shown)


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
    _render_counts(console, written.counts)


def _render_counts(console: Console, counts: dict[str, int]) -> None:
    shown, total = table("messages by type", "type", ">count", ">share"), sum(counts.values())
    for letter, count in sorted(counts.items(), key=lambda item: -item[1]):
        shown.add_row(letter, number(count), f"{100 * count / total:.3f} %")
    console.print(shown)
