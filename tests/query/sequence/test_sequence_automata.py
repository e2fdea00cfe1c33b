"""The streaming automata against backtracking: random patterns, random rows, random splits."""

from __future__ import annotations

import random

import numpy as np
import pytest

from trident_query.sequence.alphabet import Alphabet
from trident_query.sequence.automaton import Threads, label
from trident_query.sequence.code import compile_pattern
from trident_query.sequence.passes import Pass
from trident_query.sequence.pattern import parse_pattern
from trident_query.sequence.question import Question, SequenceError
from trident_query.sequence.reference import Match, Matcher
from trident_query.sequence.within_pass import WithinPass
from trident_query.where.parse import parse_expression

BITS = {"A": 0, "B": 1, "C": 2}
DEFINE = {name: parse_expression(f"{name.lower()} = 1") for name in BITS}


def pattern(rng: random.Random, depth: int) -> str:
    roll = rng.random()
    if depth == 0 or roll < 0.3:
        return rng.choice(["A", "B", "C", ".", "A", "B"])
    if roll < 0.55:
        return f"({pattern(rng, depth - 1)} {pattern(rng, depth - 1)})"
    if roll < 0.7:
        return f"({pattern(rng, depth - 1)}|{pattern(rng, depth - 1)})"
    if roll < 0.75:
        return rng.choice(["()", "^", "$"])
    how = rng.choice(["*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}"]) + rng.choice(["", "?"])
    return f"({pattern(rng, depth - 1)}){how}"


def rows_of(rng: random.Random, keys: int) -> list[dict[str, int]]:
    made, time = [], 0
    for row in range(rng.randrange(14)):
        time += rng.randrange(3)
        bits = {
            name.lower(): int(rng.random() < share) for name, share in (("A", 0.5), ("B", 0.5), ("C", 0.3))
        }
        made.append({**bits, "ts": time, "key": rng.randrange(keys), "row": row})
    return made


def expected(question: Question, rows: list[dict[str, int]], keys: int) -> list[tuple[int, ...]]:
    """By backtracking; the labels of each match must be those that `label` gives."""
    threads, found = Threads(compile_pattern(question.pattern), BITS), []
    for key in range(keys):
        part = [row for row in rows if row["key"] == key]
        for match in Matcher(question, part).matches():
            if not isinstance(match, Match):
                continue
            inside = part[match.start : match.end]
            taken = label(
                threads, list(map(letter, inside)), first=match.start == 0, last=match.end == len(part)
            )
            assert [threads.program[where].name for where in taken] == match.labels  # type: ignore[union-attr]
            last = inside[-1] if inside else part[match.start]
            found.append((key, part[match.start]["row"], last["row"], int(bool(inside))))
    return sorted(found)


def letter(row: dict[str, int]) -> int:
    return row["a"] | row["b"] << 1 | row["c"] << 2


def streamed(
    walk: Pass | WithinPass, rows: list[dict[str, int]], keys: int, rng: random.Random
) -> list[tuple[int, ...]]:
    symbols = np.array([letter(row) for row in rows], np.uint32)
    key = np.array([row["key"] for row in rows], np.int32)
    times = np.array([row["ts"] for row in rows], np.int64)
    found, at = [], 0
    while at < len(rows):
        end = min(len(rows), at + rng.randrange(1, 6))
        part = slice(at, end)
        found += walk.feed(
            symbols[part], key[part], np.arange(at, end), key_count=keys, times=times[part]
        ).tolist()
        at = end
    found += walk.finish().tolist()
    return sorted(tuple(row[:4]) for row in found)


def check(seed: int, rounds: int) -> int:
    rng, matches = random.Random(seed), 0
    for _ in range(rounds):
        text, keys, within = pattern(rng, 3), rng.choice([1, 3]), rng.choice([None, None, 3, 6])
        question = Question(parse_pattern(text), DEFINE, within=within)
        rows = rows_of(rng, keys)
        wanted = expected(question, rows, keys)
        matches += len(wanted)
        threads = Threads(compile_pattern(question.pattern), BITS)
        for count_only in (False, True):
            if within is None:
                walk: Pass | WithinPass = Pass(threads, Alphabet(3), count_only=count_only)
            else:
                walk = WithinPass(threads, Alphabet(3), within, count_only=count_only)
            found = streamed(walk, rows, keys, rng)
            assert walk.total == len(wanted), (text, within, rows)
            assert count_only or found == wanted, (text, within, rows)
            assert walk.pool[0, 0] == 0, "nodes leak"
    return matches


def test_random_patterns_equal_backtracking() -> None:
    """SEQUENCE-10 to 12."""
    assert check(seed=1, rounds=120) > 300


@pytest.mark.slow
def test_many_random_patterns_equal_backtracking() -> None:
    assert check(seed=2, rounds=1_500) > 3_000


def abc_rows(letters: str) -> list[dict[str, int]]:
    """Rows of two keys in turn, each of one letter."""
    return [
        {"a": int(one == "A"), "b": int(one == "B"), "c": int(one == "C"), "ts": at, "key": at % 2, "row": at}
        for at, one in enumerate(letters)
    ]


def fed(walk: Pass, rows: list[dict[str, int]], first: int = 0) -> list[tuple[int, ...]]:
    """What the walk gives for rows that are numbered from `first` on, after what it gave before."""
    symbols = np.array([letter(row) for row in rows], np.uint32)
    keys = np.array([row["key"] for row in rows], np.int32)
    numbers = np.array([row["row"] for row in rows], np.int64) + first
    return [tuple(row[:4]) for row in walk.feed(symbols, keys, numbers, key_count=2).tolist()]


def test_a_pattern_that_needs_more_than_a_cell_gets_it_on_the_way() -> None:
    """SEQUENCE-10, 17. State and first row share a word until a match is held back, here by C+."""
    question = Question(parse_pattern("A B | A C+ B?"), DEFINE)
    rows = abc_rows("AABBAAAABBBBAAABACCCCCCCABACCBBBAABB")
    walk = Pass(Threads(compile_pattern(question.pattern), BITS), Alphabet(3))
    found = fed(walk, rows[:14])
    assert walk.cells is not None
    found += fed(walk, rows[14:25])
    assert walk.cells is None
    found += fed(walk, rows[25:])
    found += [tuple(row[:4]) for row in walk.finish().tolist()]
    assert sorted(found) == expected(question, rows, 2)
    assert len(found) > 6


@pytest.mark.parametrize("text", ["A B* C", "A (B|C) | B", "(A|B) C", "()"])
@pytest.mark.parametrize("first", [0, -(1 << 47) - 7, (1 << 47) - 17, (1 << 62)])
def test_rows_of_any_number(text: str, first: int) -> None:
    """SEQUENCE-15. A cell has 48 bits of the row's number."""
    question = Question(parse_pattern(text), DEFINE)
    rows = abc_rows("AABBCABACCABCBBBAABBCCABCABCAACCBBCA")
    walk = Pass(Threads(compile_pattern(question.pattern), BITS), Alphabet(3))
    assert walk.cells is not None
    found = fed(walk, rows[:9], first) + fed(walk, rows[9:20], first) + fed(walk, rows[20:], first)
    assert (walk.cells is None) == (first != 0)
    moved = sorted((key, begin - first, last - first, kind) for key, begin, last, kind in found)
    assert moved == expected(question, rows, 2)


def test_find_all_is_linear_where_rescanning_would_be_quadratic() -> None:
    """SEQUENCE-43. `B (B* C)?` on B B B …: each match hangs on a C that never comes; every start scans on."""
    threads = Threads(compile_pattern(parse_pattern("B (B* C)?")), BITS)
    walk = Pass(threads, Alphabet(3))
    n = 200_000
    symbols, keys = np.full(n, 2, np.uint32), np.zeros(n, np.int32)
    found = walk.feed(symbols, keys, np.zeros(1, np.int64), key_count=1)
    assert len(found) == 0
    assert len(walk.machine.states) < 10
    assert len(walk.finish()) == n
    assert walk.pool[0, 0] == 0


def test_open_starts_within_a_window_are_capped() -> None:
    """SEQUENCE-43, 60."""
    threads = Threads(compile_pattern(parse_pattern("A B* C")), BITS)
    walk = WithinPass(threads, Alphabet(3), 10**9)
    n = 5_000
    with pytest.raises(SequenceError, match="open starts of a key"):
        walk.feed(
            np.full(n, 3, np.uint32), np.zeros(n, np.int32), np.arange(n), key_count=1, times=np.arange(n)
        )


@pytest.mark.parametrize(
    "text", ["(A|A)*", "((A*)*)* B", "(A|B|A B)* C", "A{1,40} (A|B){1,40} C", "((A|)*|B*)* C"]
)
def test_hostile_patterns_stay_small(text: str) -> None:
    rng = np.random.default_rng(5)
    walk = Pass(Threads(compile_pattern(parse_pattern(text)), BITS), Alphabet(3))
    for _ in range(4):
        walk.feed(
            rng.integers(0, 8, 500).astype(np.uint32),
            np.zeros(500, np.int32),
            np.zeros(1, np.int64),
            key_count=1,
        )
    assert len(walk.machine.states) <= 1 << 15
