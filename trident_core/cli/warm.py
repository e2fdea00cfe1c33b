"""`trident warm`: compile all kernels now, so that no later run waits for them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common, waiting
from trident_core.cli.output import console, emit, table
from trident_core.cli.warm_steps import PARTS, Row, compile_part

if TYPE_CHECKING:
    from rich.console import Console

#: More would wait for the dearest part.
_PROCESSES_MAX = 4

#: Told of a step that begins, or, by None, of a part that is done.
Tell = Callable[[str | None], None]

Processes = Annotated[
    int,
    typer.Option("--processes", min=0, max=64, help="Compile in so many; 0: one a processor, at most 4."),
]


def warm(processes: Processes = 0, json: common.Json = False) -> None:
    """Compile the kernels of every installed engine into the cache (`trident doctor` says where it is)."""
    waiting.expected()
    screen, began, done = console(stderr=True), time.monotonic(), 0

    def tell(step: str | None) -> None:
        nonlocal done
        done += step is None
        if step is not None and not json:
            screen.print(f"{time.monotonic() - began:3.0f} s, {done} of {len(PARTS)} parts done: {step} …")

    n = min(processes or min(_processors(), _PROCESSES_MAX), len(PARTS))
    rows = _in_processes(n, tell) if n > 1 else _here(tell)

    def render(out: Console) -> None:
        shown = table("", "kernels of", ">compiled", ">seconds")
        for row in rows:
            shown.add_row(str(row["what"]), str(row["compiled"]), f"{row['seconds']:.2f}")
        out.print(shown)
        if not any(row["compiled"] for row in rows):
            out.print("all were in the cache")

    emit(rows, as_json=json, render=render)


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def _here(tell: Tell) -> list[Row]:
    rows = []
    for part in PARTS:
        rows += compile_part(part, tell)
        tell(None)
    return rows


def _in_processes(n: int, tell: Tell) -> list[Row]:
    """The parts, dealt over `n` processes as these get done; rows in the parts' order."""
    context = get_context("spawn")
    told = context.SimpleQueue()
    with ProcessPoolExecutor(n, context, _start, (told,)) as pool:
        parts = [pool.submit(_compile, part) for part in PARTS]
        for part in parts:
            part.add_done_callback(lambda _: told.put(None))  # also of one whose process died
        left = len(parts)
        while left:
            step = told.get()
            left -= step is None
            tell(step)
        return _rows(parts)


def _rows(parts: list[Future[list[Row]]]) -> list[Row]:
    return [row for part in parts for row in part.result()]


_told: Any = None


def _start(told: Any) -> None:
    """A process of the pool begins: Ctrl-C ends it without a word, and so does the end of its parent."""
    global _told
    _told = told
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _compile(part: str) -> list[Row]:
    return compile_part(part, _told.put)
