"""Hostile patterns are bounded in time and memory; the error names the cap, the value and the sub-pattern."""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np
import pytest

from trident_core.errors import PatternError
from trident_query.auto import AutoQuery
from trident_query.bits_engine import POSITIONS_MAX, BitsQuery
from trident_query.dfa import determinise, minimised
from trident_query.glushkov import glushkov
from trident_query.limits import LimitError, Limits
from trident_query.parse import parse
from trident_query.reverse import reverse
from trident_query.simplify import simplify
from trident_query.table_engine import TableQuery

#: pattern, engine, cap, sub-pattern
REFUSED = [
    ("[ab]*a[ab]{60}", TableQuery, "states", "[ab]{60}"),
    ("x(?:[ab]{0,40}a){9}y", TableQuery, "states", "(?:[ab]{0,40}a){9}"),
    ("((a?){1000}){50}", TableQuery, "edges", "((a?){1000}){50}"),
    ("a{1000}b{25}", BitsQuery, "positions", "a{1000}"),
    ("a{1001}", TableQuery, "repeat", "a{1001}"),
    ("(?:a{1000}){101}", TableQuery, "nodes", "(?:a{1000}){101}"),
]


@pytest.mark.parametrize(("pattern", "engine", "cap", "part"), REFUSED, ids=[row[0] for row in REFUSED])
def test_caps_are_named(pattern: str, engine: Any, cap: str, part: str) -> None:
    with pytest.raises(LimitError) as caught:
        engine().compile(pattern)
    error = caught.value
    assert (error.cap, error.part, error.pattern) == (cap, part, pattern)
    assert error.value > error.limit
    assert f"cap {cap!r}" in str(error)
    assert f"{error.limit:,}" in str(error)
    assert error.hint
    assert 0 <= error.position < len(pattern)


HOSTILE = [
    "(a|a)*$", "(a*)*b", "((a{0,20}){0,20}){0,20}b", ".{1000}", "(?s:.{1000}){9}", "[ab]*a[ab]{900}b",
    "(?:a?){500}a{500}", "(?:(?:(?:a*)*)*)*", "(?:^|$|\\b|\\B)*x", "(?:\\xff|\\xc3|[\\x80-\\xbf])+\\z",
    "(.*)(.*)(.*)(.*)[^0]", "(?:a|b|ab)*c", "(?i)" + "|".join("abcdefgh"[i:] for i in range(8)) * 20,
]  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.parametrize("pattern", HOSTILE, ids=lambda p: p[:24])
def test_hostile_patterns_are_answered_by_auto(pattern: str) -> None:
    column = np.array([b"a" * 60, b"\xff\xfe\xc3", b"ab" * 20 + b"c"])
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    program = AutoQuery().compile(pattern)
    assert program.match(column).dtype == np.bool_
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB
    assert time.perf_counter() - began < 100
    assert program.explain()["why"]["column"]


def test_twenty_thousand_alternatives_are_one_table() -> None:
    symbols = sorted({f"{number * 7919 % 100_000:05d}"[:4] for number in range(20_000)})
    program = TableQuery().compile("|".join(symbols), full=True)
    column = np.array([b"0000", symbols[-1].encode(), b"00001", b"x"])
    wanted = [value.decode() in symbols for value in column.tolist()]
    assert program.match(column).tolist() == wanted
    assert program.explain()["table_bytes"] < 1 << 20


def test_time_is_a_cap() -> None:
    g = glushkov(parse("(?:[ab]*a[ab]{12}){2}"), pattern="(?:[ab]*a[ab]{12}){2}")
    with pytest.raises(LimitError) as caught:
        determinise(g, limits=Limits(seconds=0.0))
    assert caught.value.cap == "seconds"


def test_bytes_of_tables_are_a_cap() -> None:
    with pytest.raises(LimitError) as caught:
        determinise(glushkov(parse("abc")), limits=Limits(table_bytes=10))
    assert caught.value.cap == "table_bytes"


def test_many_positions_with_one_list_are_reversed_or_refused() -> None:
    shared = glushkov(parse("(?:" + "|".join("ab"[n % 2] * 2 for n in range(3000)) + ")*"))
    with pytest.raises(LimitError) as caught:
        reverse(shared, Limits(edges=10_000))
    assert caught.value.cap == "edges"


def test_far_too_many_positions_are_refused_before_they_are_followed() -> None:
    """Following these takes seconds, and was tried after the same had been too much for tables."""
    with pytest.raises(LimitError) as caught:
        BitsQuery().compile("((a{0,20}){0,20}){0,20}b")
    assert (caught.value.cap, caught.value.limit) == ("positions", POSITIONS_MAX)
    assert caught.value.value > 4 * POSITIONS_MAX
    # Some that are read can come to no end; they do not count.
    BitsQuery().compile(f"a{{{POSITIONS_MAX // 2}}}|(?:b{{1000}}^b)")


def test_glushkov_has_no_more_positions_than_it_says() -> None:
    BitsQuery().compile(f"a{{{POSITIONS_MAX // 2}}}b{{{POSITIONS_MAX // 2}}}")
    with pytest.raises(PatternError):
        BitsQuery().compile(f"a{{{POSITIONS_MAX // 2}}}b{{{POSITIONS_MAX // 2}}}c")


# --- automata by themselves ---------------------------------------------------------------------------------


def test_minimal_automata_have_the_known_sizes() -> None:
    """Myhill and Nerode: the number of states is a property of the language."""
    for pattern, states in [("(?:a|b)*", 1), ("(?s:.*)", 1), ("[^\\s\\S]", 1), ("a", 3), ("ab|ab|a(?:b)", 4)]:
        dfa = minimised(determinise(glushkov(parse(pattern, full=False)), search=False, stop=False))
        language = {"(?:a|b)*": 2, "(?s:.*)": 2}.get(pattern, states)
        assert dfa.states == language, pattern


def test_the_count_from_the_end_needs_two_to_the_n_states() -> None:
    for n in range(1, 9):
        dfa = minimised(determinise(glushkov(parse(f"(?:a|b)*a(?:a|b){{{n}}}", full=True))))
        assert 2 ** (n + 1) <= dfa.states <= 2 ** (n + 1) + 4


def test_simplified_trees_are_smaller() -> None:
    for pattern, size in [
        ("a|b|c", 1), ("abc|abd|abe", 3), ("(?:a*)*", 2), ("a{1}", 1), ("[^\\s\\S]|a", 1), ("ab|a", 3),
    ]:  # fmt: skip
        node = parse(pattern)
        assert simplify(node).size <= node.size
        if pattern != "ab|a":
            assert simplify(node).size == size, pattern


def test_deep_prefixes_do_not_exhaust_the_stack() -> None:
    words = ["a" * length for length in range(1, 200)]
    dfa = minimised(determinise(glushkov(simplify(parse("|".join(words), full=True)))))
    assert dfa.accepts_text(b"a" * 199)
    assert not dfa.accepts_text(b"a" * 200)
