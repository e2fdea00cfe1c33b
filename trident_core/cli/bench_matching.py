"""`trident bench matching`: its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trident_core.cli.output import number, table

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.benchmarks.matching import Matching
    from trident_core.measure import Percentiles


def render_matching(out: Console, result: Matching) -> None:
    """Speed beside peers, latency of one order, the cost as the book grows."""
    rows = table(f"{result.title}: {result.mix}", "engine", ">orders/s", ">times as fast", gap=1)
    rows.add_row(result.title.removeprefix("matching with "), number(round(result.orders_per_s)), "")
    for name, peer in result.peers.items():
        rows.add_row(name, number(round(peer["orders_per_s"])), f"{peer['times_as_fast']:,.0f} x")
    out.print(rows)
    rows = table("one IOC order that takes one order: ns", "clock", ">p50", ">p99", ">p99.9", ">floor", gap=1)
    if result.inside is not None and result.inside_floor is not None:
        rows.add_row("inside, time-stamp counter", *_cells(result.inside), f"{result.inside_floor.p50:.0f}")
    rows.add_row("from Python, perf_counter_ns", *_cells(result.python), str(result.python_floor_ns))
    out.print(rows)
    rows = table("as the book grows", "resting orders", ">ns a command", gap=1)
    for resting, cost in result.growing.items():
        rows.add_row(number(resting), f"{cost:.0f}")
    out.print(rows)
    out.print(
        f"{number(result.commands)} commands, {result.rounds} rounds, {result.rejected:.2%} rejected; "
        f"{result.bytes_per_order:.0f} bytes an order in the largest book"
    )
    for note in result.notes:
        out.print(f"note: {note}")
    loads = result.load_average
    out.print(f"clock: perf_counter; load {loads[0]:.2f} to {loads[1]:.2f}")


def _cells(found: Percentiles) -> list[str]:
    return [f"{found.p50:,.0f}", f"{found.p99:,.0f}", f"{found.p99_9:,.0f}"]
