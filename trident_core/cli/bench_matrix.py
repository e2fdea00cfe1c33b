"""`trident bench query` as tables: contenders by patterns, with times to compile and memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trident_core.cli.output import number, table

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.benchmarks.matrix import Cell, Matrix


def render_matrix(out: Console, result: Matrix) -> None:
    """Print a matrix: speeds, then what is known of compiling, then all that they depend on."""
    labels = list(result.patterns)
    per = "GB/s" if result.scale == "GB/s" else f"ns for each of the {result.unit}"

    def speed(seconds: float, units: int) -> str:
        return f"{units / seconds / 1e9:.2f}" if result.scale == "GB/s" else f"{1e9 * seconds / units:.2f}"

    rows = table(f"{result.title}: {per}", "contender", *(f">{label}" for label in labels), gap=1)
    for name, cells in result.rows.items():
        rows.add_row(name, *(speed(cells[at].median_s, cells[at].units) for at in labels))
    for name, seconds in result.floors.items():
        rows.add_row(f"({name})", *[speed(seconds, result.units)] * len(labels))
    out.print(rows)
    _render_compiling(out, result)
    if result.memory:
        rows = table("memory of a process that does p5 once: MB", "contender", ">peak", ">anon.", gap=1)
        for name, found in result.memory.items():
            rows.add_row(name, f"{found.peak_mb:.0f}", f"{found.anonymous_mb:.0f}")
        out.print(rows)
    out.print(f"input: {result.input}")
    first = next(iter(result.rows.values()))
    for label, pattern in result.patterns.items():
        out.print(f"{label}: {pattern} ({number(first[label].count)} matches)")
    for note in result.notes:
        out.print(f"note: {note}")
    if result.disagreements:
        for words in result.disagreements:
            out.print(f"NOT THE SAME COUNT: {words}")
    else:
        out.print("all counts agree")
    least = min(len(cell.seconds) for cells in result.rows.values() for cell in cells.values())
    most = max(len(cell.seconds) for cells in result.rows.values() for cell in cells.values())
    loads = " to ".join(f"{load:.2f}" for load in result.load_average)
    out.print(
        f"medians of {most} rounds, of {least} at the least for slow ones, after a warm-up; "
        f"clock: perf_counter, floor {result.clock_floor_ns} ns; load {loads}"
    )


def _render_compiling(out: Console, result: Matrix) -> None:
    """Times to compile, and of engines that keep code on disk, to the first answer of the next process."""
    labels = list(result.patterns)
    kinds: list[tuple[str, Callable[[Cell], float | None]]] = [
        ("", lambda cell: cell.compile_ms),
        (", in the next process", lambda cell: cell.load_ms),
    ]
    rows = table("from the pattern to the first answer: ms", "contender", *(f">{at}" for at in labels), gap=1)
    for name, cells in result.rows.items():
        for suffix, get in kinds:
            found = [get(cells[at]) for at in labels]
            if any(ms is not None for ms in found):
                rows.add_row(name + suffix, *("" if ms is None else f"{ms:.1f}" for ms in found))
    out.print(rows)
