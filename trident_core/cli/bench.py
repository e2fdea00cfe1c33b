"""`trident bench NAME`: the project's benchmarks on the user's own machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trident_core.cli import common
from trident_core.cli.output import console, emit, number, table
from trident_core.contracts import Kind
from trident_core.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.benchmarks import Result
    from trident_core.benchmarks.latency import Latency
    from trident_core.benchmarks.setting import SimulatedDay
    from trident_core.measure import Comparison, Percentiles

_NAMES = (
    "parse, book, latency, convert, store, query (query-columns, query-texts: its halves), sequences, ring, "
    "line, matching or all."
)
_DAYS = "quick (200,000 messages, 200 symbols), narrow (1 M, 200), wide (10 M, 8,900), or several by comma."


def bench(
    name: Annotated[str, typer.Argument(help=_NAMES)] = "all",
    day: Annotated[str, typer.Option("--day", help=_DAYS)] = "quick",
    messages: Annotated[
        int | None, typer.Option(min=1_000, help="Messages of the simulated day, instead of its own.")
    ] = None,
    symbols: Annotated[
        int | None, typer.Option(min=1, help="Symbols of the simulated day, instead of its own.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds after one warm-up; contenders take turns.")] = 5,
    parser: common.ParserName = None,
    book: common.BookName = None,
    store: common.StoreName = None,
    query: common.QueryName = None,
    sequence: common.SequenceName = None,
    json: common.Json = False,
) -> None:
    """Compare the selected engines with named peers, in turn, on simulated days. Medians and ratios.

    docs/measuring.md says what each one measures.
    """
    from trident_core.benchmarks import BENCHMARKS, PARTS, run_benchmark

    names = list(BENCHMARKS) if name == "all" else [name]
    if names[0] not in {**BENCHMARKS, **PARTS}:
        known = ", ".join([*BENCHMARKS, *PARTS])
        raise UsageError(f"no benchmark {name!r}", hint=f"there are {known} and all")
    engines = {Kind.PARSER: parser, Kind.BOOK: book, Kind.STORE: store, Kind.QUERY: query}
    engines[Kind.SEQUENCE] = sequence
    results: list[Result] = []
    for made in _simulated(day, messages, symbols):
        for each in names:
            if not json:
                console(stderr=True).print(f"{each} on {made.describe()} …")
            results += run_benchmark(each, made, engines, rounds)
    emit([r.to_json() for r in results], as_json=json, render=lambda out: _render(out, results))


def _simulated(chosen: str, messages: int | None, symbols: int | None) -> Iterator[SimulatedDay]:
    """The days of these names, one after the other; each is gone when the next is asked for."""
    from trident_core.benchmarks.setting import DAYS, SimulatedDay
    from trident_core.cli.simulated import simulate_day

    names = common.parse_symbols(chosen)
    if unknown := [name for name in names if name not in DAYS] or ([] if names else [chosen]):
        raise UsageError(f"no day {unknown[0]!r}", hint=f"there are {', '.join(DAYS)}")
    for name in names:
        n, of = DAYS[name]
        n, of = messages or n, symbols or of
        of = min(of, max(6, n // 100))
        with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder:
            path = Path(folder) / "day.itch"
            simulate_day(path, messages=n, symbols=of)
            yield SimulatedDay(path, name if (n, of) == DAYS[name] else "", n, of)


def _render(out: Console, results: list[Result]) -> None:
    from trident_core.benchmarks.line import LineResult
    from trident_core.benchmarks.matching import Matching
    from trident_core.benchmarks.matrix import Matrix
    from trident_core.cli.bench_line import render_line_result
    from trident_core.cli.bench_matching import render_matching
    from trident_core.cli.bench_matrix import render_matrix
    from trident_core.measure import Comparison

    for result in results:
        if isinstance(result, Comparison):
            _render_comparison(out, result)
        elif isinstance(result, LineResult):
            render_line_result(out, result)
        elif isinstance(result, Matching):
            render_matching(out, result)
        elif isinstance(result, Matrix):
            render_matrix(out, result)
        else:
            _render_latency(out, result)
    out.print(
        f"load: the average of the last minute, at the start and at the end, on {os.cpu_count()} processors"
    )


def _render_comparison(out: Console, result: Comparison) -> None:
    data = result.to_json()
    first = next(iter(data["contenders"]))
    columns = ["contender", ">ms", ">min", ">max", ">CPU ms", ">M/s", ">speed"]
    if result.memory:
        columns += [">MB", ">anon."]
    rows = table(
        f"{result.title}: {number(result.units)} {result.unit}, {data['rounds']} rounds", *columns, gap=1
    )
    for name, c in data["contenders"].items():
        ratio = "1" if name == first else f"{c['ratio_to_first']:.3g} x"
        cells = [f"{1e3 * c[f'wall_s_{what}']:.1f}" for what in ("median", "min", "max")]
        cells += [f"{1e3 * c['cpu_s_median']:.1f}", f"{c['per_s'] / 1e6:.3g}", ratio]
        if name in result.memory:
            cells += [f"{megabytes:.0f}" for megabytes in result.memory[name]]
        rows.add_row(name, *cells)
    out.print(rows)
    out.print(f"input: {result.input}")
    for note in result.notes:
        out.print(f"note: {note}")
    out.print(
        f"ms: wall time, the median of the rounds, with the least and the greatest; M/s: {result.unit}; "
        "speed: times as fast as the first line, the median over the rounds"
    )
    out.print(f"clock: {data['clock']}, floor {result.clock_floor_ns} ns; load {_loads(result.load_average)}")
    if result.memory:
        out.print("MB: peak resident memory of a process that does this once; anon.: without pages of files")


def _render_latency(out: Console, result: Latency) -> None:
    from trident_core.benchmarks.latency import MEANING

    names = ("p50", "p90", "p99", "p99.9", "max")
    rows = table(
        f"{result.title}, one event at a time: ns, {result.rounds} rounds",
        "operation", ">events", *(f">{name}" for name in names), gap=1,
    )  # fmt: skip

    def add(name: str, found: Percentiles) -> None:
        shares = (found.p50, found.p90, found.p99, found.p99_9, found.max)
        rows.add_row(name, number(found.count), *(number(ns) for ns in shares))

    for name, found in result.operations.items():
        add(name, found)
    add("floor of the clock", result.floor)
    if result.python:
        add("call from Python", result.python)
        add("floor of its clock", result.python_floor)
    out.print(rows)
    out.print(f"input: {result.input}")
    out.print(MEANING)
    out.print(f"clock: {result.clock}; the floor (two reads in a row) is part of every figure")
    if not result.inside:
        out.print("note: this engine does not time itself, so every figure holds a call from Python")
    batch = result.to_json()["batch"]
    out.print(
        f"in batches of {number(batch)} an event takes {result.batched_ns:.1f} ns (median of the rounds); "
        f"load {_loads(result.load_average)}"
    )


def _loads(loads: tuple[float, float]) -> str:
    return f"{loads[0]:.2f} to {loads[1]:.2f}"
