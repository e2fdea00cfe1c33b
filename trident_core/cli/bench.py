"""`trident bench NAME`: the project's benchmarks on the user's own machine."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trident_core.cli import common
from trident_core.cli.output import console, emit, number, table
from trident_core.contracts import Kind
from trident_core.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.measure import Comparison


def bench(
    name: Annotated[str, typer.Argument(help="parse, book, convert, store, query, ring or all.")] = "all",
    messages: Annotated[int, typer.Option(min=1_000, help="Messages of the simulated day.")] = 200_000,
    symbols: Annotated[int, typer.Option(min=1, help="Symbols of the simulated day.")] = 200,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds after one warm-up; contenders take turns.")] = 5,
    parser: common.ParserName = None,
    book: common.BookName = None,
    store: common.StoreName = None,
    query: common.QueryName = None,
    json: common.Json = False,
) -> None:
    """Compare the selected engines with named peers, in turn, on a simulated day. Medians and ratios."""
    from trident_core.benchmarks import BENCHMARKS, run_benchmark
    from trident_core.cli.simulated import simulate_day

    names = list(BENCHMARKS) if name == "all" else [name]
    if names[0] not in BENCHMARKS:
        raise UsageError(f"no benchmark {name!r}", hint=f"there are {', '.join(BENCHMARKS)} and all")
    engines = {Kind.PARSER: parser, Kind.BOOK: book, Kind.STORE: store, Kind.QUERY: query}
    results: list[Comparison] = []
    with tempfile.TemporaryDirectory(prefix="trident-bench-") as folder:
        day = Path(folder) / "day.itch"
        simulate_day(day, messages=messages, symbols=min(symbols, max(6, messages // 100)))
        for each in names:
            if not json:
                console(stderr=True).print(f"{each} …")
            results += run_benchmark(each, day, engines, rounds)
    emit([r.to_json() for r in results], as_json=json, render=lambda out: _render(out, results))


def _render(out: Console, results: list[Comparison]) -> None:
    for result in results:
        data = result.to_json()
        first = next(iter(data["contenders"]))
        rows = table(
            f"{result.title}: {number(result.units)} {result.unit}, {data['rounds']} rounds",
            "contender", ">median ms", ">min", ">max", ">CPU ms", f">M {result.unit}/s", ">speed",
        )  # fmt: skip
        for name, c in data["contenders"].items():
            ratio = "1" if name == first else f"{c['ratio_to_first']:.3g} x"
            rows.add_row(
                name, *(f"{1e3 * c[f'wall_s_{what}']:.1f}" for what in ("median", "min", "max")),
                f"{1e3 * c['cpu_s_median']:.1f}", f"{c['per_s'] / 1e6:.3g}", ratio,
            )  # fmt: skip
        out.print(rows)
        for note in result.notes:
            out.print(f"note: {note}")
    last = results[-1]
    out.print("speed: how many times as fast as the first line, the median over the rounds")
    out.print(
        f"load average {last.load_average}, clock floor {last.clock_floor_ns} ns, "
        f"peak memory {last.peak_rss_mb:.0f} MB"
    )
