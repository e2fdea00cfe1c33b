"""Putting runs in order, against a model that has all of them at once."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from trident_feed.numbering import GAPS_KEPT, HELD_BYTES_MAX, HELD_RUNS_MAX, Reorder, Run


def run(start: int, size: int) -> Run:
    """Units are bytes; each is its number, modulo 251."""
    return Run(start, start + size, bytes(n % 251 for n in range(start, start + size)), start)


class Told:
    """A Reorder, what it gave, and what it reported."""

    def __init__(self) -> None:
        self.reports: Counter[str] = Counter()
        self.order = Reorder(lambda data, count: data[count:], self._report)
        self.out: list[Run] = []

    def _report(self, kind: str, count: int, offset: int) -> None:
        self.reports[kind] += count

    def push(self, *runs: Run) -> Told:
        for each in runs:
            self.out += self.order.push(each)
        return self

    def units(self) -> list[int]:
        return [number for each in self.out for number in range(each.start, each.end)]


runs = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), min_size=1, max_size=40)


@given(runs)
def test_every_unit_from_the_first_on_once_and_in_order(spans: list[tuple[int, int]]) -> None:
    """FEED-29, 30."""
    told = Told().push(*(run(start, size) for start, size in spans))
    told.out += told.order.flush()
    first = spans[0][0]
    arrived = Counter(n for start, size in spans for n in range(start, start + size))
    expected = sorted(n for n in arrived if n >= first)
    assert told.units() == expected
    assert all(each.data == run(each.start, each.end - each.start).data for each in told.out)
    assert told.reports["gap"] == expected[-1] - first + 1 - len(expected)
    assert told.reports["late"] == sum(count for n, count in arrived.items() if n < first)
    assert told.reports["duplicate"] == sum(count - 1 for n, count in arrived.items() if n >= first)


@given(runs, st.integers(0, 80))
def test_what_was_announced_and_never_came_is_a_gap(spans: list[tuple[int, int]], following: int) -> None:
    told = Told().push(*(run(start, size) for start, size in spans))
    told.order.announce(following, 0)
    told.out += told.order.flush()
    last = max(start + size for start, size in spans)
    upto = max(last, following)
    assert told.reports["gap"] + len(told.units()) == upto - spans[0][0]


def test_a_gap_is_given_up_when_too_many_runs_are_held() -> None:
    told = Told().push(run(0, 1), *(run(n, 1) for n in range(2, 2 + HELD_RUNS_MAX)))
    assert told.units() == [0]
    told.push(run(2 + HELD_RUNS_MAX, 1))
    assert told.units() == [0, *range(2, 3 + HELD_RUNS_MAX)]
    assert told.reports == {"gap": 1}
    told.push(run(1, 1))
    assert told.reports == {"gap": 1, "late": 1}


def test_a_gap_is_given_up_when_too_many_bytes_are_held() -> None:
    size = HELD_BYTES_MAX // 4
    told = Told().push(run(0, 1), *(run(10 + n * size, size) for n in range(4)))
    assert told.units() == [0]
    told.push(run(10 + 4 * size, 1))
    assert len(told.units()) == 1 + 4 * size + 1
    assert told.reports == {"gap": 9}


def test_only_so_many_gaps_are_remembered() -> None:
    told = Told().push(run(0, 1))
    for n in range(1, GAPS_KEPT + 3):
        told.push(run(2 * n, 1))
        told.out += told.order.flush()
    told.push(run(1, 1), run(2 * GAPS_KEPT + 1, 1))
    assert told.reports["duplicate"] == 1, "the oldest gap is forgotten"
    assert told.reports["late"] == 1
