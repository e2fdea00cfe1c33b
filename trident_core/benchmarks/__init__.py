"""The project's benchmarks: each compares the selected engine with a named peer on the same input, in turn.

Input is a simulated day, so that anyone can repeat them. A peer that is not installed is left out and noted.
What is measured, and how: docs/measuring.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from trident_core.benchmarks.latency import Latency, bench_latency
from trident_core.benchmarks.line import LineResult, bench_line
from trident_core.benchmarks.matching import Matching, bench_matching
from trident_core.benchmarks.matrix import Matrix
from trident_core.benchmarks.parts import bench_parse, bench_ring
from trident_core.benchmarks.query import bench_query, bench_query_columns, bench_query_texts
from trident_core.benchmarks.query_sequences import bench_sequences
from trident_core.benchmarks.setting import Setting, SimulatedDay
from trident_core.benchmarks.stores import bench_store
from trident_core.benchmarks.whole import bench_book, bench_convert
from trident_core.contracts import Kind
from trident_core.measure import Comparison

Result = Comparison | Latency | LineResult | Matching | Matrix

#: name -> benchmark. `trident bench all` runs them in this order.
BENCHMARKS: Final[Mapping[str, Callable[[Setting], Sequence[Result]]]] = {
    "parse": bench_parse,
    "book": bench_book,
    "latency": bench_latency,
    "convert": bench_convert,
    "store": bench_store,
    "query": bench_query,
    "sequences": bench_sequences,
    "ring": bench_ring,
    "line": bench_line,
    "matching": bench_matching,
}
#: Parts of one of them, for machines that are not at rest for long; `all` has them anyway.
PARTS: Final[Mapping[str, Callable[[Setting], Sequence[Result]]]] = {
    "query-columns": bench_query_columns,
    "query-texts": bench_query_texts,
}


def run_benchmark(
    name: str, day: SimulatedDay, engines: Mapping[Kind, str | None], rounds: int
) -> Sequence[Result]:
    """Run one benchmark on `day`, with a scratch folder of its own in the working folder."""
    with tempfile.TemporaryDirectory(prefix="trident-bench-", dir=".") as folder:
        return {**BENCHMARKS, **PARTS}[name](Setting(day, engines, rounds, Path(folder)))
