"""Nothing blows up: time grows with pattern times text, memory is bounded, whatever the pattern."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest

from trident_core.errors import PatternError
from trident_query.nfa import build
from trident_query.parse import parse
from trident_query.reference import ReferenceQuery
from trident_query.simulate import Simulation, _Alive

# An exponential engine would need longer than the universe has for any of these, and a quadratic one minutes
# for those on long texts: the time-out is the assertion.
pytestmark = pytest.mark.timeout(60)

N = 20_000

PATHOLOGICAL = [
    ("(a*)*b", b"a" * N, 0),
    ("(a|a)*b", b"a" * N, 0),
    ("(a|aa)+$", b"a" * N + b"b", 0),
    ("^(([a-z])+.)+[A-Z]([a-z])+$", b"a" * N, 0),
    ("(x+x+)+y", b"x" * N, 0),
    ("(.*)(.*)(.*)(.*)(.*)[^0]", b"0" * N, 0),
    ("a?" * 100 + "a" * 100, b"a" * 100, 1),
    ("(?:a?){100}(?:a){100}", b"a" * 100, 1),
    ("((a{0,20}){0,20}){0,20}b", b"a" * 500, 0),
    ("(?:a|b|ab)*c", b"ab" * (N // 2), 0),
    ("a.*b|a", b"a" * N, N),  # each match looks for a b up to the end of the text
    ("(?:(?:(?:(?:a*)*)*)*)*", b"a" * N, 1),
    ("(?:^|$|\\b|\\B)*a{0}", b"a" * 50, 51),
]


@pytest.mark.parametrize(("pattern", "text", "count"), PATHOLOGICAL)
def test_pathological_patterns(engine: ReferenceQuery, pattern: str, text: bytes, count: int) -> None:
    program = engine.compile(pattern)
    assert len(program.spans(text)) == count
    assert program.match(np.array([text], dtype="S")).tolist() == [count > 0]


@pytest.mark.parametrize("levels", range(2, 12))
def test_nested_bounded_repeats_hit_the_cap_at_once(levels: int) -> None:
    with pytest.raises(PatternError, match="states"):
        parse("(?:" * levels + "a" + "){1000}" * levels)


def test_a_large_automaton_still_works(engine: ReferenceQuery) -> None:
    program = engine.compile("x(?:[ab]{1000}){10}y|" + "x{1000}" * 60)
    assert program.spans(b"x" + b"ab" * 5_000 + b"y" + b"x", 2) == [(0, 10_002)]


def test_twenty_thousand_alternatives(engine: ReferenceQuery) -> None:
    symbols = [f"{number:05d}"[::-1] for number in range(0, 40_000, 2)]
    program = engine.compile("|".join(f"{text[:4]}" for text in symbols), full=True)
    column = np.array(["0000", "2000", "9999", "00009"], dtype="S")
    assert program.match(column).tolist() == [
        text.decode() in {s[:4] for s in symbols} for text in column.tolist()
    ]


def test_steps_grow_linearly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the memo, the steps of `spans` are at most two walks back and one forth."""
    steps = {"back": 0, "forth": 0}
    back, forth = Simulation._back, Simulation._read

    def count_back(self: Simulation, later: int, byte: int, holds: int) -> int:
        steps["back"] += 1
        return back(self, later, byte, holds)

    def count_forth(self: Simulation, states: int, byte: int) -> int:
        steps["forth"] += 1
        return forth(self, states, byte)

    monkeypatch.setattr(Simulation, "_back", count_back)
    monkeypatch.setattr(Simulation, "_read", count_forth)
    simulation = Simulation(build(parse("a.*b|a")))
    simulation.memo_max, simulation.block = 0, 64
    size = 3_000
    assert len(list(simulation.spans(b"a" * size))) == size
    assert steps["back"] <= 2 * (size + 1)
    assert steps["forth"] <= 2 * size  # each match reads its byte and looks at the position after it


def test_memory_of_hard_sets_is_bounded() -> None:
    """QUERY-31. Every position has a set of its own here; neither memo nor alive sets may keep them all."""
    generator = random.Random(7)
    text = bytes(generator.choice(b"ab") for _ in range(3_000))
    simulation = Simulation(build(parse("[ab]*a[ab]{60}")))
    simulation.memo_max, simulation.block = 50, 100
    assert list(simulation.spans(text)) == [(0, text.rindex(b"a", 0, -60) + 61)]
    assert len(simulation._memo) <= 50
    assert len(simulation._back_memo) <= 50
    alive = _Alive(simulation, text)
    assert alive.next_start(2_500) is not None
    assert len(alive.sets) <= 100


def test_memory_of_long_texts_is_bounded(engine: ReferenceQuery) -> None:
    """QUERY-31."""
    text = b"some words, 12345 and more; " * 5_000
    program = engine.compile(r"\d+")
    tracemalloc.start()
    try:
        assert len(program.spans(text)) == 5_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
