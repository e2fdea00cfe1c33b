"""Which structure should hold the levels of a side? Run: python tests/bench/level_structures.py [messages].

The operations on levels of two simulated days (few symbols, many symbols) are replayed on three structures:

    sorted   keys ascending, the best last (trident_book.outside)
    window   64 ticks near the touch and a word of bits, all else sorted (trident_book.sides, as in the book)
    ladder   1,024 ticks a side that stay where they are: a slot for each tick, and a bitmap

Every operation is followed by a look at the best level, as in the book. A ladder needs a tick and a place;
operations outside of it are left out for all, which favours the ladder. Rounds alternate; the fastest of
each is reported, for the machine may be busy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from trident_book import outside, pools, sides
from trident_book.machine import highest_bit
from trident_book.numba_book import NumbaBook
from trident_book.records import LEVEL_SLOT, SIDE, WINDOW, State
from trident_core.dtypes import EFFECT, Events, Outcome
from trident_core.jit import njit_entry
from trident_core.session import Session
from trident_sim.spec import SimSpec
from trident_sim.stream import Day

TICK, TICKS, WORDS = 100, 1_024, 16
FIND, INSERT, ERASE = range(3)


def operations(days_events: list[Events]) -> np.ndarray:
    """i64[n, 3]: (side number, price, operation), from what the book did with the events."""
    book, rows = NumbaBook(Session()), []
    counts: dict[tuple[int, int], int] = {}

    def join(side: int, price: int) -> None:
        counts[side, price] = counts.get((side, price), 0) + 1
        rows.append((side, price, INSERT if counts[side, price] == 1 else FIND))

    def leave(side: int, price: int) -> None:
        counts[side, price] -= 1
        if not counts[side, price]:
            rows.append((side, price, ERASE))

    for events in days_events:
        effects = np.zeros(len(events), EFFECT)
        book.apply(events, effects=effects)
        asked = events[["type", "locate", "price"]].tolist()
        done = effects[["side", "price", "outcome", "flags"]].tolist()
        for event, effect in zip(asked, done, strict=True):
            if effect[2] != Outcome.APPLIED:
                continue
            side = 2 * event[1] + (effect[0] == ord("S"))
            if effect[3] & 2:
                leave(side, effect[1])
            if chr(event[0]) in "AFU":
                join(side, event[2])
    return np.array(rows, np.int64)


def in_window(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Operations whose price lies in its side's window, and each side's first tick."""
    base = np.zeros(rows[:, 0].max() + 1, np.int64)
    for side in range(len(base)):
        prices = rows[rows[:, 0] == side, 1] if len(base) < 1_000 else None
        if prices is not None and len(prices):
            base[side] = int(np.median(prices)) // TICK - TICKS // 2
    if len(base) >= 1_000:
        order = np.lexsort((rows[:, 1], rows[:, 0]))
        starts = np.searchsorted(rows[order, 0], np.arange(len(base) + 1))
        middle = (starts[:-1] + starts[1:]) // 2
        some = starts[1:] > starts[:-1]
        base[some] = rows[order[middle[some]], 1] // TICK - TICKS // 2
    tick = rows[:, 1] // TICK - base[rows[:, 0]]
    return rows[(tick >= 0) & (tick < TICKS) & (rows[:, 1] % TICK == 0)], base


@njit_entry
def run_sorted(st: Any, rows: Any) -> Any:
    total = 0
    for i in range(len(rows)):
        number, price, operation = np.uint32(rows[i, 0]), rows[i, 1], rows[i, 2]
        side = st.sides[number]
        key = sides.key_of(price, number)
        slot = outside.level_at(st, side, outside.place(st, side, key), key)
        if operation == ERASE:
            outside.erase(st, side, key)
            sides.free_level(st, slot)
        elif slot == 0:
            outside.insert(st, side, key, sides.new_level(st, number, price))
        total += slot > 0
        if side.n > 0:
            total += st.levels[st.slots[np.int64(side.start) + np.int64(side.n) - 1]].price
    return total


@njit_entry
def run_window(st: Any, rows: Any) -> Any:
    total = 0
    for i in range(len(rows)):
        number, price, operation = np.uint32(rows[i, 0]), rows[i, 1], rows[i, 2]
        key = sides.key_of(price, number)
        slot = sides.level_of(st, number, key)
        if operation == ERASE:
            sides.erase(st, number, key, slot)
            sides.free_level(st, slot)
        elif slot == 0:
            sides.insert(st, number, key, sides.new_level(st, number, price))
        total += slot > 0
        best = st.sides[number].best
        if best > 0:
            total += st.levels[best].price
    return total


@njit_entry
def run_ladder(slots: Any, bitmap: Any, best: Any, base: Any, rows: Any) -> Any:
    """Ticks of asks count downwards, so that the best is the highest bit on both sides."""
    total = 0
    for i in range(len(rows)):
        number, operation = rows[i, 0], rows[i, 2]
        tick = rows[i, 1] // TICK - base[number]
        if number & 1:
            tick = TICKS - 1 - tick
        word, bit = tick >> 6, np.uint64(1) << np.uint64(tick & 63)
        slot = slots[number, tick]
        if operation == ERASE:
            slots[number, tick] = 0
            bitmap[number, word] &= ~bit
            if tick == best[number]:
                while word >= 0 and bitmap[number, word] == 0:
                    word -= 1
                top = -1
                if word >= 0:
                    top = 64 * word + np.int64(highest_bit(bitmap[number, word]))
                best[number] = top
        elif slot == 0:
            slots[number, tick] = i + 1
            bitmap[number, word] |= bit
            best[number] = max(best[number], tick)
        total += slot > 0
        if best[number] >= 0:
            tick = TICKS - 1 - best[number] if number & 1 else best[number]
            total += TICK * (tick + base[number])
    return total


def fresh(count: int, room: int) -> State:
    st = pools.make_state()
    return st._replace(
        sides=pools.zeros(count, SIDE), window=pools.zeros(WINDOW * count, np.uint32),
        levels=pools.zeros(room, LEVEL_SLOT), keys=pools.zeros(room, np.int64),
        slots=pools.zeros(room, np.uint32),
    )  # fmt: skip


def fastest(runs: dict[str, Callable[[], Any]], rounds: int = 7) -> dict[str, float]:
    seconds = {name: float("inf") for name in runs}
    answers = set()
    for _ in range(rounds):
        for name, prepare in runs.items():
            run = prepare()
            start = time.perf_counter()
            answers.add(run())
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    assert len(answers) == 1, "the structures disagree"
    return seconds


def main(messages: int) -> None:
    for symbols in (200, 8_900):
        day = Day(SimSpec(messages=messages, symbols=symbols))
        rows, base = in_window(operations([events.copy() for events in day.batches()]))
        count = len(base)

        def on_sorted(rows: Any = rows, count: int = count) -> Any:
            st = fresh(count, 1 << 22)
            return lambda: run_sorted(st, rows)

        def on_window(rows: Any = rows, count: int = count) -> Any:
            st = fresh(count, 1 << 22)
            return lambda: run_window(st, rows)

        def on_ladder(rows: Any = rows, base: Any = base, count: int = count) -> Any:
            slots = pools.zeros(count * TICKS, np.uint32).reshape(count, TICKS)
            bitmap, best = np.zeros((count, WORDS), np.uint64), np.full(count, -1, np.int64)
            return lambda: run_ladder(slots, bitmap, best, base, rows)

        seconds = fastest({"sorted": on_sorted, "window": on_window, "ladder": on_ladder})
        for name, value in seconds.items():
            each = value / len(rows) * 1e9
            print(f"{symbols:5,} symbols  {name:6}  {each:6.1f} ns an operation ({len(rows):,})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
