"""The ring keeps order and content between two threads, for any sizes."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.dtypes import EVENT, TOP
from trident_core.errors import UsageError
from trident_core.ring import Ring


def events(first: int, count: int) -> np.ndarray:
    made = np.zeros(count, EVENT)
    made["seq"] = np.arange(first, first + count)
    made["price"] = -made["seq"].astype(np.int64)
    made["aux"][:, 7] = made["seq"] % 251
    return made


@settings(deadline=None)
@given(capacity=st.sampled_from([2, 4, 8]), steps=st.lists(st.tuples(st.booleans(), st.integers(1, 9))))
def test_pushes_and_pops_in_one_thread_follow_a_list(capacity: int, steps: list[tuple[bool, int]]) -> None:
    ring, model, pushed = Ring(capacity), [], 0
    for push, size in steps:
        if push:
            done = ring.try_push(events(pushed, size))
            assert done == min(size, capacity - len(model))
            model.extend(range(pushed, pushed + done))
            pushed += done
        else:
            out = np.zeros(size, EVENT)
            count = ring.try_pop(out)
            assert count == min(size, len(model))
            expected, model = model[:count], model[count:]
            assert np.array_equal(out[:count], events(expected[0], count) if count else out[:0])
        assert len(ring) == len(model)


@pytest.mark.parametrize(("capacity", "batch_in", "batch_out"), [(2, 1, 1), (64, 7, 3), (1024, 256, 4096)])
def test_two_threads_lose_and_reorder_nothing(capacity: int, batch_in: int, batch_out: int) -> None:
    total = 20_000 if capacity > 2 else 500
    ring = Ring(capacity)

    def produce() -> None:
        for first in range(0, total, batch_in):
            ring.push(events(first, min(batch_in, total - first)))
        ring.close()

    producer = threading.Thread(target=produce)
    producer.start()
    out, got = np.zeros(batch_out, EVENT), []
    while count := ring.pop(out):
        got.append(out[:count].copy())
    producer.join()
    assert np.array_equal(np.concatenate(got), events(0, total))


def test_closed_and_drained_is_told_apart_from_empty() -> None:
    ring, out = Ring(4), np.zeros(4, EVENT)
    assert ring.try_pop(out) == 0
    ring.push(events(0, 3))
    ring.close()
    assert ring.pop(out) == 3
    assert ring.try_pop(out) == -1
    assert ring.pop(out) == 0


def test_a_full_ring_waits_counts_it_and_can_be_given_up() -> None:
    ring = Ring(4)
    tries = iter([False, False, True])
    assert ring.push(events(0, 9), give_up=lambda: next(tries)) == 4
    assert ring.full_waits == 2
    assert ring.full_wait_ns > 0


def test_read_only_events_can_be_pushed() -> None:
    ring, made = Ring(4), events(5, 2)
    made.flags.writeable = False
    assert ring.push(made) == 2


@pytest.mark.parametrize("capacity", [0, 1, 3, -4, 1 << 62])
def test_a_capacity_that_is_no_power_of_two_is_refused(capacity: int) -> None:
    with pytest.raises(UsageError, match="power of two"):
        Ring(capacity)


def test_other_arrays_are_refused() -> None:
    with pytest.raises(UsageError, match="EVENT"):
        Ring(4).push(np.zeros(3, TOP))
    with pytest.raises(UsageError, match="EVENT"):
        Ring(4).push(np.zeros(6, EVENT)[::2])
    with pytest.raises(UsageError, match="EVENT"):
        Ring(4).try_push(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("start", [-1, 3, 1 << 40])
def test_no_start_reads_outside_the_events(start: int) -> None:
    """The kernel does not check: it would copy what lies beside the array."""
    with pytest.raises(UsageError, match=f"from event {start} of 2"):
        Ring(8).try_push(events(0, 2), start)
