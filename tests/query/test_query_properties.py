"""The engine against two oracles: the meaning of a tree, written out as sets of ends, and Python's `re`."""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trident_core.errors import PatternError
from trident_query.ast import Assertion, At, Chain, Choice, Empty, Node, OneOf, Repeat
from trident_query.nfa import as_set, build, members
from trident_query.parse import parse
from trident_query.reference import ReferenceQuery
from trident_query.simulate import Simulation

Tree = tuple[Any, ...]

ENGINE = ReferenceQuery()
ASSERTIONS = [r"\A", r"\z", "^", "$", r"\b", r"\B"]
TEXTS = st.lists(st.sampled_from(list(b"aAb_- \n\xc3\0")), max_size=12).map(bytes)


def trees(assertions: list[str] = ASSERTIONS) -> st.SearchStrategy[Tree]:
    leaves = st.one_of(
        st.just(("empty",)),
        st.sampled_from(list("abA_")).map(lambda char: ("set", char, frozenset(char.encode()))),
        st.sampled_from(
            [
                (".", frozenset(range(256)) - {10}),
                (r"\w", frozenset(b for b in range(128) if chr(b).isalnum() or b == 95)),
                ("[^ab]", frozenset(range(256)) - set(b"ab")),
                ("[a-b]", frozenset(b"ab")),
                (r"[\s_]", frozenset(b"\t\n\v\f\r _")),
            ]
        ).map(lambda pair: ("set", *pair)),
        st.sampled_from(assertions).map(lambda text: ("at", text)),
    )

    def grow(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        bounds = st.tuples(st.integers(0, 2), st.integers(0, 2) | st.none())
        return st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(lambda items: ("chain", items)),
            st.lists(inner, min_size=2, max_size=3).map(lambda items: ("choice", items)),
            st.tuples(inner, bounds).map(
                lambda pair: (
                    "repeat",
                    pair[0],
                    pair[1][0],
                    None if pair[1][1] is None else sum(pair[1]),
                )
            ),
        )

    return st.recursive(leaves, grow, max_leaves=8)


def pattern_of(tree: Tree) -> str:
    match tree:
        case ("empty",):
            return "(?:)"
        case ("set", text, _) | ("at", text):
            return str(text)
        case ("chain", items):
            return "".join(f"(?:{pattern_of(item)})" for item in items)
        case ("choice", items):
            return "(?:" + "|".join(pattern_of(item) for item in items) + ")"
        case ("repeat", item, low, high):
            return f"(?:{pattern_of(item)}){{{low},{'' if high is None else high}}}"
    raise AssertionError(tree)


def holds(text: bytes, at: int, assertion: str) -> bool:
    def is_word(index: int) -> bool:
        return (
            0 <= index < len(text) and (chr(text[index]).isalnum() or text[index] == 95) and text[index] < 128
        )

    boundary = is_word(at - 1) != is_word(at)
    return {
        r"\A": at == 0,
        r"\z": at == len(text),
        "^": at == 0 or text[at - 1] == 10,
        "$": at == len(text) or text[at] == 10,
        r"\b": boundary,
        r"\B": not boundary,
    }[assertion]


def ends_from(tree: Tree, text: bytes, start: int) -> frozenset[int]:
    """Where a match of `tree` (flag m) that begins at `start` can end: the definition of each construct."""

    @functools.cache
    def ends(number: int, at: int) -> frozenset[int]:
        node = nodes[number]
        match node:
            case ("empty",):
                return frozenset((at,))
            case ("set", _, values):
                return frozenset((at + 1,)) if at < len(text) and text[at] in values else frozenset()
            case ("at", assertion):
                return frozenset((at,)) if holds(text, at, assertion) else frozenset()
            case ("chain", items):
                reached = frozenset((at,))
                for item in items:
                    reached = after(item, reached)
                return reached
            case ("choice", items):
                return frozenset().union(*(ends(index(item), at) for item in items))
            case ("repeat", item, low, high):
                reached = frozenset((at,))
                for _ in range(low):
                    reached = after(item, reached)
                every = reached
                # More rounds than there are positions can reach nothing new.
                for _ in range(len(text) + 1 if high is None else high - low):
                    reached = after(item, reached)
                    every |= reached
                return every
        raise AssertionError(node)

    def after(item: Tree, positions: frozenset[int]) -> frozenset[int]:
        return frozenset().union(*(ends(index(item), at) for at in positions))

    def index(node: Tree) -> int:
        # Trees hold lists, so they are cached by identity; `nodes` keeps them alive.
        number = numbers.setdefault(id(node), len(nodes))
        if number == len(nodes):
            nodes.append(node)
        return number

    nodes: list[Tree] = []
    numbers: dict[int, int] = {}
    return ends(index(tree), start)


def longest_spans(tree: Tree, text: bytes) -> list[tuple[int, int]]:
    """The smallest start, then the greatest end, then on from there."""
    spans: list[tuple[int, int]] = []
    at, last_end = 0, -1
    while at <= len(text):
        ends = ends_from(tree, text, at)
        end = max(ends, default=-1)
        if end < 0 or end == at == last_end:
            at += 1
            continue
        spans.append((at, end))
        at, last_end = end + (end == at), end
    return spans


@given(trees(), TEXTS)
@settings(max_examples=400, deadline=None)
@example(("repeat", ("choice", [("empty",), ("set", "a", frozenset(b"a"))]), 1, None), b"aaa")
@example(("repeat", ("repeat", ("at", "^"), 0, None), 2, 2), b"a\na")
def test_ends_spans_and_match_are_what_the_tree_means(tree: Tree, text: bytes) -> None:
    program = ENGINE.compile(pattern_of(tree), flags="m", raw=True)
    all_ends = {end for start in range(len(text) + 1) for end in ends_from(tree, text, start)}
    assert list(program.simulation.ends(text)) == sorted(all_ends)
    expected = longest_spans(tree, text)
    assert program.spans(text) == expected
    assert program.spans(text, 1) == expected[:1]
    column = np.frombuffer(text, dtype=np.uint8).reshape(1, len(text))
    assert program.match(column).tolist() == [bool(all_ends)]
    full = ENGINE.compile(pattern_of(tree), flags="m", full=True)
    whole = len(text) in ends_from(tree, text, 0)
    assert full.spans(text) == ([(0, len(text))] if whole else [])


@given(trees(), st.lists(st.sampled_from(list(b"ab_ \n")), max_size=80).map(bytes), st.integers(1, 9))
@settings(max_examples=150, deadline=None)
def test_blocks_and_a_tiny_memo_change_nothing(tree: Tree, text: bytes, block: int) -> None:
    nfa = build(parse(pattern_of(tree), "m"))
    simulation, small = Simulation(nfa), Simulation(nfa)
    small.block, small.memo_max = block, 1
    assert list(small.spans(text)) == list(simulation.spans(text))
    assert list(small.ends(text)) == list(simulation.ends(text))


def quietly_compiled(pattern: str, flags: int = 0) -> re.Pattern[bytes] | None:
    """Python's pattern, or None where Python has none; it warns of what may change its meaning one day."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.compile(pattern.encode(), flags)
        except (re.error, OverflowError):
            return None


@given(trees([r"\A", r"\b", "^", "$"]), TEXTS, st.sampled_from([0, re.I, re.S]))
@settings(max_examples=300, deadline=None)
def test_a_match_exists_where_pythons_re_finds_one(tree: Tree, text: bytes, flag: int) -> None:
    pattern = pattern_of(tree)
    theirs = quietly_compiled(pattern, re.M | flag)
    assert theirs is not None
    ours = ENGINE.compile(pattern, flags="m" + {0: "", re.I: "i", re.S: "s"}[flag]).spans(text, 1)
    found = theirs.search(text)
    if found is None and loops_over_nothing(parse(pattern)):
        return  # re gives up on an iteration that matched nothing, and may miss a match so
    assert (ours == []) == (found is None)
    if found:
        assert ours[0][0] == found.start()
        assert ours[0][1] >= found.end()


def loops_over_nothing(node: Node) -> bool:
    match node:
        case Repeat(item, _, high):
            return (high != 1 and nullable(item)) or loops_over_nothing(item)
        case Chain(items) | Choice(items):
            return any(loops_over_nothing(item) for item in items)
    return False


def nullable(node: Node) -> bool:
    match node:
        case Empty() | Assertion():
            return True
        case OneOf():
            return False
        case Chain(items):
            return all(nullable(item) for item in items)
        case Choice(items):
            return any(nullable(item) for item in items)
        case Repeat(item, low, _):
            return low == 0 or nullable(item)
    raise AssertionError(node)


SOUP = st.lists(
    st.sampled_from(
        [*"ab1-^.|()[]*+?{}, \\", "[^", "(?:", "(?i)", "{2}", "{1,3}", r"\d", r"\b", "[:alpha:]", "é"]
    ),
    max_size=10,
).map("".join)


@given(SOUP, st.lists(st.sampled_from(list(b"ab1A-, \xc3")), min_size=1, max_size=8).map(bytes))
@settings(max_examples=500, deadline=None)
def test_any_text_is_a_pattern_or_a_pattern_error(pattern: str, text: bytes) -> None:
    try:
        program = ENGINE.compile(pattern)
    except PatternError as error:
        position, message = error.position, str(error)
        assert 0 <= position <= len(pattern.encode())
        assert "\n" not in message
        return
    theirs = quietly_compiled(pattern)
    # Python counts é{2} for its last byte; and it does not have flags in the middle, nor POSIX classes.
    if theirs is None or "é" in pattern or "[:" in pattern:
        return
    found = theirs.search(text)
    if found is not None or not loops_over_nothing(parse(pattern)):
        assert bool(program.spans(text, 1)) == (found is not None)


@given(st.text(alphabet=st.characters(), max_size=30), st.sampled_from(["", "i", "x", "msx"]))
@settings(max_examples=300, deadline=None)
def test_any_unicode_is_a_pattern_or_a_pattern_error(pattern: str, flags: str) -> None:
    try:
        node = parse(pattern, flags)
    except PatternError as error:
        caret = error.caret()
        assert caret.count("\n") >= 1
        return
    assert len(build(node)) == node.size + 1


@given(st.text(max_size=20))
@settings(max_examples=200, deadline=None)
def test_an_escaped_text_matches_itself(text: str) -> None:
    data = text.encode()
    assert ENGINE.compile(re.escape(text), full=True).spans(data) == [(0, len(data))]


@given(st.sets(st.integers(0, 3_000), max_size=600))
@settings(deadline=None)
def test_sets_of_states_are_integers(states: set[int]) -> None:
    assert list(members(as_set(states))) == sorted(states)


def test_flag_m_is_what_the_oracle_assumes() -> None:
    assert parse("^", "m") == Assertion(At.LINE_START)
    assert parse("$", "m") == Assertion(At.LINE_END)
