"""All engines give the same answers: every small pattern on every short text, and hypothesis beyond.

TRIDENT_QUERY_SIZE (default 3) is the number of parts of the largest patterns that are enumerated; each step
takes about ten times as long.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.errors import PatternError, UsageError
from trident_query.auto import AutoQuery
from trident_query.bits_engine import BitsQuery
from trident_query.limits import LimitError
from trident_query.reference import ReferenceProgram, ReferenceQuery
from trident_query.table_engine import TableQuery

REFERENCE = ReferenceQuery()
ENGINES: dict[str, Any] = {"dfa": TableQuery(), "glushkov": BitsQuery(), "auto": AutoQuery()}
if importlib.util.find_spec("re2"):
    from trident_query.re2_engine import Re2Query

    ENGINES["re2"] = Re2Query()

SIZE = int(os.environ.get("TRIDENT_QUERY_SIZE", "3"))
ATOMS = ("a", "b", ".", "^", "$", r"\b", r"\B", "(?:)")
SUFFIXES = ("*", "+?", "{2}", "?", "{1,2}?")
TEXTS = [bytes(t) for n in range(5) for t in itertools.product(b"ab\n", repeat=n)]


def patterns(size: int) -> Iterator[str]:
    """Every pattern of `size` parts: atoms, repeats, chains and choices."""
    if size == 1:
        yield from ATOMS
        return
    for inner in patterns(size - 1):
        for suffix in SUFFIXES:
            yield f"(?:{inner}){suffix}"
    for left in range(1, size):
        for a, b in itertools.product(patterns(left), patterns(size - left)):
            yield f"{a}{b}" if "|" not in a + b else f"(?:{a})(?:{b})"
            yield f"{a}|{b}"


def small_patterns() -> list[str]:
    """Those of up to SIZE parts; of the largest, every eightieth."""
    return [p for size in range(1, SIZE + 1) for p in list(patterns(size))[:: 1 if size < SIZE else 80]]


@functools.cache
def expected(pattern: str, flags: str, texts: tuple[bytes, ...]) -> tuple[Any, ...]:
    longest, first = (REFERENCE.compile(pattern, flags=flags, first=value) for value in (False, True))
    return answers(longest, first, texts)


def answers(longest: Any, first: Any, texts: tuple[bytes, ...], *, ends: bool = True) -> tuple[Any, ...]:
    column = np.array(texts, "S8")
    return (
        longest.match(column).tolist(),
        [longest.spans(text) for text in texts],
        [first.spans(text) for text in texts],
        [longest.ends(text) for text in texts] if ends else None,
    )


@pytest.mark.parametrize("name", list(ENGINES))
def test_every_small_pattern_on_every_short_text(name: str) -> None:
    engine, texts = ENGINES[name], tuple(TEXTS[:: 1 if SIZE > 3 else 5])
    has_ends = name != "re2"
    compared = 0
    for pattern in small_patterns():
        longest, first = (engine.compile(pattern, flags="m", first=value) for value in (False, True))
        wanted = expected(pattern, "m", texts)
        got = answers(longest, first, texts, ends=has_ends)
        assert got[:3] == wanted[:3], pattern
        assert not has_ends or got[3] == wanted[3], pattern
        compared += 1
    assert compared > 200


@st.composite
def any_pattern(draw: st.DrawFn) -> str:
    atoms = st.sampled_from(
        [*ATOMS, "ab", "[^a]", "[[:space:]]", r"\A", r"\z", "A", "", "a{3}", "[ab]{0,70}"]
    )
    inner = st.recursive(
        atoms,
        lambda part: st.one_of(
            st.tuples(part, part).map("".join),
            st.lists(part, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
            st.tuples(part, st.sampled_from(SUFFIXES)).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        ),
        max_leaves=8,
    )
    return draw(inner)


LETTERS = st.lists(st.sampled_from(list(b"abA \n\xff\0_")), max_size=90).map(bytes)


@settings(max_examples=25, deadline=None)
@given(
    any_pattern(),
    st.sampled_from(["", "i", "m", "ms"]),
    st.lists(LETTERS, min_size=1, max_size=4),
    st.booleans(),
)
def test_any_pattern(pattern: str, flags: str, texts: list[bytes], raw: bool) -> None:
    longest, first = (
        REFERENCE.compile(pattern, flags=flags, raw=raw, first=value) for value in (False, True)
    )
    column = np.array(texts, "S90")
    for name, engine in ENGINES.items():
        try:
            programs = [engine.compile(pattern, flags=flags, raw=raw, first=value) for value in (False, True)]
        except PatternError:
            refused = engine.compile if name in ("re2", "dfa", "glushkov") else None
            assert refused is not None, f"{name} takes every pattern"
            continue
        assert programs[0].match(column).tolist() == longest.match(column).tolist(), name
        for text in texts:
            assert programs[0].spans(text) == longest.spans(text), name
            assert programs[1].spans(text) == first.spans(text), name
            if name != "re2":
                try:
                    found = programs[0].ends(text)
                except LimitError:  # of the table of all ends, which is made when it is asked for
                    assert name == "dfa", f"{name} tells the ends of every pattern"
                else:
                    assert found == longest.ends(text), name


@settings(max_examples=25, deadline=None)
@given(
    st.lists(any_pattern(), min_size=1, max_size=12), st.lists(LETTERS, min_size=1, max_size=8), st.booleans()
)
def test_sets_are_their_patterns(wanted: list[str], texts: list[bytes], raw: bool) -> None:
    column = np.array(texts, "S90")
    masks = REFERENCE.compile_set(wanted, raw=raw).match_set(column)
    for bit, pattern in enumerate(wanted):
        single = REFERENCE.compile(pattern, raw=raw).match(column)
        assert (masks >> np.uint64(bit) & np.uint64(1)).astype(bool).tolist() == single.tolist()
    for name, engine in ENGINES.items():
        try:
            program = engine.compile_set(wanted, raw=raw)
        except PatternError:
            continue
        assert program.match_set(column).tolist() == masks.tolist(), name


@pytest.mark.parametrize("name", ["reference", *ENGINES])
def test_sets_have_one_to_sixty_four_patterns(name: str) -> None:
    engine = ENGINES.get(name, REFERENCE)
    column = np.array([b"P3", b"P63", b"x"])
    masks = engine.compile_set([f"^P{number}$" for number in range(64)]).match_set(column)
    assert masks.dtype == np.uint64
    assert masks.tolist() == [1 << 3, 1 << 63, 0]
    for wrong in ([], ["a"] * 65, "abc"):
        with pytest.raises(UsageError):
            engine.compile_set(wrong)


@pytest.mark.parametrize("name", ["reference", "dfa", "glushkov", "auto"])
def test_blocks_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """QUERY-23: spans and ends over the edges of blocks of every small size."""
    engine = ENGINES.get(name, REFERENCE)
    text = b"aab ab\nb aaab" * 3
    cases = [
        ("a+b", {}),
        ("a+?b??", {"first": True}),
        (r"\b", {}),
        ("a*", {"first": True}),
        ("(?m)^a|b$", {}),
    ]
    whole = [(engine.compile(p, **o).spans(text), engine.compile(p, **o).ends(text)) for p, o in cases]
    assert whole == [
        (ReferenceProgram(p, **o).spans(text), ReferenceProgram(p, **o).ends(text)) for p, o in cases
    ]
    for size in (1, 2, 3, 7):
        monkeypatch.setattr("trident_query.spans.BLOCK", size)
        monkeypatch.setattr("trident_query.spans.ROOM", size)
        monkeypatch.setattr("trident_query.bits_engine.BLOCK_WORDS", 4 * size)
        monkeypatch.setattr("trident_query.bits_engine.ROOM", size)
        assert [
            (engine.compile(p, **o).spans(text), engine.compile(p, **o).ends(text)) for p, o in cases
        ] == whole


@pytest.mark.parametrize("name", list(ENGINES))
def test_columns_of_every_layout(name: str) -> None:
    program = ENGINES[name].compile("^A[A-Z]+$")
    values = [b"AAPL", b"A", b"AB \0", b"BA", b"A B"] * 3
    wanted = REFERENCE.compile("^A[A-Z]+$").match(np.array(values, "S8")).tolist()
    records = np.zeros(len(values), [("number", "u1"), ("text", "S8")])
    records["text"] = values
    records.flags.writeable = False
    for width in (4, 5, 8, 9, 33):
        column = np.array(values, f"S{width}")
        assert program.match(column).tolist() == wanted
        assert program.match(column[::-1]).tolist() == wanted[::-1]
        assert program.match(column.view(np.uint8).reshape(len(values), width)).tolist() == wanted
    assert program.match(records["text"]).tolist() == wanted
    assert program.match(np.zeros(0, "S8")).tolist() == []
    assert program.match(np.zeros((2, 0), np.uint8)).tolist() == [False, False]


@pytest.mark.parametrize("name", ["reference", *ENGINES])
def test_programs_explain_themselves(name: str) -> None:
    program = ENGINES.get(name, REFERENCE).compile("^AA")
    told = program.explain()
    assert told["engine"] == name
    assert told["pattern"] == "^AA"
    if name == "dfa":
        assert (told["positions"], told["prefilter"]) == (2, None)
        assert told["table_bytes"] == told["states"] * 512
    if name == "auto":
        assert told["why"]["column"].startswith("dfa: a table within the caps")


def test_auto_says_what_was_refused_on_the_way() -> None:
    program = AutoQuery().compile("[ab]*a[ab]{60}c")
    assert program.match(np.array([b"a" * 61 + b"c", b"c"])).tolist() == [True, False]
    told = program.explain()
    assert told["why"]["column"].startswith("glushkov")
    assert "cap 'states'" in told["refused"]["dfa column"]
    program = AutoQuery().compile("(?:[ab]*a[ab]{600}c){2}")
    assert program.match(np.array([b"c"])).tolist() == [False]
    assert program.explain()["why"]["column"].startswith("reference")
