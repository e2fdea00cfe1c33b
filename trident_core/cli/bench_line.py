"""`trident bench line`: its tables."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from trident_core.cli.output import number, table

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.benchmarks.line import LineResult


def render_line_result(out: Console, result: LineResult) -> None:
    """Speed and waits, then laps, then the ladder of every live run."""
    data = result.to_json()
    rows = table(
        f"line: {number(result.events)} events to the last durable one, {data['rounds']} rounds",
        "run", ">s", ">M/s", ">of the book", ">book fed", ">waits", ">dropped", gap=1,
    )  # fmt: skip
    for name, run in data["runs"].items():
        wall = statistics.median(run["wall_s"])
        rows.add_row(
            name, f"{wall:.2f}", f"{run['events_per_s'] / 1e6:.3g}", f"{run['ratio_to_book']:.3g} x",
            f"{run['ratio_to_book_fed']:.3g} x", number(run["ring_full_waits"]), number(run["dropped"]),
        )  # fmt: skip
    out.print(rows)
    rows = table(
        f"batches of {number(data['batch'])} events in book and ring: µs",
        "run", ">batches", ">p50", ">p99", ">p99.9", ">max", ">ns an event, p50", gap=1,
    )  # fmt: skip
    for name, run in data["runs"].items():
        laps = run["batch_us"]
        rows.add_row(
            name, number(laps["count"]), *(f"{laps[each]:,.0f}" for each in ("p50", "p99", "p99_9", "max")),
            f"{1e3 * laps['p50'] / data['batch']:.1f}",
        )  # fmt: skip
    out.print(rows)
    rows = table(
        "ladder: times entered (seconds there), last round",
        "run", ">ShedSync", ">ShedIndex", ">RawSpill", ">spilled", ">syncs", ">put off", ">scans", gap=1,
    )  # fmt: skip
    for name, run in data["runs"].items():
        line = run["line"]
        if line.get("ladder"):
            rungs = [f"{each['entered']} ({each['seconds']:.2f})" for each in line["ladder"][1:]]
            counts = (line["spilled_events"], line["syncs"], line["syncs_deferred"], run["scans"])
            rows.add_row(name, *rungs, *map(number, counts))
    out.print(rows)
    out.print(f"input: {result.input}; {result.engines}")
    out.print(
        "of the book: events a second to the last durable one, beside the book alone; book fed: until the "
        "book had the last event; waits: of the book for room in the ring"
    )
    loads = data["load_average_1m"]
    out.print(f"clock: {data['clock']}; load {loads[0]:.2f} to {loads[1]:.2f}")
