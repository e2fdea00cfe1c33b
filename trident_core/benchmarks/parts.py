"""Benchmarks of single stages: the parser, the ring."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from trident_core.benchmarks.setting import BATCH, Setting
from trident_core.contracts import Kind, Status
from trident_core.dtypes import EVENT, Events
from trident_core.measure import Comparison, compare
from trident_core.session import Session


def bench_parse(setting: Setting) -> list[Comparison]:
    """Framed bytes -> EVENTs, against a plain copy of the same bytes."""
    frames, out = setting.frames, np.zeros(BATCH, EVENT)
    target = np.empty_like(frames)
    name, factory = setting.engine(Kind.PARSER)

    def parse() -> None:
        parser, start = factory(Session()), 0
        while True:
            result = parser.parse_into(frames[start:], out)
            start += result.consumed
            if result.status is not Status.OUT_FULL:
                return

    runs: dict[str, Callable[[], object]] = {
        name: parse,
        "copy of the bytes": lambda: np.copyto(target, frames),
    }
    return [
        compare(
            "parse", runs, setting.day.describe(), unit="messages", units=setting.day.messages,
            rounds=setting.rounds,
        )
    ]  # fmt: skip


def bench_ring(setting: Setting) -> list[Comparison]:
    """Events from one thread to another, against queue.SimpleQueue handing over copies."""
    from queue import SimpleQueue

    from trident_core.ring import Ring

    events = setting.events
    batches = [events[start : start + 256] for start in range(0, len(events), 256)]

    def ring() -> None:
        made, out = Ring(1 << 14), np.zeros(BATCH, EVENT)

        def produce() -> None:
            for batch in batches:
                made.push(batch)
            made.close()

        with _thread(produce):
            while made.pop(out):
                pass

    def queue() -> None:
        made: SimpleQueue[Events | None] = SimpleQueue()

        def produce() -> None:
            for batch in batches:
                made.put(batch.copy())
            made.put(None)

        with _thread(produce):
            while made.get() is not None:
                pass

    runs: dict[str, Callable[[], object]] = {"trident ring": ring, "queue.SimpleQueue": queue}
    title, day = "ring (batches of 256 between threads)", setting.day.describe()
    return [compare(title, runs, day, unit="events", units=len(events), rounds=setting.rounds)]


@contextmanager
def _thread(target: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=target)
    thread.start()
    yield
    thread.join()
