"""The thread behind a shard: order, results, errors, its end."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest

from trident_core.sharding.worker import Worker


def alive(name: str) -> bool:
    return any(thread.name == name for thread in threading.enumerate())


def gone(name: str) -> bool:
    until = time.monotonic() + 10
    while alive(name) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(name)


def test_tasks_are_done_in_order_by_one_thread() -> None:
    worker, seen = Worker("test-order"), []
    tasks = [
        worker.submit(lambda n=n: seen.append((n, threading.current_thread().name)) or n) for n in range(50)
    ]
    assert [task.result() for task in tasks] == list(range(50))
    assert seen == [(n, "test-order") for n in range(50)]
    worker.close()
    assert not alive("test-order")
    worker.close()


def test_an_error_is_raised_where_the_result_is_asked_for_and_ends_nothing() -> None:
    worker = Worker("test-error")
    failed, good = worker.submit(lambda: 1 / 0), worker.submit(int, "7")
    failed.wait()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            failed.result()
    assert good.result() == good.result() == 7
    worker.close()


def test_no_thread_without_a_task_and_none_after_the_worker() -> None:
    worker = Worker("test-life")
    assert not alive("test-life")
    worker.submit(int).wait()
    assert alive("test-life")
    del worker
    gc.collect()
    assert gone("test-life")


def test_a_task_keeps_nothing_of_the_one_before() -> None:
    class Thing:
        pass

    worker, thing = Worker("test-keeps"), Thing()
    kept = weakref.ref(thing)
    worker.submit(lambda each: None, thing).wait()
    del thing
    worker.submit(int).wait()
    gc.collect()
    assert kept() is None
    worker.close()
