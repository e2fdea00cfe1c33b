"""Benchmarks of query engines: a pattern over a column of symbols, and over a text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

from trident_core.benchmarks import query_data as data
from trident_core.benchmarks.matrix import Contender, Matrix
from trident_core.benchmarks.query_peers import COLUMN_PEERS, TEXT_PEERS, ColumnPeer
from trident_core.benchmarks.setting import DAYS, Setting
from trident_core.contracts import Explained, Kind
from trident_core.footprint import footprint
from trident_core.plugins import registry

#: What is measured, unless messages are asked for: then so many symbols, and a text of 12 bytes each.
COLUMN_COUNT: Final = 20_000_000
TEXT_BYTES: Final = 256 << 20


def bench_query(setting: Setting) -> list[Matrix]:
    """The selected engine over a column of symbols, and over a text, beside its peers."""
    return [*bench_query_columns(setting), *bench_query_texts(setting)]


def bench_query_columns(setting: Setting) -> list[Matrix]:
    """The column alone."""
    whole = setting.day.name in DAYS
    return [bench_columns(setting, COLUMN_COUNT if whole else setting.day.messages, alone=whole)]


def bench_query_texts(setting: Setting) -> list[Matrix]:
    """The text alone."""
    whole = setting.day.name in DAYS
    size = TEXT_BYTES if whole else max(1 << 16, 12 * setting.day.messages)
    return [bench_text(setting, size, alone=whole)]


def bench_columns(setting: Setting, count: int, *, alone: bool = True) -> Matrix:
    """`alone`: also what takes processes of its own, times to compile and memory."""
    name, factory = setting.engine(Kind.QUERY)
    engine, symbols = factory(), data.column(count)
    made = Matrix(
        "patterns over a column",
        f"{count:,} symbols of 8 bytes, {data.SYMBOLS:,} distinct, by Zipf's law",
        "symbols", count, "ns", dict(data.COLUMN_PATTERNS),
    )  # fmt: skip
    peers: dict[str, ColumnPeer] = {}
    for peer in COLUMN_PEERS:
        if peer.missing():
            made.notes.append(f"{peer.name}: left out, {peer.module} is not installed")
        else:
            peers[peer.name] = peer(symbols)
    target = np.empty_like(symbols.values)
    made.floors["copy of the bytes"] = _best(lambda: np.copyto(target, symbols.values))
    asked = [(pattern, "") for pattern in data.COLUMN_PATTERNS.values()]
    used = _engine_used(setting, lambda program: _counter(program, symbols)())
    times = _compile_times(used, asked, "column") if alone else {}
    for label, pattern in data.COLUMN_PATTERNS.items():
        program = engine.compile(pattern)
        compiled, loaded = times.get(pattern, (None, None))
        contenders = {f"{name}, raw bytes": Contender(_counter(program, symbols), count, compiled, loaded)}
        if hasattr(program, "count_codes"):
            run = partial(program.count_codes, symbols.codes, symbols.distinct)
            contenders[f"{name}, through the dictionary"] = Contender(run, count)
        for peer_name, ready in peers.items():
            ms, answer = ready.ready(pattern)
            units, expected = count, None
            if ready.units is not None:
                units = min(count, ready.units)
                expected = int(program.match(symbols.values[:units]).sum())
            contenders[peer_name] = Contender(answer, units, ms, expected=expected)
        made.measure(label, contenders, setting.rounds)
    if alone:
        _remember_memory(made, setting, list(peers), count)
    made.notes.append("polars and duckdb use their own threads, as they come; the others use one")
    if any(peer.units for peer in peers.values()):
        made.notes.append("engines that are called once per value are asked the first 200,000 values")
    return made


def bench_text(setting: Setting, size: int, *, alone: bool = True) -> Matrix:
    """`alone`: also the times to compile, in processes of their own."""
    name, factory = setting.engine(Kind.QUERY)
    engine, text = factory(), data.text(size)
    patterns = {label: f"(?{f}){p}" if f else p for label, (p, f) in data.TEXT_PATTERNS.items()}
    made = Matrix("patterns over a text", f"{size:,} bytes of a log", "bytes", size, "GB/s", patterns)
    array = np.frombuffer(text, np.uint8)
    target = np.empty_like(array)
    made.floors["copy of the bytes"] = _best(lambda: np.copyto(target, array))
    used = _engine_used(setting, lambda program: program.spans(text, 1))
    times = _compile_times(used, list(data.TEXT_PATTERNS.values()), "text") if alone else {}
    for label, (pattern, flags) in data.TEXT_PATTERNS.items():
        program = engine.compile(pattern, flags=flags)
        contenders: dict[str, Contender] = {}
        compiled, loaded = times.get(pattern, (None, None))
        for what in ("ends", "spans"):
            run = getattr(program, f"count_{what}", None)
            if run is None:
                run = partial(_length, getattr(program, what))
            contenders[f"{name}, {what}"] = Contender(partial(run, text), size, compiled, loaded)
        for peer, (module, how) in TEXT_PEERS.items():
            if find_spec(module) is None:
                note = f"{peer}: left out, {module} is not installed"
                made.notes += [] if note in made.notes else [note]
                continue
            ms, answer = how(text, pattern, flags)
            contenders[peer] = Contender(answer, size, ms)
        made.measure(label, contenders, setting.rounds)
    made.notes.append("hyperscan counts where matches end, google-re2 matches that do not overlap")
    return made


def _length(ask: Callable[[bytes], list[Any]], text: bytes) -> int:
    return len(ask(text))


def _counter(program: Any, symbols: data.Column) -> Callable[[], int]:
    if hasattr(program, "count"):
        return partial(program.count, symbols.values)
    return lambda: int(program.match(symbols.values).sum())


def _best(run: Callable[[], object], rounds: int = 5) -> float:
    import time

    seconds = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return sorted(seconds[1:])[rounds // 2]


# --- in processes of their own ------------------------------------------------------------------------------


def _engine_used(setting: Setting, ask: Callable[[Any], object]) -> str:
    """The engine that answers such a question: the selected one, or the one that it says it hands it to."""
    selection = registry().select(Kind.QUERY, setting.engines.get(Kind.QUERY))
    program = selection.load()().compile("^A[B-Z]")
    ask(program)
    programs = program.explain().get("programs") if isinstance(program, Explained) else None
    return str(programs[0]["engine"]) if programs else selection.spec.name


def _compile_times(engine: str, patterns: list[tuple[str, str]], what: str) -> dict[str, tuple[float, float]]:
    """pattern -> ms from the pattern to the first answer, in a process that has nothing compiled, and in the
    next one, which finds on disk what the first one left there."""
    runs: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="trident-bench-cache-") as folder:
        environment = {**os.environ, "TRIDENT_LLVM_CACHE": folder}
        command = [sys.executable, "-m", "trident_core.benchmarks.query", engine, what, json.dumps(patterns)]
        for _ in range(2):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            runs.append(json.loads(done.stdout))
    return {pattern: (runs[0][pattern], runs[1][pattern]) for pattern, _ in patterns}


def first_answers(engine: str, what: str, patterns: list[tuple[str, str]]) -> dict[str, float]:
    """pattern -> ms from the pattern to the first answer, after another one has loaded what all need."""
    import time

    factory = registry().select(Kind.QUERY, engine).load()()
    column, text = data.column(32).values, b" A line \n" * 40

    def ask(pattern: str, flags: str) -> None:
        program = factory.compile(pattern, flags=flags)
        if what == "column":
            program.match(column)
        else:
            program.spans(text)

    ask("[^X]A", "")
    times = {}
    for pattern, flags in patterns:
        began = time.perf_counter()
        ask(pattern, flags)
        times[pattern] = round(1e3 * (time.perf_counter() - began), 3)
    return times


def _remember_memory(made: Matrix, setting: Setting, peers: list[str], count: int) -> None:
    """Peaks of fresh processes that make the column, take it in their own form and match one pattern."""
    engine = registry().select(Kind.QUERY, setting.engines.get(Kind.QUERY)).spec.name
    made.memory["the column alone"] = footprint(partial(_one_match, "", "", count))
    made.memory[f"trident {Kind.QUERY} {engine}"] = footprint(partial(_one_match, engine, "", count))
    for peer in peers:
        made.memory[peer] = footprint(partial(_one_match, "", peer, count))


def _one_match(engine: str, peer: str, count: int) -> None:
    symbols, pattern = data.column(count), data.COLUMN_PATTERNS["p5"]
    if engine:
        _counter(registry().select(Kind.QUERY, engine).load()().compile(pattern), symbols)()
    for known in COLUMN_PEERS:
        if known.name == peer:
            known(symbols).ready(pattern)[1]()


if __name__ == "__main__":
    print(json.dumps(first_answers(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
