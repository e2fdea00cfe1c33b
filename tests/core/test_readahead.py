"""The feed read by a thread: the same chunks, errors in their place, and an end when nobody wants more."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from trident_core.contracts import Chunk
from trident_core.errors import InputError
from trident_core.readahead import AHEAD, ReadAhead
from trident_core.stats import Anomalies


class Numbers:
    """A feed of one buffer that it uses again for every chunk."""

    protocol = "numbers"

    def __init__(self, count: int, error: Exception | None = None) -> None:
        self.anomalies = Anomalies()
        self.read = 0
        self._count, self._error = count, error

    def __iter__(self):
        buffer = np.zeros(4, np.uint8)
        for n in range(self._count):
            buffer[:] = n
            self.read += 1
            yield Chunk(buffer, n, 4 * n)
        if self._error:
            raise self._error


def test_the_same_chunks_though_the_buffer_is_used_again():
    found = []
    for chunk in ReadAhead(Numbers(100)):
        time.sleep(0.001)  # the thread is as far ahead as it may be
        found.append((chunk.data.tolist(), chunk.seq, chunk.offset))
    assert found == [([n] * 4, n, 4 * n) for n in range(100)]


def test_chunks_of_any_length_in_few_buffers():
    class Lengths(Numbers):
        def __iter__(self):
            for n in range(self._count):
                yield Chunk(np.full(1 + n * 7919 % 64, n % 251, np.uint8), n, 0)

    buffers = set()
    for n, chunk in enumerate(ReadAhead(Lengths(3_000))):
        assert chunk.data.tolist() == [n % 251] * (1 + n * 7919 % 64)
        if n >= 2_000:  # by then every buffer has had the longest
            buffers.add(chunk.data.__array_interface__["data"][0])
    assert len(buffers) <= AHEAD + 2


def test_an_error_comes_after_the_chunks_before_it():
    chunks = iter(ReadAhead(Numbers(3, InputError("torn"))))
    assert [next(chunks).seq for _ in range(3)] == [0, 1, 2]
    with pytest.raises(InputError, match="torn"):
        next(chunks)


def test_it_reads_a_bounded_way_ahead_and_stops_with_its_reader():
    before = threading.active_count()
    feed = Numbers(10_000)
    chunks = iter(ReadAhead(feed))
    next(chunks)
    time.sleep(0.2)
    assert feed.read <= AHEAD + 3
    chunks.close()
    assert threading.active_count() == before
